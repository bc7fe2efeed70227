"""What is compared: entries of our books, lines of the gateway's and the bank's statements, and what a day is.

Rules:

1. A line shows that something is there. Only a file that a person named as complete for a day shows that something
   isn't (``Coverage``).
2. A line is known by its identity, whatever file it came in and however often.
3. An entry happened between two moments; a line on a day. The line's day decides where it fits between them.
"""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from payrelay.core.moments import day_at

TOLERANCE_MS: Final = 15 * 60_000
"""How far the gateway's clock and ours may be apart, with the time that a request took."""
REFUND_DAYS: Final = 14
"""Days until a refund is in the gateway's statement: it is collected at a day's end, and then takes up to ten days."""
BANK_DAYS: Final = 5
"""Days until a payout is on the bank's account; weekends and holidays are among them."""


class Movement(StrEnum):
    """What moves money, or gives it back. The values are stored and never change."""

    PAYMENT = "payment"
    REFUND = "refund"
    CHARGEBACK = "chargeback"
    PAYOUT = "payout"
    """The gateway pays out what it collected."""
    BANK = "bank"
    """A line of the bank's account, which a payout should explain."""


class EntryStanding(StrEnum):
    """How an entry of our books stands."""

    DONE = "done"
    OPEN = "open"
    FAILED = "failed"
    OFFERED = "offered"
    """A page is shown that nobody paid, as far as is known here."""


UNPAID: Final = frozenset({EntryStanding.FAILED, EntryStanding.OFFERED})
"""Only a payment that a statement has makes something of such an entry."""


class LineState(StrEnum):
    """What a statement says of a payment. The values are stored and never change."""

    TAKEN = "taken"
    AUTHORIZED = "authorized"
    NOT_TAKEN = "not_taken"
    REFUND_UNDER_WAY = "refund_under_way"
    REFUNDED = "refunded"
    CHARGED_BACK = "charged_back"
    OTHER = "other"
    """A word that the profile doesn't know, or a state of the gateway's record that isn't known here."""


LATER_STATES: Final = (
    LineState.OTHER,
    LineState.NOT_TAKEN,
    LineState.AUTHORIZED,
    LineState.TAKEN,
    LineState.REFUND_UNDER_WAY,
    LineState.REFUNDED,
    LineState.CHARGED_BACK,
)
"""The order in which a payment may have them. Of two files that differ, the later state holds, whichever came first."""
GIVEN_BACK: Final = frozenset({LineState.REFUND_UNDER_WAY, LineState.REFUNDED})
MONEY_TAKEN: Final = frozenset({LineState.TAKEN, LineState.CHARGED_BACK}) | GIVEN_BACK
MOVED_NOTHING: Final = frozenset({LineState.NOT_TAKEN, LineState.AUTHORIZED})
"""In such a state a line, whatever it tells of, has moved no money."""
HAPPENED: Final = {
    Movement.PAYMENT: MONEY_TAKEN,
    Movement.REFUND: GIVEN_BACK | {LineState.TAKEN},
    Movement.CHARGEBACK: frozenset({LineState.TAKEN, LineState.CHARGED_BACK}),
    Movement.PAYOUT: frozenset({LineState.TAKEN}),
    Movement.BANK: frozenset({LineState.TAKEN}),
}
"""The states in which a line says that what it tells of has happened. Any other state that isn't in MOVED_NOTHING says
neither."""


class Source(StrEnum):
    """Where a line comes from."""

    FILE = "file"
    SEARCH = "search"
    """A search for an order or a subscription at the gateway."""


class BooksEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of our books.

    Attributes:
        id: what it is here: an operation, a checkout, an installment.
        movement: PAYMENT, REFUND or CHARGEBACK.
        standing: whether it took effect, as far as is known here.
        order_id, payment_id: what it belongs to; None where that isn't known.
        currency, amount_minor: the money, in hundredths; an amount of None is a refund of all that was paid.
        from_ms, until_ms: it happened between these moments, milliseconds since 1970.
        known_at_ms: when the books last learnt something of it.
        subscription_id: the subscription that it is an installment of; None where it is none.
        is_imported: it is from before Payrelay: it explains what a statement has of it, and no statement lacks it.
        is_offer: a page that nobody paid, as far as is known here, or an approval. It is none of the payments of a day,
            and only a line of a statement makes something of it.
        is_approval: an approval that charges nothing. The gateway may take a fee for it, and gives that back by itself;
            both explain what a statement has of them, and no statement lacks them.
        is_followed: the books tell when something of it became known, so that it can be told on a later day.
        booked_ms: the moment by which it is booked where no line says its day; None for ``until_ms``.
    """

    id: str
    movement: Movement
    standing: EntryStanding
    order_id: str | None
    payment_id: str | None
    currency: str | None
    amount_minor: int | None
    from_ms: int
    until_ms: int
    known_at_ms: int
    subscription_id: str | None = None
    is_imported: bool = False
    is_offer: bool = False
    is_approval: bool = False
    is_followed: bool = False
    booked_ms: int | None = None

    @property
    def own_ms(self) -> int:
        """The moment by which it is booked where no line says its day."""
        return self.until_ms if self.booked_ms is None else self.booked_ms

    @property
    def shown_by(self) -> str | None:
        """What the gateway has to be asked for to show it: its subscription, or else its order; None without both."""
        return self.order_id if self.subscription_id is None else subscription_name(self.subscription_id)


class StatementLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a statement, in our words.

    Attributes:
        movement: what it tells of.
        identity: what it is known by within its movement; two lines that have the same tell of the same.
        currency, amount_minor: the money, in hundredths; what is taken back or paid out is positive too.
        day: the day that it belongs to, in the zone of the books.
        at_ms: its time where the statement has one.
        fee_minor, net_minor: the gateway's fee and what is left; None where the statement doesn't say.
        expected_fee_minor: the fee by the agreed rate; None where none was named.
        order_id, payment_id, payout_id: what it belongs to, where the statement says.
        source, place: where it is from, and the line in it, for people.
        word: what the statement itself says for the state; None where it says nothing of it.
        known_at_ms: when it was first read here.
    """

    movement: Movement
    identity: str
    currency: str
    amount_minor: int
    day: date
    state: LineState = LineState.TAKEN
    at_ms: int | None = None
    fee_minor: int | None = None
    net_minor: int | None = None
    expected_fee_minor: int | None = None
    order_id: str | None = None
    payment_id: str | None = None
    payout_id: str | None = None
    source: Source = Source.FILE
    place: str = ""
    word: str | None = None
    known_at_ms: int = 0

    @property
    def has_happened(self) -> bool:
        """True where the line says that its money has moved."""
        return self.state in HAPPENED[self.movement]

    @property
    def moved_nothing(self) -> bool:
        """True where the line says that no money has moved."""
        return self.state in MOVED_NOTHING


class Zone(msgspec.Struct, frozen=True):
    """The time zone of the books: it decides where a day ends."""

    name: str

    def day(self, at_ms: int) -> date:
        """Gives the day of a moment."""
        return day_at(at_ms, self.name)

    def begins_ms(self, day: date) -> int:
        """Gives the first moment of a day, in milliseconds since 1970."""
        return round(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.name)).timestamp() * 1000)

    def ends_ms(self, day: date) -> int:
        """Gives the first moment after a day."""
        return self.begins_ms(day + timedelta(days=1))

    def first_day(self, entry: BooksEntry) -> date:
        """Gives the first day on which the statement may have an entry."""
        return self.day(entry.from_ms - TOLERANCE_MS)

    def last_day(self, entry: BooksEntry) -> date:
        """Gives the last day on which the statement may have an entry, but for what takes days anyway."""
        return self.day(entry.until_ms + TOLERANCE_MS)


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What would have been seen if it were there.

    Attributes:
        days: the days of which a person named files as complete, by movement.
        searched: the orders and subscriptions whose payments the gateway was asked for, and when, milliseconds since
            1970. A search counts only where it showed payments, or another one showed that searches work.
    """

    days: dict[Movement, frozenset[date]] = {}
    searched: dict[str, int] = {}

    def has(self, movement: Movement, first: date, last: date) -> bool:
        """Tells whether complete files cover every day from the first to the last."""
        covered = self.days.get(movement, frozenset())
        return all(each in covered for each in days_between(first, last))

    def is_searched(self, name: str | None, since_ms: int) -> bool:
        """Tells whether the gateway was asked for the payments of an order, or a subscription, after a moment."""
        return name is not None and self.searched.get(name, -1) > since_ms


def subscription_name(subscription_id: str) -> str:
    """Gives what searches call a subscription; no order id has a line's end in it."""
    return f"subscription\n{subscription_id}"


def last_of_month(first: date) -> date:
    """Gives the last day of the month that begins on a day."""
    return first.replace(day=monthrange(first.year, first.month)[1])


def days_between(first: date, last: date) -> Iterable[date]:
    """Gives each day from the first to the last."""
    return (first + timedelta(days=number) for number in range((last - first).days + 1))
