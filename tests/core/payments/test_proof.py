from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import samples
from tests.draws import examples

from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.proof import (
    ABSENT,
    CONTESTED,
    CONTRADICTORY,
    GIVEN_UP_AFTER_MS,
    INQUIRIES_MIN,
    PROVED_ABSENT_AFTER_MS,
    REFUND_STATUSES,
    RETRY_WITHIN_MS,
    STILL_UNCLEAR_AFTER_MS,
    TOLERANCE_MS,
    Control,
    Match,
    MatchResult,
    SendingWindow,
    match_for_capture,
    match_for_charge,
    match_for_refund,
    match_for_retry,
    open_since_ms,
    ruling,
    ruling_after_failure,
    sending_window_of,
    with_plan,
)

BEGAN_MS: Final = 1_788_244_200_000
WINDOW: Final = SendingWindow(began_ms=BEGAN_MS, ended_ms=BEGAN_MS + 40_000)
CALL: Final = Charge(
    authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=100_000, customer_token="t"
)
PAYMENT: Final = msgspec.structs.replace(samples.PAYMENT, payment_id="320", at_ms=BEGAN_MS + 1_000)
OPERATION: Final = msgspec.structs.replace(
    samples.OPERATION,
    state=State.UNKNOWN,
    version=2,
    created_at_ms=BEGAN_MS - 5_000,
    updated_at_ms=BEGAN_MS,
    send_by_ms=BEGAN_MS + 10_000,
)
LATE_MS: Final = BEGAN_MS + PROVED_ABSENT_AFTER_MS


def changed(**members: object) -> Payment:
    """Gives the payment that fits, but for what is named."""
    return msgspec.structs.replace(PAYMENT, **members)


def charge_match(*payments: Payment, others: frozenset[str] = frozenset(), has_competing: bool = False) -> Match:
    """Looks for the charge among these payments."""
    return match_for_charge(CALL, OPERATION, WINDOW, payments, others, has_competing=has_competing)


def entry(state: State, event: Event | None = None, at_ms: int = BEGAN_MS, **evidence: str) -> JournalEntry:
    """Gives a journal entry."""
    return JournalEntry(version=1, at_ms=at_ms, event=event, state=state, evidence=msgspec.convert(evidence, Evidence))


def observations(
    count: int, seen: MatchResult = MatchResult.NOTHING, control: Control = Control.FOUND
) -> list[JournalEntry]:
    """Gives so many observations."""
    return [entry(State.UNKNOWN, Event.INQUIRED_ABOUT, seen=seen, control=control) for _ in range(count)]


def test_it_reaches_the_gateway_between_the_intent_to_send_and_the_end_of_the_time_out() -> None:
    """Waiting for a permit is no sending; where nothing tells when that ended, it counts from the beginning."""
    history = [entry(State.ACCEPTED, at_ms=BEGAN_MS - 5_000), entry(State.SENDING, Event.GRANTED)]
    assert sending_window_of(history, OPERATION, 30_000) == WINDOW
    assert sending_window_of([], OPERATION, 30_000).began_ms == OPERATION.created_at_ms


def test_it_is_open_since_its_outcome_was_lost() -> None:
    """From then on its inquiries are counted, not from each inquiry anew."""
    history = [entry(State.SENDING), entry(State.UNKNOWN, at_ms=BEGAN_MS + 7), entry(State.UNKNOWN, at_ms=BEGAN_MS + 9)]
    assert open_since_ms(history, OPERATION) == BEGAN_MS + 7
    assert open_since_ms([], OPERATION) == OPERATION.created_at_ms


def test_one_payment_that_fits_in_every_part_is_the_charge() -> None:
    """Payments of other amounts beside it change nothing."""
    match = charge_match(changed(payment_id="1", amount_minor=99_999), PAYMENT)
    assert match == Match(seen=MatchResult.ONE_FITS, payment=PAYMENT, payments_compared=("1", "320"))


