"""A hosted authorization that the gateway reports is notified; only the capture of its token completes its checkout."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.flows.inbox_world import (
    AMOUNT_MINOR,
    AUTHORIZATION_TOKEN,
    MERCHANT,
    InboxWorld,
    body_of,
    inbox_world,
    payment_of,
)
from tests.flows.operators.test_decide import decision_on
from tests.flows.resolution.test_resend import ALREADY
from tests.flows.world import Crash, Raising, asked, outcome_of

from payrelay.core.calls import Capture, Void
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationKind, NotificationReason, NotificationState
from payrelay.core.outcomes import Outcome, OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.core.payments.proof import AUTHORIZATION_LAPSES_MS
from payrelay.core.secret import secret_hash
from payrelay.errors import Refusal
from payrelay.flows.checkouts.close_checkout import close_page
from payrelay.flows.checkouts.finish_checkout import expire, note_abandoned
from payrelay.flows.notifications.replay_notification import (
    NotReplayedError,
    UnknownNotificationError,
    accept,
    replay,
)
from payrelay.flows.operators.decide import decide
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.refund import refund
from payrelay.flows.resolution.resolve import resolve_due
from payrelay.gateways.gateway import ExpectedReply

WHOLE = Capture(authorization_token="chk_0001", amount_minor=AMOUNT_MINOR, description="Tea")
VOID = Void(authorization_token="chk_0001", description="Tea")
PART = msgspec.structs.replace(WHOLE, amount_minor=1_000)
NOTIFIED = body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay whose checkout's authorization the gateway has just reported."""
    async with inbox_world(tmp_path / "payrelay.db") as world:
        await world.open_checkout(CheckoutKind.AUTHORIZATION)
        taken = await world.take(NOTIFIED)
        assert taken.reason is NotificationReason.CHECKOUT_NOTIFIED
        yield world


def captured(*, authorized_minor: int | None = AMOUNT_MINOR, **facts: str) -> Outcome:
    """Gives the reply to a capture, with the authorized amount that it names."""
    outcome = outcome_of(OutcomeKind.SUCCEEDED, **({"order_id": "A-1", "currency": "LKR"} | facts))
    evidence = msgspec.structs.replace(outcome.evidence, authorized_minor=authorized_minor)
    return msgspec.structs.replace(outcome, evidence=evidence)


async def state_of(world: InboxWorld) -> CheckoutState:
    """Reads the state of the checkout."""
    return (await world.checkout()).state


async def test_a_notification_completes_no_authorization(world: InboxWorld) -> None:
    """It proves neither the order nor the amount. The order stays held, and no customer is sent to pay again."""
    checkout = await world.checkout()

    assert (checkout.state, checkout.guard, checkout.payment_id) == (CheckoutState.NOTIFIED, "A-1", None)
    assert await world.event_types() == ["checkout.notified"]


@pytest.mark.parametrize(
    ("call", "authorized_minor", "state"),
    [
        (WHOLE, AMOUNT_MINOR, CheckoutState.COMPLETED),
        (PART, AMOUNT_MINOR, CheckoutState.COMPLETED),
        (WHOLE, None, CheckoutState.COMPLETED),
        (PART, None, CheckoutState.NOTIFIED),
        (PART, 1_000, CheckoutState.NOTIFIED),
    ],
)
async def test_the_reply_to_a_capture_proves_what_was_authorized(
    world: InboxWorld, call: Capture, authorized_minor: int | None, state: CheckoutState
) -> None:
    """By the amount that it names; where it names none, by a capture of the whole, which can't be above that."""
    world.account.script.append(captured(authorized_minor=authorized_minor))
    assert (await capture(world.relay, asked(world.relay), call)).http_status == 200

    assert world.account.expected == [ExpectedReply(order_id="A-1", currency="LKR", amount_minor=AMOUNT_MINOR)]
    assert await state_of(world) is state
    assert ("checkout.completed" in await world.event_types()) is (state is CheckoutState.COMPLETED)


async def test_a_reply_about_another_authorization_is_for_an_operator(world: InboxWorld) -> None:
    """The customer held less than was asked. Whatever the operator decides about the capture proves no more."""
    world.account.script.append(outcome_of(OutcomeKind.DIFFERED, order_id="A-125"))
    await capture(world.relay, asked(world.relay), WHOLE)
    operation = await world.world.operation()
    assert operation.state is State.NEEDS_ATTENTION
    await decide(world.relay, decision_on(operation))

    assert (await world.world.operation()).state is State.SUCCEEDED
    assert await state_of(world) is CheckoutState.NOTIFIED


