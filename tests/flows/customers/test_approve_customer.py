"""An approval becomes a customer once, however often and by whomever it is brought."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
from tests.flows.vault import APPROVAL, SEAL, TOKEN, approved_in, stored, told
from tests.flows.world import World

from payrelay.core.customers.customer import Customer, CustomerEvent, CustomerState, erased, removed
from payrelay.core.secret import Secret
from payrelay.errors import Outdated, StoreUnavailable
from payrelay.flows.customers.approve_customer import approve
from payrelay.store.customers import Customers


async def test_an_approval_becomes_a_customer(world: World) -> None:
    """It has an id of its own, and the token is there for a charge."""
    customer = await approved_in(world)

    assert customer.id.startswith("cus_")
    assert await world.relay.customers.token_of(customer.id) == Secret(TOKEN)
    assert (await stored(world), await told(world)) == ([customer], ["customer.created"])


async def test_the_same_approval_gives_the_same_customer(world: World) -> None:
    """Gateways send every notification twice, and both may be worked on at once."""
    customers = await asyncio.gather(*(approved_in(world) for _ in range(10)))

    assert len({customer.id for customer in customers}) == 1
    assert (len(await stored(world)), await told(world)) == (1, ["customer.created"])


async def test_another_approval_with_the_same_token_brings_it_up_to_date(world: World) -> None:
    """The handle that the merchant has goes on."""
    first = await approved_in(world)
    second = await approved_in(world, order_id="APPROVED-2", card_expiry="0631")

    assert (second.id, second.card_expiry) == (first.id, "0631")
    assert (await stored(world), await told(world)) == ([second], ["customer.created", "customer.updated"])


async def test_another_principal_has_its_own_customer(world: World) -> None:
    """Two shops of one merchant may be approved by the same card: what one of them removes, the other keeps."""
    first, second = await approved_in(world), await approved_in(world, principal="other")
    await world.relay.customers.change(removed(first, at_ms=1), CustomerEvent.REMOVED)

    assert first.id != second.id
    assert await world.relay.customers.token_of(second.id) == Secret(TOKEN)


@pytest.mark.parametrize(
    ("end", "event", "state"),
    [(removed, CustomerEvent.REMOVED, CustomerState.REMOVED), (erased, CustomerEvent.ERASED, CustomerState.ERASED)],
)
async def test_a_late_repeat_brings_no_customer_back(
    world: World, end: object, event: CustomerEvent, state: CustomerState
) -> None:
    """A notification that an operator replays months later must not undo what the customer asked for."""
    customer = await approved_in(world)
    await world.relay.customers.change(end(customer, at_ms=1), event)  # type: ignore[operator]
    again = await approved_in(world)

    assert (again.id, again.state) == (customer.id, state)
    assert len(await stored(world)) == 1


async def test_a_new_approval_after_removal_is_a_new_customer(world: World) -> None:
    """A customer may come back, and approves anew; the old handle stays removed."""
    first = await approved_in(world)
    await world.relay.customers.change(removed(first, at_ms=1), CustomerEvent.REMOVED)
    second = await approved_in(world, order_id="APPROVED-2")

    assert (second.state, second.id != first.id) == (CustomerState.ACTIVE, True)
    assert await world.relay.customers.token_of(first.id) is None


class _Interfering(Customers):
    """Another change always comes first."""

    times = 1

    async def change(self, customer: Customer, event: CustomerEvent, *, card_holder: str | None = None) -> None:
        """Fails so many times before it does it."""
        if self.times:
            self.times -= 1
            raise Outdated("changed meanwhile")
        await super().change(customer, event, card_holder=card_holder)


@pytest.mark.parametrize(("times", "is_told"), [(1, False), (4, False), (5, True)])
async def test_a_change_meanwhile_is_decided_anew(world: World, times: int, *, is_told: bool) -> None:
    """A new label at this moment is not overwritten; a conflict without end is reported."""
    await approved_in(world)
    interfering = _Interfering(world.database, SEAL, world.relay.checkouts.rows, chain_key=b"c" * 32)
    interfering.times = times
    relay = replace(world.relay, customers=interfering)
    update = msgspec.structs.replace(APPROVAL, order_id="APPROVED-2", card_expiry="0631")
    if is_told:
        with pytest.raises(StoreUnavailable, match="again and again"):
            await approve(relay, update)
    else:
        assert (await approve(relay, update)).card_expiry == "0631"
