"""The verdict on a run: what the gateway's ledger says, against our books and against every answer that was given."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Final, Protocol

import msgspec
from tests.simulation.books import NO_EFFECT, UNTOUCHED, Book
from tests.simulation.clients import Ask, Told
from tests.simulation.fate import Fate
from tests.simulation.judge_losses import (
    faults_of_loss,
    faults_of_lost_answer,
    kinds_of,
    with_earlier_tries,
)
from tests.simulation.judge_ways import UNKEYED_REPEATS_MS, settled_ms
from tests.simulation.loop import SimulatedLoop
from tests.simulation.losses import Loss
from tests.simulation.network import DAY_S, Gateway
from tests.simulation.process import Heard, Process
from tests.simulation.recovery import Recovery

from payrelay.core.calls import Charge, Effect
from payrelay.core.payments.operation import (
    TRANSITIONS,
    Event,
    Kind,
    OperationFilter,
    State,
)
from payrelay_simulator.clock import STANDING_START

BEGINNINGS: Final = frozenset({State.ACCEPTED, State.SENDING, State.HELD})
STILL_OPEN: Final = frozenset({State.ACCEPTED, State.SENDING, State.PENDING, State.UNKNOWN})
"""What nothing may be in when settling has had its time."""
STORED_WITHIN_MS: Final = 5_000
"""From the decision to its commit; the simulated disk is slow, and writes queue."""
_UNALARMED: Final = (
    "SELECT id, state FROM operations WHERE state = 'needs_attention' "
    "AND NOT EXISTS (SELECT 1 FROM alerts WHERE operation_id = id)"
)
_TAKEN: Final = (
    "SELECT 1 FROM operations WHERE order_id = $1 AND principal <> $2 "
    "AND NOT state IN ('declined', 'refused', 'failed', 'not_sent') "
    "UNION ALL SELECT 1 FROM checkouts WHERE order_id = $1 AND principal <> $2"
)
SEARCHED: Final = frozenset({Kind.CHARGE, Kind.REFUND, Kind.RETRY})
"""What a search can prove."""
OPERATIONS_MAX: Final = 1_000


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    loop: SimulatedLoop
    gateway: Gateway
    processes: list[Process | None]
    told: list[Told]
    resolved_s: list[float]
    auditor: sqlite3.Connection
    loss: Loss | None
    recovery: Recovery | None
    spare: tuple[str, str]
    calls: dict[str, Effect]

    async def call(self, ask: Ask, patience_s: float) -> Told:
        """Asks as a client does."""
        ...

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...


async def judge(run: Judged) -> dict[str, Book]:
    """Looks at everything, blames, and gives the books that it has looked at."""
    if run.loss is not None:
        for _ in range(run.loss.forget_found(await _books(run))):
            run.count("brought back")
    books = await books_of(run)
    for book in books.values():
        for fault in (*_faults_of_history(book), *_faults_of_effect(book)):
            run.blame(f"{book}: {fault}")
        run.count(f"ended {book.operation.state}")
        run.count(f"made {book.operation.kind}")
        _measure(run, book)
    for fault in (*_faults_of_claims(books), *_faults_of_guards(run, books), *_faults_of_budget(run)):
        run.blame(fault)
    by_request = {book.operation.request_id: book for book in books.values()}
    for told in run.told:
        for fault in _faults_of_answer(told, books, by_request, run.loss):
            run.blame(f"{told.request_id} {told.ask.method} {told.ask.path}: {fault}")
    for fault in (*_faults_of_reads(run), *_faults_of_alerts(run), *faults_of_loss(run)):
        run.blame(fault)
    await _replay(run, books)
    return books


async def books_of(run: Judged) -> dict[str, Book]:
    """Gives the operations as our books have them by now, each beside what really became of it."""
    return with_earlier_tries(await _books(run), run.loss, run.gateway)


async def _books(run: Judged) -> dict[str, Book]:
    process = next(process for process in run.processes if process is not None)
    relay = process.relay
    if relay is None:
        raise RuntimeError("no process is up at the end")
    by_operation = defaultdict(list)
    for arrival in run.gateway.arrivals:
        by_operation[arrival.operation_id].append(arrival)
    operations = await relay.journal.list(OperationFilter(), before=None, limit=OPERATIONS_MAX)
    return {
        operation.id: Book(
            operation=operation,
            history=await relay.journal.history(operation.id),
            call=run.calls.get(operation.id) or await relay.journal.call_of(operation.id),
            arrivals=by_operation[operation.id],
        )
        for operation in reversed(operations)
    }


def _faults_of_history(book: Book) -> Iterator[str]:
    """The states never go backwards: every step is one of the table, in order, and none is missing."""
    state: State | None = None
    at_ms = 0
    for number, entry in enumerate(book.history, start=1):
        if entry.version != number:
            yield f"version {number} is missing from its history"
        if entry.at_ms < at_ms:
            yield f"line {number} is older than the one before it"
        if state is None:
            if entry.state not in BEGINNINGS:
                yield f"begins as {entry.state}"
        elif entry.event is None or TRANSITIONS.get((state, entry.event)) is not entry.state:
            yield f"went from {state} by {entry.event} to {entry.state}"
        state, at_ms = entry.state, entry.at_ms
    if state is not book.operation.state or len(book.history) != book.operation.version:
        yield f"stands otherwise than its history ends, with {state}"


def _faults_of_effect(book: Book) -> Iterator[str]:
    operation, entries = book.operation, book.entries
    if len(entries) > 1:
        yield f"took effect {len(entries)} times"
    if operation.state in STILL_OPEN:
        yield "is still open at the end"
    if operation.state in UNTOUCHED and entries and not book.is_hidden:
        yield f"took effect all the same: {entries[0].kind} of {entries[0].amount_cents}"
    if operation.state is State.FAILED and operation.kind is Kind.CHARGE and entries:
        yield "shows itself after all, and was not opened again"
    if operation.state is State.SUCCEEDED:
        yield from _faults_of_success(book)


def _faults_of_success(book: Book) -> Iterator[str]:
    operation, entries = book.operation, book.entries
    if not entries:
        # A cancellation that finds its work done is what was asked for, whoever did it.
        if operation.kind is not Kind.CANCEL:
            yield "took no effect"
        return
    entry = entries[0]
    if entry.kind not in kinds_of(book):
        yield f"did a {entry.kind}"
    if operation.amount_minor is not None and entry.amount_cents != operation.amount_minor:
        yield f"moved {entry.amount_cents} and not {operation.amount_minor}"
    if isinstance(book.call, Charge) and (entry.order_id, entry.currency) != (book.call.order_id, book.call.currency):
        yield "is of another order or currency"


def _faults_of_claims(books: dict[str, Book]) -> Iterator[str]:
    """One effect at most for what is one request to its client: a key, or without one a fingerprint within a day."""
    effects: dict[tuple[str, str], list[Book]] = defaultdict(list)
    for book in books.values():
        operation = book.operation
        if book.entries and not book.is_hidden:
            effects[operation.principal, operation.idempotency_key or operation.fingerprint].append(book)
    for (_, claim), several in effects.items():
        ordered = sorted(several, key=lambda book: book.history[0].at_ms)
        if any(not _is_new_request(later, earlier) for earlier, later in pairwise(ordered)):
            yield f"{claim} took effect {len(several)} times: {', '.join(map(str, several))}"


def _is_new_request(later: Book, earlier: Book) -> bool:
    """Tells whether an equal request came without a key when the earlier one had begun too long ago to be repeated."""
    is_keyed = later.operation.idempotency_key is not None
    return not is_keyed and later.operation.created_at_ms >= earlier.operation.created_at_ms + UNKEYED_REPEATS_MS


def _faults_of_guards(run: Judged, books: dict[str, Book]) -> Iterator[str]:
    """Of the operations on one subject, one at a time is open.

    A line's time is when it was decided; until it is stored another one may have ended, and given its guard back.
    """
    tolerance_ms = STORED_WITHIN_MS + sum(run.fate.stalls.values()) * 1000
    by_subject: dict[str, list[Book]] = defaultdict(list)
    for book in books.values():
        by_subject[book.operation.subject].append(book)
    for subject, several in by_subject.items():
        ended_ms, before = 0, None
        for book in sorted(several, key=lambda each: (each.history[0].at_ms, settled_ms(each))):
            if before is not None and book.history[0].at_ms + tolerance_ms < ended_ms:
                yield f"{subject}: {book} began while {before} was open"
            ended_ms, before = settled_ms(book), book


def _faults_of_budget(run: Judged) -> Iterator[str]:
    records = run.gateway.world.calls.records()
    blocked = [record for record in records if record.is_budget_blocked]
    if blocked:
        yield f"{len(blocked)} calls came over the gateway's budget, the first {blocked[0].endpoint} at {blocked[0].at}"


def _at_s(run: Judged, at: datetime) -> float:
    return (at - STANDING_START).total_seconds() - run.fate.skew_s


def _faults_of_answer(
    told: Told, books: dict[str, Book], by_request: dict[str, Book], loss: Loss | None
) -> Iterator[str]:
    """What a client was told agrees with what was true, and stayed so."""
    heard = told.heard
    if heard is None or told.ask.method == "GET":
        return
    if loss is not None and loss.is_told_of(told.heard_at_s):
        yield from faults_of_lost_answer(told, heard, books, loss)
        return
    if heard.http_status >= 500 and heard.http_status not in NO_EFFECT:
        yield f"was answered {heard.http_status}: {heard.body!r}"
    own = by_request.get(told.request_id)
    # "Not sent" is said of this request alone, and not of an earlier try.
    entries = [] if own is None else own.entries if heard.http_status not in {502, 503} else own.sent_entries
    if own is not None and heard.http_status in NO_EFFECT and entries and not own.is_hidden:
        yield f"was answered {heard.http_status}, but {own} took effect"
    if heard.http_status == 200 and told.ask.path.startswith(("payments/", "subscriptions/")):
        book = books.get(heard.headers.get("payrelay-operation", ""))
        if book is None:
            yield "was answered 200 without an operation"
        elif book.operation.state is not State.SUCCEEDED:
            yield f"was answered 200 for {book}"
    if heard.http_status == 402:
        book = books.get(heard.headers.get("payrelay-operation", "")) or own
        if book is not None and book.entries and not book.is_hidden:
            yield f"was answered 402, but {book} took effect"


def _faults_of_reads(run: Judged) -> Iterator[str]:
    """Who was told that an order is paid finds the payment from then on, as soon as the gateway shows it.

    No other principal ever finds it, unless a recovery has ended in which its owner didn't come back. Who has taken its
    order by then has the payment too.
    """
    payments = run.gateway.world.state.payments
    paid: dict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for told in run.told:
        if told.ask.path == "payments/charge" and told.heard is not None and told.heard.http_status == 200:
            data = msgspec.json.decode(told.heard.body)["data"]
            if isinstance(data["payment_id"], int) and data["payment_id"] in payments:
                paid[data["order_id"]].append((told.heard_at_s, data["payment_id"], told.ask.principal))
    for told in run.told:
        if not told.ask.path.startswith("payments/") or told.ask.method != "GET" or told.heard is None:
            continue
        is_fresh = "payrelay-stale" not in told.heard.headers and run.fate.blind_s[1] == 0
        if told.heard.http_status not in {200, 404} or not is_fresh:
            continue
        shown = {row["payment_id"] for row in msgspec.json.decode(told.heard.body)["data"]}
        is_taken = run.auditor.execute(_TAKEN, (told.ask.path.removeprefix("payments/"), told.ask.principal)).fetchone()
        if shown - payments.keys():
            yield f"{told.request_id} {told.ask.path} shows payments that there are none of: {shown}"
        for heard_at_s, payment_id, principal in paid[told.ask.path.removeprefix("payments/")]:
            if principal != told.ask.principal:
                if payment_id in shown and not (
                    run.loss is not None and run.loss.has_opened(heard_at_s, told.heard_at_s)
                ):
                    yield f"{told.request_id} {told.ask.path} shows {payment_id} of another principal"
                continue
            payment = payments[payment_id]
            is_there = (
                payment.visible_at is None
                and (payment.at - STANDING_START).total_seconds() - run.fate.skew_s < heard_at_s
            )
            if is_taken and run.loss is not None and run.loss.has_opened(heard_at_s, told.heard_at_s):
                continue
            if is_there and heard_at_s < told.at_s and payment_id not in shown:
                yield f"{told.request_id} {told.ask.path} doesn't show {payment_id}, of which somebody was told before"


def _faults_of_alerts(run: Judged) -> Iterator[str]:
    """Whatever needs a person has called one."""
    for operation_id, state in run.auditor.execute(_UNALARMED):
        yield f"{operation_id} ({state}) needs a person, and nobody was called"


async def _replay(run: Judged, books: dict[str, Book]) -> None:
    """What is final is answered again byte for byte, and nothing happens by it."""
    effects = len(run.gateway.arrivals)
    final: dict[Ask, list[Told]] = defaultdict(list)
    for told in run.told:
        # A phone's token has ended by now.
        if told.ask.key is not None and told.heard is not None and told.ask.credential is None:
            final[told.ask].append(told)
    now_s = run.loop.time()
    for ask, answers in final.items():
        finished = [
            told.heard for told in answers if told.heard is not None and _is_frozen(told, told.heard, books, run.loss)
        ]
        if not finished or now_s - answers[-1].at_s > 29 * DAY_S:
            continue
        again = (await run.call(ask, 60.0)).heard
        if again is None or any(_shown(heard) != _shown(again) for heard in finished):
            run.blame(f"{ask.method} {ask.path} with {ask.key} was answered {finished}, and later {again}")
        elif again.headers.get("idempotent-replayed") != "true":
            run.blame(f"{ask.method} {ask.path} with {ask.key} was done again")
        run.count("replays")
    if len(run.gateway.arrivals) != effects:
        run.blame("a repeat of what was finished was sent to the gateway")


def _is_frozen(told: Told, heard: Heard, books: dict[str, Book], loss: Loss | None) -> bool:
    book = books.get(heard.headers.get("payrelay-operation", ""))
    if loss is not None and loss.is_told_of(told.heard_at_s) and book is not None and loss.is_after(book.history[-1]):
        return False  # the answer is lost, and another one was found since
    return (
        book is not None
        and book.operation.state in {State.SUCCEEDED, State.DECLINED, State.REFUSED}
        and (heard.http_status not in {202, 503, 502})
    )


def _shown(heard: Heard) -> tuple[int, bytes]:
    return heard.http_status, heard.body


def _measure(run: Judged, book: Book) -> None:
    """Notes how long an answer that was lost stayed unknown although what was done could be seen at once."""
    lost = next((entry for entry in book.history if entry.event in {Event.UNKNOWN, Event.LOST}), None)
    if book.operation.kind not in SEARCHED or not run.fate.spares_reads or run.fate.blind_s[1] or run.fate.stalls:
        return
    seen = book.arrivals and book.entries and book.arrivals[0].visible_at_s == book.arrivals[0].at_s
    if lost is None or not seen:
        return
    settled = next((entry for entry in book.history if entry.event is Event.PROVED), None)
    if settled is not None:
        run.count("lost and proved")
        run.resolved_s.append((settled.at_ms - lost.at_ms) / 1000)
