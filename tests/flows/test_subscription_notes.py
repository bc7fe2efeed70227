"""What is read of subscriptions is noted, so that the next reader needs no call."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.digests import digests_of
from tests.flows.inbox_world import MERCHANT, SUBSCRIPTION_ID, InboxWorld, inbox_world
from tests.flows.world import Raising, asked, outcome_of

from payrelay.core.calls import AllSubscriptions, CancelSubscription, OneSubscription, PaymentsOfSubscription, Read
from payrelay.core.outcomes import OutcomeKind, Reading
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.errors import Refusal, StoreUnavailable
from payrelay.flows.resolution.resolve import resolve_due
from payrelay.flows.subscription_notes import ReadingNotes
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.show_subscription_states import list_subscription_states, show_subscription_state
from payrelay.runtime.read_cache import Question, ReadCache
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore

RECORD = {
    "subscription_id": int(SUBSCRIPTION_ID),
    "order_id": "A-1",
    "status": "ACTIVE",
    "amount": 1000.0,
    "currency": "LKR",
}
PAYMENT = {
    "payment_id": 320025000001,
    "order_id": "A-1",
    "date": "2026-11-21 10:00:00",
    "description": "Tea",
    "status": "RECEIVED",
    "currency": "LKR",
    "amount": 1000.0,
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def read(world: InboxWorld, call: Read, data: object) -> None:
    """Has a reader read something at the gateway, which is kept and noted."""
    notes = ReadingNotes(world.subscriptions, world.relay.accounts)
    seal = Seal((b"k" * 32,))
    last = ReadingStore(world.database, seal, digests_of(world.database))
    read_cache = ReadCache(last, world.clock, world.relay.log, start=world.relay.background.start, note=notes)

    async def ask() -> Reading:
        return Reading(code=None, msg="Found", raw_msg=b'"Found"', raw_data=msgspec.json.encode(data))

    question = Question(gateway=world.account, call=call, ask=ask)
    await read_cache.read(question, is_insisting=True)
    await world.finish()


async def shown(world: InboxWorld) -> dict[str, object]:
    """Shows the subscription as a client sees it."""
    answer = await show_subscription_state(world.relay, asked(world.relay), SUBSCRIPTION_ID)
    data = msgspec.json.decode(answer.body)["data"]
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize(
    ("call", "data"),
    [(AllSubscriptions(), [RECORD]), (OneSubscription(subscription_id=int(SUBSCRIPTION_ID)), RECORD)],
)
async def test_a_read_is_noted(world: InboxWorld, call: Read, data: object) -> None:
    """The state and what an installment is, as of the moment at which the gateway was asked."""
    await read(world, call, data)
    seen = await shown(world)

    assert (seen["state"], seen["amount"], seen["order_id"]) == ("active", 1000.0, "A-1")
    assert seen["as_of"] == "2023-11-14T22:13:20.000Z"
    assert (seen["installments_paid"], seen["is_failing"]) == (0, False)


async def test_payments_that_are_read_are_counted(world: InboxWorld) -> None:
    """A plan that was begun before Payrelay has installments that nobody notified us of."""
    call = PaymentsOfSubscription(subscription_id=int(SUBSCRIPTION_ID))
    refunded = PAYMENT | {"payment_id": 320025000002, "status": "REFUNDED"}
    await read(world, call, [PAYMENT, refunded, PAYMENT])
    seen = await shown(world)

    assert seen["installments_paid"] == 1
    assert seen["last_paid"] == {"payment_id": "320025000001", "amount": 1000.0, "at": "2026-11-21T04:30:00.000Z"}


async def test_an_answer_that_cannot_be_read_notes_nothing(world: InboxWorld) -> None:
    """It is passed on to whoever asked, as it is."""
    await read(world, AllSubscriptions(), {"strange": True})
    await read(world, PaymentsOfSubscription(subscription_id=1), [{"payment_id": 1}])

    with pytest.raises(Refusal):
        await shown(world)


async def test_a_later_read_takes_the_place_of_an_earlier_one(world: InboxWorld) -> None:
    """A merchant may cancel a plan in the gateway's portal, which notifies nobody."""
    await read(world, AllSubscriptions(), [RECORD])
    world.clock.passed_ms += 5_000
    await read(world, AllSubscriptions(), [RECORD | {"status": "CANCELLED"}])

    standing = await world.standing()
    assert standing.subscription.state is SubscriptionState.STOPPED


async def test_a_cancellation_that_was_resolved_by_proof_is_noted_too(world: InboxWorld) -> None:
    """Its reply was lost, and nobody may ever repeat it: the app would show a plan that has ended."""
    await read(world, OneSubscription(subscription_id=int(SUBSCRIPTION_ID)), RECORD)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await cancel_subscription(world.relay, asked(world.relay), CancelSubscription(subscription_id=int(SUBSCRIPTION_ID)))
    world.clock.passed_ms += 2_000
    await resolve_due(world.relay)
    standing = await world.subscriptions.summary(MERCHANT, SUBSCRIPTION_ID)
    assert standing is not None
    assert standing.subscription.state is SubscriptionState.STOPPED


async def test_a_cancellation_through_payrelay_is_noted_at_once(world: InboxWorld) -> None:
    """The app that cancelled shows it in the next moment; a store that fails then costs no answer."""
    await read(world, AllSubscriptions(), [RECORD])
    world.clock.passed_ms += 5_000
    answer = await cancel_subscription(
        world.relay, asked(world.relay), CancelSubscription(subscription_id=int(SUBSCRIPTION_ID))
    )

    assert answer.http_status == 200
    assert (await shown(world))["state"] == "stopped"
    other = CancelSubscription(subscription_id=7)
    world.steps.put("write", Raising(StoreUnavailable("down")), first=world.steps.passed.count("write") + 1)
    assert (await cancel_subscription(world.relay, asked(world.relay, "k-2"), other)).http_status == 200
    assert "cancellation_not_noted" in world.world.log_events


async def test_a_page_says_where_the_next_one_is(world: InboxWorld) -> None:
    """Somebody with thousands of subscriptions reads them piece by piece."""
    await read(world, AllSubscriptions(), [RECORD | {"subscription_id": number} for number in (11, 12, 13)])
    answer = await list_subscription_states(world.relay, asked(world.relay), after="", limit=2)

    assert [each["subscription_id"] for each in msgspec.json.decode(answer.body)["data"]] == ["11", "12"]
    assert answer.headers == (("Link", '</gateway/api/subscription-states?cursor=12&limit=2>; rel="next"'),)
    rest = await list_subscription_states(world.relay, asked(world.relay), after="12", limit=2)
    assert rest.headers == ()
