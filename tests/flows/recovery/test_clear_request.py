"""What comes again after its first try was lost: never two effects, and never a false answer."""

import asyncio
import json
from typing import Final, NoReturn

import msgspec
import pytest
from tests.flows.payments.test_refund import CAPTURE, PART, VOID
from tests.flows.recovery.lost_world import (
    FIRST,
    HOUR_MS,
    KNOWN_ORDER,
    LAG_MS,
    LOOKED_MS,
    LOST,
    MOST_MS,
    RECOVERING,
    LostWorld,
    payment_of,
)
from tests.flows.subscriptions.test_cancel_subscription import CANCEL
from tests.flows.subscriptions.test_retry_subscription import RETRY
from tests.flows.world import CHARGE, CREDENTIAL, START_MS, Gate, asked, outcome_of
from tests.samples import ASKED, CHECKOUT

from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer
from payrelay.core.calls import Effect, Refund
from payrelay.core.checkouts.checkout import CheckoutState, Details
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import Control, MatchResult
from payrelay.errors import Code, Refusal
from payrelay.flows.access.lost_owners import require_owned
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.refund import refund
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.gateways.gateway import EffectCause
from payrelay.recovery.flows.clear_request import BEGUN_SENTENCE, TOO_EARLY_SENTENCE, UNSEEN_SENTENCE
from payrelay.recovery.flows.unchanged import CHANGED_SENTENCE
from payrelay.runtime.database.lost_commits import IDENTITY_KEPT_MS
from payrelay.runtime.health.control_queries import BAD_FOR_S, GOOD_FOR_S

DEARER: Final = msgspec.structs.replace(CHARGE, amount_minor=CHARGE.amount_minor + 1)
AUTHORIZATION: Final = msgspec.structs.replace(CHARGE, authorize=True)
STRANGER: Final = msgspec.structs.replace(CREDENTIAL, id="000000000002", principal="another shop")


async def refused(lost: LostWorld, call: Effect, key: str | None = "k-1", **credential: object) -> Refusal:
    """Gives the refusal that a request gets; nothing is stored of it."""
    before = await lost.world.operations()
    with pytest.raises(Refusal) as caught:
        await lost.make(call, key, **credential)
    assert await lost.world.operations() == before
    return caught.value


async def require_held(lost: LostWorld, call: Effect, key: str | None = "k-1", **credential: object) -> None:
    """Makes a request that is stored for a person to decide, and of which nothing is sent."""
    effects = list(lost.account.effects)
    answer = await lost.make(call, key, **credential)
    assert (answer.http_status, (await lost.world.operation()).state) == (202, State.HELD)
    assert lost.account.effects == effects


def kinds(lost: LostWorld) -> dict[str, Effect]:
    """Gives a call of each kind that is looked for."""
    return {"charge": CHARGE, "refund": lost.refund, "retry": RETRY}


@pytest.mark.parametrize("key", ["k-1", None])
@pytest.mark.parametrize("kind", ["charge", "refund", "retry"])
async def test_a_request_whose_first_try_did_nothing_is_carried_out_once(
    lost: LostWorld, kind: str, key: str | None
) -> None:
    """The client waits for it, and no person need do anything: the look found nothing, beside a good control."""
    lost.lose()
    call = kinds(lost)[kind]
    first = await lost.make(call, key)
    again = await lost.make(call, key)
    assert (first.http_status, again.body) == (200, first.body)
    assert lost.account.effects == [call]
    history = await lost.world.journal.history((await lost.world.operation()).id)
    assert history[0].evidence.control == Control.FOUND


@pytest.mark.parametrize("key", ["k-1", None])
async def test_a_charge_whose_first_try_was_executed_gets_that_payment(lost: LostWorld, key: str | None) -> None:
    """The client has its answer, with its evidence, and the customer pays once."""
    paid = lost.account.execute(CHARGE, at_ms=MOST_MS)
    assert paid is not None
    lost.lose()
    first = await lost.make(CHARGE, key)
    again = await lost.make(CHARGE, key)
    assert (first.http_status, again.body) == (200, first.body)
    told = json.loads(first.body)
    assert (told["msg"], told["data"]["payment_id"]) == ("Resolved by proof", int(paid.payment_id))
    assert lost.account.effects == [CHARGE]
    row = await lost.world.operation()
    history = await lost.world.journal.history(row.id)
    assert (row.state, row.payment_id, row.guard) == (State.SUCCEEDED, paid.payment_id, None)
    assert [entry.event for entry in history] == [None, Event.PROVED]
    assert history[1].evidence.payment_ids == (paid.payment_id,)
    assert "operation_adopted" in lost.world.log_events


