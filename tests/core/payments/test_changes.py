from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples import PAYMENT

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Change, Report, state_implied_by, what_follows
from payrelay.core.payments.operation import (
    FROZEN,
    INQUIRED,
    OPEN_STATES,
    TRANSITIONS,
    Event,
    JournalEntry,
    Kind,
    Operation,
    Retention,
    State,
    advance,
    captured_guard,
)
from payrelay.core.payments.proof import MatchResult
from payrelay.core.secret import secret_hash
from payrelay.errors import IllegalTransition

MakeOperation = Callable[..., Operation]

RETENTION = Retention(keyed_ms=30 * 86_400_000, unkeyed_ms=86_400_000)
ANSWER = Answer(http_status=200, body=b"{}")
SHOWING = [Event.SUCCEEDED, Event.DIFFERED, Event.PROVED]
TO_NOTHING = [Event.NOT_SENT, Event.NOT_EXECUTED, Event.REFUSED, Event.DECLINED]

reports = st.builds(
    Report,
    event=st.sampled_from(Event),
    evidence=st.sampled_from([Evidence(), Evidence(seen=MatchResult.ALREADY_DONE)]),
    answer=st.just(ANSWER),
    facts=st.builds(
        Facts,
        order_id=st.sampled_from([None, "told"]),
        payment_id=st.sampled_from([None, "320"]),
        currency=st.sampled_from([None, "USD"]),
        authorization_token=st.sampled_from([None, "token"]),
    ),
    send_by_ms=st.sampled_from([None, 77]),
    inquire_at_ms=st.sampled_from([None, 99, msgspec.UNSET]),
)


def follow(operation: Operation, report: Report, *meanwhile: JournalEntry) -> Change:
    """Decides at a moment of its own."""
    return what_follows(operation, report, at_ms=5_000, retention=RETENTION, meanwhile=meanwhile)


def entry_of(event: Event) -> JournalEntry:
    """Gives a journal entry of another writer."""
    return JournalEntry(version=2, at_ms=3_000, event=event, state=State.UNKNOWN, evidence=Evidence())


def standing(make_operation: MakeOperation, state: State, kind: Kind = Kind.CHARGE, **members: object) -> Operation:
    """Gives an operation as the store has it in a state: a final one holds no guard, and its claim has an end."""
    is_open = state in OPEN_STATES
    usual = {"guard": "order/A-1" if is_open else None, "claim_ends_at_ms": None if is_open else 9_000}
    return make_operation(**({"state": state, "kind": kind, "version": 4} | usual | members))


@given(
    report=reports,
    state=st.sampled_from(State),
    kind=st.sampled_from(Kind),
    is_known=st.booleans(),
    meanwhile=st.sampled_from([(), (entry_of(Event.INQUIRED_ABOUT),), (entry_of(Event.RESENT_TO_RESOLVE),)]),
)
def test_the_law_of_every_change(
    make_operation: MakeOperation,
    report: Report,
    state: State,
    kind: Kind,
    *,
    is_known: bool,
    meanwhile: tuple[JournalEntry, ...],
) -> None:
    """For every state and event: guard, claim, answer, next inquiry, version and what is known, or an error."""
    known = {"payment_id": "asked", "result_ref": "known"} if is_known else {}
    before = standing(make_operation, state, kind, inquire_at_ms=42, **known)
    try:
        change = follow(before, report, *meanwhile)
    except IllegalTransition:
        return
    after, entry = change.operation, change.entry
    assert TRANSITIONS[state, entry.event or Event.UNKNOWN] is after.state
    assert (after.version, entry.version, entry.state) == (5, 5, after.state)
    assert change.meanwhile == tuple(meanwhile)
    assert change.answer == (ANSWER if after.state in FROZEN else None)
    is_captured = kind is Kind.CAPTURE and after.state is State.SUCCEEDED
    assert after.guard == (
        "order/A-1" if after.state in OPEN_STATES else captured_guard("order/A-1") if is_captured else None
    )
    if after.state in OPEN_STATES:
        assert (after.claim, after.claim_ends_at_ms) == (before.claim, None)
    if after.state is before.state:
        assert (after.claim, after.claim_ends_at_ms) == (before.claim, before.claim_ends_at_ms)
    assert after.state not in INQUIRED or after.inquire_at_ms is not None
    assert (
        after.inquire_at_ms == report.inquire_at_ms or after.state in INQUIRED or report.inquire_at_ms is msgspec.UNSET
    )
    assert after.send_by_ms == (report.send_by_ms or before.send_by_ms)


@pytest.mark.parametrize("event", [Event.PROVED, Event.DECIDED_SUCCEEDED])
def test_a_report_fills_in_and_an_operator_may_say_otherwise(make_operation: MakeOperation, event: Event) -> None:
    """A reply that names another order must not change what was asked; who decides has the statement in hand."""
    before = standing(make_operation, State.UNKNOWN, payment_id="1", currency=None)
    report = Report(event=event, answer=ANSWER, facts=Facts(payment_id="2", currency="LKR"))
    after = follow(before, report).operation
    is_decided = event is Event.DECIDED_SUCCEEDED
    assert (after.payment_id, after.currency, after.order_id) == ("2" if is_decided else "1", "LKR", "A-1")


@pytest.mark.parametrize("event", [Event.NOT_SENT, Event.LOST])
def test_what_was_never_sent_while_it_waited_was_given_up(make_operation: MakeOperation, event: Event) -> None:
    """Nothing leaves from ``accepted``: a sender that withdraws and a process that died mean the same by it."""
    change = follow(standing(make_operation, State.ACCEPTED), Report(event=event))
    assert (change.entry.event, change.operation.state) == (Event.GAVE_UP, State.NOT_SENT)


