"""The owner of a subscription: the credential whose checkout began it, as the store knows it."""

import msgspec
from tests.flows.world import CREDENTIAL
from tests.store.test_checkouts import CHECKOUT, DETAILS

from payrelay.api.requests.route import ParsedRequest
from payrelay.api.routes.policies import own_subscription
from payrelay.core.access.credential import Bound
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.customers.customer import Approval
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code, Refusal
from payrelay.flows.access.app_requests import resolved
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.relay import Relay, Request
from payrelay.store.subscriptions import SubscriptionOwner

MERCHANT = CHECKOUT.merchant
CUSTOMER = "cus_" + "a" * 32


async def begin(relay: Relay, number: int, *, principal: str | None = "shop", **members: object) -> str:
    """Begins a subscription by a checkout, and gives its id."""
    order_id, subscription_id = f"Plan-{number}", f"42000000000{number}"
    own: dict[str, object] = {
        "id": f"chk_{number:026d}",
        "kind": CheckoutKind.RECURRING,
        "order_id": order_id,
        "guard": order_id,
        "key_hash": None,
        "reference_hash": None,
        "subscription_id": subscription_id,
    }
    assert await relay.checkouts.add(msgspec.structs.replace(CHECKOUT, **(own | members)), DETAILS)
    fact = Fact(subscription_id=subscription_id, at_ms=1_000, is_seen=False, order_id=order_id, paid=1)
    whose = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal=principal)
    await relay.subscriptions.note(whose, [fact], now_ms=1_000)
    return subscription_id


async def may(relay: Relay, bound: Bound, subscription_id: str) -> bool:
    """True where the app reaches the handler; False where it gets not_found."""
    request = Request(
        gateway=relay.account("gateway"),
        credential=msgspec.structs.replace(CREDENTIAL, bound=bound),
        request_id="req_1",
    )
    request = await resolved(relay, request)
    assert request.credential.bound is not None
    asked = ParsedRequest(request=request, id=subscription_id)
    try:
        await own_subscription(relay, asked, request.credential.bound)
    except Refusal as refusal:
        return _is_hidden(refusal)
    return True


def _is_hidden(refusal: Refusal) -> bool:
    """False where a refusal says only that there is no such subscription."""
    return (refusal.code, refusal.msg) != (Code.NOT_FOUND, "there is no such subscription")


async def test_it_belongs_to_its_order(relay: Relay) -> None:
    """The server that opened the checkout says whose order it is, by the token."""
    mine, other = await begin(relay, 1), await begin(relay, 2)

    assert await may(relay, Bound(order_id="Plan-1"), mine)
    assert await may(relay, Bound(order_id="Plan-1", customer_id=CUSTOMER), mine)
    assert not await may(relay, Bound(order_id="Plan-1"), other)
    assert not await may(relay, Bound(customer_id=CUSTOMER), mine)


async def test_it_belongs_to_who_opened_the_checkout(relay: Relay) -> None:
    """Also later, with a token that is for the customer alone."""
    mine = await begin(relay, 1, bound_customer_id=CUSTOMER)

    assert await may(relay, Bound(customer_id=CUSTOMER), mine)
    assert not await may(relay, Bound(customer_id="cus_" + "b" * 32), mine)
    assert not await may(relay, Bound(customer_id="cus_" + "b" * 32, order_id="Plan-1"), mine)


async def test_it_belongs_to_the_person_that_the_checkout_names(relay: Relay) -> None:
    """By the shop's own name for the customer, which a stored customer has too."""
    mine = await begin(relay, 1, reference_hash=relay.checkouts.reference_hash("user-1"))
    customer = await approve(
        relay,
        Approval(
            account="gateway", merchant=MERCHANT, principal="shop", reference="user-1", token=Secret("t"), method=None,
            card_no_masked=None, card_expiry=None, card_holder=None, order_id=None,
        ),
    )  # fmt: skip

    assert await may(relay, Bound(reference="user-1", keys_of="person/user-1"), mine)
    assert await may(relay, Bound(customer_id=customer.id), mine)
    assert not await may(relay, Bound(reference="user-2", keys_of="person/user-2"), mine)


async def test_an_unknown_subscription_has_no_owner(relay: Relay) -> None:
    """Another shop's, one whose owner is unknown, and one that doesn't exist get one answer."""
    foreign = await begin(relay, 1, principal="other")
    ownerless = await begin(relay, 2, principal=None)
    paid_once = await begin(relay, 3, kind=CheckoutKind.PAYMENT)

    for subscription_id, order_id in ((foreign, "Plan-1"), (ownerless, "Plan-2"), (paid_once, "Plan-3"), ("1", "x")):
        assert not await may(relay, Bound(order_id=order_id), subscription_id)


OTHER = "cus_" + "b" * 32


async def try_to_begin(relay: Relay, name: str, customer_id: str | None, **members: object) -> None:
    """Opens a page for the plan of order Plan-1, from which nothing came yet."""
    own: dict[str, object] = {
        "id": f"chk_{name:>026}",
        "kind": CheckoutKind.RECURRING,
        "order_id": "Plan-1",
        "guard": None,
        "key_hash": None,
        "reference_hash": None,
        "bound_customer_id": customer_id,
    }
    assert await relay.checkouts.add(msgspec.structs.replace(CHECKOUT, **(own | members)), DETAILS)


async def test_a_page_that_was_given_up_shows_nobody_elses_plan(relay: Relay) -> None:
    """Two customers tried to begin a plan of one order: the one of them would read and end the other's."""
    await try_to_begin(relay, "x", OTHER)
    plan = await begin(relay, 1, bound_customer_id=CUSTOMER)

    assert await may(relay, Bound(customer_id=CUSTOMER, order_id="Plan-1"), plan)
    assert not await may(relay, Bound(customer_id=OTHER, order_id="Plan-1"), plan)
    assert not await may(relay, Bound(customer_id=OTHER), plan)


async def test_a_plan_that_either_of_two_pages_may_have_begun_is_nobodys_to_end(relay: Relay) -> None:
    """Until the checkout is known that began it; a second page of the same customer's is in nobody's way."""
    plan = await begin(relay, 1, bound_customer_id=CUSTOMER, subscription_id=None)
    await try_to_begin(relay, "x", CUSTOMER)
    assert await may(relay, Bound(customer_id=CUSTOMER), "420000000001")
    await try_to_begin(relay, "y", OTHER)

    for customer_id in (CUSTOMER, OTHER):
        assert not await may(relay, Bound(customer_id=customer_id, order_id="Plan-1"), plan)
