"""Requests of an identity provider's persons, which earlier versions stored under the persons' names."""

import json
from dataclasses import replace
from typing import Any, Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.flows.vault import SEAL, approved_in, charge_by
from tests.flows.world import World, asked, outcome_of

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.bounds import earlier_key_of_bound, key_of_bound
from payrelay.core.access.credential import Bound
from payrelay.core.access.person_names import earlier_keys_of
from payrelay.core.answers import Answer
from payrelay.core.calls import CancelSubscription
from payrelay.core.customers.customer import Customer, CustomerState
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Operation, OperationFilter
from payrelay.errors import Code, Refusal, StoreUnavailable
from payrelay.flows.customers.erase_customer import erase, erase_customer
from payrelay.flows.customers.rename_keys import rename_keys
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.find_operations import list_operations, show_operation_by_key
from payrelay.flows.relay import Request
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.store.retention.clearing import Clearing

PERSON: Final = "person-7"  # the reference of the tests' approval
EARLIER: Final = f"{earlier_keys_of(PERSON)}/pay"
PRICE: Final = Allowance(is_open=True, currency="LKR")


class BesideAnotherVersion(Clearing):
    """The clearing of a database that processes of another version use too."""

    async def has_other_versions(self) -> bool:
        """Says so."""
        return True


def data_of(answer: Answer) -> Any:  # noqa: ANN401, JSON
    """Reads the data of an answer."""
    return json.loads(answer.body)["data"]


def bound_of(world: World, customer: Customer, order_id: str = "A-1") -> Bound:
    """Gives what the person's token is bound to, once the person has a card."""
    return Bound(
        customer_id=customer.id,
        reference=PERSON,
        order_id=order_id,
        allowance=PRICE,
        keys_of=world.relay.person_names.keys_of(PERSON),
        earlier_keys_of=earlier_keys_of(PERSON),
    )


def by_phone(world: World, customer: Customer, key: str = "pay") -> Request:
    """Gives a request of the person's phone, as this version's policies pass it on."""
    bound = bound_of(world, customer)
    request = asked(key_of_bound(bound, key), bound=bound)
    return msgspec.structs.replace(request, earlier_key=earlier_key_of_bound(bound, key))


async def charged_before(world: World, customer: Customer, key: str = EARLIER) -> Operation:
    """Charges the person as an earlier version did, which stored the key with the name."""
    await charge(world.relay, asked(key, bound=bound_of(world, customer)), charge_by(customer.id))
    return await world.operation()


async def test_a_repeat_of_what_an_earlier_version_stored_is_answered(world: World) -> None:
    """The app lost the answer, the service was upgraded, and the app sends the same again: nobody pays twice."""
    customer = await approved_in(world)
    before = await charged_before(world, customer)
    again = await charge(world.relay, by_phone(world, customer), charge_by(customer.id))

    assert ("Payrelay-Operation", before.id) in again.headers
    assert again.http_status == 200
    assert len(world.account.ledger) == 1


async def test_another_request_under_an_earlier_key_is_refused(world: World) -> None:
    """An app that uses one key for two orders has made a mistake, whatever version has stored the first one."""
    customer = await approved_in(world)
    await charged_before(world, customer)

    with pytest.raises(Refusal) as refused:
        await charge(world.relay, by_phone(world, customer), charge_by(customer.id, amount_minor=1))
    assert refused.value.code is Code.IDEMPOTENCY_MISMATCH


async def test_an_order_is_paid_once_also_by_processes_of_two_versions(world: World) -> None:
    """A process of the version before doesn't know this one's key. What the order's token allows holds for both."""
    customer = await approved_in(world)
    once = msgspec.structs.replace(bound_of(world, customer), allowance=Allowance(amount_minor=100_000, currency="LKR"))
    newer = msgspec.structs.replace(by_phone(world, customer), credential=asked(bound=once).credential)
    await charge(world.relay, newer, charge_by(customer.id))

    with pytest.raises(Refusal, match="paid already") as refused:
        await charge(world.relay, asked(EARLIER, bound=once), charge_by(customer.id))
    assert refused.value.code is Code.CONFLICT
    assert len(world.account.ledger) == 1


async def test_the_phone_finds_it_by_its_own_key(world: World) -> None:
    """And sees the key as it was sent: which version has stored it is no business of the app."""
    customer = await approved_in(world)
    before = await charged_before(world, customer)
    request = by_phone(world, customer)
    shown = data_of(await show_operation_by_key(world.relay, request, str(request.idempotency_key)))
    [listed] = data_of(await list_operations(world.relay, request, OperationFilter(), before=None, limit=10))

    assert (shown["id"], shown["idempotency_key"], listed["idempotency_key"]) == (before.id, "pay", "pay")


