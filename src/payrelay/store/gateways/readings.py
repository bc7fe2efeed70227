"""The stored part of the read cache: the gateway's last answers to reads, sealed, and the versions that outdate them.

A *version* stands for everything that may have changed what a read would show. It is made of the versions of the
operations on an order or a subscription, and of a count of the changes that may affect every reading. The version is
read before the gateway is asked. An answer is as good as new to a caller that finds an equal version again. The last
known status of each payment is stored here too.

An answer names customers. It is sealed with a data key of its own (``store.data_keys.keys``), which is destroyed with
it.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.orders.received_again import RETURNED
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.errors import StoreUnusable
from payrelay.store.data_keys.keys import DataKeys, destroyed, destroyed_on_request
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.returns import note_received_again, note_returns
from payrelay.store.statements.gateways import readings as statements
from payrelay.store.statements.gateways.readings import PAYMENTS_SEEN

ANSWER_BYTES_MAX: Final = 262_144
"""Some 300 payments or subscriptions. A longer answer is not stored, because it would crowd out a hundred others."""
PAYMENTS_MAX: Final = 500
"""Payments that are noted of one answer; an answer that is short enough to be stored has fewer."""
PRUNED_MAX: Final = 1_000
"""Of one round, whatever the caller asks for, so that it never blocks the store for long."""

Version: TypeAlias = tuple[int, ...]
"""Only compared with another version of one subject; it never returns to an earlier value."""


class StoredReading(msgspec.Struct, frozen=True):
    """The gateway's last answer, and the time at which the gateway was asked."""

    reading: Reading
    read_at_ms: int


class _SealedReading(msgspec.Struct, frozen=True, array_like=True):
    """The sealed part of a reading: the members that a client is shown."""

    msg: str
    raw_msg: bytes | None
    raw_data: bytes | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_SealedReading).decode


class ReadingStore:
    """Stores the last positive answer to each read of each merchant account."""

    def __init__(self, database: Database, seal: Seal, rows: RowDigests) -> None:
        self._database = database
        self._data_keys = DataKeys(seal)
        self._key = rows.key

    async def version(self, merchant: str, call: Read) -> Version:
        """Gives the version of a read's subject, with everything that was committed before. Raises StoreUnavailable."""
        row = await self._database.read(first_row(_version_of(merchant, call)))
        return () if row is None else tuple(int(value) for value in row if value is not None)

    async def last(self, merchant: str, call: Read) -> StoredReading | None:
        """Gives the stored answer; None also where it can't be opened. Raises StoreUnavailable."""
        subject = subject_of(call)
        owner = owner_of(merchant, subject)
        row = await self._database.read(first_row(Statement(statements.LAST_READING, (merchant, subject, owner))))
        if row is None:
            return None
        sealed, sealed_key, read_at_ms = row
        assert isinstance(read_at_ms, int)  # noqa: S101, a column that is not null
        try:
            plain = self._data_keys.open(sealed, context_of(merchant, subject), owner, sealed_key)
            sealed_part = _decode(plain or b"")
        except (StoreUnusable, msgspec.DecodeError):
            return None  # sealed with a missing key or by another release: the next answer replaces it
        reading = Reading(code=None, msg=sealed_part.msg, raw_msg=sealed_part.raw_msg, raw_data=sealed_part.raw_data)
        return StoredReading(reading, read_at_ms)

    async def keep(
        self,
        merchant: str,
        call: Read,
        reading: Reading,
        payments: Iterable[Payment],
        *,
        read_at_ms: int,
        answered_at_ms: int,
    ) -> None:
        """Stores a positive answer, unless it is too long, and notes the status of the payments in it.

        ``read_at_ms`` is the time at which the gateway was asked: an answer never replaces one that was asked for
        later. ``answered_at_ms`` is as in ``note_payments``. Raises StoreUnavailable.
        """
        shown, by_ms = _known(payments), max(read_at_ms, answered_at_ms)
        noted = _notes(self._key, merchant, shown, read_at_ms)
        # Before a return is noted, what was seen of its payment before must still be there.
        has_returned = any(each.status in RETURNED for each in shown)
        noted_with = [] if has_returned else noted[: statements.NOTED_WITH_MAX]
        plain = _encode(_SealedReading(reading.msg, reading.raw_msg, reading.raw_data))
        if len(plain) > ANSWER_BYTES_MAX:
            await self._note(merchant, shown, read_at_ms, by_ms)
            return
        subject = subject_of(call)
        own = self._data_keys.new(owner_of(merchant, subject))
        sealed = own.key.seal(plain, context_of(merchant, subject))
        parameters: tuple[Value, ...] = (own.owner, merchant, subject, sealed, read_at_ms, own.sealed)
        parameters += tuple(chain.from_iterable(each.parameters for each in noted_with))
        query = statements.KEEP_READINGS[len(noted_with)]
        stored = Statement(query, parameters, is_whole=len(noted_with) == len(noted))
        returns = note_returns(self._key, merchant, shown, by_ms)
        await self._database.write(_kept(stored, returns, noted, noted_with=len(noted_with)))
        await self._note_received_again(merchant, shown)

    async def note_payments(
        self, merchant: str, payments: Iterable[Payment], asked_at_ms: int, answered_at_ms: int
    ) -> None:
        """Notes the status of payments, unless one is known for which the gateway was asked later.

        ``answered_at_ms`` is when the answer came, on a clock that may have been set back since ``asked_at_ms``. Raises
        StoreUnavailable.
        """
        await self._note(merchant, _known(payments), asked_at_ms, max(asked_at_ms, answered_at_ms))

    async def _note(self, merchant: str, shown: list[Payment], at_ms: int, by_ms: int) -> None:
        await self._database.write(self._noted(merchant, shown, at_ms, by_ms))
        await self._note_received_again(merchant, shown)

    async def _note_received_again(self, merchant: str, shown: list[Payment]) -> None:
        """Notes what follows for those payments that went back before; where it fails, the next look does it."""
        received = [each.payment_id for each in shown if each.status is PaymentStatus.RECEIVED]
        if not received:
            return
        among = (merchant, msgspec.json.encode(received).decode())
        rows = await self._database.read(all_rows(Statement(statements.RETURNED_AMONG, among)))
        for (payment_id,) in rows:
            await self._database.write(note_received_again(self._key, merchant, str(payment_id)))

    def _noted(self, merchant: str, shown: list[Payment], at_ms: int, by_ms: int) -> Unit[None]:
        yield from note_returns(self._key, merchant, shown, by_ms)
        yield from _all_of(_notes(self._key, merchant, shown, at_ms))

    async def forget(self, merchant: str, calls: Iterable[Read]) -> None:
        """Forgets the answers to these reads, on request. Raises StoreUnavailable."""
        await self._database.write(_forget(merchant, sorted({subject_of(call) for call in calls})))

    async def prune(self, before_ms: int, limit: int) -> int:
        """Forgets at most ``limit`` answers from before a time, the oldest first; gives their number."""
        return await self._database.write(_prune(before_ms, min(limit, PRUNED_MAX)))


