"""Captures and voids by a checkout's id, by a principal that once acted for the checkout's owner."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.flows.inbox_world import AMOUNT_MINOR, AUTHORIZATION_TOKEN, MERCHANT, InboxWorld, body_of, inbox_world
from tests.flows.world import asked

from payrelay.core.answers import REPLAYED, Answer
from payrelay.core.calls import Capture, Void
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.retention import DEFAULT_PERIODS
from payrelay.core.secret import Secret
from payrelay.errors import Code, Refusal
from payrelay.flows.notifications.replay_notification import accept
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.refund import refund
from payrelay.flows.retention.clear import begin_clearing

CAPTURE: Final = Capture(authorization_token="chk_0001", amount_minor=AMOUNT_MINOR, description="Tea")
PART: Final = msgspec.structs.replace(CAPTURE, amount_minor=1_000)
VOID: Final = Void(authorization_token="chk_0001", description="not wanted")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay whose checkout's authorization was reported; support acts for the shop, whose checkout it is."""
    async with inbox_world(tmp_path / "payrelay.db") as world:
        await world.open_checkout(CheckoutKind.AUTHORIZATION)
        await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN))
        world.clock.passed_ms += 60_000
        await world.relay.access.principals.put_into_group("ours", ["shop", "support"], now_ms=world.clock.now_ms())
        yield world


async def by_support(world: InboxWorld, call: Capture | Void, key: str | None) -> Answer:
    """Makes a request of support's."""
    request = asked(key, principal="support")
    if isinstance(call, Capture):
        return await capture(world.relay, request, call)
    return await refund(world.relay, request, call)


@pytest.mark.parametrize("key", ["k-1", None])
@pytest.mark.parametrize("call", [CAPTURE, VOID])
async def test_a_repeat_is_answered_though_the_checkout_is_foreign_by_now(
    world: InboxWorld, call: Capture | Void, key: str | None
) -> None:
    """The money moved; whoever is told that there was no such thing would look for another way to move it."""
    first = await by_support(world, call, key)
    await world.relay.access.principals.take_out_of_group(["support"])
    repeat = await by_support(world, call, key)

    assert (repeat.body, REPLAYED in repeat.headers) == (first.body, True)
    assert len(world.account.ledger) == 1


@pytest.mark.parametrize(("key", "is_cleared"), [("k-1", False), ("k-1", True), (None, False)])
@pytest.mark.parametrize("call", [PART, VOID])
async def test_a_repeat_is_answered_though_the_checkout_has_another_token_by_now(
    world: InboxWorld, call: Capture | Void, key: str | None, *, is_cleared: bool
) -> None:
    """Another authorization was reported after it, and an operator accepted it where the first one was captured.

    The same request gets the same answer, also where the call with the first token is cleared, or without a key in the
    repeat window. Whatever else comes with the key is still refused.
    """
    retention = msgspec.structs.replace(world.relay.settings.retention, are_keys_free_again=False)
    world.relay = replace(world.relay, settings=replace(world.relay.settings, retention=retention))
    first = await by_support(world, call, key)
    other = await world.take(body_of("3", payment_id=None, authorization_token="f" * 36))
    if isinstance(call, Capture):
        await accept(world.relay, other.id, operator="Nimal", reason="as in the portal")
    await world.later()
    token = await world.relay.inbox.accepted_token(MERCHANT, "A-1", NotificationKind.AUTHORIZATION)
    assert token == Secret("f" * 36)
    if is_cleared:
        await clear_calls(world)
    repeat = await by_support(world, call, key)

    assert (repeat.body, REPLAYED in repeat.headers) == (first.body, True)
    assert len(world.account.ledger) == 1
    if key is None:
        return
    others: set[Capture | Void] = {PART, CAPTURE, VOID, msgspec.structs.replace(VOID, amount_minor=1_000)}
    for different in others - {call}:
        with pytest.raises(Refusal) as refused:
            await by_support(world, different, "k-1")
        assert refused.value.code is Code.IDEMPOTENCY_MISMATCH, different
    assert len(world.account.ledger) == 1


async def test_an_equal_request_for_a_later_page_of_the_order_is_no_repeat(world: InboxWorld) -> None:
    """What the first page held was let go, and the customer authorized again: that hold is another one."""
    first = await by_support(world, VOID, None)
    world.clock.passed_ms += 60_000
    later = await world.open_checkout(CheckoutKind.AUTHORIZATION)
    await world.take(body_of("3", payment_id=None, authorization_token="f" * 36))
    second = await by_support(world, msgspec.structs.replace(VOID, authorization_token=later.id), None)

    assert REPLAYED not in second.headers
    assert first.headers != second.headers


async def clear_calls(world: InboxWorld) -> None:
    """Lets so much time pass that the calls of operations are cleared, and their answers aren't."""
    world.clock.passed_ms += 61 * DAY_MS
    world.relay.clearing.periods = DEFAULT_PERIODS._replace(calls=60 * DAY_MS)
    assert await begin_clearing(world.relay) == 1


@pytest.mark.parametrize("key", ["k-1", "k-2", None])
async def test_no_other_request_learns_of_a_foreign_checkout(world: InboxWorld, key: str | None) -> None:
    """Neither under the key of what was done, nor under another one, nor without: as for one that doesn't exist."""
    await by_support(world, CAPTURE, "k-1")
    await world.relay.access.principals.take_out_of_group(["support"])
    told = []
    for handle in ("chk_0001", "chk_0002"):
        call = msgspec.structs.replace(CAPTURE, authorization_token=handle, amount_minor=1)
        with pytest.raises(Refusal) as refused:
            await by_support(world, call, key)
        told.append((refused.value.code, str(refused.value), refused.value.fields))

    assert told[0] == told[1]
    assert (told[0][0], len(world.account.ledger)) == (Code.INVALID_REQUEST, 1)


async def test_nothing_is_a_repeat_without_a_key_where_there_is_no_window(world: InboxWorld) -> None:
    """The operator set it to 0: equal requests without a key are requests of their own."""
    retention = msgspec.structs.replace(world.relay.settings.retention, unkeyed_ms=0)
    world.relay = replace(world.relay, settings=replace(world.relay.settings, retention=retention))
    await by_support(world, CAPTURE, None)
    await world.relay.access.principals.take_out_of_group(["support"])

    with pytest.raises(Refusal, match="names no checkout of yours"):
        await by_support(world, CAPTURE, None)


async def test_a_foreign_checkout_without_an_authorization_tells_no_state(world: InboxWorld) -> None:
    """Only its owner learns whether its customer has paid yet."""
    await world.open_checkout(CheckoutKind.AUTHORIZATION, order_id="A-2", guard="A-2", principal="another")
    call = msgspec.structs.replace(CAPTURE, authorization_token="chk_0002")

    with pytest.raises(Refusal, match="names no checkout of yours"):
        await by_support(world, call, "k-1")