@pytest.mark.parametrize("key", ["k-1", None])
async def test_a_payment_that_may_be_of_a_form_is_no_first_trys(lost: LostWorld, key: str | None) -> None:
    """A customer may have paid a form of the order again; whether the charge was made too, a person finds out."""
    paid = msgspec.structs.replace(CHECKOUT, state=CheckoutState.COMPLETED, guard=None)
    await lost.world.relay.checkouts.add(paid, Details(secret="s", asked=ASKED))
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    await require_held(lost, CHARGE, key)


@pytest.mark.parametrize("key", ["k-1", None])
async def test_a_refund_whose_first_try_was_executed_gets_that_refund(lost: LostWorld, key: str | None) -> None:
    """The payment was received before, no refund of it is known, and the gateway shows one."""
    lost.account.execute(lost.refund, at_ms=MOST_MS)
    lost.lose()
    first = await lost.make(lost.refund, key)
    again = await lost.make(lost.refund, key)
    assert (first.http_status, again.body, lost.account.effects) == (200, first.body, [lost.refund])
    await require_held(lost, lost.refund, "k-2")


@pytest.mark.parametrize("status", [PaymentStatus.REFUND_REQUESTED, PaymentStatus.CHARGED_BACK])
async def test_a_repeat_is_not_refused_by_what_its_own_first_try_may_have_done(
    lost: LostWorld, status: PaymentStatus
) -> None:
    """Somebody has read since that the money went back: "already refunded" would be said of the client's own refund."""
    lost.account.execute(lost.refund, at_ms=MOST_MS)
    lost.account.shown = [(msgspec.structs.replace(each, status=status), at_ms) for each, at_ms in lost.account.shown]
    lost.lose()
    seen, now_ms = tuple(each for each, _ in lost.account.shown), lost.world.clock.now_ms()
    await lost.world.relay.read_cache.note_payments(lost.account.merchant, seen, seen_at_ms=now_ms)
    await require_held(lost, lost.refund)


async def test_a_cleared_refund_is_refused_by_the_figures(lost: LostWorld) -> None:
    """The record shows no refund yet, so the request was never carried out; but another one gave the payment back."""
    shown = list(lost.account.shown)
    await lost.make(lost.refund, "before the loss")
    lost.account.shown = shown
    lost.lose()
    with pytest.raises(Refusal, match="already refunded"):
        await lost.make(lost.refund)
    assert lost.account.effects == [lost.refund]


async def test_a_retry_beside_a_new_installment_is_for_a_person(lost: LostWorld) -> None:
    """The gateway also charges by itself: nothing says whose the installment is, and another one would be too much."""
    lost.account.execute(RETRY, at_ms=MOST_MS)
    lost.lose()
    await require_held(lost, RETRY)
    assert lost.account.effects == [RETRY]


@pytest.mark.parametrize("kind", ["charge", "refund", "retry"])
async def test_nothing_is_asked_before_the_gateway_must_show_it(lost: LostWorld, kind: str) -> None:
    """An effect that shows late would be made a second time. The client is told when to come again."""
    call = kinds(lost)[kind]
    lost.account.execute(call, at_ms=LOST.until_ms, shown_at_ms=LOOKED_MS)
    lost.lose(now_ms=LOOKED_MS - 1)
    early = await refused(lost, call)
    assert (early.code, str(early), early.retry_after_s) == (Code.UNAVAILABLE, TOO_EARLY_SENTENCE, 1)
    assert lost.account.effects == [call]
    lost.world.clock.passed_ms = LOST.until_ms - START_MS
    assert (await refused(lost, call)).retry_after_s == 40 + LAG_MS // 1000

    lost.world.clock.passed_ms = LOOKED_MS - START_MS
    if kind == "retry":
        await require_held(lost, call)
    else:
        await lost.make(call)
    assert lost.account.effects == [call]