@pytest.mark.parametrize(
    "members",
    [
        {"description": "tea"},
        {"currency": "USD"},
        {"order_id": "A-2"},
        {"status": "REFUNDED"},
        {"at_ms": None},
        {"at_ms": BEGAN_MS - TOLERANCE_MS - 1},
        {"at_ms": WINDOW.ended_ms + TOLERANCE_MS + 1},
    ],
)
def test_one_of_equal_amount_that_does_not_fit_otherwise_is_for_an_operator(members: dict[str, object]) -> None:
    """It may be the charge, oddly recorded, or another operation's: neither may be guessed."""
    assert charge_match(changed(**members)).seen is MatchResult.ONE_RESEMBLES


@pytest.mark.parametrize("at_ms", [BEGAN_MS - TOLERANCE_MS, WINDOW.ended_ms + TOLERANCE_MS])
def test_five_minutes_are_tolerated_on_both_sides(at_ms: int) -> None:
    """The gateway's clock is another one; the edges themselves belong to it."""
    assert charge_match(changed(at_ms=at_ms)).seen is MatchResult.ONE_FITS
    assert TOLERANCE_MS == 300_000


def test_two_that_fit_are_for_an_operator() -> None:
    """One of them may be another operation's."""
    assert charge_match(PAYMENT, changed(payment_id="321")).seen is MatchResult.SEVERAL_FIT


def test_a_payment_of_another_operation_is_none_of_this_one() -> None:
    """Each payment belongs to one operation; alone it says that this one isn't there."""
    both = charge_match(PAYMENT, changed(payment_id="321"), others=frozenset({"321"}))
    assert (both.seen, both.payment) == (MatchResult.ONE_FITS, PAYMENT)
    assert charge_match(PAYMENT, others=frozenset({"320"})).seen is MatchResult.ONLY_OTHERS
    assert charge_match().seen is MatchResult.NOTHING


def test_while_another_operation_may_own_it_nothing_is_proved() -> None:
    """Two open charges of one order must not both be proved by one payment."""
    assert charge_match(PAYMENT, has_competing=True).seen is MatchResult.MAY_BE_ANOTHERS


@pytest.mark.parametrize("seen", sorted(CONTESTED))
def test_what_may_be_something_elses_is_for_an_operator_after_four_days(seen: MatchResult) -> None:
    """By then whose the payment is may have shown itself; it proves nothing before."""
    match = Match(seen=seen, payment=PAYMENT)
    assert ruling(match, None, [], WINDOW, LATE_MS - 1) is Event.INQUIRED_ABOUT
    assert ruling(match, None, [], WINDOW, LATE_MS) is Event.UNCLEAR


def test_a_charge_whose_payment_was_named_is_proved_by_that_one_alone() -> None:
    """A pending reply names it."""
    named = msgspec.structs.replace(OPERATION, payment_id="320")
    assert (
        match_for_charge(CALL, named, WINDOW, [PAYMENT], frozenset(), has_competing=False).seen is MatchResult.ONE_FITS
    )
    other = [changed(payment_id="321")]
    assert (
        match_for_charge(CALL, named, WINDOW, other, frozenset(), has_competing=False).seen is MatchResult.ONE_RESEMBLES
    )


PAYMENTS: Final = st.lists(
    st.builds(
        Payment,
        payment_id=st.sampled_from(["320", "321", "322"]),
        order_id=st.sampled_from(["A-1", "A-2"]),
        at_ms=st.sampled_from([None, BEGAN_MS - TOLERANCE_MS - 1, BEGAN_MS, WINDOW.ended_ms + TOLERANCE_MS + 1]),
        description=st.sampled_from(["Tea", "Milk"]),
        status=st.sampled_from([PaymentStatus.RECEIVED, PaymentStatus.REFUNDED]),
        currency=st.sampled_from(["LKR", "USD"]),
        amount_minor=st.sampled_from([None, 100_000, 1]),
    ),
    max_size=4,
    unique_by=lambda payment: payment.payment_id,
)
OTHERS: Final = st.frozensets(st.sampled_from(["320", "321", "322"]))


