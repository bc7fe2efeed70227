"""What was taken by one payment, and what is held and not taken yet."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.orders.facts import AcceptedHold, OrderFacts, PaidInstallment, SeenFact
from payrelay.core.orders.figures import Doubt, DoubtKind, Figure, FigureSource, Origin
from payrelay.core.orders.joining import PaymentFacts
from payrelay.core.payments.operation import OPEN_STATES, TAKING_KINDS, Kind, Operation, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import AUTHORIZATION_LAPSES_MS, REFUND_STATUSES

TAKEN: Final = REFUND_STATUSES | {PaymentStatus.RECEIVED, PaymentStatus.CHARGED_BACK}
"""A record with one of these shows that money was taken."""
_NEAREST: Final = (
    *(
        FigureSource.OPERATION,
        FigureSource.RECORD,
        FigureSource.INSTALLMENT,
        FigureSource.CHECKOUT,
        FigureSource.IMPORT,
    ),
    FigureSource.CHARGEBACK,
)
"""The sources of what was paid, the nearest to the gateway's answer first."""


class Taken(NamedTuple):
    """What was paid: None for an amount or currency that nothing says. ``origins`` is empty where nothing was taken."""

    minor: int | None
    currency: str | None
    origins: tuple[Origin, ...]
    doubts: tuple[Doubt, ...]


class Held(NamedTuple):
    """What is authorized and not taken yet, and until when at the latest."""

    minor: int
    currency: str | None
    until_ms: int | None
    origins: tuple[Origin, ...]
    doubts: tuple[Doubt, ...]


class _Hold(NamedTuple):
    origin: Origin
    until_ms: int
    is_proved: bool


def taken_of(facts: PaymentFacts, payment_id: str | None) -> Taken:
    """Gives what was taken by a payment. Of sources that differ the nearest to the gateway's answer holds."""
    origins = tuple(sorted(_taken_by(facts), key=_nearness))
    named = [each for each in origins if each.amount_minor is not None and each.currency is not None]
    minor = named[0].amount_minor if named else None
    currency = next((each.currency for each in (*named, *origins) if each.currency is not None), None)
    doubts = []
    if origins and minor is None:
        doubts.append(Doubt(kind=DoubtKind.UNKNOWN_AMOUNT, id=origins[0].id, payment_id=payment_id, currency=currency))
    doubts += [
        about(DoubtKind.DIFFERENT_AMOUNTS, each, payment_id)
        for each in origins
        if (minor is not None and each.amount_minor not in {None, minor}) or each.currency not in {None, currency}
    ]
    return Taken(minor, currency, origins, tuple(doubts))


def held_of(facts: PaymentFacts, payment_id: str | None, *, now_ms: int) -> Held:
    """Gives what a payment's hold has that nobody took, voided, or let lapse by ``now_ms``."""
    hold = max(_holds(facts), key=lambda each: (each.is_proved, each.until_ms, _nearness(each.origin)), default=None)
    if hold is None:
        return Held(0, None, None, (), ())
    currency, origins = hold.origin.currency, (hold.origin,)
    is_taken = any(each.kind is Kind.CAPTURE and each.state is State.SUCCEEDED for each in facts.operations)
    if is_taken or hold.until_ms <= now_ms:
        return Held(0, currency, None, origins, ())
    minor = hold.origin.amount_minor or 0
    voids = [each for each in facts.operations if each.kind is Kind.VOID and each.state is State.SUCCEEDED]
    left = max(0, minor - sum(minor if each.amount_minor is None else each.amount_minor for each in voids))
    if not left:
        return Held(0, currency, None, origins, ())
    doubts = [about(DoubtKind.VOID_OF_PART, of_operation(Figure.HELD, each), payment_id) for each in voids]
    if not hold.is_proved:
        doubts.append(about(DoubtKind.UNPROVED_HOLD, hold.origin, payment_id))
    elif payment_id is None and all(each.result_ref is None for each in facts.operations):
        doubts.append(about(DoubtKind.UNNUMBERED, hold.origin, None))
    return Held(left, currency, hold.until_ms, origins, tuple(doubts))


def page_let_go(facts: OrderFacts, *, now_ms: int) -> Checkout | None:
    """Gives the notified page of an order whose hold is over; None where there is none, or several are notified."""
    notified = [each for each in facts.checkouts if each.state is CheckoutState.NOTIFIED]
    if len(notified) != 1:
        return None
    hold = facts.hold or AcceptedHold(token_hash="", accepted_at_ms=notified[0].updated_at_ms)
    return notified[0] if is_hold_over(hold, facts, now_ms=now_ms) else None


def is_hold_over(hold: AcceptedHold, facts: OrderFacts, *, now_ms: int) -> bool:
    """Tells whether a hold that was reported for a page of the order was voided as a whole, or has lapsed.

    It isn't once it was captured, nor while an operation on it has no outcome. On one without a token's hash all
    captures and voids of the order may act.
    """
    acting = [each for each in facts.operations if each.kind in {Kind.CAPTURE, Kind.VOID}]
    its = [each for each in acting if not hold.token_hash or each.subject == f"authorization/{hold.token_hash}"]
    if any(each.state in OPEN_STATES or (each.kind is Kind.CAPTURE and each.state is State.SUCCEEDED) for each in its):
        return False
    pages = [each for each in facts.checkouts if each.kind is CheckoutKind.AUTHORIZATION]
    if not (pages and facts.is_complete):
        return False
    largest = max(pages, key=lambda each: each.amount_minor or 0)
    page = msgspec.structs.replace(largest, state=CheckoutState.NOTIFIED)
    held = held_of(PaymentFacts(operations=tuple(its), checkouts=(page,), hold=hold), None, now_ms=now_ms)
    return not held.minor