@pytest.mark.parametrize("kind", ["charge", "refund", "retry"])
@pytest.mark.parametrize("fault", ["is_blind", "is_away"])
async def test_a_search_that_shows_nothing_at_all_proves_nothing(lost: LostWorld, kind: str, fault: str) -> None:
    """The gateway hides effects for minutes, or can't be asked. The request goes on as soon as it shows them."""
    call = kinds(lost)[kind]
    lost.account.execute(call, at_ms=MOST_MS)
    lost.lose()
    setattr(lost.account, fault, True)
    if (kind, fault) == ("retry", "is_blind"):  # installments that were known are hidden: a person is to look
        await require_held(lost, call)
    else:
        assert (await refused(lost, call)).code is Code.UNAVAILABLE
    assert lost.account.effects == [call]


async def test_a_charge_that_cannot_be_seen_comes_again(lost: LostWorld) -> None:
    """It is told truthfully, and what the control query showed is asked anew soon."""
    lost.lose()
    lost.account.is_blind = True
    unseen = await refused(lost, CHARGE)
    assert (str(unseen), unseen.retry_after_s) == (UNSEEN_SENTENCE, 30)
    lost.account.is_blind = False
    await refused(lost, CHARGE)
    lost.world.clock.passed_ms += BAD_FOR_S * 1000
    assert (await lost.make(CHARGE)).http_status == 200


async def test_without_any_known_payment_a_person_decides(lost: LostWorld) -> None:
    """There is nothing that a control query could show: an empty look alone proves nothing."""
    lost.lose()
    charge = msgspec.structs.replace(CHARGE, order_id=KNOWN_ORDER)
    await require_held(lost, charge)
    lost.account.plans.clear()
    await require_held(lost, RETRY, "k-2")
    assert lost.account.effects == []


async def test_a_declined_first_try_leaves_nothing_behind(lost: LostWorld) -> None:
    """The lost operation did nothing. Its repeat is sent once, and its decline is the client's answer for good."""
    lost.lose()
    lost.account.script.append(outcome_of(OutcomeKind.DECLINED))
    first = await lost.make(CHARGE)
    again = await lost.make(CHARGE)
    assert (first.http_status, again.body, lost.account.effects) == (402, first.body, [])


async def test_another_amount_is_for_a_person(lost: LostWorld) -> None:
    """The order was charged, and not for this: neither is it this request's answer, nor does the request go out."""
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    await require_held(lost, DEARER)
    assert lost.account.effects == [CHARGE]


@pytest.mark.parametrize("changes", [{"status": PaymentStatus.REFUNDED}, {"description": "Coffee"}, {"at_ms": None}])
async def test_a_payment_that_does_not_fit_in_every_part_is_for_a_person(
    lost: LostWorld, changes: dict[str, object]
) -> None:
    """It may be a lost request's, but whether it is this one's nobody can tell from the records."""
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    payment, shown_at_ms = lost.account.shown.pop()
    lost.account.shown.append((msgspec.structs.replace(payment, **changes), shown_at_ms))
    lost.lose()
    await require_held(lost, CHARGE)


async def test_two_payments_are_for_a_person(lost: LostWorld) -> None:
    """Two requests were lost, and either payment may be either's."""
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    await require_held(lost, CHARGE)


async def test_the_second_request_for_an_order_does_not_charge_it_again(lost: LostWorld) -> None:
    """Of two lost tries one was declined. Its repeat comes first and gets the payment: then the other's must not go."""
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    assert (await lost.make(CHARGE, "k-declined")).http_status == 200
    other_card = msgspec.structs.replace(CHARGE, customer_token="another card")
    await require_held(lost, other_card, "k-paid")
    assert (await refused(lost, CHARGE, "k-third")).code is Code.IN_PROGRESS
    assert lost.account.effects == [CHARGE]


