from dataclasses import replace

import pytest
from tests.flows.vault import SEAL, approved_in
from tests.flows.world import World, asked

from payrelay.core.access.client_token import ClientToken
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
        world.relay, client_tokens=tokens, signing_keys=SigningKeys(world.database, SEAL, world.clock)
    )
    customer = await approved_in(world)
    with pytest.raises(Refusal) as refused:
        await issue_client_token(world.relay, asked(), ClientTokenRequest(customer_id=customer.id, order_id="A-1"))

    assert refused.value.code is Code.NOT_FOUND