def subject_of(call: Read) -> str:
    """Names the subject of a read, within one merchant account. The subject is no secret."""
    match call:
        case PaymentsOfOrder():
            return f"order/{call.order_id}"
        case PaymentsOfSubscription():
            return f"subscription-payments/{call.subscription_id}"
        case OneSubscription():
            return f"subscription/{call.subscription_id}"
        case AllSubscriptions():
            return "subscriptions"


def _version_of(merchant: str, call: Read) -> Statement:
    match call:
        case PaymentsOfOrder():
            return Statement(statements.VERSION_OF_ORDER, (merchant, call.order_id))
        case PaymentsOfSubscription() | OneSubscription():
            return Statement(statements.VERSION_OF_SUBSCRIPTION, (merchant, str(call.subscription_id)))
        case AllSubscriptions():
            return Statement(statements.VERSION_OF_MERCHANT, (merchant,))


def context_of(merchant: str, subject: str) -> bytes:
    """Gives the seal context of an answer."""
    # A merchant is a hash in hex: no slash in it, so that no other pair of the two reads the same.
    return f"reading/{merchant}/{subject}".encode()


def owner_of(merchant: str, subject: str) -> str:
    """Names an answer as the owner of its data key."""
    return f"reading/{merchant}/{subject}"


def _forget(merchant: str, subjects: list[str]) -> Unit[None]:
    for subject in subjects:
        yield Statement(statements.FORGET_READING, (merchant, subject))
    yield from destroyed_on_request(owner_of(merchant, subject) for subject in subjects)


def _prune(before_ms: int, limit: int) -> Unit[int]:
    rows = yield Statement(statements.PRUNE_CACHED_READINGS, (before_ms, limit))
    yield from destroyed(owner_of(str(merchant), str(subject)) for merchant, subject in rows)
    return len(rows)


def _known(payments: Iterable[Payment]) -> list[Payment]:
    """Gives the newest payments with a readable amount, always in one order.

    Otherwise, two units that note the same payments at once would wait for each other.
    """
    known = {payment.payment_id: payment for payment in payments if payment.amount_minor is not None}
    return [each for _, each in sorted(known.items())[-PAYMENTS_MAX:]]


def _notes(key: RowKey, merchant: str, payments: list[Payment], at_ms: int) -> list[Statement]:
    """Gives a statement for each payment that notes how it stands."""
    noted = [
        (merchant, each.payment_id, each.order_id, each.status, each.currency, each.amount_minor, at_ms)
        for each in payments
    ]
    return [Statement(statements.NOTE_PAYMENT, key.digested(PAYMENTS_SEEN, each)) for each in noted]


def _kept(stored: Statement, returns: Unit[None], noted: list[Statement], *, noted_with: int) -> Unit[None]:
    """Stores an answer and notes its payments; these also where a later answer is stored already.

    Every unit takes the row of the answer before those of its payments, so that no two wait for each other.
    """
    first = noted_with if (yield stored) else 0
    yield from returns
    yield from _all_of(noted[first:])


def _all_of(writes: list[Statement]) -> Unit[None]:
    for statement in writes:  # noqa: UP028, a list can't be sent the rows
        yield statement