@given(payments=PAYMENTS, others=OTHERS, has_competing=st.booleans())
def test_a_charge_is_proved_by_exactly_one_fitting_payment_and_never_by_anothers(
    payments: list[Payment], others: frozenset[str], *, has_competing: bool
) -> None:
    """Whatever the gateway shows: a success that is none would be a parcel sent for nothing."""
    match = charge_match(*payments, others=others, has_competing=has_competing)
    fitting = [payment for payment in payments if payment.payment_id not in others and changed_to_fit(payment)]
    proves = ruling(match, None, [], WINDOW, LATE_MS - 1) is Event.PROVED
    assert proves == (len(fitting) == 1 and not has_competing)
    if match.seen in ABSENT:
        assert not any(p.amount_minor == 100_000 and p.payment_id not in others for p in payments)


def changed_to_fit(payment: Payment) -> bool:
    """Tells whether a payment fits in every part but its number."""
    return msgspec.structs.replace(payment, payment_id="320", at_ms=PAYMENT.at_ms) == PAYMENT and (
        payment.at_ms == BEGAN_MS
    )


@given(
    seen=st.sampled_from(MatchResult),
    control=st.sampled_from([None, *Control]),
    earlier=st.lists(
        st.tuples(st.sampled_from(MatchResult), st.sampled_from([None, *Control]), st.sampled_from([None, *Event])),
        max_size=12,
    ),
    after_ms=st.one_of(
        st.integers(0, 2 * PROVED_ABSENT_AFTER_MS),
        st.sampled_from([PROVED_ABSENT_AFTER_MS - 1, PROVED_ABSENT_AFTER_MS]),
    ),
)
@settings(max_examples=examples(500))
def test_nothing_is_called_failed_too_early_or_unseen(
    seen: MatchResult,
    control: Control | None,
    earlier: list[tuple[MatchResult, Control | None, Event | None]],
    after_ms: int,
) -> None:
    """Only after 96 hours, with six controlled observations, the last among them, and each without a payment."""
    history = [
        JournalEntry(
            version=1, at_ms=0, event=event, state=State.UNKNOWN, evidence=Evidence(seen=was, control=controlled)
        )
        for was, controlled, event in earlier
    ]
    event = ruling(Match(seen=seen), control, history, WINDOW, BEGAN_MS + after_ms)
    counted = sum(
        was in ABSENT and controlled is Control.FOUND and kind is Event.INQUIRED_ABOUT
        for was, controlled, kind in earlier
    )
    if event is Event.DISPROVED:
        assert after_ms >= PROVED_ABSENT_AFTER_MS == 96 * 3_600_000
        assert seen not in CONTRADICTORY | CONTESTED | {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN}
        assert control is Control.FOUND
        assert counted + 1 >= INQUIRIES_MIN == 6
    assert (event is Event.PROVED) == (seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN})


@pytest.mark.parametrize("seen", sorted(ABSENT))
def test_the_sixth_controlled_observation_after_four_days_resolves_it(seen: MatchResult) -> None:
    """Five are too few, a day earlier is too early, and inquiries without a control query count for nothing."""
    match = Match(seen=seen)
    assert ruling(match, Control.FOUND, observations(5, seen), WINDOW, LATE_MS) is Event.DISPROVED
    assert ruling(match, Control.FOUND, observations(4, seen), WINDOW, LATE_MS) is Event.INQUIRED_ABOUT
    assert ruling(match, Control.FOUND, observations(9, seen), WINDOW, LATE_MS - 1) is Event.INQUIRED_ABOUT
    assert (
        ruling(match, Control.FOUND, observations(9, seen, Control.NOT_FOUND), WINDOW, LATE_MS) is Event.INQUIRED_ABOUT
    )
    assert ruling(match, Control.NOT_FOUND, observations(9, seen), WINDOW, LATE_MS) is Event.INQUIRED_ABOUT


def test_without_an_order_known_to_be_paid_it_is_for_an_operator_after_four_days() -> None:
    """A search that has never found anything may be one that finds nothing."""
    match = Match(seen=MatchResult.NOTHING)
    assert ruling(match, Control.NONE_KNOWN, observations(9), WINDOW, LATE_MS) is Event.UNCLEAR
    assert ruling(match, Control.NONE_KNOWN, observations(9), WINDOW, LATE_MS - 1) is Event.INQUIRED_ABOUT


