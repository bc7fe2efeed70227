"""What stops the simulator from going on, one class per thing that its caller can do about it."""

from payrelay_simulator.reply import Reply


class SimulatorError(Exception):
    """The root of the simulator's own errors."""


class ControlError(SimulatorError):
    """An order given to the simulator itself is wrong; `field` names the place, so that it can be corrected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class RefusalError(SimulatorError):
    """A call to the imitated gateway ends here with `reply`, before it had an effect."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(str(reply.document))
        self.reply = reply
