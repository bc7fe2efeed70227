"""Opening a page while a recovery lasts: not before the gateway can show whether the order was paid on a lost one."""

from dataclasses import replace

import msgspec
import pytest
from tests.flows.hosted import hosting, new, opened
from tests.flows.losing import Losing
from tests.flows.vault import MERCHANT
from tests.flows.world import START_MS, asked
from tests.samples import PAYMENT

from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import NoObservation, PaymentsSeen, PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.relay import Relay

ASKED = new().payment
PAID = msgspec.structs.replace(PAYMENT, order_id=ASKED.order_id, at_ms=START_MS)


def _relay(losing: Losing) -> Relay:
    return replace(hosting(losing.world), lost_commits=losing.world.relay.lost_commits)


async def _refused(relay: Relay, **members: object) -> Refusal:
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(), new(**members))
    assert await relay.checkouts.holder_of(MERCHANT, ASKED.order_id) is None
    return refused.value


async def test_no_page_is_opened_before_the_gateway_can_show_a_payment_on_a_lost_one(losing: Losing) -> None:
    """The customer has just paid on a page that nobody knows of now, and would be asked to pay once more."""
    relay = _relay(losing)
    losing.lose()
    refused = await _refused(relay)
    assert (refused.code, refused.retry_after_s) == (Code.UNAVAILABLE, relay.recovery_lag_s - 1)
    losing.world.clock.passed_ms += relay.recovery_lag_s * 1000
    assert (await opened(relay)).order_id == ASKED.order_id


async def test_an_order_that_was_paid_on_a_lost_page_gets_no_other_one(losing: Losing) -> None:
    """The shop asks for the second page because it has no answer about the first."""
    relay = _relay(losing)
    losing.lose()
    losing.world.clock.passed_ms += relay.recovery_lag_s * 1000
    losing.world.account.observations.append(PaymentsSeen(payments=(PAID,), evidence=Evidence()))
    assert (await _refused(relay)).code is Code.CONFLICT
    assert "order_paid_unknown" in losing.world.log_events
    losing.world.account.observations.append(NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence()))
    assert (await _refused(relay)).code is Code.UNAVAILABLE


@pytest.mark.parametrize(
    "payment",
    [
        msgspec.structs.replace(PAID, at_ms=START_MS - 86_400_000),
        msgspec.structs.replace(PAID, status=PaymentStatus.REFUNDED),
    ],
    ids=["from before the loss", "given back"],
)
async def test_a_payment_that_no_lost_page_explains_keeps_nobody_from_paying(losing: Losing, payment: object) -> None:
    """Order ids are not unique at the gateway."""
    relay = _relay(losing)
    losing.lose()
    losing.world.clock.passed_ms += relay.recovery_lag_s * 1000
    payments = (msgspec.convert(payment, type(PAID)),)
    losing.world.account.observations.append(PaymentsSeen(payments=payments, evidence=Evidence()))

    assert (await opened(relay)).order_id == ASKED.order_id


async def test_nobody_is_asked_of_what_no_payment_shows_or_who_has_acknowledged_the_loss(losing: Losing) -> None:
    """A principal that has sent all of the lost time again opens its pages at once."""
    relay = _relay(losing)
    losing.lose()
    losing.incarnations[-1] = msgspec.structs.replace(losing.incarnations[-1], acknowledged={"shop": START_MS})
    losing.world.account.observations.append(PaymentsSeen(payments=(PAID,), evidence=Evidence()))
    assert (await opened(relay)).order_id == ASKED.order_id
    losing.incarnations[-1] = msgspec.structs.replace(losing.incarnations[-1], acknowledged={})
    losing.world.clock.passed_ms += relay.recovery_lag_s * 1000
    hold = new(kind=CheckoutKind.AUTHORIZATION, order_id="A-2")
    assert (await opened(relay, hold)).kind is CheckoutKind.AUTHORIZATION
    assert len(losing.world.account.observations) == 1
