"""What a request must do before its effect is begun, by its kind and by what the database lost."""

from typing import Final

import msgspec
import pytest

from payrelay.core.calls import CancelSubscription, Capture, Charge, Effect, Refund, RetrySubscription, Void
from payrelay.core.database.incarnations import Beginning, Incarnation, LostWindow, wait_until_shown_ms
from payrelay.core.gateways.capabilities import Capabilities
from payrelay.core.payments.operation import Kind
from payrelay.recovery.rules.clearance import Clearance, Step, clearance_of

SHOWN_AFTER_MS: Final = 640_000
LOST: Final = LostWindow(since_ms=1_000, until_ms=2_000)
LOOKED_MS: Final = LOST.until_ms + SHOWN_AFTER_MS
RECOVERING: Final = Incarnation(number=2, reason=Beginning.RECOVERED, began_at_ms=2_000, lost=LOST)
CAN: Final = Capabilities(
    does_once=frozenset({Kind.CAPTURE, Kind.CANCEL}),
    finds_orders=True,
    shows_refunds=True,
    shows_installments=True,
)
CHARGE: Final = Charge(
    authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=1, customer_token="cust"
)
AUTHORIZATION: Final = msgspec.structs.replace(CHARGE, authorize=True)
WHOLE: Final = Refund(payment_id="320", description="late")
PART: Final = Refund(payment_id="320", description="late", amount_minor=1)
VOID: Final = Void(authorization_token="hold", description="late")
CAPTURE: Final = Capture(authorization_token="hold", amount_minor=1, description="all")
RETRY: Final = RetrySubscription(subscription_id=1)
CANCEL: Final = CancelSubscription(subscription_id=1)
CALLS: Final[dict[Kind, Effect]] = {
    Kind.CHARGE: CHARGE,
    Kind.AUTHORIZATION: AUTHORIZATION,
    Kind.CAPTURE: CAPTURE,
    Kind.REFUND: WHOLE,
    Kind.VOID: VOID,
    Kind.RETRY: RETRY,
    Kind.CANCEL: CANCEL,
}
STEPS: Final = {
    Kind.CHARGE: Step.LOOK,
    Kind.AUTHORIZATION: Step.HOLD,
    Kind.CAPTURE: Step.GO,
    Kind.REFUND: Step.LOOK,
    Kind.VOID: Step.HOLD,
    Kind.RETRY: Step.LOOK,
    Kind.CANCEL: Step.GO,
}


def clearance(
    kind: Kind,
    call: Effect,
    incarnation: Incarnation | None = RECOVERING,
    *,
    can: Capabilities = CAN,
    now_ms: int = LOOKED_MS,
) -> Clearance:
    """Gives the clearance of the shop's request."""
    wait_ms = wait_until_shown_ms(LOST, SHOWN_AFTER_MS, now_ms=now_ms, known_for_ms=0)
    return clearance_of(kind, call, can, incarnation, "shop", wait_ms=wait_ms)


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_its_step_in_a_recovery(kind: Kind) -> None:
    """What a record shows is looked for, what is done only once goes on, and a person decides about the rest."""
    assert clearance(kind, CALLS[kind]) == Clearance(STEPS[kind])


def test_a_part_of_a_payment_is_held() -> None:
    """No record tells what part was refunded."""
    assert clearance(Kind.REFUND, PART) == Clearance(Step.HOLD)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(
    "incarnation",
    [
        None,
        msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=9),
        msgspec.structs.replace(RECOVERING, lost=None),
        msgspec.structs.replace(RECOVERING, acknowledged={"shop": 3_000}),
    ],
)
def test_where_nothing_can_come_again_everything_goes_on(kind: Kind, incarnation: Incarnation | None) -> None:
    """Outside of a recovery, after its end, and for who has repeated everything: as ever, and at once."""
    assert clearance(kind, CALLS[kind], incarnation, now_ms=0) == Clearance(Step.GO)


def test_another_principals_acknowledgment_is_its_own() -> None:
    """What one shop has repeated says nothing of the other's requests."""
    other = msgspec.structs.replace(RECOVERING, acknowledged={"another": 3_000})
    assert clearance(Kind.CHARGE, CHARGE, other) == Clearance(Step.LOOK)


@pytest.mark.parametrize("kind", [Kind.CHARGE, Kind.REFUND, Kind.RETRY])
@pytest.mark.parametrize("early_ms", [1, SHOWN_AFTER_MS])
def test_a_look_too_early_is_none(kind: Kind, early_ms: int) -> None:
    """Before its time the gateway may not show an effect that is there; the client hears how long that is."""
    assert clearance(kind, CALLS[kind], now_ms=LOOKED_MS - early_ms) == Clearance(Step.TOO_EARLY, early_ms)


@pytest.mark.parametrize("kind", [Kind.AUTHORIZATION, Kind.VOID, Kind.CAPTURE, Kind.CANCEL])
def test_what_no_look_helps_does_not_wait_for_one(kind: Kind) -> None:
    """Waiting would show nothing."""
    assert clearance(kind, CALLS[kind], now_ms=LOST.until_ms) == Clearance(STEPS[kind])


@pytest.mark.parametrize("kind", [Kind.CHARGE, Kind.AUTHORIZATION, Kind.REFUND, Kind.RETRY, Kind.CAPTURE])
def test_at_a_gateway_that_shows_nothing_a_person_decides(kind: Kind) -> None:
    """Its idempotency keys don't help: the key was the id of the operation that is lost."""
    assert clearance(kind, CALLS[kind], can=Capabilities(keys_kept_ms=86_400_000)) == Clearance(Step.HOLD)


def test_an_authorization_that_is_shown_is_held_all_the_same() -> None:
    """The record lacks the token that its capture needs."""
    can = msgspec.structs.replace(CAN, shows_authorizations=True)
    assert clearance(Kind.AUTHORIZATION, AUTHORIZATION, can=can) == Clearance(Step.HOLD)


@pytest.mark.parametrize(
    ("now_ms", "known_for_ms", "wait_ms"),
    [
        (LOST.until_ms, 0, SHOWN_AFTER_MS),
        (LOOKED_MS, 0, 0),
        # The clock was an hour ahead when the recovery was begun, and is right by now.
        (LOST.until_ms - 3_600_000, 0, SHOWN_AFTER_MS),
        (LOST.until_ms - 3_600_000, SHOWN_AFTER_MS - 1, 1),
        (LOST.until_ms - 3_600_000, SHOWN_AFTER_MS, 0),
    ],
)
def test_a_clock_that_was_ahead_makes_nobody_wait_for_it(now_ms: int, known_for_ms: int, wait_ms: int) -> None:
    """The lost window had ended when a process first saw the recovery, whatever the clock of the operator said."""
    assert wait_until_shown_ms(LOST, SHOWN_AFTER_MS, now_ms=now_ms, known_for_ms=known_for_ms) == wait_ms