@pytest.mark.parametrize(
    "report",
    [
        *(Report(event=event, is_retried=True) for event in SHOWING),
        Report(event=Event.PROVED),
        Report(event=Event.INQUIRED_ABOUT, evidence=Evidence(seen=MatchResult.ALREADY_DONE)),
    ],
)
def test_evidence_of_an_effect_reopens_a_failed_operation(make_operation: MakeOperation, report: Report) -> None:
    """The source makes no difference: the guard comes back, and an operator has seen what is there."""
    change = follow(standing(make_operation, State.FAILED), report)
    assert (change.entry.event, change.operation.state) == (Event.REAPPEARED, State.NEEDS_ATTENTION)
    assert change.operation.guard == "order/A-1"


@pytest.mark.parametrize("event", [Event.SUCCEEDED, Event.DIFFERED])
def test_a_late_reply_to_the_only_sending_keeps_its_own_event(make_operation: MakeOperation, event: Event) -> None:
    """Nothing showed at the gateway: the gateway answered, and an operator who decides must read what it said."""
    change = follow(standing(make_operation, State.FAILED), Report(event=event, is_firsthand=True))
    assert (change.entry.event, change.operation.state) == (event, State.NEEDS_ATTENTION)
    assert change.operation.guard == "order/A-1"


def test_an_inquiry_that_resolves_nothing_prolongs_no_key_and_may_be_the_last(make_operation: MakeOperation) -> None:
    """A key is kept for a time from the failure on; and the search for what failed has an end."""
    after = follow(
        standing(make_operation, State.FAILED), Report(event=Event.INQUIRED_ABOUT, inquire_at_ms=None)
    ).operation
    assert (after.state, after.claim_ends_at_ms, after.inquire_at_ms) == (State.FAILED, 9_000, None)


@pytest.mark.parametrize("state", [State.UNKNOWN, State.NEEDS_ATTENTION])
def test_an_unknown_outcome_is_stored_once(make_operation: MakeOperation, state: State) -> None:
    """It would hide what resolution has begun since."""
    with pytest.raises(IllegalTransition, match="known already"):
        follow(standing(make_operation, state), Report(event=Event.UNKNOWN))


@pytest.mark.parametrize("event", TO_NOTHING)
def test_a_sending_without_an_effect_loses_against_a_later_one(make_operation: MakeOperation, event: Event) -> None:
    """The later one may have taken effect; an inquiry in between says nothing about that."""
    before, report = standing(make_operation, State.UNKNOWN), Report(event=event, answer=ANSWER)
    assert follow(before, report, entry_of(Event.INQUIRED_ABOUT)).entry.event is event
    with pytest.raises(IllegalTransition, match="sent once more"):
        follow(before, report, entry_of(Event.RESENT_TO_RESOLVE))


@pytest.mark.parametrize("event", [Event.SUCCEEDED, Event.DISPROVED])
def test_a_state_that_freezes_an_answer_needs_one(make_operation: MakeOperation, event: Event) -> None:
    """Without an answer, a repeat of a final operation would wait for ever."""
    with pytest.raises(ValueError, match="needs an answer"):
        follow(standing(make_operation, State.UNKNOWN), Report(event=event))


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_where_nothing_is_reported_beside_the_table_is_all(
    make_operation: MakeOperation, state: State, event: Event
) -> None:
    """What is decided beyond the table is what the rules at the head of the module name, and nothing else."""
    before = standing(make_operation, state)
    is_heard_otherwise = (state is State.ACCEPTED and event in {Event.NOT_SENT, Event.LOST}) or (
        state is State.FAILED and event in SHOWING
    )
    is_silenced = event is Event.UNKNOWN and state is not State.SENDING
    if is_heard_otherwise or is_silenced or (state, event) not in TRANSITIONS:
        return
    changed, entry = advance(before, event, at_ms=5_000, retention=RETENTION, evidence=Evidence())
    change = follow(before, Report(event=event, answer=ANSWER))
    is_reopened = state is State.FAILED and changed.state is State.NEEDS_ATTENTION
    assert change.entry == entry
    assert change.operation == (msgspec.structs.replace(changed, guard="order/A-1") if is_reopened else changed)


@pytest.mark.parametrize(
    ("event", "seen", "state"),
    [
        (Event.SUCCEEDED, None, State.SUCCEEDED),
        (Event.PROVED, MatchResult.ALREADY_DONE, State.SUCCEEDED),
        (Event.INQUIRED_ABOUT, MatchResult.ALREADY_DONE, State.SUCCEEDED),
        (Event.DIFFERED, None, State.NEEDS_ATTENTION),
        (Event.NOT_EXECUTED, None, State.NOT_SENT),
        (Event.GRANTED, None, None),
    ],
)
def test_the_state_that_a_report_implies(event: Event, seen: MatchResult | None, state: State) -> None:
    """It is compared with the present state: an operator must look only where the two differ."""
    assert state_implied_by(Report(event=event, evidence=Evidence(seen=seen))) is state


def test_records_and_replies_fill_in_alike(make_operation: MakeOperation) -> None:
    """One reading of both: an authorization token, which only a reply has, is kept as its hash."""
    bare = standing(make_operation, State.UNKNOWN, order_id=None, currency=None)
    shown = follow(bare, Report(event=Event.PROVED, answer=ANSWER, facts=PAYMENT)).operation
    assert (shown.order_id, shown.payment_id, shown.currency) == ("A-1", "320025000001", "LKR")
    changed = follow(bare, Report(event=Event.SUCCEEDED, answer=ANSWER, facts=Facts(authorization_token="t"))).operation
    assert (changed.result_ref, changed.payment_id) == (secret_hash("t"), None)
