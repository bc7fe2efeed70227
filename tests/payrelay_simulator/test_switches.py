import msgspec
import pytest

from payrelay_simulator import Switches


def test_every_switch_has_a_default() -> None:
    """Nobody has to decide anything to start."""
    assert Switches().authorize == "works"
    assert Switches().rate_limit_calls == 20


@pytest.mark.parametrize("wrong", [{"authorize": "maybe"}, {"authorise": "works"}, {"rate_limit_calls": -1}])
def test_wrong_switches_are_refused_when_they_are_read(wrong: dict[str, object]) -> None:
    """A mistyped switch would otherwise leave a test proving nothing."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Switches)


def test_switches_cannot_be_changed_in_place() -> None:
    """A world's behaviour changes only by being given other switches."""
    with pytest.raises(AttributeError):
        setattr(Switches(), "authorize", "refused")  # noqa: B010 - a plain assignment would not pass the type check
