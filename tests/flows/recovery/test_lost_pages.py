"""Opening a page while a recovery lasts: not before the gateway can show whether the order was paid on a lost one."""

import msgspec
import pytest
from tests.flows.hosted import hosting, new, opened
from tests.flows.recovery.lost_world import FIRST, LOOKED_MS, LOST, RECOVERING, LostWorld
from tests.flows.vault import MERCHANT
from tests.flows.world import asked
from tests.samples import PAYMENT

from payrelay.core.calls import Void
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.payments.refund import refund
from payrelay.runtime.database.lost_commits import IDENTITY_KEPT_MS

ASKED = new().payment
PAID = msgspec.structs.replace(PAYMENT, order_id=ASKED.order_id, at_ms=LOST.since_ms)
ACKNOWLEDGED = msgspec.structs.replace(RECOVERING, acknowledged={"shop": LOST.until_ms})


async def _refused(lost: LostWorld, **members: object) -> Refusal:
    relay = hosting(lost.world)
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(), new(**members))
    assert await relay.checkouts.holder_of(MERCHANT, ASKED.order_id) is None
    return refused.value


async def test_no_page_is_opened_before_the_gateway_can_show_a_payment_on_a_lost_one(lost: LostWorld) -> None:
    """The customer has just paid on a page that nobody knows of now, and would be asked to pay once more."""
    lag_s = hosting(lost.world).settings.recovery_lag_s
    lost.lose(now_ms=LOST.until_ms + 1_000)
    refused = await _refused(lost)
    assert (refused.code, refused.retry_after_s) == (Code.UNAVAILABLE, lag_s - 1)
    lost.world.clock.passed_ms += lag_s * 1000
    assert (await opened(hosting(lost.world))).order_id == ASKED.order_id


async def test_an_order_that_was_paid_on_a_lost_page_gets_no_other_one(lost: LostWorld) -> None:
    """The shop asks for the second page because it has no answer about the first."""
    lost.lose()
    lost.account.shown.append((PAID, 0))
    assert (await _refused(lost)).code is Code.CONFLICT
    assert "order_paid_unknown" in lost.world.log_events
    lost.account.is_away = True
    assert (await _refused(lost)).code is Code.UNAVAILABLE


async def test_the_end_of_a_recovery_opens_no_page_for_what_it_did_not_explain(lost: LostWorld) -> None:
    """The shop's repeat comes again later, and its customer would pay twice. What is given back frees the order."""
    lost.lose()
    lost.account.shown.append((PAID, 0))
    await _refused(lost)
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    assert (await _refused(lost)).code is Code.CONFLICT
    lost.account.shown[-1] = (msgspec.structs.replace(PAID, status=PaymentStatus.REFUNDED), 0)
    assert (await opened(hosting(lost.world))).order_id == ASKED.order_id


async def test_an_order_with_a_page_of_another_from_after_the_loss_is_not_denied_for_good(lost: LostWorld) -> None:
    """The caller's own page may be lost. Who is told to use another order id has the customer pay twice."""
    lost.lose()
    relay = hosting(lost.world)
    await opened(relay)
    for key in ("k-1", None):
        with pytest.raises(Refusal) as refused:
            await open_checkout(relay, asked(key, principal="another shop"), new())
        assert refused.value.code is Code.UNAVAILABLE
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    lost.world.clock.passed_ms += IDENTITY_KEPT_MS
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(None, principal="another shop"), new())
    assert refused.value.code is Code.CONFLICT


async def test_an_authorization_of_a_page_from_before_the_loss_is_not_denied_for_good(lost: LostWorld) -> None:
    """The report of it may be lost. Who is told that there is none holds the customer's money, or takes it anew."""
    relay = hosting(lost.world)
    checkout = await opened(relay, new(kind=CheckoutKind.AUTHORIZATION))
    void = Void(authorization_token=checkout.id, description="not wanted")
    lost.lose()
    with pytest.raises(Refusal) as refused:
        await refund(relay, asked(), void)
    assert (refused.value.code, refused.value.retry_after_s is not None) == (Code.UNAVAILABLE, True)
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    lost.world.clock.passed_ms += IDENTITY_KEPT_MS
    with pytest.raises(Refusal) as refused:
        await refund(relay, asked(), void)
    assert refused.value.code is Code.INVALID_REQUEST


async def test_an_empty_search_opens_a_page_only_beside_a_good_control_query(lost: LostWorld) -> None:
    """A search that finds nothing at all finds no payment on a lost page either."""
    lost.lose()
    lost.account.is_blind = True
    assert (await _refused(lost)).code is Code.UNAVAILABLE
    lost.account.is_blind = False
    lost.world.clock.passed_ms += 60_000
    assert (await opened(hosting(lost.world))).order_id == ASKED.order_id


async def test_where_no_order_is_known_to_be_paid_an_acknowledgement_opens_the_page(lost: LostWorld) -> None:
    """A new shop has nothing by which the search could show that it works."""
    lost.account.merchant = "fedcba9876543210"
    lost.lose()
    refused = await _refused(lost)
    assert (refused.code, "acknowledge" in str(refused)) == (Code.UNAVAILABLE, True)
    lost.lose(incarnation=ACKNOWLEDGED)
    lost.world.clock.passed_ms += 60_000
    assert (await opened(hosting(lost.world))).order_id == ASKED.order_id


@pytest.mark.parametrize(
    "payment",
    [
        msgspec.structs.replace(PAID, at_ms=LOST.since_ms - 86_400_000),
        msgspec.structs.replace(PAID, status=PaymentStatus.REFUNDED),
    ],
    ids=["from before the loss", "given back"],
)
async def test_a_payment_that_no_lost_page_explains_keeps_nobody_from_paying(lost: LostWorld, payment: object) -> None:
    """Order ids are not unique at the gateway."""
    lost.lose()
    lost.account.shown.append((msgspec.convert(payment, type(PAID)), 0))

    assert (await opened(hosting(lost.world))).order_id == ASKED.order_id


@pytest.mark.parametrize("kind", [CheckoutKind.PAYMENT, CheckoutKind.AUTHORIZATION, CheckoutKind.PREAPPROVAL])
async def test_who_has_acknowledged_the_loss_is_told_all_the_same_that_an_order_is_paid(
    lost: LostWorld, kind: CheckoutKind
) -> None:
    """A principal has repeated what it sent, and knows nothing of what its customers did on a page that is lost.

    A payment shows also of an authorization that was captured, and of an approval that charged an amount.
    """
    lost.lose(incarnation=ACKNOWLEDGED)
    lost.account.shown.append((PAID, 0))
    assert (await _refused(lost, kind=kind)).code is Code.CONFLICT
