"""The verdict on a loss: nothing is done twice because of it, and nobody is told otherwise than before."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

import msgspec
from tests.simulation.books import ENTRY_KINDS, NO_EFFECT, Book
from tests.simulation.clients import Ask, Told
from tests.simulation.fate import Fate
from tests.simulation.losses import KNOWN_AFTER_S, Loss
from tests.simulation.network import Arrival, Gateway
from tests.simulation.process import Heard
from tests.simulation.recovery import Recovery

from payrelay.core.payments.operation import Kind, State
from payrelay.errors import Code
from payrelay.flows.access.ownership import TAKEN_SENTENCE
from payrelay_simulator.ledger import LedgerEntry

NOT_DENIED: Final = frozenset({State.SUCCEEDED, State.NEEDS_ATTENTION, State.HELD})
"""The states of an operation whose success was told, and whose newest rows are lost."""


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    told: list[Told]
    loss: Loss | None
    recovery: Recovery | None
    spare: tuple[str, str]


def with_earlier_tries(books: dict[str, Book], loss: Loss | None, gateway: Gateway) -> dict[str, Book]:
    """Gives the books, each with what a lost try of the same request did to the money.

    Of several operations of one request the first one has it that was not given up, and that the gateway hadn't said no
    to before; and each that succeeded without a call of its own. Where no lost try of the same request did anything,
    such a one has what it names.
    """
    if loss is None:
        return books
    done: dict[tuple[str, str | None, str], list[Arrival]] = defaultdict(list)
    for arrival in gateway.arrivals:
        lost = loss.operations.get(arrival.operation_id or "")
        if lost is not None and arrival.entries:
            done[lost.claim].append(arrival)
    with_earlier, seen = dict(books), set[tuple[str, str | None, str]]()
    for id_, book in books.items():
        claim, is_given_up = _claim_of(book), book.operation.state is State.NOT_SENT
        is_found = book.operation.state is State.SUCCEEDED and not book.entries
        tries = [each for each in done.get(claim, []) if not _is_denied_before(book, each)]
        if tries and not is_given_up and (claim not in seen or is_found):
            with_earlier[id_] = replace(book, earlier=[entry for each in tries for entry in each.entries])
            seen.add(claim)
    entries = [entry for tries in done.values() for each in tries for entry in each.entries]
    for book in with_earlier.values():
        if book.operation.state is State.SUCCEEDED and not book.entries:
            named = [entry for entry in entries if _is_named(book, entry)]
            with_earlier[book.operation.id] = replace(book, earlier=named[:1])
    return with_earlier


def kinds_of(book: Book) -> frozenset[str]:
    """Gives what the ledger may call an operation's effect.

    A charge in a recovery gets the payment of its order for its answer, whichever lost request had made it: a lost
    capture's too.
    """
    kind, is_found = ENTRY_KINDS[book.operation.kind], not book.arrivals
    return frozenset({kind, "capture"} if is_found and book.operation.kind is Kind.CHARGE else {kind})


def _claim_of(book: Book) -> tuple[str, str | None, str]:
    operation = book.operation
    return operation.principal, operation.idempotency_key, operation.fingerprint


def _is_denied_before(book: Book, later: Arrival) -> bool:
    """Tells whether the gateway said no to an operation before another call arrived, which then was no try of it."""
    is_denied = book.operation.state in {State.DECLINED, State.REFUSED} and bool(book.arrivals)
    return is_denied and all(each.at_s < later.at_s for each in book.arrivals)


def _is_named(book: Book, entry: LedgerEntry) -> bool:
    operation = book.operation
    return entry.kind in kinds_of(book) and str(entry.payment_id) == operation.payment_id


def faults_of_lost_answer(told: Told, heard: Heard, books: dict[str, Book], loss: Loss) -> Iterator[str]:
    """What a client was told in the lost window was true then, and our books don't deny it now."""
    operation_id = heard.headers.get("payrelay-operation", "")
    lost, book = loss.operations.get(operation_id), books.get(operation_id)
    is_done = heard.http_status == 200 and told.ask.path.startswith(("payments/", "subscriptions/"))
    if is_done and lost is not None and lost.state != State.SUCCEEDED:
        yield f"was answered 200 for the lost {lost}"
    if is_done and lost is None and (book is None or book.operation.state not in NOT_DENIED):
        yield f"was answered 200 for {book}, and that is lost"
    is_denied = heard.http_status in NO_EFFECT and book is not None and bool(book.sent_entries)
    if book is not None and is_denied and not book.is_hidden:
        yield f"was answered {heard.http_status} in the lost window, but {book} took effect"


