"""Draws days of a shop, as our books and as the gateway's statement have them, with differences planted by name."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, NamedTuple

import msgspec
from hypothesis import strategies as st

from payrelay.reconciliation.rules.entries import (
    BooksEntry,
    Coverage,
    EntryStanding,
    LineState,
    Movement,
    StatementLine,
    Zone,
    days_between,
)
from payrelay.reconciliation.rules.sides import Known
from payrelay.reconciliation.rules.verdicts import Aspect, BooksVerdict

ZONE: Final = Zone("Asia/Colombo")
DAY: Final = date(2026, 11, 22)
HOUR_MS: Final = 3_600_000
NOON_MS: Final = ZONE.begins_ms(DAY) + 12 * HOUR_MS
UNTIL_MS: Final = ZONE.begins_ms(date(2027, 1, 1))
"""Lines of files are of before this."""
EVERYTHING: Final = frozenset(days_between(DAY - timedelta(days=40), DAY + timedelta(days=40)))
COMPLETE: Final = Known(coverage=Coverage(days=dict.fromkeys(Movement, EVERYTHING)), zone=ZONE)
NOTHING: Final = Known(coverage=Coverage(), zone=ZONE)


def payment(number: int, **members: object) -> BooksEntry:
    """Makes a payment of our books that succeeded at noon."""
    entry = BooksEntry(
        id=f"op_{number}",
        movement=Movement.PAYMENT,
        standing=EntryStanding.DONE,
        order_id=f"A-{number}",
        payment_id=str(number),
        currency="LKR",
        amount_minor=100_000 + number,
        from_ms=NOON_MS,
        until_ms=NOON_MS + 1_000,
        known_at_ms=NOON_MS + 2_000,
    )
    return msgspec.structs.replace(entry, **members)


def refund(name: str, amount_minor: int | None, of: int, **members: object) -> BooksEntry:
    """Makes a refund of our books, of payment ``of``."""
    made = payment(of, id=f"op_{name}", movement=Movement.REFUND, amount_minor=amount_minor)
    return msgspec.structs.replace(made, **members)


def line(number: int, **members: object) -> StatementLine:
    """Makes the line of the statement that fits ``payment(number)``."""
    made = StatementLine(
        movement=Movement.PAYMENT,
        identity=str(number),
        currency="LKR",
        amount_minor=100_000 + number,
        day=DAY,
        order_id=f"A-{number}",
        payment_id=str(number),
        place=f"line {number}",
        known_at_ms=NOON_MS + HOUR_MS,
    )
    return msgspec.structs.replace(made, **members)


def refund_line(name: str, amount_minor: int, of: int, **members: object) -> StatementLine:
    """Makes a line about a refund."""
    made = line(of, movement=Movement.REFUND, identity=name, amount_minor=amount_minor)
    return msgspec.structs.replace(made, **members)


class Planted(NamedTuple):
    """Both sides of one order, and the verdicts, with what differs, that must come of it."""

    ours: tuple[BooksEntry, ...]
    theirs: tuple[StatementLine, ...]
    found: tuple[tuple[BooksVerdict, tuple[Aspect, ...]], ...]


_AGREED: Final[tuple[BooksVerdict, tuple[Aspect, ...]]] = (BooksVerdict.AGREED, ())


def _different(*aspects: Aspect) -> tuple[BooksVerdict, tuple[Aspect, ...]]:
    return (BooksVerdict.DIFFERENT, aspects)


PLANTS: Final[dict[str, Callable[[int], Planted]]] = {
    "agreed": lambda n: Planted((payment(n),), (line(n),), (_AGREED,)),
    "only ours": lambda n: Planted((payment(n),), (), ((BooksVerdict.ONLY_OURS, ()),)),
    "only theirs": lambda n: Planted((), (line(n),), ((BooksVerdict.ONLY_THEIRS, ()),)),
    "another amount": lambda n: Planted((payment(n),), (line(n, amount_minor=7),), (_different(Aspect.AMOUNT),)),
    "another currency": lambda n: Planted((payment(n),), (line(n, currency="USD"),), (_different(Aspect.AMOUNT),)),
    "a fee that doesn't add up": lambda n: Planted(
        (payment(n),), (line(n, fee_minor=100, net_minor=5),), (_different(Aspect.FEE),)
    ),
    "another fee than agreed": lambda n: Planted(
        (payment(n),), (line(n, fee_minor=100, expected_fee_minor=99),), (_different(Aspect.FEE),)
    ),
    "not taken": lambda n: Planted((payment(n),), (line(n, state=LineState.NOT_TAKEN),), (_different(Aspect.STATE),)),
    "another day": lambda n: Planted((payment(n),), (line(n, day=DAY + timedelta(days=2)),), (_different(Aspect.DAY),)),
    "another order": lambda n: Planted((payment(n),), (line(n, order_id=f"B-{n}"),), (_different(Aspect.ORDER),)),
    "open": lambda n: Planted(
        (payment(n, standing=EntryStanding.OPEN, payment_id=None),), (), ((BooksVerdict.OPEN, ()),)
    ),
    "taken for what is open": lambda n: Planted(
        (payment(n, standing=EntryStanding.OPEN, payment_id=None),), (line(n),), (_different(Aspect.STATE),)
    ),
    "taken for what failed": lambda n: Planted(
        (payment(n, standing=EntryStanding.FAILED, payment_id=None),), (line(n),), (_different(Aspect.STATE),)
    ),
    "failed on both sides": lambda n: Planted(
        (payment(n, standing=EntryStanding.FAILED, payment_id=None),), (line(n, state=LineState.NOT_TAKEN),), ()
    ),
    "declined on both sides": lambda n: Planted(
        (payment(n, standing=EntryStanding.FAILED),), (line(n, state=LineState.NOT_TAKEN),), (_AGREED,)
    ),
    "a word that nobody knows": lambda n: Planted(
        (payment(n),), (line(n, state=LineState.OTHER, word="SETTLED"),), (_different(Aspect.STATE),)
    ),
    "a stranger's word that nobody knows": lambda n: Planted(
        (), (line(n, state=LineState.OTHER, word="SETTLED"),), ((BooksVerdict.ONLY_THEIRS, ()),)
    ),
    "a refund that failed there": lambda n: Planted(
        (payment(n), refund(f"{n}a", 10, n)),
        (line(n), refund_line(f"{n}x", 10, n, state=LineState.NOT_TAKEN)),
        (_AGREED, _different(Aspect.STATE)),
    ),
    "refunded in full": lambda n: Planted(
        (payment(n), refund(f"{n}a", None, n)), (line(n, state=LineState.REFUNDED),), (_AGREED, _AGREED)
    ),
    "refunded in parts": lambda n: Planted(
        (payment(n), refund(f"{n}a", 10, n), refund(f"{n}b", 20, n)),
        (line(n), refund_line(f"{n}x", 20, n), refund_line(f"{n}y", 10, n, day=DAY + timedelta(days=9))),
        (_AGREED, _AGREED, _AGREED),
    ),
    "refunded by somebody else": lambda n: Planted(
        (payment(n),), (line(n, state=LineState.REFUNDED),), (_different(Aspect.STATE),)
    ),
    "a refund of another amount": lambda n: Planted(
        (payment(n), refund(f"{n}a", 10, n)),
        (line(n), refund_line(f"{n}x", 11, n)),
        (_AGREED, _different(Aspect.AMOUNT)),
    ),
    "a refund that only we have": lambda n: Planted(
        (payment(n), refund(f"{n}a", 10, n)), (line(n),), (_AGREED, (BooksVerdict.ONLY_OURS, ()))
    ),
    "a refund that only they have": lambda n: Planted(
        (payment(n),), (line(n), refund_line(f"{n}x", 10, n)), (_AGREED, (BooksVerdict.ONLY_THEIRS, ()))
    ),
    "charged back": lambda n: Planted(
        (payment(n), payment(n, id=f"cb_{n}", movement=Movement.CHARGEBACK)),
        (line(n, state=LineState.CHARGED_BACK),),
        (_AGREED, _AGREED),
    ),
    "a chargeback that only they have": lambda n: Planted(
        (payment(n),), (line(n, state=LineState.CHARGED_BACK),), (_different(Aspect.STATE),)
    ),
    "two files that contradict each other": lambda n: Planted(
        (payment(n),), (line(n), line(n, amount_minor=9)), (_different(Aspect.AMOUNT, Aspect.STATEMENTS),)
    ),
}
"""What can be planted, by name, for the order with a number."""


def planted(names: list[str]) -> Planted:
    """Plants these in one day, one after the other."""
    each = [PLANTS[name](number) for number, name in enumerate(names, start=1)]
    return Planted(
        tuple(entry for plant in each for entry in plant.ours),
        tuple(line for plant in each for line in plant.theirs),
        tuple(found for plant in each for found in plant.found),
    )


worlds = st.lists(st.sampled_from(sorted(PLANTS)), max_size=12)
"""The names of what is planted in a day."""
