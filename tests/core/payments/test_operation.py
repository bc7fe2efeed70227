import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import (
    EVENT_OF_OUTCOME,
    FINAL,
    FIRST_INQUIRY_MS,
    FROZEN,
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
    is_step,
)
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import IllegalTransition

MakeOperation = Callable[..., Operation]

RETENTION = Retention(keyed_ms=30 * 86_400_000, unkeyed_ms=86_400_000)
ALL_PAIRS = [(state, event) for state in State for event in Event]
NEWS = frozenset(EVENT_OF_OUTCOME.values())

choices = st.lists(st.integers(0, len(Event)), max_size=8)
"""Which of the events that are possible comes next, by number."""


def move(operation: Operation, event: Event, *, at_ms: int = 2_000) -> tuple[Operation, JournalEntry]:
    """Advances with nothing special about it."""
    return advance(operation, event, at_ms=at_ms, retention=RETENTION, evidence=Evidence())


def walk(operation: Operation, events: Sequence[int]) -> list[Operation]:
    """Advances by chosen events until nothing more can happen, and gives every operation on the way."""
    steps = [operation]
    for choice in events:
        possible = [event for event in Event if (steps[-1].state, event) in TRANSITIONS]
        if not possible:
            break
        steps.append(move(steps[-1], possible[choice % len(possible)])[0])
    return steps


@pytest.mark.parametrize(("state", "event"), ALL_PAIRS)
def test_every_pair_is_a_step_or_an_error_that_names_both(
    make_operation: MakeOperation, state: State, event: Event
) -> None:
    """Nothing falls through: an error names the state and the event that the table lacks."""
    operation = make_operation(state=state)
    if (state, event) in TRANSITIONS:
        assert move(operation, event)[0].state is TRANSITIONS[state, event]
        return
    with pytest.raises(IllegalTransition, match=rf"\b{state}\b.*\b{event}\b"):
        move(operation, event)


@pytest.mark.parametrize("state", sorted(FINAL - {State.FAILED}))
def test_no_reply_changes_a_final_state(state: State) -> None:
    """An answer that was given stays true."""
    assert not [event for event in NEWS if (state, event) in TRANSITIONS]


def test_a_failed_operation_that_shows_after_all_is_for_an_operator() -> None:
    """A client was told that no money moved; that it did is never resolved by itself."""
    ways_out = {after for (state, _), after in TRANSITIONS.items() if state is State.FAILED}
    assert ways_out == {State.FAILED, State.NEEDS_ATTENTION}


def test_states_are_either_final_or_unresolved() -> None:
    """A state that were neither would hold its guard, or lose it, by accident."""
    assert frozenset(State) == OPEN_STATES | FINAL
    assert not OPEN_STATES & FINAL
    assert State.NOT_SENT in FINAL - FROZEN


@pytest.mark.parametrize("state", [State.SENDING, State.UNKNOWN])
def test_every_reply_has_a_step_while_one_can_come(state: State) -> None:
    """Whatever the adapter returns can be stored, also after the row was given up for lost."""
    assert all((state, event) in TRANSITIONS for event in NEWS)


def test_every_verdict_is_an_event() -> None:
    """The adapter's word for what happened is the table's."""
    assert set(EVENT_OF_OUTCOME) == set(OutcomeKind)


def test_nothing_is_sent_from_a_row_that_was_not_granted() -> None:
    """``sending`` is reached from ``accepted`` by a grant alone: a crash before it is surely not sent.

    From ``held`` it is reached by an operator's decision alone.
    """
    ways_in = {pair for pair, state in TRANSITIONS.items() if state is State.SENDING}
    assert ways_in == {
        (State.ACCEPTED, Event.GRANTED),
        (State.SENDING, Event.RESENT),
        (State.HELD, Event.DECIDED_SEND),
    }


def test_time_alone_never_says_that_something_failed() -> None:
    """A lost sender leaves ``unknown``; only ``accepted`` may be given up, because nothing left from there."""
    assert TRANSITIONS[State.SENDING, Event.LOST] is State.UNKNOWN
    assert [state for state, event in TRANSITIONS if event is Event.GAVE_UP] == [State.ACCEPTED]


