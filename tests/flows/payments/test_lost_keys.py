"""A key that is lost on the way: the same request without it is a repeat, so that it has no second effect.

A proxy that drops unknown headers, or a second way in a shop's code, sends the same body without the key.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from tests.flows.access.test_ownership import meeting
from tests.flows.world import CHARGE, UNKEYED_MS, World, asked, outcome_of

from payrelay.core.answers import REPLAYED, Answer
from payrelay.core.calls import CancelSubscription, Capture, Refund, RetrySubscription, Void
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.errors import Code, Refusal, StillRunning
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.relay import Relay, Request
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.retry_subscription import retry_subscription

Effect = Callable[[Relay, Request], Awaitable[Answer]]

EFFECTS: Final[dict[str, Effect]] = {
    "charge": lambda relay, request: charge(relay, request, CHARGE),
    "refund": lambda relay, request: refund(relay, request, Refund(payment_id="320025000001", description="x")),
    "part": lambda relay, request: refund(
        relay, request, Refund(payment_id="320025000001", description="x", amount_minor=100)
    ),
    "capture": lambda relay, request: capture(
        relay, request, Capture(authorization_token="hold", amount_minor=100, description="x")
    ),
    "void": lambda relay, request: refund(relay, request, Void(authorization_token="hold", description="x")),
    "part of a hold": lambda relay, request: refund(
        relay, request, Void(authorization_token="hold", description="x", amount_minor=100)
    ),
    "cancel": lambda relay, request: cancel_subscription(relay, request, CancelSubscription(subscription_id=42)),
    "retry": lambda relay, request: retry_subscription(relay, request, RetrySubscription(subscription_id=42)),
}
AGAIN: Final = {
    OutcomeKind.SUCCEEDED: False,
    OutcomeKind.UNKNOWN: False,
    OutcomeKind.PENDING: False,
    OutcomeKind.DECLINED: True,
    OutcomeKind.REFUSED: True,
    OutcomeKind.NOT_SENT: True,
    OutcomeKind.NOT_EXECUTED: True,
}
"""The outcome of the request with the key, and whether the one without it begins anew."""


def calls(world: World) -> int:
    """How often the gateway was called."""
    return len(world.account.sent)


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("kind", AGAIN, ids=str)
async def test_the_same_request_without_its_key_is_a_repeat(world: World, name: str, kind: OutcomeKind) -> None:
    """It replays a success, tells what isn't known yet, and begins anew where nothing happened."""
    world.account.script.append(outcome_of(kind))
    first = await EFFECTS[name](world.relay, asked("k-1"))
    began = calls(world)
    second = await EFFECTS[name](world.relay, asked(None))

    assert (calls(world) > began) is AGAIN[kind]
    if kind is OutcomeKind.SUCCEEDED:
        assert second.body == first.body
        assert REPLAYED in second.headers
    elif not AGAIN[kind]:
        assert second.http_status == first.http_status == 202


@pytest.mark.parametrize("name", EFFECTS)
async def test_after_the_repeat_window_it_is_a_new_request(world: World, name: str) -> None:
    """The relay no longer answers for the first. What can be done once is refused, however long ago it was done."""
    await EFFECTS[name](world.relay, asked("k-1"))
    began = calls(world)
    world.clock.passed_ms += UNKEYED_MS + 1
    if name in {"capture", "void", "refund"}:
        with pytest.raises(Refusal, match="is already") as refused:
            await EFFECTS[name](world.relay, asked(None))
        assert (refused.value.code, calls(world)) == (Code.CONFLICT, began)
        return
    second = await EFFECTS[name](world.relay, asked(None))
    assert calls(world) == began + 1
    assert REPLAYED not in second.headers


@pytest.mark.parametrize("name", ["charge", "part"])
async def test_a_request_that_says_a_new_key_is_a_new_request(world: World, name: str) -> None:
    """A key after none, and another key: whoever names one means it."""
    await EFFECTS[name](world.relay, asked(None))
    for key in ("k-1", "k-2"):
        await EFFECTS[name](world.relay, asked(key))
    assert calls(world) == 3

    await EFFECTS[name](world.relay, asked(None))
    assert calls(world) == 3


async def test_the_newest_counts_and_the_key_stays_its_own(world: World) -> None:
    """Its success is replayed under its own id; the request without a key takes nothing over."""
    await EFFECTS["part"](world.relay, asked("k-1"))
    newest = await EFFECTS["part"](world.relay, asked("k-2"))
    assert (await EFFECTS["part"](world.relay, asked(None))).body == newest.body
    assert [each.idempotency_key for each in await world.operations()] == ["k-2", "k-1"]
    assert calls(world) == 2


async def test_another_principals_request_is_no_repeat(world: World) -> None:
    """Each answers for its own; who shares a group shares its payments, and not its requests."""
    await world.relay.access.principals.put_into_group("till", ["shop", "kiosk"], now_ms=world.clock.now_ms())
    await EFFECTS["part"](world.relay, asked("k-1"))
    await EFFECTS["part"](world.relay, asked(None, principal="kiosk"))
    assert calls(world) == 2


async def test_no_repeat_window_no_repeat(world: World) -> None:
    """Where the setting is 0, a request without a key is always a new one."""
    world.limit_to(None, unkeyed_ms=0)
    await EFFECTS["part"](world.relay, asked("k-1"))
    await EFFECTS["part"](world.relay, asked(None))
    assert calls(world) == 2


async def test_a_charge_that_succeeded_between_look_and_intent_is_the_answer(world: World) -> None:
    """The keyed one held the guard until it had succeeded, right before this one took it."""

    async def deed() -> None:
        await charge(world.relay, asked("k-1"), CHARGE)

    answer = await charge(meeting(world, after_1=deed), asked(None), CHARGE)

    assert len(world.account.ledger) == 1
    assert REPLAYED in answer.headers
    assert [each.state for each in await world.operations()] == [State.NOT_SENT, State.SUCCEEDED]


async def test_a_request_that_gave_way_hides_no_success(world: World) -> None:
    """What was withdrawn is newer than what it gave way to, and says nothing of it: a third request charges nobody."""

    async def deed() -> None:
        await charge(world.relay, asked("k-1"), CHARGE)

    first = await charge(meeting(world, after_1=deed), asked(None), CHARGE)
    world.clock.passed_ms += 1
    third = await charge(world.relay, asked(None), CHARGE)

    assert len(world.account.ledger) == 1
    assert third.body == first.body


async def test_a_charge_that_is_under_way_is_waited_for(world: World) -> None:
    """As for a repeat with the key: nothing is decided yet, and nothing is sent."""

    async def deed() -> None:
        with pytest.raises(StillRunning):
            await charge(world.relay, asked(None), CHARGE)

    world.steps.put("effect", deed)
    await charge(world.relay, asked("k-1"), CHARGE)
    assert len(world.account.ledger) == 1
