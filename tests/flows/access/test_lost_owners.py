"""What has no known owner while commits are lost: it is reserved, and not open to every key of the account."""

import json
from dataclasses import replace
from typing import Final

import msgspec
import pytest
from tests.flows.losing import Losing, losing, url
from tests.flows.world import CREDENTIAL, START_MS, asked

from payrelay.core.access.credential import Scope
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.outcomes import Reading
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code, Refusal
from payrelay.flows.access.ownership import require_own
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.flows.subscriptions.read_subscriptions import (
    list_subscription_payments,
    list_subscriptions,
    retrieve_subscription,
)
from payrelay.store.subscriptions import SubscriptionOwner

__all__ = ["losing", "url"]

OTHER: Final = msgspec.structs.replace(CREDENTIAL, id="000000000002", principal="another shop")
SUBJECTS: Final = ("payment/320025000001", "authorization/e34f", "subscription/420075032251")
PLAN: Final = OneSubscription(subscription_id=420075032251)
SHOWN: Final = Reading(code=None, msg="Found", raw_data=b'{"subscription_id":420075032251,"order_id":"Plan-1"}')
LISTED: Final = Reading(code=None, msg="Found", raw_data=b'[{"subscription_id":420075032251,"order_id":"Plan-1"}]')


@pytest.fixture
async def several(losing: Losing) -> Losing:
    """Gives a relay of an account for which two principals have a key."""
    for credential in (CREDENTIAL, OTHER):
        await losing.world.relay.access.credentials.add(credential)
    return losing


async def is_refused(losing: Losing, subject: str, **credential: object) -> Code | None:
    """Gives the code with which an effect on something is refused; None where it may go on."""
    try:
        await require_own(losing.world.relay, asked("k-1", **credential), subject)
    except Refusal as refusal:
        return refusal.code
    return None


@pytest.mark.parametrize("subject", SUBJECTS)
async def test_what_has_no_known_owner_is_reserved_while_a_recovery_lasts(several: Losing, subject: str) -> None:
    """Its maker's row may be lost: another principal would refund, capture or stop what isn't its own."""
    assert await is_refused(several, subject) is None
    several.lose()
    assert await is_refused(several, subject) is Code.UNAVAILABLE
    several.end()
    assert await is_refused(several, subject) is None


async def test_it_is_reserved_before_an_operator_has_begun_the_recovery(several: Losing) -> None:
    """The database is behind, and nobody knows yet since when."""
    several.world.relay.database.lost_commits.fall_behind(1, "operation op_1 is missing")
    assert await is_refused(several, SUBJECTS[0]) is Code.UNAVAILABLE


async def test_a_principal_that_has_acknowledged_gets_at_nothing_more(several: Losing) -> None:
    """It knows what it has sent itself, and not what another principal had made."""
    several.lose()
    several.acknowledge(CREDENTIAL.principal)
    assert await is_refused(several, SUBJECTS[0]) is Code.UNAVAILABLE


async def test_who_may_act_for_all_that_can_have_made_it_is_served(several: Losing) -> None:
    """These are the ways out: a key for any principal, and a group."""
    several.lose()
    scopes = CREDENTIAL.scopes | {Scope.ANY_PRINCIPAL}
    assert await is_refused(several, SUBJECTS[0], scopes=scopes) is None
    names = [CREDENTIAL.principal, OTHER.principal]
    await several.world.relay.access.principals.put_into_group("ours", names, now_ms=START_MS)
    assert await is_refused(several, SUBJECTS[0]) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"scopes": frozenset({Scope.PAYMENTS_READ, Scope.PAYMENTS_REFUND})},
        {"accounts": frozenset({"elsewhere"})},
    ],
)
async def test_who_is_alone_made_all_of_it(losing: Losing, changes: dict[str, object]) -> None:
    """A key that reads, or that is for another account, makes nobody else wait for an operator."""
    for credential in (CREDENTIAL, msgspec.structs.replace(OTHER, **changes)):
        await losing.world.relay.access.credentials.add(credential)
    losing.lose()
    assert await is_refused(losing, SUBJECTS[0]) is None


async def test_apps_of_an_identity_provider_may_have_made_it(losing: Losing) -> None:
    """Their principal may have no key here. Where it is the shop's own, nobody else is left."""
    relay = losing.world.relay
    await relay.access.credentials.add(CREDENTIAL)
    losing.lose()
    losing.world.relay = replace(relay, settings=replace(relay.settings, apps_principal=CREDENTIAL.principal))
    assert await is_refused(losing, SUBJECTS[0]) is None
    losing.world.relay = replace(relay, settings=replace(relay.settings, apps_principal="apps"))
    assert await is_refused(losing, SUBJECTS[0]) is Code.UNAVAILABLE


async def test_a_subscription_whose_maker_is_lost_is_shown_to_nobody(several: Losing) -> None:
    """It shows a customer's name and payments. A list leaves it out."""
    world = several.world
    several.lose()
    world.account.readings += [SHOWN, LISTED, LISTED]
    payments = PaymentsOfSubscription(subscription_id=PLAN.subscription_id)
    with pytest.raises(Refusal, match="no known owner") as refused:
        await retrieve_subscription(world.relay, asked(), PLAN, with_payments=False)
    assert refused.value.code is Code.UNAVAILABLE
    with pytest.raises(Refusal, match="no known owner"):
        await list_subscription_payments(world.relay, asked(), payments)
    listed = await list_subscriptions(world.relay, asked(), AllSubscriptions())
    assert b"420075032251" not in (listed.body)


async def test_a_missing_payment_of_nobodys_is_not_named_while_a_recovery_lasts(several: Losing) -> None:
    """It may be another principal's. Once the recovery is over it is told, so that nobody takes the money again."""
    relay, account = several.world.relay, several.world.account
    fact = Fact(subscription_id="420", at_ms=1, is_seen=False, order_id="Plan-1", payment="320", is_paid=True)
    owner = SubscriptionOwner(account="gateway", merchant=account.merchant)
    await relay.subscriptions.note(owner, [fact], now_ms=1)

    async def advice() -> str:
        account.readings.append(Reading(code=Code.NOT_FOUND, msg="No payments found"))
        answer = await retrieve_payments(relay, asked(None), PaymentsOfOrder(order_id="Plan-1"))
        return str(json.loads(answer.body)["error"]["retry"])

    assert await advice() == "after"
    several.lose()
    assert await advice() == "never"
    several.end()
    assert await advice() == "after"
