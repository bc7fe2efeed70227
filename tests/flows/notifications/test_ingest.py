"""What a gateway posts is on disk before it is answered; what isn't the gateway's leads to nothing and can be seen."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.flows.inbox_world import InboxWorld, body_of, inbox_world, payment_of
from tests.flows.world import Raising

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.notifications.notification import Authenticity, NotificationReason, NotificationState
from payrelay.errors import Code, IllegalTransition, Refusal, StoreUnavailable, StoreUnusable
from payrelay.flows.notifications.ingest import ingest_notification
from payrelay.gateways.gateway import NO_HEADERS
from payrelay.store.alerts import Alerts, AlertSubject


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def test_the_same_body_is_one_notification(world: InboxWorld) -> None:
    """A gateway that wasn't answered in time repeats; the second must find the first."""
    first = await ingest_notification(world.relay, "gateway", NO_HEADERS, body_of())
    second = await ingest_notification(world.relay, "gateway", NO_HEADERS, body_of())
    await world.finish()

    assert first.id == second.id
    assert [each.repeats for each in await world.all()] == [1]
    assert world.reported == [Authenticity.GENUINE, Authenticity.GENUINE]


@pytest.mark.parametrize(
    ("body", "authenticity"),
    [
        (body_of(secret="another"), Authenticity.FORGED),
        (body_of().replace(b"1000.00", b"1.00"), Authenticity.FORGED),
        (body_of(merchant_id="999"), Authenticity.WRONG_MERCHANT),
    ],
)
async def test_a_notification_that_is_not_genuine_is_refused_and_stored(
    world: InboxWorld, body: bytes, authenticity: Authenticity
) -> None:
    """An attacker wants goods for nothing, or a secret is wrong: an operator can see either, and it changes nothing."""
    await world.open_checkout()
    world.payments.append(payment_of())
    with pytest.raises(Refusal) as refused:
        await ingest_notification(world.relay, "gateway", NO_HEADERS, body)
    await world.later()

    assert refused.value.code is Code.FORBIDDEN
    (kept,) = await world.all()
    assert (kept.state, kept.authenticity, kept.next_at_ms) == (NotificationState.REFUSED, authenticity, None)
    assert (await world.checkout()).state is CheckoutState.OPEN
    assert world.reported == [authenticity]
    assert world.account.observed == 0


async def test_a_refused_notification_may_be_left_out(world: InboxWorld) -> None:
    """Where there are too many of them, forged ones are answered and counted, and don't get as far as the store."""
    with pytest.raises(Refusal) as refused:
        await ingest_notification(
            world.relay, "gateway", NO_HEADERS, body_of(secret="another"), may_store_refused=lambda: False
        )
    genuine = await ingest_notification(world.relay, "gateway", NO_HEADERS, body_of(), may_store_refused=lambda: False)
    await world.finish()

    assert refused.value.code is Code.FORBIDDEN
    assert [each.id for each in await world.all()] == [genuine.id]
    assert world.reported == [Authenticity.FORGED, Authenticity.GENUINE]


async def test_without_a_secret_it_may_be_sent_again(world: InboxWorld) -> None:
    """Whoever forgot MERCHANT_SECRET loses nothing: the repeat is worked on once it is there."""
    world.account.sign_with(None)
    with pytest.raises(Refusal) as refused:
        await ingest_notification(world.relay, "gateway", NO_HEADERS, body_of())
    assert refused.value.code is Code.UNAVAILABLE
    world.account.sign_with("MzExMTIyMjMzMw==")
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.take(body_of())
    await world.later()

    assert (await world.checkout()).state is CheckoutState.COMPLETED
    assert [each.authenticity for each in await world.all()] == [Authenticity.GENUINE]


async def test_an_unreadable_notification_is_refused_with_the_cause(world: InboxWorld) -> None:
    """A developer who tries the address with JSON should see what is wrong; none of it is stored."""
    with pytest.raises(Refusal, match="merchant_id") as refused:
        await ingest_notification(world.relay, "gateway", NO_HEADERS, b'{"order_id":"A-1"}')

    assert refused.value.code is Code.MALFORMED_REQUEST
    assert await world.all() == []
    with pytest.raises(Refusal) as unknown:
        await ingest_notification(world.relay, "elsewhere", NO_HEADERS, body_of())
    assert unknown.value.code is Code.NOT_FOUND


async def test_no_notification_is_acknowledged_that_is_not_on_disk(world: InboxWorld) -> None:
    """A gateway that hears a failure sends it again; one that hears a success does not."""
    world.steps.put("write", Raising(StoreUnavailable("down")))
    with pytest.raises(StoreUnavailable):
        await ingest_notification(world.relay, "gateway", NO_HEADERS, body_of())

    assert await world.all() == []
    assert (await world.take(body_of())).reason is NotificationReason.UNKNOWN_ORDER


async def test_what_was_given_up_is_tried_again_when_it_comes_again(world: InboxWorld) -> None:
    """The shop's own row may come weeks later; the gateway's repeat is the second chance."""
    await world.take(body_of())
    for _ in range(20):
        await world.later(6 * 3_600_000)
    (given_up,) = await world.all()
    assert (given_up.state, given_up.reason) == (NotificationState.IGNORED, NotificationReason.UNKNOWN_ORDER)
    await world.open_checkout(created_at_ms=given_up.received_at_ms)
    world.payments.append(payment_of())
    await world.take(body_of())
    await world.later()

    assert (await world.checkout()).state is CheckoutState.COMPLETED


@pytest.mark.parametrize("fault", [IllegalTransition("no such step"), StoreUnusable("sealed with a key that is gone")])
async def test_what_can_never_be_applied_does_not_wait_for_ever(world: InboxWorld, fault: Exception) -> None:
    """A fault in the objects of a notification is put off as any other wait, and in the end an operator is alerted."""
    await world.open_checkout()
    world.account.payments = [payment_of()]
    world.steps.put("observe", Raising(fault), times=100)
    taken = await world.take(body_of())
    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.OUR_FAULT)
    for _ in range(30):
        await world.later(6 * 3_600_000)

    assert [(each.state, each.reason) for each in await world.all()] == [
        (NotificationState.IGNORED, NotificationReason.OUR_FAULT)
    ]
    assert await Alerts(world.database, AlertSubject.NOTIFICATION).next_due_ms() is not None
