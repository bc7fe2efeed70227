"""Operations that were open in the restored rows, and whose later rows are lost."""

from typing import Final

import msgspec
import pytest
from tests.flows.payments.test_refund import CAPTURE
from tests.flows.recovery.lost_world import FIRST, HOUR_MS, LOOKED_MS, LOST, RECOVERING, LostWorld
from tests.flows.subscriptions.test_cancel_subscription import CANCEL
from tests.flows.subscriptions.test_retry_subscription import RETRY
from tests.flows.world import CHARGE, START_MS, asked, outcome_of

from payrelay.core.calls import Effect
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import MatchResult
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.capture import capture
from payrelay.flows.resolution.resolve import resolve_one
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.gateways.gateway import EffectCause

JUST_BEFORE_MS: Final = LOST.since_ms - 60_000
LONG_BEFORE_MS: Final = LOST.since_ms - HOUR_MS


async def unknown_since(lost: LostWorld, call: Effect, at_ms: int) -> None:
    """Makes a request whose reply is lost, and of which the gateway does nothing."""
    lost.world.clock.passed_ms = at_ms - START_MS
    lost.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    shown, plans = list(lost.account.shown), {id_: list(kept) for id_, kept in lost.account.plans.items()}
    await lost.make(call, "k-1")
    lost.account.shown, lost.account.plans = shown, plans
    lost.account.effects.clear()


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("call", [CHARGE, RETRY])
async def test_a_payment_of_a_lost_operation_proves_no_older_one(
    lost: LostWorld,
    call: Effect,
    is_lost: bool,  # noqa: FBT001
) -> None:
    """The older one had been declined, and another request was carried out after it: both rows of that are lost."""
    await unknown_since(lost, call, JUST_BEFORE_MS)
    lost.account.execute(call, at_ms=JUST_BEFORE_MS + 1_000)
    if is_lost:
        lost.lose()
    await resolve_one(lost.world.relay, await lost.world.operation())
    row = await lost.world.operation()
    assert row.state is (State.UNKNOWN if is_lost else State.SUCCEEDED)
    if is_lost:
        with pytest.raises(Refusal) as caught:
            await lost.make(call, "k-2")
        assert caught.value.code is Code.IN_PROGRESS
        assert lost.account.effects == [call]


async def test_a_payment_from_before_the_loss_proves_an_older_operation(lost: LostWorld) -> None:
    """All rows of that time are there: nothing that isn't known can have made it."""
    await unknown_since(lost, CHARGE, LONG_BEFORE_MS)
    lost.account.execute(CHARGE, at_ms=LONG_BEFORE_MS + 1_000)
    lost.lose()
    await resolve_one(lost.world.relay, await lost.world.operation())
    assert (await lost.world.operation()).state is State.SUCCEEDED


@pytest.mark.parametrize(("is_lost", "state"), [(False, State.SUCCEEDED), (True, State.NEEDS_ATTENTION)])
async def test_a_refund_that_shows_is_not_surely_the_older_one(
    lost: LostWorld,
    is_lost: bool,  # noqa: FBT001
    state: State,
) -> None:
    """Another refund of the payment may be lost, and a record doesn't say when it was refunded."""
    await unknown_since(lost, lost.refund, LONG_BEFORE_MS)
    lost.account.execute(lost.refund, at_ms=LONG_BEFORE_MS)
    if is_lost:
        lost.lose()
    await resolve_one(lost.world.relay, await lost.world.operation())
    assert (await lost.world.operation()).state is state


@pytest.mark.parametrize("call", [CAPTURE, CANCEL])
async def test_what_was_open_before_the_loss_is_not_sent_again(lost: LostWorld, call: Effect) -> None:
    """Its lost row may have told the client that nothing was sent, and the client let the customer go."""
    lost.world.clock.passed_ms = LONG_BEFORE_MS - START_MS
    lost.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    if call is CAPTURE:
        await capture(lost.world.relay, asked(lost.world.relay, "k-1"), CAPTURE)
    else:
        await cancel_subscription(lost.world.relay, asked(lost.world.relay, "k-1"), CANCEL)
    sent = list(lost.account.effects)
    lost.lose()
    await resolve_one(lost.world.relay, await lost.world.operation())

    assert lost.account.effects == sent
    assert (await lost.world.operation()).state is State.NEEDS_ATTENTION


@pytest.mark.parametrize(("is_lost", "state"), [(False, State.FAILED), (True, State.NEEDS_ATTENTION)])
async def test_an_authorization_that_is_undone_does_not_disprove_an_older_capture(
    lost: LostWorld,
    is_lost: bool,  # noqa: FBT001
    state: State,
) -> None:
    """It may have been captured, and its payment refunded, and both rows lost."""
    lost.world.clock.passed_ms = LONG_BEFORE_MS - START_MS
    lost.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await capture(lost.world.relay, asked(lost.world.relay, "k-1"), CAPTURE)
    if is_lost:
        lost.lose()
    else:
        lost.world.clock.passed_ms += 60_000
    undone = outcome_of(OutcomeKind.REFUSED)
    lost.account.script.append(
        msgspec.structs.replace(undone, evidence=Evidence(cause=EffectCause.NO_SUCH_AUTHORIZATION))
    )
    await resolve_one(lost.world.relay, await lost.world.operation())
    assert (await lost.world.operation()).state is state


async def test_after_the_recovery_it_is_still_not_known_what_was_lost(lost: LostWorld) -> None:
    """Its end brings no row back."""
    await unknown_since(lost, CHARGE, JUST_BEFORE_MS)
    lost.account.execute(CHARGE, at_ms=JUST_BEFORE_MS)
    lost.lose()
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    await resolve_one(lost.world.relay, await lost.world.operation())
    history = await lost.world.journal.history((await lost.world.operation()).id)
    assert history[-1].evidence.seen == MatchResult.MAY_BE_ANOTHERS


async def test_what_began_after_the_loss_is_proved_as_ever(lost: LostWorld) -> None:
    """All rows since are there."""
    lost.lose()
    lost.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await lost.make(CHARGE)
    await resolve_one(lost.world.relay, await lost.world.operation())
    row = await lost.world.operation()
    assert (row.state, lost.account.shown[-1][0].status) == (State.SUCCEEDED, PaymentStatus.RECEIVED)
