"""What of a payment was given back, and what a bank took back of it.

Rules:

1. A refund without an amount is of all that is left of what was paid.
2. A record shows no parts. So it says of a payment that had parts refunded neither that all of it was, nor that a part
   wasn't. No gateway documents what it shows after a part. So where it shows a refund, and the parts that were made
   here aren't the whole, the rest may have gone back elsewhere, too: it counts as given back, as a doubt.
3. A refund that is stored as failed has given nothing back. A record that shows a payment as received since its
   chargeback says that the chargeback was won. One look says neither (``received_again``): what a record showed counts
   until then, as a doubt.
4. A refund that was made here explains what a record or an import showed at the moment at which it was asked for, or
   later. One that an earlier try made, whose operation was lost, explains what was shown before, too. What else was
   shown before was given back elsewhere, and nothing says how much: it counts as the whole, as a doubt.
5. What was given back and charged back is never more than what was paid. What is more is a doubt.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from payrelay.core.orders.facts import ReturnSeen, SeenFact, charged_back_minor
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, FigureSource, Origin
from payrelay.core.orders.joining import PaymentFacts
from payrelay.core.orders.received_again import (
    asked_ms,
    is_in_question,
    is_whole,
    received_ms,
    refunds_made,
    standing_refunds,
)
from payrelay.core.orders.taken import Taken, about, of_operation, origin_of, record_of
from payrelay.core.payments.operation import OPEN_STATES, Kind, Operation
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import REFUND_STATUSES


class Returned(NamedTuple):
    """What went back of a payment, where that comes from, and what isn't certain of it."""

    minor: int = 0
    origins: tuple[Origin, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def returned_of(facts: PaymentFacts, taken: Taken, payment_id: str | None) -> tuple[Returned, Returned]:
    """Gives what was refunded of a payment, and what a bank took back of it: together at most what was paid."""
    given_back = _given_back_of(facts, taken, payment_id)
    charged_back = _charged_back_of(facts, taken, given_back.minor, payment_id)
    rest_minor = None if taken.minor is None else taken.minor - given_back.minor - charged_back.minor
    may_be_whole = _shown_as_given_back(facts, taken, explained=True) if rest_minor != 0 else []
    if may_be_whole:
        given_back = Returned(
            given_back.minor + (rest_minor or 0),
            (*given_back.origins, *may_be_whole),
            (*given_back.doubts, *(about(DoubtKind.REFUND_MAY_BE_WHOLE, each, payment_id) for each in may_be_whole)),
        )
    if is_in_question(facts):
        doubt = Doubt(kind=DoubtKind.RECEIVED_AGAIN, id=payment_id or "", payment_id=payment_id)
        given_back = given_back._replace(doubts=(*given_back.doubts, doubt))
    return given_back, charged_back


def _given_back_of(facts: PaymentFacts, taken: Taken, payment_id: str | None) -> Returned:
    """Gives what was refunded of a payment, at most what was paid."""
    standing = standing_refunds(facts, taken)
    wanted_minor = _wanted(standing, taken)
    origins = [of_operation(Figure.GIVEN_BACK, each) for each in standing]
    doubts = [
        about(DoubtKind.OTHER_CURRENCY, of_operation(Figure.GIVEN_BACK, each), payment_id)
        for each in refunds_made(facts)
        if each not in standing
    ]
    elsewhere = _shown_as_given_back(facts, taken, explained=False)
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


def _charged_back_of(facts: PaymentFacts, taken: Taken, given_back_minor: int, payment_id: str | None) -> Returned:
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


def _not_shown(standing: list[Operation], facts: PaymentFacts, taken: Taken) -> list[Operation]:
    """Gives the refunds that a later record should show: those of the whole, and parts that are the whole together."""
    record = record_of(facts)
    if record is None or record.status is not PaymentStatus.RECEIVED or is_in_question(facts):
        return []
    are_whole = taken.minor is not None and _wanted(standing, taken) >= taken.minor
    if are_whole and all(each.updated_at_ms < record.seen_at_ms for each in standing):
        return standing
    return [each for each in standing if is_whole(each, taken) and each.updated_at_ms < record.seen_at_ms]


def _shown_as_given_back(facts: PaymentFacts, taken: Taken, *, explained: bool) -> list[Origin]:
    """Gives what shows a refund that one made here may explain, or else none: one that stands, or an open part."""
    may_be_parts = [each for each in facts.operations if each.kind is Kind.REFUND and each.state in OPEN_STATES]
    explaining = [
        *standing_refunds(facts, taken),
        *(each for each in may_be_parts if each.amount_minor is not None),
    ]
    first_ms = min(map(asked_ms, explaining), default=None)
    found = [
        (
            each.imported_at_ms,
            origin_of(Figure.GIVEN_BACK, FigureSource.IMPORT, each.place, each.amount_minor, each.currency),
        )
        for each in facts.imported
        if each.status in REFUND_STATUSES and received_ms(facts) <= each.imported_at_ms
    ]
    shown = _first_shown(facts, REFUND_STATUSES)
    if shown is not None:
        origin = origin_of(Figure.GIVEN_BACK, FigureSource.RECORD, shown.payment_id, taken.minor, taken.currency)
        found.append((shown.seen_at_ms, origin))
    return [origin for at_ms, origin in found if (first_ms is not None and at_ms >= first_ms) is explained]


def _charged_back_by(facts: PaymentFacts, taken: Taken) -> list[Origin]:
    """Gives what says that a payment is charged back, and that nothing later contradicts."""
    since_ms = received_ms(facts)
    found = [
        origin_of(
            Figure.CHARGED_BACK,
            FigureSource.CHARGEBACK,
            each.notification_id,
            charged_back_minor(each.amount_minor, each.part_minor),
            each.currency,
        )
        for each in facts.chargebacks
        if since_ms <= each.noted_at_ms
    ]
    found += [
        origin_of(Figure.CHARGED_BACK, FigureSource.IMPORT, each.place, each.amount_minor, each.currency)
        for each in facts.imported
        if each.status is PaymentStatus.CHARGED_BACK and since_ms <= each.imported_at_ms
    ]
    shown = _first_shown(facts, {PaymentStatus.CHARGED_BACK})
    if shown is not None:
        found.append(origin_of(Figure.CHARGED_BACK, FigureSource.RECORD, shown.payment_id, taken.minor, taken.currency))
    return found


def is_won(noted_at_ms: int, facts: PaymentFacts) -> bool:
    """Tells whether a payment's record showed it as received since its chargeback, and so as charged back no more.

    The record was the proof of the chargeback, at ``noted_at_ms``. A refund that it shows later proves nothing: what a
    bank took a part of can be refunded, too.
    """
    return received_ms(facts) > noted_at_ms


def _first_shown(facts: PaymentFacts, statuses: Collection[PaymentStatus]) -> SeenFact | ReturnSeen | None:
    """Gives the first time at which the record showed one of these since it showed the payment as received."""
    since_ms = received_ms(facts)
    noted: list[SeenFact | ReturnSeen] = [*facts.returned, *facts.seen]  # the latter only says when it was asked for
    shown = [each for each in noted if each.status in statuses and each.seen_at_ms > since_ms]
    return min(shown, key=lambda each: (isinstance(each, SeenFact), each.seen_at_ms, each.payment_id), default=None)