async def test_the_newest_of_both_kinds_is_shown(world: World) -> None:
    """A charge that was declined is followed by another one under the same key once that is free again."""
    customer = await approved_in(world)
    await charged_before(world, customer)
    request = by_phone(world, customer)
    world.clock.passed_ms += 1
    later = msgspec.structs.replace(request, earlier_key=None)  # as where the earlier claim has ended
    await charge(world.relay, later, charge_by(customer.id, order_id="A-2"))
    newest, _ = await world.operations()

    bound = msgspec.structs.replace(bound_of(world, customer), order_id=None)
    of_all_orders = msgspec.structs.replace(request, credential=asked(bound=bound).credential)
    shown = data_of(await show_operation_by_key(world.relay, of_all_orders, str(request.idempotency_key)))
    assert (shown["id"], shown["order_id"]) == (newest.id, "A-2")


async def test_an_erasure_takes_the_name_out_of_earlier_keys(world: World) -> None:
    """What the service itself has written there is personal data; the payment stays, and so does its answer."""
    customer = await approved_in(world)
    before = await charged_before(world, customer)
    await erase_customer(world.relay, asked(), customer.id)
    after = await world.operation()

    assert PERSON not in repr(after)
    assert after == msgspec.structs.replace(
        before, idempotency_key=after.idempotency_key, claim=f"key/{after.idempotency_key}"
    )
    assert after.idempotency_key == by_phone(world, customer).idempotency_key
    assert len(await world.relay.journal.history(after.id)) == 2
    again = await charge(world.relay, by_phone(world, customer), charge_by(customer.id))
    assert ("Payrelay-Operation", after.id) in again.headers
    assert len(world.account.ledger) == 1


async def test_a_server_finds_it_under_the_key_that_it_had(world: World) -> None:
    """A shop may have noted the key before the erasure. Its own request under such a key is no new one either."""
    customer = await approved_in(world)
    before = await charged_before(world, customer)
    await erase_customer(world.relay, asked(), customer.id)

    assert data_of(await show_operation_by_key(world.relay, asked(), EARLIER))["id"] == before.id
    again = await charge(world.relay, asked(EARLIER), charge_by(customer.id))
    assert ("Payrelay-Operation", before.id) in again.headers


async def test_keys_that_the_shop_chose_stay(world: World) -> None:
    """They name a person only where the shop has put a name there, and the shop finds its requests by them."""
    customer = await approved_in(world)
    await charged_before(world, customer, f"ride of {PERSON}".replace(" ", "-"))
    await erase_customer(world.relay, asked(), customer.id)

    assert (await world.operation()).idempotency_key == f"ride-of-{PERSON}"


async def test_an_operation_that_is_open_loses_the_name_too(world: World) -> None:
    """Its outcome comes later, and is stored and found as ever."""
    customer = await approved_in(world)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    before = await charged_before(world, customer)
    await erase_customer(world.relay, asked(), customer.id)
    after = await world.operation()

    assert (after.id, after.state) == (before.id, before.state)
    assert PERSON not in repr(after)


async def test_a_customer_that_was_erased_by_an_earlier_version_is_erased_again(world: World) -> None:
    """Its reference is gone, and its operations name the customer all the same."""
    customer = await approved_in(world)
    await charged_before(world, customer)
    nameless = msgspec.structs.replace(customer, reference=None)
    await erase(world.relay, nameless)

    assert PERSON not in repr(await world.operation())


async def test_a_cancellation_by_a_person_without_a_card_is_found_by_its_plan(world: World) -> None:
    """It names no customer: the checkout of the plan does, by the reference. Others' cancellations stay as they are."""
    other = f"{earlier_keys_of('person-8')}/end"
    for number, key in ((7, f"{earlier_keys_of(PERSON)}/end"), (8, other)):
        await cancel_subscription(world.relay, asked(key), CancelSubscription(subscription_id=number))
    for subscription_id in ("7", "8"):
        wanted = OperationFilter(subscription_id=subscription_id)
        await rename_keys(world.relay, wanted, of_person=f"{earlier_keys_of(PERSON)}/")

    keys = {each.subscription_id: each.idempotency_key for each in await world.operations()}
    assert keys == {"7": f"{world.relay.person_names.keys_of(PERSON)}/end", "8": other}


async def test_beside_another_version_the_erasure_has_to_come_again(world: World) -> None:
    """Its processes would take the operation for forged. Whoever asks is told, and the next time all is erased."""
    customer = await approved_in(world)
    await charged_before(world, customer)
    beside = BesideAnotherVersion(world.database, SEAL, digests_of(world.database), world.relay.journal.trail)
    relay = replace(world.relay, clearing=beside)

    with pytest.raises(StoreUnavailable, match="another version"):
        await erase_customer(relay, asked(), customer.id)
    assert (await world.operation()).idempotency_key == EARLIER
    assert data_of(await erase_customer(world.relay, asked(), customer.id))["state"] == CustomerState.ERASED
    assert PERSON not in repr(await world.operation())
