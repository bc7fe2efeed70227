"""Facts of one order for tests: each maker gives one, with the amounts that a table names."""

from typing import Final

import msgspec
from tests.samples import CHECKOUT, OPERATION

from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.facts import (
    AcceptedHold,
    ChargebackFact,
    FailedRefund,
    ImportedFact,
    OrderFacts,
    PaidInstallment,
    ReceivedAgain,
    ReturnSeen,
    SeenFact,
    ToldChargeback,
)
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import AUTHORIZATION_LAPSES_MS

ORDER: Final = "A-1"
P: Final = "320025000001"
HASH: Final = "h" * 64
PLAN: Final = "420"
LAPSE: Final = AUTHORIZATION_LAPSES_MS


def op(kind: Kind, number: int = 1, **members: object) -> Operation:
    """Makes an operation that succeeded at 1,000 ms: of 100.00 LKR and payment P, where nothing else is said."""
    created_at_ms = members.get("created_at_ms", OPERATION.created_at_ms)
    assert isinstance(created_at_ms, int)
    usual: dict[str, object] = {
        "id": f"op_{kind}_{number}",
        "kind": kind,
        "state": State.SUCCEEDED,
        "payment_id": P,
        "amount_minor": 10_000,
        "send_by_ms": created_at_ms + 10_000,
        "subject": f"authorization/{HASH}" if kind in {Kind.CAPTURE, Kind.VOID} else f"order/{ORDER}",
    }
    return msgspec.structs.replace(OPERATION, **{**usual, **members})


def page(kind: CheckoutKind, state: CheckoutState, number: int = 1, **members: object) -> Checkout:
    """Makes a checkout of 100.00 LKR, with payment P where it is completed."""
    usual: dict[str, object] = {
        "id": f"chk_{number}",
        "kind": kind,
        "state": state,
        "amount_minor": 10_000,
        "first_minor": 10_000,
        "payment_id": P if state is CheckoutState.COMPLETED else None,
    }
    return msgspec.structs.replace(CHECKOUT, **{**usual, **members})


def installment(payment: str = P, amount_minor: int | None = 10_000) -> PaidInstallment:
    """Makes a paid installment of the order's plan."""
    return PaidInstallment(subscription_id=PLAN, payment=payment, amount_minor=amount_minor, currency="LKR")


def imported(status: PaymentStatus = PaymentStatus.RECEIVED, **members: object) -> ImportedFact:
    """Makes an imported payment."""
    fact = ImportedFact(
        payment_id=P,
        order_id=ORDER,
        currency="LKR",
        amount_minor=10_000,
        status=status,
        imported_at_ms=500,
        place="payments.csv, line 2",
    )
    return msgspec.structs.replace(fact, **members)


def seen(status: PaymentStatus = PaymentStatus.RECEIVED, at_ms: int = 2_000, **members: object) -> SeenFact:
    """Makes what the gateway's record showed at a moment."""
    fact = SeenFact(payment_id=P, order_id=ORDER, status=status, currency="LKR", amount_minor=10_000, seen_at_ms=at_ms)
    return msgspec.structs.replace(fact, **members)


def returned(status: PaymentStatus, at_ms: int) -> ReturnSeen:
    """Makes the first moment at which a record showed a payment so since it showed it as received."""
    return ReturnSeen(payment_id=P, status=status, seen_at_ms=at_ms)


def again(at_ms: int) -> ReceivedAgain:
    """Makes the first moment at which a record showed a payment as received again."""
    return ReceivedAgain(payment_id=P, seen_at_ms=at_ms)


def failed(refund: Operation) -> FailedRefund:
    """Makes what is stored of a refund that failed later."""
    return FailedRefund(operation_id=refund.id, payment_id=P, known_at_ms=9_000)


def told(amount_minor: int | None = 10_000, **members: object) -> ToldChargeback:
    """Makes a chargeback that was notified, and that no record proves yet."""
    fact = ToldChargeback(id="ntf_9", payment_id=P, amount_minor=amount_minor, currency="LKR")
    return msgspec.structs.replace(fact, **members)


def chargeback(at_ms: int = 3_000, **members: object) -> ChargebackFact:
    """Makes a chargeback of the whole payment."""
    fact = ChargebackFact(
        payment_id=P,
        amount_minor=10_000,
        part_minor=None,
        currency="LKR",
        notification_id="ntf_1",
        noted_at_ms=at_ms,
    )
    return msgspec.structs.replace(fact, **members)


def hold(at_ms: int = 1_000) -> AcceptedHold:
    """Makes the authorization that was reported for a page."""
    return AcceptedHold(token_hash=HASH, accepted_at_ms=at_ms)


def facts_of(*found: object, order_id: str | None = ORDER, payment_id: str | None = None) -> OrderFacts:
    """Puts facts together as the store does, in the order in which they are given."""

    def of(kind: type) -> tuple:  # type: ignore[type-arg]  # of each kind its own
        return tuple(each for each in found if isinstance(each, kind))

    plans = {each.subscription_id for each in of(PaidInstallment)}
    plans |= {each.subscription_id for each in of(Checkout) if each.subscription_id is not None}
    return OrderFacts(
        order_id=order_id,
        payment_id=payment_id,
        operations=of(Operation),
        checkouts=of(Checkout),
        subscriptions=frozenset(plans),
        installments=of(PaidInstallment),
        imported=of(ImportedFact),
        seen=of(SeenFact),
        returned=of(ReturnSeen),
        again=of(ReceivedAgain),
        failed=of(FailedRefund),
        chargebacks=of(ChargebackFact),
        told=of(ToldChargeback),
        hold=next(iter(of(AcceptedHold)), None),
    )
