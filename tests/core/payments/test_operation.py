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


def walk(operation: Operation, story: Sequence[int]) -> list[Operation]:
    """Advances by chosen events until nothing more can happen, and gives every operation on the way."""
    steps = [operation]
    for choice in story:
        possible = [event for event in Event if (steps[-1].state, event) in TRANSITIONS]
        if not possible:
            break
        steps.append(move(steps[-1], possible[choice % len(possible)])[0])
    return steps


@pytest.mark.parametrize(("state", "event"), ALL_PAIRS)
def test_every_pair_is_a_step_or_an_error_that_names_both(
    make_operation: MakeOperation, state: State, event: Event
) -> None:
    """Nothing falls through: what the table lacks is told with the state and the event that met."""
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


def test_what_failed_and_shows_itself_after_all_is_for_a_person() -> None:
    """Somebody was told that no money moved; that it did is never settled by itself."""
    ways_out = {after for (state, _), after in TRANSITIONS.items() if state is State.FAILED}
    assert ways_out == {State.FAILED, State.NEEDS_ATTENTION}


def test_states_are_either_final_or_unsettled() -> None:
    """A state that were neither would hold its guard, or lose it, by accident."""
    assert frozenset(State) == OPEN_STATES | FINAL
    assert not OPEN_STATES & FINAL
    assert State.NOT_SENT in FINAL - FROZEN


@pytest.mark.parametrize("state", [State.SENDING, State.UNKNOWN])
def test_every_reply_has_its_place_while_one_can_come(state: State) -> None:
    """Whatever the adapter returns can be stored, also after the row was given up for lost."""
    assert all((state, event) in TRANSITIONS for event in NEWS)


def test_every_verdict_is_an_event() -> None:
    """The adapter's word for what happened is the table's."""
    assert set(EVENT_OF_OUTCOME) == set(OutcomeKind)


def test_nothing_is_sent_from_a_row_that_was_not_granted() -> None:
    """``sending`` is reached from ``accepted`` by a grant alone: a crash before it is surely not sent."""
    ways_in = {pair for pair, state in TRANSITIONS.items() if state is State.SENDING}
    assert ways_in == {(State.ACCEPTED, Event.GRANTED), (State.SENDING, Event.RETRIED)}


def test_time_alone_never_says_that_something_failed() -> None:
    """A lost sender leaves ``unknown``; only ``accepted`` may be given up, because nothing left from there."""
    assert TRANSITIONS[State.SENDING, Event.LOST] is State.UNKNOWN
    assert [state for state, event in TRANSITIONS if event is Event.GAVE_UP] == [State.ACCEPTED]


@given(story=choices, kind=st.sampled_from(Kind))
def test_the_guard_is_held_exactly_while_unsettled_or_captured(
    make_operation: MakeOperation, story: list[int], kind: Kind
) -> None:
    """Let go too early, a second charge goes out; held too long, the order is stuck for good.

    Once it failed others may have taken the guard, and one that is reopened for a person doesn't take it back.
    """
    start = make_operation(state=State.ACCEPTED, kind=kind, subject="authorization/f00", guard="authorization/f00")
    has_failed = False
    for operation in walk(start, story):
        is_captured = kind is Kind.CAPTURE and operation.state is State.SUCCEEDED
        held = captured_guard("authorization/f00") if is_captured else None
        is_held = operation.state in OPEN_STATES and not has_failed
        assert operation.guard == ("authorization/f00" if is_held else held)
        has_failed = has_failed or operation.state is State.FAILED


@pytest.mark.parametrize("kind", Kind)
def test_a_captured_hold_stays_locked_for_good(make_operation: MakeOperation, kind: Kind) -> None:
    """A hold is captured once; everything else lets go of its lock with its success."""
    settled, _ = move(make_operation(kind=kind), Event.SUCCEEDED)
    assert settled.guard == (captured_guard("order/A-1") if kind is Kind.CAPTURE else None)


@given(story=choices)
def test_versions_count_every_step(make_operation: MakeOperation, story: list[int]) -> None:
    """A writer names the version that it read, so that two of them can't both win."""
    steps = walk(make_operation(state=State.ACCEPTED), story)
    assert [operation.version for operation in steps] == list(range(1, len(steps) + 1))


@given(story=choices)
def test_a_step_changes_nothing_that_was_asked(make_operation: MakeOperation, story: list[int]) -> None:
    """What the client asked for can be read from the row whatever became of it."""
    start = make_operation(state=State.ACCEPTED)
    asked = ("id", "principal", "kind", "subject", "idempotency_key", "fingerprint", "order_id", "amount_minor")
    for operation in walk(start, story):
        assert [getattr(operation, name) for name in asked] == [getattr(start, name) for name in asked]