async def test_a_payment_from_before_the_window_is_nobodys_lost_one(lost: LostWorld) -> None:
    """An order may be charged more than once. What was paid before the lost window, no lost operation paid."""
    lost.account.execute(CHARGE, at_ms=LOST.since_ms - 300_001)
    lost.lose()
    assert (await lost.make(CHARGE)).http_status == 200
    assert len(lost.account.effects) == 2


async def test_a_payment_from_after_the_window_is_for_a_person(lost: LostWorld) -> None:
    """The clock that said when the recovery began was slow: the payment may be that of the lost first try."""
    lost.account.execute(CHARGE, at_ms=LOST.until_ms + 40_000 + 300_001)
    lost.lose()
    await require_held(lost, CHARGE)
    assert len(lost.account.effects) == 1


@pytest.mark.parametrize("cause", [EffectCause.ALREADY_CAPTURED, EffectCause.ALREADY_CANCELLED])
async def test_what_was_done_in_the_lost_window_is_not_refused(lost: LostWorld, cause: EffectCause) -> None:
    """The lost first try may have done it. A refusal would tell the client for good that nothing was done."""
    lost.lose(now_ms=LOST.until_ms)
    refusal = outcome_of(OutcomeKind.REFUSED)
    lost.account.script.append(msgspec.structs.replace(refusal, evidence=Evidence(cause=cause)))
    if cause is EffectCause.ALREADY_CAPTURED:
        answer = await capture(lost.world.relay, asked("k-1"), CAPTURE)
    else:
        answer = await cancel_subscription(lost.world.relay, asked("k-1"), CANCEL)

    assert (answer.http_status, (await lost.world.operation()).state) == (202, State.UNKNOWN)


async def test_outside_of_a_recovery_it_is_refused(lost: LostWorld) -> None:
    """Nothing is lost: somebody else captured it, and the client is told so."""
    refusal = outcome_of(OutcomeKind.REFUSED)
    cause = Evidence(cause=EffectCause.ALREADY_CAPTURED)
    lost.account.script.append(msgspec.structs.replace(refusal, evidence=cause))
    await capture(lost.world.relay, asked("k-1"), CAPTURE)

    assert (await lost.world.operation()).state is State.REFUSED


async def test_what_the_restored_rows_attribute_is_not_lost(lost: LostWorld) -> None:
    """The backup has the charge; its payment is no other request's, whose key is new."""
    lost.world.clock.passed_ms = LOST.since_ms - 1 - START_MS
    await lost.make(CHARGE, "k-1")
    lost.lose()
    assert (await lost.make(CHARGE, "k-2")).http_status == 200
    assert lost.account.effects == [CHARGE, CHARGE]


async def test_what_was_attributed_within_the_window_is_not_certain(lost: LostWorld) -> None:
    """The database had gone back, and nobody knew: whatever it attributed then lacked the lost rows."""
    lost.world.clock.passed_ms = LOST.since_ms + 1 - START_MS
    await lost.make(CHARGE, "k-1")
    lost.lose()
    await require_held(lost, CHARGE, "k-2")
    assert lost.account.effects == [CHARGE]


@pytest.mark.parametrize("key", ["k-1", None])
async def test_another_principal_gets_no_payment_that_may_be_foreign(lost: LostWorld, key: str | None) -> None:
    """Who owned the order was lost as well. A payment is given only to who must have made it."""
    for credential in (CREDENTIAL, STRANGER):
        await lost.world.relay.access.credentials.add(credential)
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    await require_held(lost, CHARGE, key, principal="another shop")
    assert (await refused(lost, CHARGE, key)).code is Code.IN_PROGRESS


async def test_an_order_that_another_took_in_the_recovery_is_not_denied_for_good(lost: LostWorld) -> None:
    """The caller's own rows may be lost. Who is told to use another order id has the customer pay twice."""
    lost.lose()
    assert (await lost.make(CHARGE, "k-other", principal="another shop")).http_status == 200
    answer = await refused(lost, CHARGE, "k-1")
    assert (answer.code, answer.retry_after_s is not None) == (Code.UNAVAILABLE, True)
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    lost.world.clock.passed_ms += IDENTITY_KEPT_MS
    assert (await refused(lost, CHARGE, "k-1")).code is Code.CONFLICT


