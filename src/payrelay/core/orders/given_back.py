"""What of a payment was given back, and what a bank took back of it.

Rules:

1. A refund without an amount is of all that is left of what was paid.
2. A record shows no parts. So it says of a payment that had parts refunded neither that all of it was, nor that a part
   wasn't.
3. A record that shows a payment as received, and that showed it as refunded after the refund was asked for, says that
   the refund failed. A record that shows it as received since the chargeback says that the chargeback was won. Until it
   does, what a record showed counts, whatever it shows later.
4. A refund that was made here explains what a record or an import showed at the moment at which it was asked for, or
   later. What was shown before was given back elsewhere, and nothing says how much: it counts as the whole, as a doubt.
5. What was given back and charged back is never more than what was paid. What is more is a doubt.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from payrelay.core.orders.facts import ChargebackFact, ReturnSeen, SeenFact
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, FigureSource, Origin
from payrelay.core.orders.joining import PaymentFacts
from payrelay.core.orders.taken import Taken, about, of_operation, origin_of, record_of
from payrelay.core.payments.operation import OPEN_STATES, Kind, Operation, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import REFUND_STATUSES


class Returned(NamedTuple):
    """What went back of a payment, where that comes from, and what isn't certain of it."""

    minor: int = 0
    origins: tuple[Origin, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def given_back_of(facts: PaymentFacts, taken: Taken, payment_id: str | None) -> Returned:
    """Gives what was refunded of a payment, at most what was paid."""
    made = [each for each in facts.operations if each.kind is Kind.REFUND and each.state is State.SUCCEEDED]
    own = [each for each in made if None in {each.currency, taken.currency} or each.currency == taken.currency]
    standing = [each for each in own if not _has_failed(each, facts, taken)]
    wanted_minor = _wanted(standing, taken)
    origins = [of_operation(Figure.GIVEN_BACK, each) for each in standing]
    doubts = [
        about(DoubtKind.OTHER_CURRENCY, of_operation(Figure.GIVEN_BACK, each), payment_id)
        for each in made
        if each not in own
    ]
    elsewhere = _given_back_elsewhere(facts, taken, standing)
    if any(each.source is FigureSource.IMPORT for each in elsewhere):
        wanted_minor += taken.minor or 0
    elif elsewhere:
        wanted_minor = max(wanted_minor, taken.minor or 0)
        doubts += [about(DoubtKind.REFUND_NOT_MADE_HERE, each, payment_id) for each in elsewhere]
    origins += elsewhere
    doubts += [
        about(DoubtKind.REFUND_NOT_SHOWN, of_operation(Figure.GIVEN_BACK, each), payment_id)
        for each in _not_shown(standing, facts, taken)
    ]
    minor = wanted_minor if taken.minor is None else min(wanted_minor, taken.minor)
    number = payment_id or ""
    money = {"payment_id": payment_id, "currency": taken.currency}
    if standing and taken.minor is not None and 0 < minor < taken.minor:
        doubts.append(Doubt(kind=DoubtKind.PARTS_NOT_SHOWN, id=number, amount_minor=minor, **money))
    if minor < wanted_minor:
        doubts.append(Doubt(kind=DoubtKind.MORE_THAN_PAID, id=number, amount_minor=wanted_minor, **money))
    return Returned(minor, tuple(origins), tuple(doubts))


def charged_back_of(facts: PaymentFacts, taken: Taken, given_back_minor: int, payment_id: str | None) -> Returned:
    """Gives what a bank took back of what was not given back."""
    found = _charged_back_by(facts, taken)
    own = [each for each in found if None in {each.currency, taken.currency} or each.currency == taken.currency]
    doubts = [about(DoubtKind.OTHER_CURRENCY, each, payment_id) for each in found if each not in own]
    if not own:
        return Returned(doubts=tuple(doubts))
    sources = {each.source for each in own}
    if sources == {FigureSource.RECORD}:
        doubts += [about(DoubtKind.CHARGEBACK_NOT_NOTIFIED, each, payment_id) for each in own]
    unsigned = {each.notification_id for each in facts.chargebacks if each.part_minor is not None}
    doubts += [about(DoubtKind.PART_NOT_SIGNED, each, payment_id) for each in own if each.id in unsigned]
    if taken.minor is None:
        return Returned(0, tuple(own), tuple(doubts))
    left_minor = taken.minor - given_back_minor
    named = [
        each.amount_minor for each in own if each.source is FigureSource.CHARGEBACK and each.amount_minor is not None
    ]
    wanted_minor = max(named, default=taken.minor)
    is_more = not left_minor or left_minor < wanted_minor < taken.minor
    if is_more:
        doubts += [about(DoubtKind.MORE_THAN_PAID, each, payment_id) for each in own]
    return Returned(min(wanted_minor, left_minor), tuple(own), tuple(doubts))


def _wanted(refunds: list[Operation], taken: Taken) -> int:
    """Adds up refunds."""
    shares = shares_of([each.amount_minor for each in refunds], taken.minor)
    return sum(each for each in shares if each is not None)


def shares_of(amounts: Sequence[int | None], paid_minor: int | None) -> list[int | None]:
    """Gives how much each refund of one payment gave back, in the order of ``amounts``, which were asked for.

    One without an amount gave back what all named ones leave of what was paid, and a second such one everything once
    more. It is None where it isn't known what was paid.
    """
    named_minor = sum(each for each in amounts if each is not None)
    shares: list[int | None] = []
    rest_minor = None if paid_minor is None else max(0, paid_minor - named_minor)
    for each in amounts:
        shares.append(rest_minor if each is None else each)
        if each is None:
            rest_minor = paid_minor
    return shares


def _is_whole(refund: Operation, taken: Taken) -> bool:
    return refund.amount_minor is None or refund.amount_minor == taken.minor


def _has_failed(refund: Operation, facts: PaymentFacts, taken: Taken) -> bool:
    """Tells whether the record showed a refund of the whole after it was asked for, and shows none any more."""
    record = record_of(facts)
    if record is None or record.status is not PaymentStatus.RECEIVED or not _is_whole(refund, taken):
        return False
    return any(
        each.status in REFUND_STATUSES and refund.created_at_ms <= each.seen_at_ms < record.seen_at_ms
        for each in facts.returned
    )


def _not_shown(standing: list[Operation], facts: PaymentFacts, taken: Taken) -> list[Operation]:
    """Gives the refunds that a later record should show: those of the whole, and parts that are the whole together."""
    record = record_of(facts)
    if record is None or record.status is not PaymentStatus.RECEIVED:
        return []
    are_whole = taken.minor is not None and _wanted(standing, taken) >= taken.minor
    if are_whole and all(each.updated_at_ms < record.seen_at_ms for each in standing):
        return standing
    return [each for each in standing if _is_whole(each, taken) and each.updated_at_ms < record.seen_at_ms]


def _given_back_elsewhere(facts: PaymentFacts, taken: Taken, standing: list[Operation]) -> list[Origin]:
    """Gives what shows a refund that none made here explains: neither one that stands, nor a part that may yet."""
    may_be_parts = [each for each in facts.operations if each.kind is Kind.REFUND and each.state in OPEN_STATES]
    explaining = [*standing, *(each for each in may_be_parts if each.amount_minor is not None)]
    asked_ms = min((each.created_at_ms for each in explaining), default=None)
    found = [
        origin_of(Figure.GIVEN_BACK, FigureSource.IMPORT, each.place, each.amount_minor, each.currency)
        for each in facts.imported
        if each.status in REFUND_STATUSES
        and not _is_received_since(facts, each.imported_at_ms)
        and (asked_ms is None or each.imported_at_ms < asked_ms)
    ]
    shown = _first_shown(facts, REFUND_STATUSES)
    if shown is not None and (asked_ms is None or shown.seen_at_ms < asked_ms):
        found.append(origin_of(Figure.GIVEN_BACK, FigureSource.RECORD, shown.payment_id, taken.minor, taken.currency))
    return found


def _charged_back_by(facts: PaymentFacts, taken: Taken) -> list[Origin]:
    """Gives what says that a payment is charged back, and that nothing later contradicts."""
    found = [
        _of_chargeback(each) for each in facts.chargebacks if not is_won(each.noted_at_ms, facts.seen, facts.returned)
    ]
    found += [
        origin_of(Figure.CHARGED_BACK, FigureSource.IMPORT, each.place, each.amount_minor, each.currency)
        for each in facts.imported
        if each.status is PaymentStatus.CHARGED_BACK and not _is_received_since(facts, each.imported_at_ms)
    ]
    shown = _first_shown(facts, {PaymentStatus.CHARGED_BACK})
    if shown is not None:
        found.append(origin_of(Figure.CHARGED_BACK, FigureSource.RECORD, shown.payment_id, taken.minor, taken.currency))
    return found


def is_won(noted_at_ms: int, seen: Iterable[SeenFact], returned: Iterable[ReturnSeen]) -> bool:
    """Tells whether a payment's record showed it as received since its chargeback, and so as charged back no more.

    The record was the proof of the chargeback, at ``noted_at_ms``. A refund that it shows later proves nothing: what a
    bank took a part of can be refunded, too.
    """
    return _last_received_ms(seen, returned) > noted_at_ms


def _is_received_since(facts: PaymentFacts, at_ms: int) -> bool:
    return _last_received_ms(facts.seen, facts.returned) > at_ms


def _last_received_ms(seen: Iterable[SeenFact], returned: Iterable[ReturnSeen]) -> int:
    """Gives when a record last showed a payment as received; less than every time where none is known."""
    received = PaymentStatus.RECEIVED
    times = [each.seen_at_ms for each in seen if each.status is received]
    return max([*times, *(each.seen_at_ms for each in returned if each.status is received)], default=-1)


def _first_shown(facts: PaymentFacts, statuses: Collection[PaymentStatus]) -> SeenFact | ReturnSeen | None:
    """Gives the first time at which the record showed one of these since it showed the payment as received."""
    received_ms = _last_received_ms(facts.seen, facts.returned)
    noted: list[SeenFact | ReturnSeen] = [*facts.seen, *facts.returned]
    shown = [each for each in noted if each.status in statuses and each.seen_at_ms > received_ms]
    return min(shown, key=lambda each: (each.seen_at_ms, each.payment_id), default=None)


def _of_chargeback(chargeback: ChargebackFact) -> Origin:
    id_ = chargeback.notification_id
    amount_minor = chargeback.amount_minor if chargeback.part_minor is None else chargeback.part_minor
    return origin_of(Figure.CHARGED_BACK, FigureSource.CHARGEBACK, id_, amount_minor, chargeback.currency)
