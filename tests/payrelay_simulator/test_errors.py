from payrelay_simulator import ControlError, SimulatorError
from payrelay_simulator.errors import RefusalError
from payrelay_simulator.reply import failure


def test_control_error_names_the_field() -> None:
    """Whoever gave the order can find the place."""
    error = ControlError("script[0].fault", "is unknown")

    assert str(error) == "script[0].fault: is unknown"


def test_refusal_carries_its_reply() -> None:
    """The answer is decided where the mistake is found; one root catches both kinds."""
    refusal = RefusalError(failure("no"))

    assert refusal.reply == failure("no")
    assert isinstance(refusal, SimulatorError)