async def test_an_order_that_another_had_before_the_loss_is_taken(lost: LostWorld) -> None:
    """The rows that say so are there."""
    lost.world.clock.passed_ms = LOST.since_ms - 1 - START_MS
    await lost.make(CHARGE, "k-other", principal="another shop")
    lost.lose()
    assert (await refused(lost, CHARGE, "k-1")).code is Code.CONFLICT


async def test_a_row_from_before_the_loss_that_took_no_effect_gives_the_order_to_nobody(lost: LostWorld) -> None:
    """A charge that was declined owns nothing: the order was free for the caller, whose own rows may be lost."""
    lost.world.clock.passed_ms = LOST.since_ms - 1 - START_MS
    lost.account.script.append(outcome_of(OutcomeKind.DECLINED))
    await lost.make(CHARGE, "k-declined", principal="another shop")
    lost.lose()
    assert (await lost.make(CHARGE, "k-other", principal="another shop")).http_status == 200
    assert (await refused(lost, CHARGE, "k-1")).code is Code.UNAVAILABLE


async def test_the_payment_of_an_order_that_another_took_in_the_recovery_is_nobodys(lost: LostWorld) -> None:
    """Its maker's rows are lost. Who made it is not told that there is none, and who came later doesn't refund it."""
    paid = lost.account.execute(CHARGE, at_ms=MOST_MS)
    assert paid is not None
    lost.lose()
    for credential in (CREDENTIAL, STRANGER):
        await lost.world.relay.access.credentials.add(credential)
    await require_held(lost, AUTHORIZATION, "k-other", principal="another shop")
    await lost.world.relay.read_cache.note_payments(lost.account.merchant, (paid,), seen_at_ms=LOOKED_MS)
    call = Refund(payment_id=paid.payment_id, description="late")
    for principal in ("shop", "another shop"):
        assert (await refused(lost, call, "k-1", principal=principal)).code is Code.UNAVAILABLE


async def test_a_payment_of_the_window_is_shown_to_nobody_whose_it_may_not_be(lost: LostWorld) -> None:
    """Its owner's row is lost. Alone with a key for the account, the caller must have made it."""
    paid, relay = payment_of(CHARGE, "320027150500", MOST_MS), lost.world.relay
    await relay.access.credentials.add(CREDENTIAL)
    lost.lose()
    await require_owned(relay, asked(), CHARGE.order_id, lambda: (paid,))
    await relay.access.credentials.add(STRANGER)
    with pytest.raises(Refusal) as caught:
        await require_owned(relay, asked(), CHARGE.order_id, lambda: (paid,))
    assert caught.value.code is Code.UNAVAILABLE
    await require_owned(relay, asked(), CHARGE.order_id, lambda: (msgspec.structs.replace(paid, at_ms=1),))
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    lost.world.clock.passed_ms += IDENTITY_KEPT_MS
    await require_owned(relay, asked(), CHARGE.order_id, _unasked)


def _unasked() -> NoReturn:
    """Stands for payments that nobody needs to read outside of a recovery."""
    raise AssertionError("nothing is lost")


async def test_no_payment_without_an_owner_is_shown_while_the_database_is_behind(lost: LostWorld) -> None:
    """No recovery has begun, and nobody knows since when commits are lost: a rival would read names."""
    paid, relay = payment_of(CHARGE, "320027150500", MOST_MS), lost.world.relay
    for credential in (CREDENTIAL, STRANGER):
        await relay.access.credentials.add(credential)
    relay.database.lost_commits.fall_behind(1, "operation op_1 is missing")
    with pytest.raises(Refusal) as caught:
        await require_owned(relay, asked(), CHARGE.order_id, lambda: (paid,))
    assert caught.value.code is Code.UNAVAILABLE
    shown = (lost.account.shown[0][0], msgspec.structs.replace(paid, order_id=KNOWN_ORDER))
    await require_owned(relay, asked(), KNOWN_ORDER, lambda: shown)


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(STRANGER, scopes=frozenset({Scope.PAYMENTS_READ})),
        msgspec.structs.replace(STRANGER, accounts=frozenset({"elsewhere"})),
        msgspec.structs.replace(STRANGER, revoked_at_ms=LOST.since_ms - 1),
    ],
)
async def test_who_could_not_charge_owns_no_lost_payment(lost: LostWorld, other: object) -> None:
    """A reporting tool's key doesn't send every payment to a person."""
    for credential in (CREDENTIAL, other):
        await lost.world.relay.access.credentials.add(credential)  # type: ignore[arg-type]
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    assert (await lost.make(CHARGE)).http_status == 200


