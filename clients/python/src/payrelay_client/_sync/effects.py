"""Carries out what must happen once: with a stored key, by the one retry rule, to its end.

Rules:

1. With a store, the record is stored and read back before the request leaves. Where that fails, nothing is sent.
2. Without a store no key is sent, so that the service itself knows an equal request.
3. A payment is never sent again to learn its outcome: its operation is read instead.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final, Generic, TypeVar

from payrelay_client import keys, requests
from payrelay_client._sync.following import Follower
from payrelay_client._sync.runtime import in_thread
from payrelay_client._sync.sending import Sender
from payrelay_client.errors import AttemptOpen, NotFound, StoreFailed
from payrelay_client.keys import AttemptState, Record, Store
from payrelay_client.limits import Budget
from payrelay_client.models import Checkout, Operation, OperationDetail
from payrelay_client.outcomes import WITH_PERSON, Done, OpenEnd
from payrelay_client.replies import NO_ANSWER, NoReply, Reply, error_of, replay_of
from payrelay_client.requests import Effect, Request

Data_co = TypeVar("Data_co", covariant=True)
OneData = TypeVar("OneData")

LOG: Final = logging.getLogger("payrelay_client")
CHECKOUT: Final = "checkout"
NOT_SENT: Final = "not_sent"
_VERDICTS: Final = frozenset({HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})


@dataclass(frozen=True, kw_only=True)
class Open(OpenEnd[Data_co], Generic[Data_co]):
    """Nobody knows yet whether it took effect, and ``follow`` goes on following it."""

    _resume: Callable[[], "Done[Data_co] | Open[Data_co]"] = field(repr=False, compare=False)

    def follow(self) -> "Done[Data_co] | Open[Data_co]":
        """Follows it for as long again. Raises PayrelayError where it took no effect."""
        return self._resume()


class Effects:
    """Carries out effects on one account."""

    def __init__(self, sender: Sender, follower: Follower, store: Store | None, account: str) -> None:
        self._sender = sender
        self._follower = follower
        self._store = store
        self._account = account

    def carry_out(self, effect: Effect[OneData]) -> Done[OneData] | Open[OneData]:
        """Carries out what moves money, to its end or to the end of its limits.

        Raises PayrelayError where the request took no effect; StoreFailed, NameNeeded and AttemptOpen before it is
        sent.
        """
        return self._send(self._sending(effect), self._sender.budget())

    def ask_with_key(self, effect: Effect[OneData]) -> OneData:
        """Asks for what moves no money by itself, but must be there once: a checkout. Raises PayrelayError."""
        sending = self._sending(effect)
        got = self._sender.send(sending.request, self._sender.budget())
        self._settle(sending.record, got)
        if isinstance(got, Reply) and got.http_status == HTTPStatus.OK:
            return effect.read(got.data)
        raise error_of(got)

    def _sending(self, effect: Effect[OneData]) -> "_Sending[OneData]":
        """Puts together what is sent. The record of its key is stored when this returns."""
        held = self._held(effect)
        headers = dict(effect.request.headers)
        if held is not None:
            headers["Idempotency-Key"] = held.record.key
        if effect.kind != CHECKOUT and self._sender.limits.wait_s:
            headers["Prefer"] = f"wait={self._sender.limits.wait_s}"
        return _Sending(
            request=replace(effect.request, headers=headers),
            record=None if held is None else held.record,
            was_there=held is not None and held.was_there,
            read=effect.read,
        )

    def _send(self, sending: "_Sending[OneData]", budget: Budget) -> Done[OneData] | Open[OneData]:
        budget.is_in_doubt = budget.is_in_doubt or sending.was_there
        got = self._sender.send(sending.request, budget)
        if not isinstance(got, Reply) or got.http_status != HTTPStatus.ACCEPTED:
            return self._conclude(sending, got, budget)
        was = self._open(sending, got)
        if was.is_with_person or was.operation_id is None:
            return was
        # An answer that was held has waited already.
        if "preference-applied" not in got.headers and not self._sender.pause(got, budget, 1):
            return was
        return self._follow(sending, was, was.operation_id, budget)

    def _follow(
        self, sending: "_Sending[OneData]", was: Open[OneData], operation_id: str, budget: Budget
    ) -> Done[OneData] | Open[OneData]:
        """Reads the operation until its end, and concludes from the answer that it has then."""
        budget.is_in_doubt = True
        end = self._follower.follow(operation_id, budget)
        if not isinstance(end, OperationDetail):
            return was
        if not end.is_final:
            return replace(was, is_with_person=True, reason="needs_attention", message=end.explanation)
        if end.state == NOT_SENT:
            # Nothing was done, and the key is free again: the very same request may go.
            not_sent = NoReply(reason=end.state, message=end.explanation)
            if budget.tries >= self._sender.limits.tries:
                return was
            if not self._sender.pause(not_sent, budget, budget.tries, operation_id):
                return was
            return self._send(sending, budget)
        reply = replay_of(end)
        if end.state in keys.NOTHING_TAKEN:
            self._note(sending.record, "nothing")
        return self._conclude(sending, reply, budget)

    def _conclude(
        self, sending: "_Sending[OneData]", got: Reply | NoReply, budget: Budget
    ) -> Done[OneData] | Open[OneData]:
        self._settle(sending.record, got)
        if isinstance(got, Reply) and got.http_status == HTTPStatus.OK:
            return Done(
                data=sending.read(got.data),
                operation_id=got.operation_id,
                is_replay=got.is_replay,
                request_id=got.request_id,
            )
        if budget.is_in_doubt and not _is_about_the_payment(got):
            return self._open(sending, got)
        raise error_of(got)

    def _open(self, sending: "_Sending[OneData]", got: Reply | NoReply) -> Open[OneData]:
        def resume() -> Done[OneData] | Open[OneData]:
            budget = self._sender.budget()
            if was.operation_id is None:
                budget.is_in_doubt = True
                return self._send(sending, budget)
            return self._follow(sending, was, was.operation_id, budget)

        was = Open[OneData](
            reason=got.code if isinstance(got, Reply) else NO_ANSWER,
            message=got.msg if isinstance(got, Reply) else got.message,
            operation_id=got.operation_id,
            is_with_person=isinstance(got, Reply) and got.code in WITH_PERSON,
            retry_after_s=got.retry_after_s,
            request_id=got.request_id,
            _resume=resume,
        )
        return was

    def _held(self, effect: Effect[OneData]) -> "_Held | None":
        """Gives the stored record of the attempt that is to be sent; None where there is no store."""
        if self._store is None:
            return None
        name = keys.store_name(effect.kind, self._account, effect.name)
        record = self._stored(name)
        if record is None:
            return _Held(self._put(keys.begun(name, 1)), was_there=False)
        if not effect.again or not self._took_nothing(effect, record):
            return _Held(record, was_there=True)
        return _Held(self._put(keys.begun(name, record.attempt + 1)), was_there=False)

    def _took_nothing(self, effect: Effect[OneData], record: Record) -> bool:
        """Tells whether the last attempt took nothing, for good; False where it took effect. Raises AttemptOpen."""
        if record.state == "nothing":
            return True
        if effect.kind == CHECKOUT:
            return self._page_has_ended(record)
        if record.state == "done":
            return False
        operation_id = None
        try:
            got = self._sender.ask(requests.get(f"/operations/by-key/{requests.segment(record.key)}"))
        except NotFound:
            # The service refused the request before it became an operation, or never got it.
            if record.refused:
                return True
        else:
            operation = Operation.of(got.data)
            operation_id = operation.id
            if operation.state in keys.NOTHING_TAKEN:
                return True
            if operation.state == "succeeded":
                return False
        raise AttemptOpen(f"attempt {record.attempt} of {record.name} may have taken effect", operation_id=operation_id)

    def _page_has_ended(self, record: Record) -> bool:
        if record.checkout_id is None:
            return record.refused
        got = self._sender.ask(requests.get(f"/checkouts/{requests.segment(record.checkout_id)}"))
        return Checkout.of(got.data).state in keys.PAGES_ENDED

    def _stored(self, name: str) -> Record | None:
        assert self._store is not None  # noqa: S101 - whoever calls this has one
        try:
            text = in_thread(self._store.get, name)
        except Exception as error:  # whatever a store raises, the key isn't known
            raise StoreFailed(f"the store could not be read: {error}") from error
        return None if text is None else keys.read_record(name, text)

    def _put(self, record: Record) -> Record:
        """Stores a record and reads it back; gives what is stored then. Raises StoreFailed."""
        assert self._store is not None  # noqa: S101 - whoever calls this has one
        try:
            in_thread(self._store.put, record.name, record.text())
        except Exception as error:  # whatever a store raises, the key isn't stored
            raise StoreFailed(f"the key could not be stored: {error}") from error
        stored = self._stored(record.name)
        if stored is None or stored.attempt < record.attempt:
            raise StoreFailed("the store doesn't have what was put into it")
        return stored

    def _settle(self, record: Record | None, got: Reply | NoReply) -> None:
        """Notes what an answer says of the attempt."""
        if isinstance(got, NoReply):
            return
        if got.http_status == HTTPStatus.OK:
            self._note(record, "done", checkout_id=_checkout_id(record, got))
        elif got.code == "declined":
            self._note(record, "nothing")
        elif got.code == "invalid_request":
            self._note(record, "open", refused=True)

    def _note(
        self, record: Record | None, state: AttemptState, *, refused: bool = False, checkout_id: str | None = None
    ) -> None:
        """Stores what became of an attempt. A failure is no matter: the next call gets the same answer."""
        if record is None or self._store is None or record.state != "open":
            return
        ended = record.ended(state, refused=refused, checkout_id=checkout_id)
        try:
            stored = self._stored(record.name)
            if ended != stored and (stored is None or stored.attempt <= record.attempt):
                in_thread(self._store.put, record.name, ended.text())
        except Exception:  # whatever a store raises, the answer counts
            LOG.warning("what became of %s could not be stored", record.name, exc_info=True)


@dataclass(frozen=True, kw_only=True)
class _Sending(Generic[OneData]):
    """What is sent, the record of its key, and whether that was there before this call."""

    request: Request
    record: Record | None
    was_there: bool
    read: Callable[[object], OneData]


@dataclass(frozen=True)
class _Held:
    record: Record
    was_there: bool


def _is_about_the_payment(got: Reply | NoReply) -> bool:
    """Tells whether an error says what became of the payment, and not only of this send."""
    return isinstance(got, Reply) and got.is_final and got.http_status in _VERDICTS


def _checkout_id(record: Record | None, got: Reply) -> str | None:
    if record is None or not record.name.startswith(f"{CHECKOUT}/") or not isinstance(got.data, dict):
        return None
    named = got.data.get("id")
    return named if isinstance(named, str) else None