def faults_of_loss(run: Judged) -> Iterator[str]:
    """Looks at all that was told after a loss."""
    if run.loss is None:
        return
    yield from _faults_of_changed_answers(run, run.loss)
    yield from _faults_of_lost_ids(run, run.loss)
    yield from _faults_of_revoked_key(run, run.loss)


def _faults_of_changed_answers(run: Judged, loss: Loss) -> Iterator[str]:
    """What was told as done in the lost window is told as done by the same payment, or isn't told as known."""
    before: dict[object, Told] = {}
    for told in run.told:
        if told.ask.method == "GET" or told.heard is None:
            continue
        if loss.is_told_of(told.heard_at_s) and told.heard.http_status == 200:
            before[told.ask] = told
        earlier = before.get(told.ask)
        if earlier is None or earlier.heard is None or told.at_s < loss.lost_s:
            continue
        first, now = _payment_in(earlier.heard), _payment_in(told.heard)
        if told.heard.http_status == 200 and first and now and first != now and not _are_alike(run, first, now):
            yield f"{told.request_id} {told.ask.path} was told payment {first} before the loss, and {now} after it"
        is_taken = told.heard.http_status == 409 and TAKEN_SENTENCE.encode() in told.heard.body
        is_denied = told.heard.http_status in {400, 402, 403, 404, 415, 422} or is_taken
        if is_denied and not _is_mismatch(run, told.ask, told.heard):
            yield f"{told.request_id} {told.ask.path} was done before the loss, and answered {told.heard} after it"


def _is_mismatch(run: Judged, ask: Ask, heard: Heard) -> bool:
    """Tells whether an answer denies nothing, since the client has sent another request with the same key.

    Which of the two came first is lost. The one that comes first after the loss has the key.
    """
    others = (each.ask for each in run.told if (each.ask.principal, each.ask.key) == (ask.principal, ask.key))
    is_of_two = ask.key is not None and any((each.path, each.body) != (ask.path, ask.body) for each in others)
    return is_of_two and Code.IDEMPOTENCY_MISMATCH.encode() in heard.body


def _payment_in(heard: Heard) -> int | None:
    data = msgspec.json.decode(heard.body).get("data") if heard.http_status == 200 else None
    payment_id = data.get("payment_id") if isinstance(data, dict) else None
    return payment_id if isinstance(payment_id, int) else None


def _are_alike(run: Judged, first: int, other: int) -> bool:
    """Tells whether nothing of two payments tells them apart: then a request may get the other one for its answer.

    The first entry of each in the ledger is of its making: a hold that nobody captured is nowhere else.
    """
    made: dict[int | None, LedgerEntry] = {}
    for entry in run.gateway.world.ledger.entries():
        made.setdefault(entry.payment_id, entry)
    one, two = made[first], made[other]
    return (one.order_id, one.amount_cents, one.currency) == (two.order_id, two.amount_cents, two.currency)


def _faults_of_lost_ids(run: Judged, loss: Loss) -> Iterator[str]:
    """An id that was given out in the lost window isn't denied while the recovery lasts."""
    paths = {f"operations/{each}" for each in loss.operations} | {f"checkouts/{each}" for each in loss.checkout_ids}
    known_s = loss.known_s if loss.is_outlived else loss.lost_s
    for told in run.told:
        is_lasting = told.at_s >= known_s and (loss.ended_s is None or told.heard_at_s < loss.ended_s)
        is_asked = told.ask.method == "GET" and told.ask.path in paths and is_lasting
        if is_asked and told.heard is not None and told.heard.http_status not in {429, 503}:
            yield f"{told.request_id} {told.ask.path} is lost, and was answered {told.heard.http_status}"


def _faults_of_revoked_key(run: Judged, loss: Loss) -> Iterator[str]:
    """A key that was revoked in the lost window stays revoked, where the list of revocations was kept."""
    fate, revoked_s = run.fate.loss, None if run.recovery is None else run.recovery.revoked_s
    if fate is None or fate.outside != "kept" or revoked_s is None:
        return
    redone_s = max(revoked_s + KNOWN_AFTER_S, loss.redone_s) + sum(run.fate.stalls.values())
    for told in run.told:
        is_late = told.at_s > redone_s
        is_revoked = told.ask.credential == run.spare[1] and is_late
        if is_revoked and told.heard is not None and told.heard.http_status != 401:
            yield f"{told.request_id} came with a revoked key, and was answered {told.heard.http_status}"