@pytest.mark.parametrize("step", ["record", "recorded"])
async def test_a_capture_and_its_checkout_are_stored_together(world: InboxWorld, step: str) -> None:
    """A process that dies beside the commit loses both or neither, so that no checkout stays behind its capture."""
    first = world.steps.passed.count(step) + 1
    world.world.steps.put(step, Raising(Crash()), first=first)
    with pytest.raises(Crash):
        await capture(world.relay, asked(world.relay), WHOLE)
    await world.restart()

    is_stored = (await world.world.operation()).state is State.SUCCEEDED
    assert is_stored is (step == "recorded")
    assert await state_of(world) is (CheckoutState.COMPLETED if is_stored else CheckoutState.NOTIFIED)


@pytest.mark.parametrize(
    ("call", "state"), [(WHOLE, CheckoutState.COMPLETED), (PART, CheckoutState.NOTIFIED)], ids=["whole", "part"]
)
async def test_a_capture_that_evidence_resolves_proves_its_own_amount(
    world: InboxWorld, call: Capture, state: CheckoutState
) -> None:
    """The record shows what was captured and not what was authorized: at least that much was."""
    world.account.script += [outcome_of(OutcomeKind.UNKNOWN), ALREADY]
    await capture(world.relay, asked(world.relay), call)
    world.payments.append(payment_of(amount_minor=call.amount_minor, at_ms=world.clock.now_ms()))
    world.clock.passed_ms += 31_000
    await resolve_due(world.relay)

    assert (await world.world.operation()).state is State.SUCCEEDED
    assert await state_of(world) is state
    assert world.account.expected[-1].amount_minor == AMOUNT_MINOR, "a resending is compared with the same amount"


async def test_a_capture_may_come_before_the_notification_is_applied(tmp_path: Path) -> None:
    """A merchant with the token of its own captures at once; the checkout must not stay notified for good."""
    async with inbox_world(tmp_path / "payrelay.db") as world:
        await world.open_checkout(CheckoutKind.AUTHORIZATION)
        world.account.script.append(captured())
        await capture(
            world.relay, asked(world.relay), msgspec.structs.replace(PART, authorization_token=AUTHORIZATION_TOKEN)
        )
        taken = await world.take(NOTIFIED)

        assert taken.reason is NotificationReason.CHECKOUT_FINISHED
        assert await world.event_types() == ["operation.succeeded", "checkout.notified", "checkout.completed"]


async def test_a_capture_of_another_order_completes_nothing(tmp_path: Path) -> None:
    """The token is not signed: a customer may put that of a small authorization into a large one's notification."""
    async with inbox_world(tmp_path / "payrelay.db") as world:
        await world.open_checkout(CheckoutKind.AUTHORIZATION)
        world.account.script.append(captured(authorized_minor=1_000, order_id="A-125"))
        await capture(
            world.relay, asked(world.relay), msgspec.structs.replace(PART, authorization_token=AUTHORIZATION_TOKEN)
        )
        await world.take(NOTIFIED)

        assert await state_of(world) is CheckoutState.NOTIFIED


async def test_neither_time_nor_a_browser_ends_a_notified_checkout(world: InboxWorld) -> None:
    """A customer who turned back after the authorization still has the amount held on the card."""
    checkout = await world.checkout()
    await note_abandoned(world.relay, checkout)
    await expire(world.relay, checkout)
    await world.take(body_of("-2", payment_id=None))

    assert await state_of(world) is CheckoutState.NOTIFIED


@pytest.mark.parametrize("end", ["void", "lapse"])
async def test_once_the_hold_is_over_the_order_is_free_and_its_report_changes_nothing(
    world: InboxWorld, end: str
) -> None:
    """A shop that let the customer go must be able to sell anew; the gateway may report the old hold once more."""
    if end == "void":
        await refund(world.relay, asked(world.relay), VOID)
    else:
        world.clock.passed_ms += AUTHORIZATION_LAPSES_MS
        await close_page(world.relay, await world.checkout())
    ended = await world.checkout()
    assert (ended.state, ended.guard, ended.reason) == (CheckoutState.CANCELLED, None, "closed")
    assert (await world.event_types()).count("checkout.cancelled") == 1

    second = await world.open_checkout(CheckoutKind.AUTHORIZATION)
    again = await world.take(body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN, custom_1="again"))
    taken = await world.take(body_of("3", payment_id=None, authorization_token="e34f3059-0000-4b62-a57c-784beaa169f4"))
    assert (again.reason, taken.reason) == (
        NotificationReason.CHECKOUT_FINISHED,
        NotificationReason.CHECKOUT_NOTIFIED,
    )
    states = {each.id: each.state for each in await world.checkouts.of_order(MERCHANT, "A-1")}
    assert states == {ended.id: CheckoutState.CANCELLED, second.id: CheckoutState.NOTIFIED}
    assert (await world.event_types()).count("checkout.notified") == 2