async def test_an_order_that_is_known_as_the_callers_is_nobody_elses(lost: LostWorld) -> None:
    """Another principal was refused on it before the loss, too."""
    for credential in (CREDENTIAL, STRANGER):
        await lost.world.relay.access.credentials.add(credential)
    await lost.make(CHARGE, "k-1")
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    assert (await lost.make(CHARGE, "k-2")).http_status == 200
    assert lost.account.effects == [CHARGE, CHARGE]


@pytest.mark.parametrize("key", ["k-1", None])
async def test_equal_repeats_at_once_have_one_effect(lost: LostWorld, key: str | None) -> None:
    """Both looked before either was sent. The second finds the first's operation, and gets its answer."""
    lost.lose()
    answers = await asyncio.gather(*(lost.make(CHARGE, key) for _ in range(5)), return_exceptions=True)
    assert lost.account.effects == [CHARGE]
    assert all(isinstance(answer, BaseException) or answer.http_status == 200 for answer in answers)


async def test_equal_repeats_at_once_adopt_one_payment(lost: LostWorld) -> None:
    """Two operations with one payment would count it twice."""
    lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    requests = [lost.make(CHARGE, key) for key in ("k-1", "k-1", "k-2", None)]
    await asyncio.gather(*requests, return_exceptions=True)
    made = [each for each in await lost.world.operations() if each.order_id == CHARGE.order_id]
    assert (len(made), lost.account.effects) == (1, [CHARGE])


@pytest.mark.parametrize("lost_effects", [0, 1])
async def test_a_look_counts_only_while_nothing_else_was_sent_for_the_order(lost: LostWorld, lost_effects: int) -> None:
    """While one looked, another one was sent. What the first saw says nothing of that."""
    for _ in range(lost_effects):
        lost.account.execute(CHARGE, at_ms=MOST_MS)
    lost.lose()
    looking = Gate()
    lost.world.steps.put("observe", looking, first=lost.world.steps.passed.count("observe") + 1)
    slow = asyncio.ensure_future(lost.make(CHARGE, "k-1"))
    await looking.reached.wait()
    await lost.make(CHARGE, "k-2")
    looking.opened.set()
    [outcome] = await asyncio.gather(slow, return_exceptions=True)
    assert isinstance(outcome, Answer) or str(outcome) == CHANGED_SENTENCE
    assert lost.account.effects == [CHARGE]


async def test_a_recovery_that_begins_while_a_request_waits_is_respected(lost: LostWorld) -> None:
    """The request was cleared before the commits were lost, and its first try may be among them."""
    lost.limit_to(RateLimit(1, 10.0))
    permit = await lost.account.rate_limiter.take_now()
    assert permit is not None
    waiting = asyncio.ensure_future(lost.make(CHARGE))
    await lost.account.timer.is_set.wait()
    lost.lose(now_ms=START_MS + 2_000)
    permit.release_unused()
    with pytest.raises(Refusal, match=BEGUN_SENTENCE):
        await waiting
    assert (lost.account.effects, lost.account.rate_limiter.snapshot().used) == ([], 0)


async def test_an_open_operation_is_told_before_the_budget_is_used(lost: LostWorld) -> None:
    """While a charge of the order is open, requests for it cost no call."""
    lost.lose()
    lost.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await lost.make(CHARGE, "k-1")
    searches = len(lost.account.searched)
    assert (await refused(lost, CHARGE, "k-2")).code is Code.IN_PROGRESS
    assert len(lost.account.searched) == searches


