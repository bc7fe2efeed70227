from dataclasses import replace

import pytest
from tests.flows.vault import SEAL, approved_in
from tests.flows.world import World, asked

from payrelay.core.access.allowance import PaymentKind
from payrelay.core.access.client_token import ClientToken
from payrelay.core.access.credential import Scope
from payrelay.errors import Code, Refusal
from payrelay.flows.access.issue_client_token import ClientTokenRequest, issue_client_token
from payrelay.flows.customers.erase_customer import remove_customer
from payrelay.store.access.client_tokens import ClientTokens
from payrelay.store.access.signing_keys import SigningKeys


class Overtaken(ClientTokens):
    """Keeps a token a moment too late: the customer was removed, and its tokens ended, just before."""

    world: World

    async def add(self, token: ClientToken) -> None:
        """Has the customer removed first."""
        await remove_customer(self.world.relay, asked(), token.customer_id or "")
        await super().add(token)


async def test_no_token_is_given_for_a_customer_that_is_removed_meanwhile(world: World) -> None:
    """A removed customer's client tokens are revoked; one that is issued a moment later would still be accepted."""
    tokens = Overtaken(world.database, world.relay.checkouts.rows)
    tokens.world = world
    world.relay = replace(
        world.relay,
        access=replace(
            world.relay.access, client_tokens=tokens, signing_keys=SigningKeys(world.database, SEAL, world.clock)
        ),
    )
    customer = await approved_in(world)
    with pytest.raises(Refusal) as refused:
        await issue_client_token(world.relay, asked(), ClientTokenRequest(customer_id=customer.id, order_id="A-1"))

    assert refused.value.code is Code.NOT_FOUND


CHARGES = (Scope.PAYMENTS_CHARGE,)
PAGES = (Scope.CHECKOUTS_CREATE,)
BOTH = (Scope.PAYMENTS_CHARGE, Scope.CHECKOUTS_CREATE)


@pytest.mark.parametrize(
    ("scopes", "kind", "currency", "is_issued"),
    [
        (PAGES, "payment", "JPY", False),
        (PAGES, "authorization", "JPY", False),
        (PAGES, "payment", "LKR", True),
        (BOTH, "payment", "JPY", True),
        (BOTH, "authorization", "JPY", True),
        (BOTH, "preapproval", "JPY", False),
        (BOTH, "recurring", "JPY", False),
        (BOTH, "recurring", "USD", True),
        (CHARGES, "payment", "JPY", True),
    ],
)
async def test_a_token_names_a_currency_in_which_it_can_pay(
    world: World, scopes: tuple[Scope, ...], kind: PaymentKind, currency: str, *, is_issued: bool
) -> None:
    """The page takes some; a charge goes by no page. A token that can pay nothing would be found out by a customer."""
    customer = await approved_in(world)
    is_plan = kind == "recurring"
    wanted = ClientTokenRequest(
        customer_id=customer.id,
        order_id="A-1",
        kind=kind,
        amount_minor=100,
        currency=currency,
        scopes=scopes,
        recurrence="1 Month" if is_plan else None,
        duration="1 Year" if is_plan else None,
    )
    relay = replace(
        world.relay, access=replace(world.relay.access, signing_keys=SigningKeys(world.database, SEAL, world.clock))
    )
    request = asked(scopes=frozenset(Scope))
    if is_issued:
        assert (await issue_client_token(relay, request, wanted)).http_status == 200
        return
    with pytest.raises(Refusal, match="currency must be one that the gateway's page takes") as refused:
        await issue_client_token(relay, request, wanted)

    assert [each.path for each in refused.value.fields] == ["currency"]