@pytest.mark.parametrize("seen", sorted(CONTRADICTORY))
def test_what_contradicts_itself_is_for_an_operator_at_once(seen: MatchResult) -> None:
    """Waiting makes it no clearer."""
    assert ruling(Match(seen=seen), None, [], WINDOW, BEGAN_MS) is Event.UNCLEAR


def test_a_failed_operation_that_shows_after_all_is_for_an_operator() -> None:
    """A client was told that it failed; what only resembles it is no reason to frighten them."""
    shown = {seen for seen in MatchResult if ruling_after_failure(Match(seen=seen), (), BEGAN_MS) is Event.REAPPEARED}
    assert shown == {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN, MatchResult.SEVERAL_FIT}
    assert {ruling_after_failure(Match(seen=seen), (), BEGAN_MS) for seen in set(MatchResult) - shown} == {
        Event.INQUIRED_ABOUT
    }


@pytest.mark.parametrize("now_seen", sorted(CONTESTED))
@pytest.mark.parametrize(
    ("state", "seen", "passed_ms", "event"),
    [
        (State.FAILED, MatchResult.MAY_BE_ANOTHERS, STILL_UNCLEAR_AFTER_MS, Event.REAPPEARED),
        (State.FAILED, MatchResult.MAY_BE_OF_A_FORM, STILL_UNCLEAR_AFTER_MS, Event.REAPPEARED),
        (State.FAILED, MatchResult.MAY_BE_ANOTHERS, STILL_UNCLEAR_AFTER_MS - 1, Event.INQUIRED_ABOUT),
        (State.FAILED, MatchResult.ONLY_OTHERS, STILL_UNCLEAR_AFTER_MS, Event.INQUIRED_ABOUT),
        (State.UNKNOWN, MatchResult.MAY_BE_ANOTHERS, STILL_UNCLEAR_AFTER_MS, Event.INQUIRED_ABOUT),
    ],
)
def test_a_failed_operation_that_may_be_anothers_for_long_is_for_an_operator(
    state: State, seen: MatchResult, passed_ms: int, event: Event, now_seen: MatchResult
) -> None:
    """Money was charged by one of two; while the other waits for an operator, nobody would hear of this one."""
    history = (entry(state, Event.INQUIRED_ABOUT, seen=seen.value),)
    assert ruling_after_failure(Match(seen=now_seen), history, BEGAN_MS + passed_ms) is event


@pytest.mark.parametrize(
    ("members", "event"),
    [
        ({"status": "CHARGEBACKED"}, Event.REAPPEARED),
        ({"status": "REFUNDED"}, Event.REAPPEARED),
        ({"status": "REFUNDED", "description": "Coffee"}, Event.INQUIRED_ABOUT),
    ],
)
def test_a_failed_charge_that_was_reversed_is_for_an_operator(members: dict[str, object], event: Event) -> None:
    """A payment that its bank takes back before the gateway shows it was made all the same; its shop was told no."""
    match = match_for_charge(CALL, OPERATION, WINDOW, [changed(**members)], frozenset(), has_competing=False)
    assert (match.seen, ruling_after_failure(match, (), BEGAN_MS)) == (MatchResult.ONE_RESEMBLES, event)
    two = [changed(**members), changed(**members, payment_id="321")]
    both = match_for_charge(CALL, OPERATION, WINDOW, two, frozenset(), has_competing=False)
    assert (both.seen, both.payment) == (MatchResult.ONE_RESEMBLES, None)


@pytest.mark.parametrize(("off_ms", "event"), [(0, Event.REAPPEARED), (RETRY_WITHIN_MS + 1, Event.INQUIRED_ABOUT)])
def test_a_failed_retry_that_was_reversed_is_for_an_operator(off_ms: int, event: Event) -> None:
    """An installment, too; a payment of another time is the gateway's own."""
    new = changed(at_ms=BEGAN_MS + off_ms, status="CHARGEBACKED")
    match = match_for_retry(Evidence(), WINDOW, [new], frozenset(), has_competing=False)
    assert (match.seen, ruling_after_failure(match, (), BEGAN_MS)) == (MatchResult.ONE_RESEMBLES, event)