async def test_a_look_costs_one_search_and_all_share_a_control_query(lost: LostWorld) -> None:
    """A recovery must not use up the budget of the charges that it is about."""
    lost.lose()
    for number in range(1, 4):
        await lost.make(lost.world.charge_of(number), f"k-{number}")
    assert len(lost.account.searched) == 3 + 1
    lost.world.clock.passed_ms += GOOD_FOR_S * 1000
    await lost.make(lost.world.charge_of(9), "k-9")
    assert len(lost.account.searched) == 4 + 2


async def test_captures_and_cancellations_go_on(lost: LostWorld) -> None:
    """The gateway does them once, so that a second try changes nothing."""
    lost.lose(now_ms=LOST.until_ms)
    await capture(lost.world.relay, asked("k-1"), CAPTURE)
    await cancel_subscription(lost.world.relay, asked("k-2"), CANCEL)
    assert lost.account.effects == [CAPTURE, CANCEL]


@pytest.mark.parametrize("call", [AUTHORIZATION, PART, VOID])
async def test_what_no_record_shows_is_for_a_person_at_once(lost: LostWorld, call: Effect) -> None:
    """Waiting would show nothing either."""
    lost.lose(now_ms=LOST.until_ms)
    await (lost.make(call) if call is AUTHORIZATION else refund(lost.world.relay, asked(), call))  # type: ignore[arg-type]
    assert ((await lost.world.operation()).state, lost.account.effects) == (State.HELD, [])


async def test_a_refund_of_a_payment_of_an_unknown_order_is_for_a_person(lost: LostWorld) -> None:
    """The row that named its order may be lost, and the gateway shows payments by their order only."""
    lost.lose()
    await require_held(lost, msgspec.structs.replace(lost.refund, payment_id="7"))


async def test_outside_of_a_recovery_and_once_acknowledged_nothing_is_looked_for(lost: LostWorld) -> None:
    """A shop that has repeated what it sent must not wait for the others."""
    await lost.make(CHARGE, "k-1")
    lost.lose(
        now_ms=LOST.until_ms,
        incarnation=msgspec.structs.replace(RECOVERING, acknowledged={"shop": LOST.until_ms}),
    )
    await lost.make(CHARGE, "k-2")
    lost.recovery.incarnations = (FIRST, msgspec.structs.replace(RECOVERING, ended_recovery_at_ms=LOOKED_MS))
    lost.world.clock.passed_ms += 2_000
    await lost.make(CHARGE, "k-3")
    assert (lost.account.effects, lost.account.searched) == ([CHARGE] * 3, [])


async def test_a_database_that_is_behind_sends_nothing(lost: LostWorld) -> None:
    """Until an operator has begun the recovery nobody knows what was lost."""
    lost.world.relay.database.lost_commits.fall_behind(1, "operation op_1 is missing")
    assert (await refused(lost, CHARGE)).code is Code.UNAVAILABLE
    assert lost.account.effects == []


async def test_what_was_seen_is_stored_with_what_is_sent(lost: LostWorld) -> None:
    """An auditor sees why the request was sent although its first try was lost."""
    lost.lose()
    await lost.make(CHARGE)
    history = await lost.world.journal.history((await lost.world.operation()).id)
    assert (history[0].evidence.seen, history[0].evidence.control) == (MatchResult.NOTHING, Control.FOUND)


async def test_a_clock_that_was_ahead_at_the_loss_ends_no_later_than_the_lag(lost: LostWorld) -> None:
    """The end of the lost window is a day in the future. Charges wait for the lag, and the log says why."""
    window = msgspec.structs.replace(LOST, until_ms=LOST.until_ms + 24 * HOUR_MS)
    lost.lose(now_ms=LOST.until_ms, incarnation=msgspec.structs.replace(RECOVERING, lost=window))
    assert (await refused(lost, CHARGE)).retry_after_s == (LOOKED_MS - LOST.until_ms) // 1000
    assert "recovery_clock_ahead" in lost.world.log_events
    lost.world.clock.passed_ms += LOOKED_MS - LOST.until_ms
    assert (await lost.make(CHARGE)).http_status == 200