@given(events=choices, kind=st.sampled_from(Kind))
def test_the_guard_is_held_exactly_while_unresolved_or_captured(
    make_operation: MakeOperation, events: list[int], kind: Kind
) -> None:
    """Freed too early, a second charge goes out; held too long, the order is stuck for good.

    Once it failed others may have taken the guard, and one that is reopened for an operator doesn't take it back.
    """
    names = {"subject": "authorization/f00", "guard": "authorization/f00", "amount_minor": None}
    start = make_operation(state=State.ACCEPTED, kind=kind, **names)
    has_failed = False
    for operation in walk(start, events):
        is_captured = kind in {Kind.CAPTURE, Kind.VOID} and operation.state is State.SUCCEEDED
        held = captured_guard("authorization/f00") if is_captured else None
        is_held = operation.state in OPEN_STATES and not has_failed
        assert operation.guard == ("authorization/f00" if is_held else held)
        has_failed = has_failed or operation.state is State.FAILED


@pytest.mark.parametrize("amount_minor", [None, 1_000], ids=["whole", "part"])
@pytest.mark.parametrize("kind", Kind)
def test_an_authorization_that_is_used_up_stays_locked_for_good(
    make_operation: MakeOperation, kind: Kind, amount_minor: int | None
) -> None:
    """It is captured once, or voided as a whole; every other operation frees its lock with its success."""
    final, _ = move(make_operation(kind=kind, amount_minor=amount_minor), Event.SUCCEEDED)
    is_used_up = kind is Kind.CAPTURE or (kind is Kind.VOID and amount_minor is None)
    assert final.guard == (captured_guard("order/A-1") if is_used_up else None)


@given(events=choices)
def test_versions_count_every_step(make_operation: MakeOperation, events: list[int]) -> None:
    """A writer names the version that it read, so that two of them can't both win."""
    steps = walk(make_operation(state=State.ACCEPTED), events)
    assert [operation.version for operation in steps] == list(range(1, len(steps) + 1))


@given(events=choices)
def test_a_step_changes_nothing_of_the_request(make_operation: MakeOperation, events: list[int]) -> None:
    """What the client asked for can be read from the row whatever became of it."""
    start = make_operation(state=State.ACCEPTED)
    asked = ("id", "principal", "kind", "subject", "idempotency_key", "fingerprint", "order_id", "amount_minor")
    for operation in walk(start, events):
        assert [getattr(operation, name) for name in asked] == [getattr(start, name) for name in asked]


@given(events=choices, has_key=st.booleans())
def test_an_unresolved_operation_keeps_its_claim_without_end(
    make_operation: MakeOperation, events: list[int], *, has_key: bool
) -> None:
    """However long it takes to find out, a repeat finds it and is not sent a second time."""
    start = make_operation(state=State.ACCEPTED, idempotency_key="k-1" if has_key else None)
    for operation in walk(start, events):
        if operation.state is State.FAILED:
            break  # told, and without a key given back; it may be reopened for an operator all the same
        if operation.state in OPEN_STATES:
            assert (operation.claim, operation.claim_ends_at_ms) == (start.claim, None)


@pytest.mark.parametrize("event", [Event.SUCCEEDED, Event.DECLINED, Event.REFUSED])
def test_with_a_key_every_frozen_answer_is_kept_for_its_time(make_operation: MakeOperation, event: Event) -> None:
    """The key names one attempt: its decline is as final as its success. The time runs from the final state."""
    final, _ = move(make_operation(), event, at_ms=5_000)
    assert (final.claim, final.claim_ends_at_ms) == ("key/k-1", 5_000 + RETENTION.keyed_ms)


def test_without_a_key_a_success_is_kept_for_the_repeat_window(make_operation: MakeOperation) -> None:
    """An app that repeats its request is not charged again."""
    unkeyed = make_operation(idempotency_key=None, claim="fingerprint/f")
    final, _ = move(unkeyed, Event.SUCCEEDED, at_ms=5_000)
    assert (final.claim, final.claim_ends_at_ms) == ("fingerprint/f", 5_000 + RETENTION.unkeyed_ms)


@pytest.mark.parametrize("event", [Event.DECLINED, Event.REFUSED, Event.NOT_SENT, Event.NOT_EXECUTED])
def test_without_a_key_what_took_no_effect_may_be_tried_anew(make_operation: MakeOperation, event: Event) -> None:
    """A customer who was declined tops up the card and presses the button again."""
    final, _ = move(make_operation(idempotency_key=None), event)
    assert (final.claim, final.claim_ends_at_ms) == (None, None)


