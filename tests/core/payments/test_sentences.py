import pytest

from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.sentences import EVENT_SENTENCES, FIRST_ENTRY, STATE_SENTENCES

SENTENCES = [*STATE_SENTENCES.values(), *EVENT_SENTENCES.values(), FIRST_ENTRY]


def test_every_state_and_every_event_has_a_sentence() -> None:
    """What can happen to an operation can be told to a customer."""
    assert set(STATE_SENTENCES) == set(State)
    assert set(EVENT_SENTENCES) == set(Event)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_begins_large_and_ends_with_a_period(sentence: str) -> None:
    """They are shown as they are."""
    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_no_two_states_and_no_two_events_read_the_same() -> None:
    """Two things that differ must be told apart by the operator who only reads."""
    assert len(set(STATE_SENTENCES.values())) == len(State)
    assert len(set(EVENT_SENTENCES.values())) == len(Event)