async def test_a_repeated_void_of_a_checkout_is_answered_and_nothing_else_acts_on_it(world: InboxWorld) -> None:
    """The answer may have been lost. A capture of what is over, by the checkout's id, would name the next hold."""
    first = await refund(world.relay, asked(world.relay, None), VOID)
    repeat = await refund(world.relay, asked(world.relay, None), VOID)
    assert (repeat.http_status, repeat.body) == (first.http_status, first.body)
    await world.take(body_of("-2", payment_id=None))
    assert await state_of(world) is CheckoutState.FAILED
    repeat = await refund(world.relay, asked(world.relay, None), VOID)
    assert (repeat.http_status, repeat.body) == (first.http_status, first.body)
    with pytest.raises(Refusal, match="has no authorization"):
        await capture(world.relay, asked(world.relay, "k-2"), WHOLE)
    assert len(world.account.ledger) == 1


async def test_a_page_can_not_be_closed_while_its_hold_stands(world: InboxWorld) -> None:
    """The money is held on the customer's card: capture it, or void it."""
    with pytest.raises(Refusal, match="notified already"):
        await close_page(world.relay, await world.checkout())


@pytest.mark.parametrize("status", ["2", "3"])
async def test_the_signature_of_another_order_takes_no_authorization(tmp_path: Path, status: str) -> None:
    """A stranger pays or holds 10.00 under order A-125, and posts that as 2510.00 of A-1 with an invented token.

    The victim's order would be held for good, and a capture would name the stranger's token.
    """
    async with inbox_world(tmp_path / "payrelay.db") as world:
        await world.open_checkout(CheckoutKind.AUTHORIZATION, amount_minor=251_000, first_minor=251_000)
        await world.open_checkout(order_id="A-125", guard="A-125", amount_minor=1_000, first_minor=1_000)
        posted = body_of(status, payhere_amount="2510.00", payment_id=None, authorization_token="invented")
        taken = await world.take(posted)

        expected = NotificationReason.OTHER_TEXT if status == "3" else NotificationReason.OTHER_KIND
        assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, expected)
        assert await state_of(world) is CheckoutState.OPEN
        assert await world.event_types() == []


OTHER_TOKEN = "0d2a9a35-3bb1-4a7e-a4e1-6f1e5f0f6b11"


async def test_an_operator_has_the_newer_token_of_an_order_captured(world: InboxWorld) -> None:
    """Somebody signs elsewhere, and a stranger's token came first: the honest one must not be lost for good."""
    honest = await world.take(body_of("3", payment_id=None, authorization_token=OTHER_TOKEN))
    assert honest.reason is NotificationReason.OTHER_TOKEN
    await accept(world.relay, honest.id, operator="Nimal", reason="as in the portal")
    await world.later()
    world.account.script.append(captured())
    await capture(world.relay, asked(world.relay), WHOLE)

    stored = await world.inbox.get(honest.id)
    assert stored is not None
    assert stored.reason is NotificationReason.CHECKOUT_NOTIFIED
    assert (stored.accepted_by, stored.accepted_because) == ("Nimal", "as in the portal")
    assert (await world.world.operation()).subject == f"authorization/{secret_hash(OTHER_TOKEN)}"
    assert await state_of(world) is CheckoutState.COMPLETED


async def test_the_last_notification_that_was_accepted_counts(world: InboxWorld) -> None:
    """Who accepted the wrong one accepts the right one after it; a replay of the first doesn't bring it back."""
    kind = NotificationKind.AUTHORIZATION
    first = await world.take(body_of("3", payment_id=None, authorization_token=OTHER_TOKEN))
    second = await world.take(body_of("3", payment_id=None, authorization_token="second"))
    for each in (first, second):
        world.clock.passed_ms += 1_000
        await accept(world.relay, each.id, operator="Nimal", reason="as in the portal")
        await world.later(1_000)
    await replay(world.relay, first.id)
    await world.later(1_000)

    token = await world.inbox.accepted_token(MERCHANT, "A-1", kind)
    assert token is not None
    assert token.reveal() == "second"
    again = await world.inbox.get(first.id)
    assert again is not None
    assert again.reason is NotificationReason.OTHER_TOKEN


async def test_only_a_doubted_authorization_that_a_checkout_waits_for_is_accepted(world: InboxWorld) -> None:
    """An operator who takes one notification for another learns it, and nothing is changed."""
    with pytest.raises(UnknownNotificationError):
        await accept(world.relay, "ntf_none", operator="Nimal", reason="it is")
    applied = await world.take(NOTIFIED)
    doubted = await world.take(body_of("3", payment_id=None, authorization_token=OTHER_TOKEN))
    paid = await world.take(body_of("2", payment_id=None, authorization_token=OTHER_TOKEN))
    assert paid.reason is NotificationReason.OTHER_KIND
    world.account.script.append(captured())
    await capture(world.relay, asked(world.relay), WHOLE)
    for each in (applied, paid, doubted):
        with pytest.raises(NotReplayedError):
            await accept(world.relay, each.id, operator="Nimal", reason="it is")

    assert {each.accepted_by for each in await world.all()} == {None}
