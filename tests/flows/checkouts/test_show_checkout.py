import pytest
from tests.flows.hosted import data_of, hosting, new, opened, seen
from tests.flows.world import World, asked

from payrelay.core.access.credential import Bound
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.show_checkout import show_checkout


async def test_it_shows_the_state_and_neither_secret_nor_personal_data(world: World) -> None:
    """Only the answer that opens a checkout has its address and its form."""
    relay = hosting(world)
    checkout = await opened(relay, new(customer_reference="user-1"))

    assert data_of(await show_checkout(relay, asked(relay), checkout.id)) == {
        "id": checkout.id,
        "kind": "payment",
        "state": "open",
        "reason": None,
        "may_still_be_paid": True,
        "explanation": "The customer has not finished it yet, as far as the service knows.",
        "account": "gateway",
        "order_id": "A-1",
        "amount": 1000.0,
        "currency": "LKR",
        "customer_reference": "user-1",
        "payment_id": None,
        "subscription_id": None,
        "customer_id": None,
        "created_at": "2023-11-14T22:13:20.000Z",
        "updated_at": "2023-11-14T22:13:20.000Z",
        "expires_at": "2023-11-14T22:23:20.000Z",
    }


async def test_a_status_inquiry_finds_the_payment(world: World) -> None:
    """An app learns of the payment as soon as the gateway shows it, without any notification."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += 3_000
    world.account.observations.append(seen())
    data = data_of(await show_checkout(relay, asked(relay), checkout.id))

    assert (data["state"], data["payment_id"]) == ("completed", "320025000001")


async def test_an_approval_names_no_amount(world: World) -> None:
    """It takes nothing."""
    relay = hosting(world)
    checkout = await opened(relay, new(kind=CheckoutKind.PREAPPROVAL, amount_minor=None))

    assert data_of(await show_checkout(relay, asked(relay), checkout.id))["amount"] is None


async def test_another_principals_is_not_there(world: World) -> None:
    """The answer is that for an unknown id."""
    relay = hosting(world)
    checkout = await opened(relay)
    for request, checkout_id in ((asked(relay, principal="other"), checkout.id), (asked(relay), "chk_x")):
        with pytest.raises(Refusal, match="there is no such checkout") as refused:
            await show_checkout(relay, request, checkout_id)
        assert refused.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("bound", "is_shown"),
    [
        (Bound(order_id="A-1"), True),
        (Bound(order_id="A-2"), False),
        (Bound(customer_id="cus_1"), False),
        (Bound(reference="user-1", keys_of="person/user-1"), True),
        (Bound(reference="user-2", keys_of="person/user-2"), False),
        (Bound(order_id="A-1", reference="user-2", keys_of="person/user-2"), False),
        (Bound(order_id="A-2", reference="user-1", keys_of="person/user-1"), False),
        (Bound(order_id="A-1", customer_id="cus_1"), False),
    ],
)
async def test_a_bound_credential_sees_its_own_checkouts(world: World, bound: Bound, *, is_shown: bool) -> None:
    """It sees those of its order and its customer; it doesn't learn that others exist."""
    relay = hosting(world)
    checkout = await opened(relay, new(customer_reference="user-1"))
    if is_shown:
        assert data_of(await show_checkout(relay, asked(relay, bound=bound), checkout.id))["id"] == checkout.id
    else:
        with pytest.raises(Refusal, match="there is no such checkout"):
            await show_checkout(relay, asked(relay, bound=bound), checkout.id)


async def test_a_checkout_that_a_server_opened_is_shown_to_the_client_token_of_its_order(world: World) -> None:
    """The server gave the app a token for this order and customer, and the address with it."""
    relay = hosting(world)
    checkout = await opened(relay)
    bound = Bound(order_id="A-1", customer_id="cus_1")

    assert data_of(await show_checkout(relay, asked(relay, bound=bound), checkout.id))["id"] == checkout.id
