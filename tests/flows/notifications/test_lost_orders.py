"""Notifications of orders that the database has lost with commits: matched after all, or an operator is called."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.flows.inbox_world import AUTHORIZATION_TOKEN, PAYMENT_ID, TOKEN, InboxWorld, body_of, inbox_world, payment_of
from tests.flows.world import CREDENTIAL

from payrelay.core.access.credential import Credential, Scope
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.notifications.notification import (
    LOST_WAITS_FOR_MS,
    NotificationReason,
    NotificationState,
    needs_operator,
)
from payrelay.core.outcomes import OutcomeKind
from payrelay.runtime.database.lost_commits import LostCommits


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
        world.relay = replace(
            world.relay,
            database=replace(world.relay.database, lost_commits=LostCommits(self.read, world.clock, world.relay.log)),
        )

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
    await world.relay.access.credentials.add(msgspec.structs.replace(CREDENTIAL, scopes=frozenset(scopes)))
    world.clock.passed_ms += 1_000
    Recovering(world)
    world.account.payments.append(payment_of())
    taken = await world.take(body_of())
    assert (taken.state, taken.reason) == (state, reason)


async def test_a_payment_from_after_the_lost_time_is_its_checkouts_as_ever(world: InboxWorld) -> None:
    """All that was charged since then is in the database."""
    await world.open_checkout()
    await world.relay.access.credentials.add(CREDENTIAL)
    world.clock.passed_ms += 1_000
    Recovering(world)
    world.clock.passed_ms += 3_600_000
    world.account.payments.append(payment_of(at_ms=world.clock.now_ms()))
    taken = await world.take(body_of())
    assert taken.reason is NotificationReason.CHECKOUT_FINISHED


@pytest.mark.parametrize(
    ("passed_ms", "reason"),
    [(0, NotificationReason.OTHER_TEXT), (3_600_000, NotificationReason.CHECKOUT_NOTIFIED)],
    ids=["while the lost time may not show", "after that"],
)
async def test_a_hold_that_a_lost_call_may_have_made_is_reported_for_no_page(
    world: InboxWorld, passed_ms: int, reason: NotificationReason
) -> None:
    """The shop has the token of its own call; the page would tell the customer of a hold that nobody made there."""
    await world.open_checkout(CheckoutKind.AUTHORIZATION)
    await world.relay.access.credentials.add(CREDENTIAL)
    world.clock.passed_ms += 1_000
    Recovering(world)
    world.clock.passed_ms += passed_ms
    taken = await world.take(body_of("3", authorization_token=AUTHORIZATION_TOKEN, payment_id=None))
    assert taken.reason is reason


REPORTED: Final = {
    CheckoutKind.AUTHORIZATION: body_of("3", authorization_token=AUTHORIZATION_TOKEN, payment_id=None),
    CheckoutKind.PREAPPROVAL: body_of(payhere_amount="10.00", customer_token=TOKEN),
}
OTHER: Final = msgspec.structs.replace(CREDENTIAL, id="000000000002", principal="another shop")


async def reason_of(world: InboxWorld, kind: CheckoutKind) -> NotificationReason | None:
    """Gives what becomes of the report of a card or a hold, of a page that was opened after the loss."""
    amount = {"amount_minor": None, "first_minor": None} if kind is CheckoutKind.PREAPPROVAL else {}
    await world.open_checkout(kind, **amount)
    return (await world.take(REPORTED[kind])).reason


@pytest.mark.parametrize("kind", REPORTED)
async def test_a_card_or_a_hold_of_anothers_lost_page_is_not_given_to_whoever_came_later(
    world: InboxWorld, kind: CheckoutKind
) -> None:
    """The gateway reports again what nobody took. Whoever opened a page of the order since would charge that card."""
    for credential in (CREDENTIAL, OTHER):
        await world.relay.access.credentials.add(credential)
    Recovering(world, CREDENTIAL.principal)
    world.clock.passed_ms += 3_600_000
    assert await reason_of(world, kind) is NotificationReason.OTHER_TEXT
    assert await world.all_customers() == []


@pytest.mark.parametrize("kind", REPORTED)
@pytest.mark.parametrize("others", [(), (OTHER,)], ids=["nobody else had a key", "the others have acknowledged"])
async def test_a_card_or_a_hold_is_its_pages_where_nobody_elses_page_can_be_lost(
    world: InboxWorld, kind: CheckoutKind, others: tuple[Credential, ...]
) -> None:
    """Whoever has acknowledged has asked for its orders again: they are its own, or were never asked for."""
    for credential in (CREDENTIAL, *others):
        await world.relay.access.credentials.add(credential)
    Recovering(world, *(each.principal for each in others))
    world.clock.passed_ms += 3_600_000
    expected = {
        CheckoutKind.AUTHORIZATION: NotificationReason.CHECKOUT_NOTIFIED,
        CheckoutKind.PREAPPROVAL: NotificationReason.CUSTOMER_APPROVED,
    }
    assert await reason_of(world, kind) is expected[kind]


@pytest.mark.parametrize("is_new", [False, True], ids=["a page from before", "another page of an order from before"])
async def test_a_hold_is_its_pages_where_the_order_was_its_own_before_the_loss(
    world: InboxWorld, *, is_new: bool
) -> None:
    """Nobody else could open a page of the order in the lost window, nor call for it."""
    for credential in (CREDENTIAL, OTHER):
        await world.relay.access.credentials.add(credential)
    given_up: dict[str, Any] = {"state": CheckoutState.EXPIRED, "guard": None} if is_new else {}
    await world.open_checkout(CheckoutKind.AUTHORIZATION, **given_up)
    world.clock.passed_ms += 120_000
    Recovering(world)
    world.clock.passed_ms += 3_600_000
    if is_new:
        await world.open_checkout(CheckoutKind.AUTHORIZATION)
    taken = await world.take(REPORTED[CheckoutKind.AUTHORIZATION])
    assert taken.reason is NotificationReason.CHECKOUT_NOTIFIED


async def test_a_hold_may_be_an_apps_whose_principal_has_no_key_here(world: InboxWorld) -> None:
    """An identity provider's tokens open pages too."""
    await world.relay.access.credentials.add(CREDENTIAL)
    world.relay = replace(world.relay, settings=replace(world.relay.settings, apps_principal="apps"))
    Recovering(world)
    world.clock.passed_ms += 3_600_000
    assert await reason_of(world, CheckoutKind.AUTHORIZATION) is NotificationReason.OTHER_TEXT
