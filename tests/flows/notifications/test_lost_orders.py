"""Notifications of orders that the database has lost with commits: matched after all, or an operator is called."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.flows.inbox_world import PAYMENT_ID, InboxWorld, body_of, inbox_world, payment_of
from tests.flows.world import CREDENTIAL

from payrelay.core.access.credential import Scope
from payrelay.core.notifications.notification import (
    LOST_WAITS_FOR_MS,
    NotificationReason,
    NotificationState,
    needs_operator,
)
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.recovery.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.runtime.recovery.lost_commits import LostCommits


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


class Recovering:
    """Gives the identity of a database that lost its commits until the time at which a test begins.

    The ``principals`` have acknowledged that.
    """

    def __init__(self, world: InboxWorld, *principals: str) -> None:
        now_ms = world.clock.now_ms()
        acknowledged = dict.fromkeys(principals, now_ms)
        self.newest = Incarnation(
            number=2,
            reason=Beginning.RECOVERED,
            began_at_ms=now_ms,
            lost=LostWindow(since_ms=now_ms - 60_000, until_ms=now_ms),
            acknowledged=acknowledged,
        )
        world.relay = replace(world.relay, lost_commits=LostCommits(self.read, world.clock, world.relay.log))

    async def read(self) -> DatabaseIdentity:
        """Reads it."""
        return DatabaseIdentity(id="0" * 32, incarnations=(self.newest,))


@pytest.mark.parametrize("status", ["2", "3", "-3"])
async def test_a_payment_of_an_order_that_may_be_lost_calls_an_operator_after_an_hour(
    world: InboxWorld, status: str
) -> None:
    """The operation that asked for it is gone with the lost commits: without a person nobody would ever hear of it."""
    Recovering(world)
    taken = await world.take(body_of(status))
    assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.UNKNOWN_ORDER)
    for _ in range(12):
        await world.later(LOST_WAITS_FOR_MS // 4)

    (taken,) = await world.all()
    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.MAY_BE_LOST)
    assert needs_operator(taken)


async def test_a_lost_order_that_comes_back_within_the_hour_calls_nobody(world: InboxWorld) -> None:
    """A client repeats its request, it has an operation here again, and the notification is about it after all."""
    Recovering(world, "shop")
    await world.take(body_of())
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    for _ in range(12):
        await world.later(LOST_WAITS_FOR_MS // 4)

    (taken,) = await world.all()
    assert taken.state is NotificationState.APPLIED


async def test_a_failure_of_an_unknown_order_is_ignored_in_a_recovery_too(world: InboxWorld) -> None:
    """No money moved: an operator could do nothing."""
    Recovering(world)
    await world.take(body_of("-2"))
    for _ in range(14):
        await world.later(6 * 3_600_000)

    (taken,) = await world.all()
    assert taken.state is NotificationState.IGNORED


@pytest.mark.parametrize(
    ("scopes", "state", "reason"),
    [
        ({Scope.PAYMENTS_CHARGE}, NotificationState.NEEDS_ATTENTION, NotificationReason.MAY_BE_LOST),
        ({Scope.CHECKOUTS_CREATE}, NotificationState.APPLIED, NotificationReason.CHECKOUT_FINISHED),
    ],
    ids=["a key could charge", "no key could charge"],
)
async def test_a_payment_of_the_lost_time_is_a_checkouts_where_no_charge_can_have_made_it(
    world: InboxWorld, scopes: set[Scope], state: NotificationState, reason: NotificationReason
) -> None:
    """A charge of the order has the same signature, amount and text, and its row is lost: the shop has its answer."""
    await world.open_checkout()
    await world.relay.credentials.add(msgspec.structs.replace(CREDENTIAL, scopes=frozenset(scopes)))
    world.clock.passed_ms += 1_000
    Recovering(world)
    world.account.payments.append(payment_of())
    taken = await world.take(body_of())
    assert (taken.state, taken.reason) == (state, reason)


async def test_a_payment_from_after_the_lost_time_is_its_checkouts_as_ever(world: InboxWorld) -> None:
    """All that was charged since then is in the database."""
    await world.open_checkout()
    await world.relay.credentials.add(CREDENTIAL)
    world.clock.passed_ms += 1_000
    Recovering(world)
    world.clock.passed_ms += 3_600_000
    world.account.payments.append(payment_of(at_ms=world.clock.now_ms()))
    taken = await world.take(body_of())
    assert taken.reason is NotificationReason.CHECKOUT_FINISHED
