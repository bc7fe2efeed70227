"""The verdict on the ways of paying one order: by a page or a charge, by one request, and back no more than was paid.

The law:

1. Page and charge: no charge or authorization arrives at the gateway while a page of its order that was given out may
   be paid, and none is given out while such an operation has no outcome. A page that was closed is open no more, and is
   paid later only where its closing said that it may be.
2. A key that was lost: a request without a key executes nothing where the newest equal one of its principal, with a key
   or without, began within the repeat window and did.
3. Refunds: none is sent of more than the books know to be left of a payment, and none of what was charged back.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import msgspec
from tests.simulation.books import Book
from tests.simulation.clients import Told
from tests.simulation.fate import Fate
from tests.simulation.losses import Loss
from tests.simulation.network import Gateway
from tests.simulation.process import START_MS
from tests.simulation.true_money import true_money_of

from payrelay.core.payments.operation import OPEN_STATES, Kind, State

UNKEYED_REPEATS_MS: Final = 86_400_000
"""How long an equal request without a key is a repeat: what PAYRELAY_REPEAT_WINDOW is by default."""
CHARGES: Final = frozenset({Kind.CHARGE, Kind.AUTHORIZATION})
_PAGES: Final = (
    "SELECT id, order_id, created_at_ms FROM checkouts WHERE kind <> 'preapproval' OR amount_minor IS NOT NULL"
)
_ENDED: Final = (
    "SELECT subject, min(at_ms) FROM seen_events WHERE type IN "
    "('checkout.completed', 'checkout.expired', 'checkout.cancelled', 'checkout.failed') GROUP BY subject"
)
_PAID_PAGES: Final = (
    "SELECT checkouts.payment_id, min(at_ms) FROM checkouts "
    "JOIN seen_events ON subject = 'checkout:' || checkouts.id AND type = 'checkout.completed' "
    "WHERE kind = 'payment' AND payment_id IS NOT NULL GROUP BY checkouts.id"
)
_COMPLETED: Final = "SELECT 1 FROM checkouts WHERE id = ? AND state = 'completed'"
_NOTED: Final = "SELECT payment_id, noted_at_ms FROM chargebacks"


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    told: list[Told]
    auditor: sqlite3.Connection
    loss: Loss | None

    def count(self, what: str) -> None:
        """Counts."""
        ...


def faults_of_ways(run: Judged, books: dict[str, Book]) -> Iterator[str]:
    """Looks at pages beside charges, at repeats without a key, and at refunds."""
    yield from _faults_of_pages(run, books)
    yield from _faults_of_closing(run)
    yield from _faults_of_lost_keys(run, books)
    if run.loss is None:  # what was given back in lost commits nobody knows
        yield from _faults_of_refunds(run, books)


def pages_given_out(told: Iterable[Told]) -> dict[str, float]:
    """Gives the pages that somebody was told of while they were open, each with when that was first."""
    given_s: dict[str, float] = {}
    for each in told:
        if each.ask.method == "POST" and each.ask.path == "checkouts" and each.heard is not None:
            data = msgspec.json.decode(each.heard.body)["data"] if each.heard.http_status == 200 else None
            if data is not None and data["state"] == "open":
                given_s.setdefault(data["id"], each.heard_at_s)
    return given_s


def _faults_of_pages(run: Judged, books: dict[str, Book]) -> Iterator[str]:
    given_s = pages_given_out(run.told)
    ended_s = {subject: (at_ms - START_MS) / 1000 for subject, at_ms in run.auditor.execute(_ENDED)}
    since_s = 0.0 if run.loss is None else run.loss.lost_s
    for page_id, order_id, created_at_ms in run.auditor.execute(_PAGES):
        begun_s, end_s = given_s.get(page_id), ended_s.get(f"checkout:{page_id}", float("inf"))
        if begun_s is None or (created_at_ms - START_MS) / 1000 < since_s:
            continue
        for book in books.values():
            if book.operation.kind not in CHARGES or book.operation.order_id != order_id or not book.arrivals:
                continue
            sent_s = min(arrival.at_s for arrival in book.arrivals)
            settled_s = (settled_ms(book) - START_MS) / 1000
            if sent_s < since_s:
                continue
            if begun_s <= sent_s < end_s:
                yield f"{book} was sent at {sent_s} while the page {page_id} of {order_id} could be paid"
            if sent_s <= begun_s < settled_s:
                yield f"the page {page_id} was given out at {begun_s} while {book} of {order_id} was open"
            run.count("pages beside charges")


def _faults_of_closing(run: Judged) -> Iterator[str]:
    for told in run.told:
        _, _, checkout_id = told.ask.path.partition("checkouts/")
        is_lost = run.loss is not None and run.loss.is_told_of(told.heard_at_s)
        if told.ask.method != "DELETE" or not checkout_id or told.heard is None or is_lost:
            continue
        run.count(f"closing a page was answered {told.heard.http_status}")
        if told.heard.http_status != 200:
            continue
        data = msgspec.json.decode(told.heard.body)["data"]
        is_paid = run.auditor.execute(_COMPLETED, (checkout_id,)).fetchone() is not None
        if data["state"] not in {"cancelled", "expired", "failed"}:
            yield f"{checkout_id} was closed, and told to be {data['state']}"
        if is_paid and not data["may_still_be_paid"]:
            yield f"{checkout_id} was closed for good, as was told, and paid"


def settled_ms(book: Book) -> int:
    """When it had an outcome first; what is reopened later is for a person, and holds nobody up in between."""
    return next((entry.at_ms for entry in book.history if entry.state not in OPEN_STATES), 2**62)


def _faults_of_lost_keys(run: Judged, books: dict[str, Book]) -> Iterator[str]:
    equals: dict[tuple[str, str], list[Book]] = defaultdict(list)
    for book in books.values():
        equals[book.operation.principal, book.operation.fingerprint].append(book)
    for several in equals.values():
        several.sort(key=lambda book: book.operation.created_at_ms)
        for number, book in enumerate(several):
            if book.operation.idempotency_key is not None or not book.sent_entries or book.is_hidden or not number:
                continue
            before = several[number - 1]
            is_within = book.operation.created_at_ms - before.operation.created_at_ms < UNKEYED_REPEATS_MS
            is_done = before.entries and not before.is_hidden
            if is_within and is_done and before.operation.state not in {State.FAILED, State.NOT_SENT}:
                yield f"{book} has no key and repeats {before}, and each was executed"
        if len({book.operation.idempotency_key for book in several}) > 1:
            run.count("equal requests with other keys, or none")


def _faults_of_refunds(run: Judged, books: dict[str, Book]) -> Iterator[str]:
    money = true_money_of(run.gateway, books.values())
    noted_ms = {str(row[0]): int(row[1]) for row in run.auditor.execute(_NOTED)}
    done: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    known_ms = {str(row[0]): int(row[1]) for row in run.auditor.execute(_PAID_PAGES)}
    for book in books.values():
        operation = book.operation
        succeeded_ms = next((each.at_ms for each in book.history if each.state is State.SUCCEEDED), None)
        if succeeded_ms is None or operation.payment_id is None:
            continue
        if operation.kind is Kind.REFUND:
            done[operation.payment_id].append((succeeded_ms, operation.amount_minor))
        elif operation.kind in {Kind.CHARGE, Kind.CAPTURE}:
            known_ms[operation.payment_id] = succeeded_ms
    for book in books.values():
        operation, its = book.operation, money.get(book.operation.payment_id or "")
        if operation.kind is not Kind.REFUND or its is None or not book.arrivals:
            continue
        began_ms = operation.created_at_ms
        if known_ms.get(operation.payment_id or "", 2**62) >= began_ms or its.failed_refunds or its.won:
            continue
        back = [amount for at_ms, amount in done[operation.payment_id or ""] if at_ms < began_ms]
        left = 0 if None in back else its.paid - sum(each or 0 for each in back)
        if noted_ms.get(operation.payment_id or "", 2**62) < began_ms:
            left -= its.charged_back
        if left <= 0 or (operation.amount_minor or 0) > left:
            yield f"{book} of {operation.amount_minor} was sent, and {max(0, left)} was left of {its}"
