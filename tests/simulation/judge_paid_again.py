"""The verdict on orders that were paid again: each further payment is told once, and nothing else is.

The law: of the payments of an order that took money, each that the books come to know beside one that stands is told
once, to each principal that owns one of both. None else is told. A payment stands until it was given back whole or
charged back, as far as the books know by then. An order that nobody in the books owns is told to operators alone, by
its alert. All payments of a plan are one, and all captures of a hold. A second payment of one page is known by the
gateway's news alone: where that was taken in and shown in time, it is told too. Whether a payment stood whose refund
failed later, whose chargeback was won, or whose record showed it as gone and then, from a copy that lags, as received,
only the program's own rules say: there nothing is demanded.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec
from tests.simulation.books import Book
from tests.simulation.buyers import Paid
from tests.simulation.clients import Told
from tests.simulation.fate import Fate
from tests.simulation.judge_pages import inbox_of, is_of, taken_in, was_shown
from tests.simulation.losses import Loss
from tests.simulation.network import Gateway
from tests.simulation.postman import Posted
from tests.simulation.true_money import TrueMoney, true_money_of

from payrelay.core.payments.operation import Kind

_MONEY: Final = "SELECT number, what, id, data FROM seen_money ORDER BY number"
_CHECKOUTS: Final = (
    "SELECT id, payment_id, order_id FROM checkouts "
    "WHERE state = 'completed' AND payment_id IS NOT NULL "
    "AND (kind IN ('payment', 'recurring') OR kind = 'preapproval' AND amount_minor IS NOT NULL)"
)
_ALERTS: Final = "SELECT row_name FROM row_alerts WHERE row_name LIKE 'paid_again/%'"
_ORDERS: Final = "SELECT order_id FROM operations UNION SELECT order_id FROM checkouts"
RETURNED: Final = frozenset({"REFUND REQUESTED", "REFUND PROCESSING", "REFUNDED", "CHARGEBACKED"})


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    auditor: sqlite3.Connection
    loss: Loss | None

    told: list[Told]

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...


@dataclass(kw_only=True, slots=True)
class Timeline:
    """What the books came to know of payments, in the order of the commits."""

    books: dict[str, Book]
    money: dict[str, TrueMoney]
    checkouts: dict[str, tuple[str, str]]
    known: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    given_back: dict[str, list[int | None]] = field(default_factory=lambda: defaultdict(list))
    charged_back: set[str] = field(default_factory=set)
    returned: set[str] = field(default_factory=set)
    told: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    due: dict[str, bool | None] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def standing(self, payment_id: str) -> bool | None:
        """Tells whether a payment stands, by what is known by now; None where only the program's own rules say it."""
        its = self.money[payment_id]
        back = self.given_back[payment_id]
        left = 0 if None in back else its.paid - sum(each or 0 for each in back)
        if its.failed_refunds or its.won:
            return None
        if payment_id in self.charged_back:
            left -= its.charged_back
        if left <= 0:
            return False
        return None if payment_id in self.returned else True

    def others(self, payment_id: str) -> list[bool | None]:
        """Tells of each other known payment of the order whether it stands; those of one plan or hold are one."""
        its = self.money[payment_id]
        return [
            self.standing(each)
            for each in self.known[its.entry.order_id]
            if self.money[each].group != its.group and each != payment_id
        ]

    def learn(self, payment_id: str | None) -> None:
        """Takes in that a payment is known, and notes whether it has to be told."""
        its = self.money.get(payment_id or "")
        if its is None or payment_id is None or payment_id in self.known[its.entry.order_id]:
            return
        if all(self.money[each].group != its.group for each in self.known[its.entry.order_id]):
            self.due[payment_id] = self._must_be_told(payment_id)
        self.known[its.entry.order_id].append(payment_id)

    def _must_be_told(self, payment_id: str) -> bool | None:
        others, own = self.others(payment_id), self.standing(payment_id)
        if True in others and own:
            return True
        return False if not any(each is not False for each in others) or own is False else None


