"""Owners where requests of two principals meet, and reads at a gateway that has a record for every number."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec
import pytest
from tests.digests import digests_of
from tests.flows.hosted import hosting, new
from tests.flows.world import CHARGE, World, asked, outcome_of
from tests.samples import OPERATION

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.calls import OneSubscription, PaymentsOfOrder
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.outcomes import OutcomeKind, Reading
from payrelay.core.payments.operation import OPEN_STATES, State
from payrelay.errors import Code, Refusal, StoreUnavailable
from payrelay.flows.access.ownership import answer_as_unknown
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.operations.answer_repeat import answer_known
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.flows.relay import Relay
from payrelay.store.access.owners import Owners
from payrelay.store.payments.journal import GuardedOperation

TAKEN = r"^this order id is taken; use another one$"
PAYMENT_ID = "320025000001"

Deed = Callable[[], Awaitable[None]]


class MeetingOwners(Owners):
    """Has something happen right after the owners of an order were read, at the times that are numbered."""

    def __init__(self, world: World, deeds: dict[int, Deed]) -> None:
        super().__init__(world.database, digests_of(world.database))
        self._deeds = deeds
        self._times = 0

    async def of_order(
        self, merchant: str, order_id: str, *, before_ms: int | None = None, but_for: str = ""
    ) -> OrderOwners:
        """Reads, and lets it happen."""
        found = await super().of_order(merchant, order_id, before_ms=before_ms, but_for=but_for)
        await self._happen()
        return found

    async def of_order_and_payments(
        self, merchant: str, order_id: str
    ) -> tuple[OrderOwners, dict[str, frozenset[str]]]:
        """Reads, and lets it happen."""
        found = await super().of_order_and_payments(merchant, order_id)
        await self._happen()
        return found

    async def _happen(self) -> None:
        self._times += 1
        if self._times in self._deeds:
            await self._deeds[self._times]()


def meeting(world: World, relay: Relay | None = None, **deeds: Deed) -> Relay:
    """Gives a relay in which something happens after the n-th look for an order's owners: ``after_1`` and so on."""
    numbered = {int(name.removeprefix("after_")): deed for name, deed in deeds.items()}
    relay = relay or world.relay
    return replace(relay, access=replace(relay.access, owners=MeetingOwners(world, numbered)))


def charged_by(world: World, principal: str) -> Deed:
    """Has a principal charge the order; it succeeds."""

    async def deed() -> None:
        outcome = outcome_of(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID)
        world.account.script.append(outcome)
        answer = await charge(world.relay, asked(world.relay, f"of {principal}", principal=principal), CHARGE)
        assert answer.http_status == 200

    return deed


async def gone() -> None:
    """Raises as a store does that has just gone away."""
    raise StoreUnavailable("gone")


async def test_an_order_that_was_taken_in_between_is_not_charged(world: World) -> None:
    """The guard was free again when this charge asked for it: the other one had been paid already."""
    relay = meeting(world, after_1=charged_by(world, "shop"))
    with pytest.raises(Refusal, match=TAKEN) as refused:
        await charge(relay, asked(relay, "k-2", principal="kiosk"), CHARGE)

    assert refused.value.code is Code.CONFLICT
    assert len(world.account.ledger) == 1
    [own] = [each for each in await world.operations() if each.principal == "kiosk"]
    assert (own.state, own.guard, own.claim) == (State.NOT_SENT, None, None)
    assert [entry.evidence.cause for entry in await world.journal.history(own.id)][-1] == "order_taken"


async def test_an_order_that_one_took_oneself_in_between_is_charged(world: World) -> None:
    """A second charge of one's own, under another key, is meant."""
    answer = await charge(meeting(world, after_1=charged_by(world, "shop")), asked(world.relay, "k-2"), CHARGE)

    assert answer.http_status == 200
    assert len(world.account.ledger) == 2


async def test_nothing_is_sent_where_the_owner_can_not_be_asked_for_again(world: World) -> None:
    """A store that goes away right after the intent must not let a charge through unasked."""
    with pytest.raises(StoreUnavailable):
        await charge(meeting(world, after_2=gone), asked(world.relay, "k-1"), CHARGE)

    assert world.account.ledger == []
    assert (await world.operation()).state is State.NOT_SENT


async def test_a_checkout_of_an_order_that_was_charged_in_between_is_ended(world: World) -> None:
    """Else its customer could pay what another principal's customer has paid."""
    relay = meeting(world, hosting(world), after_1=charged_by(world, "kiosk"))
    with pytest.raises(Refusal, match=TAKEN):
        await open_checkout(relay, asked(relay, "k-3"), new())

    [checkout] = await relay.checkouts.of_order(world.account.merchant, "A-1")
    assert (checkout.state, checkout.guard) == (CheckoutState.EXPIRED, None)


async def test_a_payment_that_was_made_during_the_read_is_not_shown(world: World) -> None:
    """Its owner is known before the gateway can show it, and is asked for once more after the read."""
    record = b'[{"payment_id":320025000001,"order_id":"A-1"}]'
    none = Reading(code=Code.NOT_FOUND, msg="No payments found")
    world.account.readings += [Reading(code=None, msg="Found 1 payments", raw_data=record), none]
    relay = meeting(world, after_1=charged_by(world, "kiosk"))
    answer = await retrieve_payments(relay, asked(relay), PaymentsOfOrder(order_id="A-1"))

    assert answer.http_status == 404
    assert PAYMENT_ID.encode() not in answer.body


async def test_a_record_for_a_number_that_nobody_has_is_not_passed_on(world: World) -> None:
    """Whatever such a gateway means by it, the caller asked for something else."""
    world.account.readings.append(Reading(code=None, msg="Found", raw_data=b'{"subscription_id":1}'))
    answer = await answer_as_unknown(world.relay, asked(world.relay), OneSubscription(subscription_id=1))

    assert (answer.http_status, b"subscription_id" in answer.body) == (404, False)


def of_unknown(world: World, times: int) -> None:
    """Has the gateway say as often that there is nothing."""
    world.account.readings += [Reading(code=Code.NOT_FOUND, msg="No payments found")] * times


async def test_foreign_reads_at_the_same_time_are_one_call(world: World) -> None:
    """As they are for an unknown order; else their number and their time would tell that the order exists."""
    await charged_by(world, "kiosk")()
    of_unknown(world, 8)
    calls = [PaymentsOfOrder(order_id=order_id) for order_id in ("A-1", "A-2")]
    for call in calls:
        before = len(world.account.readings)
        answers = await asyncio.gather(*(retrieve_payments(world.relay, asked(world.relay), call) for _ in range(4)))
        assert before - len(world.account.readings) == 1
        assert {(each.http_status, each.body.partition(b"request_id")[0]) for each in answers} == {
            (404, answers[0].body.partition(b"request_id")[0])
        }
    assert world.relay.under_way.foreign_reads == {}


@pytest.mark.parametrize("state", sorted(OPEN_STATES))
async def test_a_guard_of_another_caller_tells_nothing_of_its_state(world: World, state: State) -> None:
    """Whether it is under way, unknown, or an operator's: a caller learns only that it should try again."""
    guarded = GuardedOperation(operation=msgspec.structs.replace(OPERATION, state=state))
    with pytest.raises(Refusal) as refused:
        answer_known(world.relay, guarded, asked(world.relay, principal="kiosk"), "f")

    assert (refused.value.code, refused.value.retry_after_s) == (Code.IN_PROGRESS, 10)
    assert refused.value.operation_id is None