@given(story=choices, has_key=st.booleans())
def test_an_unsettled_operation_keeps_its_claim_without_end(
    make_operation: MakeOperation, story: list[int], *, has_key: bool
) -> None:
    """However long it takes to find out, a repeat finds it and is not sent a second time."""
    start = make_operation(state=State.ACCEPTED, idempotency_key="k-1" if has_key else None)
    for operation in walk(start, story):
        if operation.state is State.FAILED:
            break  # told, and without a key given back; it may be reopened for a person all the same
        if operation.state in OPEN_STATES:
            assert (operation.claim, operation.claim_ends_at_ms) == (start.claim, None)


@pytest.mark.parametrize("event", [Event.SUCCEEDED, Event.DECLINED, Event.REFUSED])
def test_with_a_key_every_frozen_answer_is_kept_for_its_time(make_operation: MakeOperation, event: Event) -> None:
    """The key names one attempt: its decline is as final as its success. The time runs from the final state."""
    settled, _ = move(make_operation(), event, at_ms=5_000)
    assert (settled.claim, settled.claim_ends_at_ms) == ("key/k-1", 5_000 + RETENTION.keyed_ms)


def test_without_a_key_a_success_is_kept_for_the_repeat_window(make_operation: MakeOperation) -> None:
    """A phone that repeats its request is not charged again."""
    unkeyed = make_operation(idempotency_key=None, claim="fingerprint/f")
    settled, _ = move(unkeyed, Event.SUCCEEDED, at_ms=5_000)
    assert (settled.claim, settled.claim_ends_at_ms) == ("fingerprint/f", 5_000 + RETENTION.unkeyed_ms)


@pytest.mark.parametrize("event", [Event.DECLINED, Event.REFUSED, Event.NOT_SENT, Event.NOT_EXECUTED])
def test_without_a_key_what_took_no_effect_may_be_tried_anew(make_operation: MakeOperation, event: Event) -> None:
    """A customer who was declined tops up the card and presses the button again."""
    settled, _ = move(make_operation(idempotency_key=None), event)
    assert (settled.claim, settled.claim_ends_at_ms) == (None, None)


@pytest.mark.parametrize("event", [Event.NOT_SENT, Event.NOT_EXECUTED])
def test_what_was_not_sent_gives_the_key_back(make_operation: MakeOperation, event: Event) -> None:
    """``retry: after`` would be a lie if the same key only ever got the same refusal."""
    assert move(make_operation(), event)[0].claim is None


def test_no_claim_has_no_end(make_operation: MakeOperation) -> None:
    """With the repeat window off there is nothing to release later."""
    settled, _ = move(make_operation(idempotency_key=None, claim=None), Event.SUCCEEDED)
    assert (settled.claim, settled.claim_ends_at_ms) == (None, None)


def test_the_line_tells_of_the_step_that_it_belongs_to(make_operation: MakeOperation) -> None:
    """History and row are written together and must agree."""
    evidence = Evidence(cause="timeout")
    settled, entry = advance(make_operation(version=3), Event.UNKNOWN, at_ms=9, retention=RETENTION, evidence=evidence)
    assert entry == JournalEntry(version=4, at_ms=9, event=Event.UNKNOWN, state=State.UNKNOWN, evidence=evidence)
    assert (settled.version, settled.updated_at_ms) == (4, 9)


@pytest.mark.parametrize("state", State)
def test_settled_means_final(make_operation: MakeOperation, state: State) -> None:
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
    """Somebody waits for it; what is settled, or a person's, is not asked for any more."""
    assert move(make_operation(inquire_at_ms=1), event)[0].inquire_at_ms == inquire_at_ms


def test_a_probe_that_is_named_is_kept(make_operation: MakeOperation) -> None:
    """The schedule knows better when the next look is due."""
    unknown = make_operation(state=State.UNKNOWN)
    probed, _ = advance(
        unknown, Event.INQUIRED_ABOUT, at_ms=2_000, retention=RETENTION, evidence=Evidence(), inquire_at_ms=32_000
    )
    assert probed.inquire_at_ms == 32_000


@pytest.mark.parametrize("amount_minor", [None, 100_000])
@pytest.mark.parametrize("kind", Kind)
def test_what_failed_is_looked_for_the_next_day_where_it_could_show_itself(
    make_operation: MakeOperation, kind: Kind, amount_minor: int | None
) -> None:
    """Somebody was told that it failed; nothing at the gateway would show a refund of a part, or a capture."""
    can_show = kind in {Kind.CHARGE, Kind.RETRY} or (kind is Kind.REFUND and amount_minor is None)
    unknown = make_operation(state=State.UNKNOWN, kind=kind, amount_minor=amount_minor)
    assert move(unknown, Event.DISPROVED)[0].inquire_at_ms == (2_000 + DAY_MS if can_show else None)