def faults_of_paid_again(run: Judged, books: dict[str, Book], posted: list[Posted], paid: list[Paid]) -> Iterator[str]:
    """Looks at all that was told; ``posted`` and ``paid`` are empty in a life without the gateway's pages."""
    timeline = Timeline(
        books=books,
        money=true_money_of(run.gateway, books.values()),
        checkouts={row[0]: (row[1], row[2]) for row in run.auditor.execute(_CHECKOUTS)},
    )
    for _, what, id_, data in run.auditor.execute(_MONEY):
        _take_in(timeline, what, id_, data)
    yield from timeline.faults
    told_of = Counter(payment_id for payment_id, _, _ in timeline.told)
    for (payment_id, _, principal), number in timeline.told.items():
        if number > 1:
            yield f"{principal} was told {number} times that {payment_id} is a further payment of its order"
    alerts = [name for (name,) in run.auditor.execute(_ALERTS)]
    owned = {order_id for (order_id,) in run.auditor.execute(_ORDERS)}
    for payment_id, is_due in timeline.due.items():
        order_id = timeline.money[payment_id].entry.order_id
        if order_id not in owned and any(name.endswith(f"/{order_id}/{payment_id}") for name in alerts):
            continue
        if is_due and not told_of[payment_id]:
            yield f"the order was paid again, and nobody was told: {timeline.money[payment_id]}"
        run.count(f"further payments: {'told' if told_of[payment_id] else 'not told'}" if is_due else "payments known")
    yield from _faults_of_second_payments(run, timeline, posted, paid)


def _faults_of_second_payments(
    run: Judged, timeline: Timeline, posted: list[Posted], paid: list[Paid]
) -> Iterator[str]:
    """A payment on a page that is of nothing in the books is told where the gateway told of it, and showed it."""
    news = taken_in(posted, inbox_of(run.auditor))
    told = {payment_id for payment_id, _, _ in timeline.told}
    for each in paid:
        number = str(each.entry.payment_id)
        its = timeline.money.get(number)
        if its is None or its.left < its.paid or its.won or its.failed_refunds:
            continue  # what the gateway shows of it by now is not a payment that stands
        if each.kind != "payment" or number in timeline.known[each.entry.order_id]:
            continue
        of_it = [noted for posting, noted in news if is_of(posting, each) and was_shown(run, each, posting)]
        is_called = any(noted.state == "needs_attention" for noted in of_it)
        if of_it and True in timeline.others(number) and number not in told and not is_called:
            yield f"{each} was told and shown beside another payment of its order, and nobody was told: {of_it}"


def _take_in(timeline: Timeline, what: str, id_: str, data: str | None) -> None:
    if what == "operation":
        book = timeline.books.get(id_)
        operation = None if book is None else book.operation
        if book is None or operation is None:
            return
        if operation.kind is Kind.REFUND and operation.payment_id is not None:
            timeline.given_back[operation.payment_id].append(operation.amount_minor)
        elif operation.kind in {Kind.CHARGE, Kind.CAPTURE}:
            entry = book.entries[0].payment_id if book.entries else None
            timeline.learn(operation.payment_id or (None if entry is None else str(entry)))
    elif what == "checkout":
        timeline.learn(timeline.checkouts.get(id_, (None, None))[0])
    elif what == "installment":
        timeline.learn(id_)
    elif what == "chargeback":
        timeline.charged_back.add(id_)
    elif what == "record":
        if data in RETURNED:
            timeline.returned.add(id_)
    else:
        _take_in_told(timeline, id_, msgspec.json.decode(data or "{}"))


def _take_in_told(timeline: Timeline, principal: str, data: dict[str, object]) -> None:
    payment_id, order_id = str(data["payment_id"]), str(data["order_id"])
    operation = timeline.books.get(str(data["operation_id"]))
    if data["payment_id"] is None and operation is not None and operation.entries:
        payment_id = str(operation.entries[0].payment_id)
    timeline.told[payment_id, order_id, principal] += 1
    its = timeline.money.get(payment_id)
    if its is None:
        if data["payment_id"] is not None:
            timeline.faults.append(f"{data} was told as paid again, and took no money")
        return
    if its.entry.order_id != order_id:
        timeline.faults.append(f"{data} was told as paid again, and is a payment of {its.entry.order_id}")
    others = timeline.others(payment_id)
    # Of what a person called done, and named no payment of, nobody can tell that it is one that is known.
    if data["payment_id"] is not None and not any(each is not False for each in others):
        timeline.faults.append(f"{data} was told as paid again, and no other payment of the order stands: {its}")