@pytest.mark.parametrize("event", [Event.NOT_SENT, Event.NOT_EXECUTED])
def test_what_was_not_sent_gives_the_key_back(make_operation: MakeOperation, event: Event) -> None:
    """``retry: after`` would be a lie if the same key only ever got the same refusal."""
    assert move(make_operation(), event)[0].claim is None


def test_no_claim_has_no_end(make_operation: MakeOperation) -> None:
    """With the repeat window off there is nothing to release later."""
    final, _ = move(make_operation(idempotency_key=None, claim=None), Event.SUCCEEDED)
    assert (final.claim, final.claim_ends_at_ms) == (None, None)


def test_the_entry_is_of_the_step_that_it_belongs_to(make_operation: MakeOperation) -> None:
    """History and row are written together and must agree."""
    evidence = Evidence(cause="timeout")
    final, entry = advance(make_operation(version=3), Event.UNKNOWN, at_ms=9, retention=RETENTION, evidence=evidence)
    assert entry == JournalEntry(version=4, at_ms=9, event=Event.UNKNOWN, state=State.UNKNOWN, evidence=evidence)
    assert (final.version, final.updated_at_ms) == (4, 9)


@pytest.mark.parametrize("state", State)
def test_resolved_means_final(make_operation: MakeOperation, state: State) -> None:
    """The word that clients read is the set that the code uses."""
    assert make_operation(state=state).is_final is (state in FINAL)


@pytest.mark.parametrize(
    ("event", "inquire_at_ms"),
    [
        (Event.UNKNOWN, 2_000 + FIRST_INQUIRY_MS),
        (Event.PENDING, 2_000 + FIRST_INQUIRY_MS),
        (Event.SUCCEEDED, None),
        (Event.DIFFERED, None),
    ],
)
def test_what_is_open_is_asked_for_a_second_later(
    make_operation: MakeOperation, event: Event, inquire_at_ms: int | None
) -> None:
    """Somebody waits for it; what is final, or an operator's, is not asked for any more."""
    assert move(make_operation(inquire_at_ms=1), event)[0].inquire_at_ms == inquire_at_ms


def test_an_inquiry_that_is_named_is_kept(make_operation: MakeOperation) -> None:
    """The schedule knows better when the next inquiry is due."""
    unknown = make_operation(state=State.UNKNOWN)
    probed, _ = advance(
        unknown, Event.INQUIRED_ABOUT, at_ms=2_000, retention=RETENTION, evidence=Evidence(), inquire_at_ms=32_000
    )
    assert probed.inquire_at_ms == 32_000


@pytest.mark.parametrize("amount_minor", [None, 100_000])
@pytest.mark.parametrize("kind", Kind)
def test_what_failed_is_searched_for_the_next_day_where_it_could_show_itself(
    make_operation: MakeOperation, kind: Kind, amount_minor: int | None
) -> None:
    """A client was told that it failed; nothing at the gateway would show a refund of a part, or a capture."""
    can_show = kind in {Kind.CHARGE, Kind.RETRY} or (kind is Kind.REFUND and amount_minor is None)
    unknown = make_operation(state=State.UNKNOWN, kind=kind, amount_minor=amount_minor)
    assert move(unknown, Event.DISPROVED)[0].inquire_at_ms == (2_000 + DAY_MS if can_show else None)


def test_a_stored_step_is_one_of_the_table() -> None:
    """The audit asks it of stored words: what the table lacks was stored by something that believed a forged row."""
    known = {(before.value, event.value, after.value) for (before, event), after in TRANSITIONS.items()}
    words = itertools.product(map(str, State), map(str, Event), map(str, State))

    assert {step for step in words if is_step(*step)} == known
    assert [state for state in State if is_step(None, None, state.value)] == [State.ACCEPTED, State.SENDING, State.HELD]
    assert not is_step(None, Event.GRANTED.value, State.SENDING.value)
    assert not is_step(State.SUCCEEDED.value, Event.GAVE_UP.value, State.NOT_SENT.value)
    assert not is_step("forged", None, "forged")