@pytest.mark.parametrize("off_ms", [-RETRY_WITHIN_MS, 0, RETRY_WITHIN_MS])
def test_one_new_payment_within_ten_minutes_is_the_retry(off_ms: int) -> None:
    """The edges belong to it; those that were there before do not count."""
    new, old = changed(at_ms=BEGAN_MS + off_ms), changed(payment_id="1")
    match = match_for_retry(Evidence(payment_ids=("1",)), WINDOW, [old, new], frozenset(), has_competing=False)
    assert (match.seen, match.payment, RETRY_WITHIN_MS) == (MatchResult.ONE_FITS, new, 600_000)


@pytest.mark.parametrize(
    "members",
    [
        {"at_ms": BEGAN_MS - RETRY_WITHIN_MS - 1},
        {"at_ms": BEGAN_MS + RETRY_WITHIN_MS + 1},
        {"at_ms": None},
        {"status": "REFUNDED"},
    ],
)
def test_any_other_new_payment_of_the_subscription_is_for_an_operator(members: dict[str, object]) -> None:
    """The gateway retries by itself, once a day."""
    match = match_for_retry(Evidence(), WINDOW, [changed(**members)], frozenset(), has_competing=False)
    assert match.seen is MatchResult.ONE_RESEMBLES


def test_a_new_payment_of_another_order_proves_no_retry() -> None:
    """All payments of a plan are of one order: where they were, one look that says otherwise books none elsewhere."""
    before = [changed(payment_id="1"), changed(payment_id="2")]
    plan, other = with_plan(Evidence(), before), changed(order_id="B-1")
    assert plan == Evidence(payment_ids=("1", "2"), order_id=PAYMENT.order_id)
    match = match_for_retry(plan, WINDOW, [*before, other], frozenset(), has_competing=False)
    assert (match.seen, match.payment) == (MatchResult.ONE_RESEMBLES, None)
    for vague in ([], [*before, changed(payment_id="3", order_id="C-1")]):
        match = match_for_retry(with_plan(Evidence(), vague), WINDOW, [other], frozenset(), has_competing=False)
        assert (match.seen, match.payment) == (MatchResult.ONE_FITS, other)


def test_a_new_payment_that_another_retry_may_have_made_is_no_proof() -> None:
    """The gateway's answer to a retry names no payment, and what an earlier one made may show late."""
    match = match_for_retry(Evidence(), WINDOW, [PAYMENT], frozenset(), has_competing=True)
    assert match.seen is MatchResult.MAY_BE_ANOTHERS


def test_several_new_payments_of_the_subscription_are_for_an_operator() -> None:
    """And none at all is no retry, whether there were others before or not."""
    nobody: frozenset[str] = frozenset()
    two = [PAYMENT, changed(payment_id="1")]
    assert match_for_retry(Evidence(), WINDOW, two, nobody, has_competing=False).seen is MatchResult.SEVERAL_FIT
    assert (
        match_for_retry(Evidence(payment_ids=("320",)), WINDOW, [PAYMENT], nobody, has_competing=False).seen
        is MatchResult.ONLY_OTHERS
    )
    assert (
        match_for_retry(Evidence(), WINDOW, [PAYMENT], frozenset({"320"}), has_competing=False).seen
        is MatchResult.ONLY_OTHERS
    )
    assert match_for_retry(Evidence(), WINDOW, [], nobody, has_competing=False).seen is MatchResult.NOTHING


@pytest.mark.parametrize("status", sorted(REFUND_STATUSES))
def test_a_refund_shows_in_the_payment_where_it_can_only_be_ours(status: str) -> None:
    """Not where the payment wasn't seen received before, or another refund of it is known."""
    payments = [changed(payment_id="1"), changed(status=status)]
    match = match_for_refund("320", payments, is_refund_ours=True)
    assert (match.seen, match.payment) == (MatchResult.REFUND_SHOWN, payments[1])
    assert match_for_refund("320", payments, is_refund_ours=False).seen is MatchResult.OTHERWISE


def test_a_payment_that_is_still_received_is_evidence_against_the_refund() -> None:
    """Anything else than that, a refund, or an absent record is for an operator to read."""
    assert match_for_refund("320", [PAYMENT], is_refund_ours=True).seen is MatchResult.STILL_RECEIVED
    assert match_for_refund("321", [PAYMENT], is_refund_ours=True).seen is MatchResult.NOTHING
    charged_back = [changed(status="CHARGEBACKED")]
    assert match_for_refund("320", charged_back, is_refund_ours=True).seen is MatchResult.OTHERWISE