def held_beside(taken: Taken, held: Held, payment_id: str | None) -> Held:
    """Gives what is held of a payment whose currency is that of what was taken; of another one it is only a doubt."""
    if not (taken.origins and held.minor) or held.currency in {None, taken.currency}:
        return held
    doubts = tuple(about(DoubtKind.OTHER_CURRENCY, each, payment_id) for each in held.origins)
    return Held(0, taken.currency, None, held.origins, (*held.doubts, *doubts))


def _taken_by(facts: PaymentFacts) -> Iterator[Origin]:
    for operation in facts.operations:
        if operation.state is State.SUCCEEDED and _takes(operation):
            yield of_operation(Figure.PAID, operation)
    for checkout in facts.checkouts:
        if is_paid(checkout):
            yield _of_paid_page(checkout, facts)
    for installment in facts.installments:
        if is_number(installment.payment):
            yield of_installment(installment)
    for imported in facts.imported:
        yield origin_of(Figure.PAID, FigureSource.IMPORT, imported.place, imported.amount_minor, imported.currency)
    record = record_of(facts)
    if record is not None and record.status in TAKEN:
        yield origin_of(Figure.PAID, FigureSource.RECORD, record.payment_id, record.amount_minor, record.currency)
    for chargeback in facts.chargebacks:  # a part of a payment may be charged back, so its amount says nothing here
        yield origin_of(Figure.PAID, FigureSource.CHARGEBACK, chargeback.notification_id, None, chargeback.currency)


def _takes(operation: Operation) -> bool:
    """Tells whether an operation takes money by itself. A retry does so by an installment, which its number names."""
    return operation.kind in TAKING_KINDS and (operation.kind is not Kind.RETRY or operation.payment_id is not None)


def is_number(payment: str) -> bool:
    """Tells whether an installment has a payment's number, and not only that of its notification."""
    return payment.isdigit()


def record_of(facts: PaymentFacts) -> SeenFact | None:
    """Gives the gateway's record of a payment, as it was read last; None where it never was."""
    return max(facts.seen, key=lambda each: (each.seen_at_ms, repr(each)), default=None)


def about(kind: DoubtKind, origin: Origin, payment_id: str | None) -> Doubt:
    """Makes a doubt about what an origin says of a payment."""
    return Doubt(
        kind=kind, id=origin.id, payment_id=payment_id, amount_minor=origin.amount_minor, currency=origin.currency
    )


def of_operation(figure: Figure, operation: Operation) -> Origin:
    """Makes the origin that an operation is."""
    return origin_of(figure, FigureSource.OPERATION, operation.id, operation.amount_minor, operation.currency)


def _holds(facts: PaymentFacts) -> Iterator[_Hold]:
    for operation in facts.operations:
        if operation.kind is Kind.AUTHORIZATION and operation.state is State.SUCCEEDED:
            # One that was proved later was authorized when it was sent.
            began_ms = min(operation.updated_at_ms, max(operation.created_at_ms, operation.send_by_ms))
            yield _Hold(of_operation(Figure.HELD, operation), began_ms + AUTHORIZATION_LAPSES_MS, is_proved=True)
    for checkout in facts.checkouts:
        if checkout.kind is CheckoutKind.AUTHORIZATION and checkout.state is CheckoutState.NOTIFIED:
            began_ms = checkout.updated_at_ms if facts.hold is None else facts.hold.accepted_at_ms
            yield _Hold(of_page(checkout), began_ms + AUTHORIZATION_LAPSES_MS, is_proved=False)
    record = record_of(facts)
    if record is not None and record.status is PaymentStatus.AUTHORIZED:
        origin = origin_of(Figure.HELD, FigureSource.RECORD, record.payment_id, record.amount_minor, record.currency)
        yield _Hold(origin, record.seen_at_ms + AUTHORIZATION_LAPSES_MS, is_proved=True)


def is_paid(checkout: Checkout) -> bool:
    """Tells whether a page took money. One for a plan may be completed before the plan's first payment."""
    is_first_paid = checkout.kind is not CheckoutKind.RECURRING or checkout.payment_id is not None
    return checkout.state is CheckoutState.COMPLETED and is_first_paid


def _of_paid_page(checkout: Checkout, facts: PaymentFacts) -> Origin:
    """Makes the origin that a paid page is.

    A hold may be taken in part, and the payments of a plan have several amounts: only what was asked for is known then.
    """
    origin = of_page(checkout)
    is_asked_only = checkout.kind is CheckoutKind.RECURRING and (facts.installments or facts.seen)
    if checkout.kind is CheckoutKind.AUTHORIZATION or is_asked_only:
        return msgspec.structs.replace(origin, amount_minor=None)
    return origin


def of_page(checkout: Checkout) -> Origin:
    """Makes the origin that a page is, with what was asked for now: of a plan the first installment."""
    figure = Figure.HELD if checkout.state is CheckoutState.NOTIFIED else Figure.PAID
    amount_minor = checkout.amount_minor if checkout.first_minor is None else checkout.first_minor
    return origin_of(figure, FigureSource.CHECKOUT, checkout.id, amount_minor, checkout.currency)


def of_installment(installment: PaidInstallment) -> Origin:
    """Makes the origin that a paid installment is."""
    name = f"{installment.subscription_id}/{installment.payment}"
    return origin_of(Figure.PAID, FigureSource.INSTALLMENT, name, installment.amount_minor, installment.currency)


def origin_of(figure: Figure, source: FigureSource, id_: str, amount_minor: int | None, currency: str | None) -> Origin:
    """Makes an origin."""
    return Origin(figure=figure, source=source, id=id_, amount_minor=amount_minor, currency=currency)


def _nearness(origin: Origin) -> tuple[int, str, str]:
    return _NEAREST.index(origin.source), origin.id, repr(origin)
