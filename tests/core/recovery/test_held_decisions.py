from payrelay.core.operators.held_decisions import MEANINGS_OF_DECISIONS, HeldDecision


def test_each_decision_says_what_it_does() -> None:
    """An operator decides for good, and for many at once."""
    assert MEANINGS_OF_DECISIONS.keys() == set(HeldDecision)