def test_a_capture_is_confirmed_by_the_one_payment_of_its_amount() -> None:
    """Of the order's payments that belong to nobody else."""
    match = match_for_capture(100_000, [PAYMENT, changed(payment_id="1")], frozenset({"1"}), has_competing=False)
    assert (match.seen, match.payment) == (MatchResult.ONE_FITS, PAYMENT)


@pytest.mark.parametrize("members", [{"amount_minor": 99_999}, {"amount_minor": None}, {"status": "REFUNDED"}])
def test_a_capture_of_another_amount_is_for_an_operator(members: dict[str, object]) -> None:
    """So is one that shows nothing, nothing of its own, or two; each is called what it is."""
    assert (
        match_for_capture(100_000, [changed(**members)], frozenset(), has_competing=False).seen is MatchResult.OTHERWISE
    )
    assert match_for_capture(100_000, [], frozenset(), has_competing=False).seen is MatchResult.NOTHING
    assert (
        match_for_capture(100_000, [changed(payment_id="1")], frozenset({"1"}), has_competing=False).seen
        is MatchResult.ONLY_OTHERS
    )
    assert (
        match_for_capture(100_000, [PAYMENT, changed(payment_id="1")], frozenset(), has_competing=False).seen
        is MatchResult.SEVERAL_FIT
    )


def test_a_payment_that_another_operation_may_own_confirms_no_capture() -> None:
    """A charge on the order whose answer was lost may have made it, and the capture's own may show later."""
    assert match_for_capture(100_000, [PAYMENT], frozenset(), has_competing=True).seen is MatchResult.MAY_BE_ANOTHERS


@pytest.mark.parametrize("others", [frozenset(), frozenset({"320"})])
@pytest.mark.parametrize(
    "payments",
    [
        [],
        [PAYMENT],
        [PAYMENT, changed(payment_id="321")],
        [changed(payment_id="321")],
        [changed(description="Milk")],
        [changed(status="REFUNDED")],
        [changed(status="CHARGEBACKED")],
    ],
)
def test_a_match_names_every_payment_that_was_compared(payments: list[Payment], others: frozenset[str]) -> None:
    """Whatever it judged of them: the history is what an operator decides by, and what an audit reads."""
    matches = [
        charge_match(*payments, others=others),
        match_for_retry(Evidence(), WINDOW, payments, others, has_competing=False),
        match_for_refund("320", payments, is_refund_ours=True),
        match_for_capture(100_000, payments, others, has_competing=False),
    ]
    assert {match.payments_compared for match in matches} == {tuple(payment.payment_id for payment in payments)}


def test_a_search_that_never_works_is_for_an_operator_after_a_week() -> None:
    """Nobody waits for ever; one that works by then resolves it as always."""
    match, week_ms = Match(seen=MatchResult.NOTHING), BEGAN_MS + GIVEN_UP_AFTER_MS
    assert ruling(match, Control.NOT_FOUND, observations(9), WINDOW, week_ms) is Event.UNCLEAR
    assert ruling(match, Control.NOT_FOUND, observations(9), WINDOW, week_ms - 1) is Event.INQUIRED_ABOUT
    assert ruling(match, Control.FOUND, observations(9), WINDOW, week_ms) is Event.DISPROVED


@pytest.mark.parametrize("status", [PaymentStatus.AUTHORIZED, PaymentStatus.RECEIVED])
def test_an_authorization_that_shows_itself_is_for_an_operator(status: PaymentStatus) -> None:
    """A search doesn't give the token by which it is captured or let go of."""
    authorization = msgspec.structs.replace(CALL, authorize=True)
    match = match_for_charge(
        authorization, OPERATION, WINDOW, [changed(status=status)], frozenset(), has_competing=False
    )

    assert match.seen is MatchResult.ONE_RESEMBLES
    assert ruling(match, None, [], WINDOW, LATE_MS) is Event.UNCLEAR
