"""The report of an authorization is lost with commits: nobody who acts on its checkout is told a falsehood."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.flows.inbox_world import AUTHORIZATION_TOKEN, InboxWorld, body_of, inbox_world
from tests.flows.recovery.lost_world import FIRST, Recovery
from tests.flows.world import asked

from payrelay.core.answers import REPLAYED
from payrelay.core.calls import Void
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.database.incarnations import Beginning, Incarnation, LostWindow
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.refund import refund
from payrelay.runtime.database.lost_commits import LostCommits

VOID: Final = Void(authorization_token="chk_0001", description="not wanted")
NOTIFIED: Final = body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)


class Forgetting:
    """A world that can lose the report of its checkout's authorization."""

    def __init__(self, world: InboxWorld) -> None:
        self.world = world
        with closing(sqlite3.connect(world.world.path)) as file:
            self._checkout = file.execute("SELECT * FROM checkouts").fetchone()

    def lose_report(self, *, ended_ms: int | None = None) -> None:
        """Loses it, and begins the recovery; or ends that."""
        with closing(sqlite3.connect(self.world.world.path)) as file:
            file.execute("DELETE FROM checkouts")
            values = ", ".join("?" * len(self._checkout))
            file.execute(f"INSERT INTO checkouts VALUES ({values})", self._checkout)  # noqa: S608 - of question marks
            file.commit()
        now_ms = self.world.clock.now_ms()
        began = Incarnation(
            number=2,
            reason=Beginning.RECOVERED,
            began_at_ms=now_ms,
            lost=LostWindow(since_ms=0, until_ms=now_ms),
            ended_recovery_at_ms=ended_ms,
        )
        lost_commits = LostCommits(Recovery(FIRST, began).read, self.world.clock, self.world.relay.log)
        self.world.relay = replace(
            self.world.relay, database=replace(self.world.relay.database, lost_commits=lost_commits)
        )


@pytest.fixture
async def forgetting(tmp_path: Path) -> AsyncIterator[Forgetting]:
    """Gives the world, with the authorization reported."""
    async with inbox_world(tmp_path / "payrelay.db") as world:
        await world.open_checkout(CheckoutKind.AUTHORIZATION)
        forgetting = Forgetting(world)
        await world.take(NOTIFIED)
        world.clock.passed_ms += 1_000
        yield forgetting


async def test_nobody_is_told_for_good_that_there_is_no_authorization(forgetting: Forgetting) -> None:
    """The customer's money is held, and the shop would never capture or release it."""
    forgetting.lose_report()
    with pytest.raises(Refusal, match="made before the database lost commits") as refused:
        await refund(forgetting.world.relay, asked("k-2"), VOID)
    assert refused.value.code is Code.UNAVAILABLE

    forgetting.lose_report(ended_ms=forgetting.world.clock.now_ms())
    with pytest.raises(Refusal) as refused:
        await refund(forgetting.world.relay, asked("k-2"), VOID)
    assert refused.value.code is Code.INVALID_REQUEST


async def test_a_repeat_is_answered_as_before(forgetting: Forgetting) -> None:
    """Its own stored request has the token that the checkout no longer tells."""
    first = await refund(forgetting.world.relay, asked("k-2"), VOID)
    forgetting.lose_report()
    repeat = await refund(forgetting.world.relay, asked("k-2"), VOID)

    assert (repeat.body, REPLAYED in repeat.headers) == (first.body, True)


async def test_the_same_key_with_another_order_tells_no_token(forgetting: Forgetting) -> None:
    """Only a repeat may learn from what it repeats."""
    call = Void(authorization_token="another-token", description="not wanted")
    await refund(forgetting.world.relay, asked("k-2"), call)
    forgetting.lose_report(ended_ms=forgetting.world.clock.now_ms())

    with pytest.raises(Refusal, match="has no authorization"):
        await refund(forgetting.world.relay, asked("k-2"), VOID)
