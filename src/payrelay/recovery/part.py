"""What the recovery brings."""

from typing import TYPE_CHECKING, Final

from payrelay.parts import Part

if TYPE_CHECKING:
    from payrelay.worker import Job


def _jobs() -> "tuple[Job, ...]":
    from payrelay.recovery.flows.bring_back import begin_bringing_back
    from payrelay.recovery.flows.end_recovery import end_recovery_when_over
    from payrelay.worker import Job

    return Job(1, begin_bringing_back), Job(120, end_recovery_when_over)


PART: Final = Part(commands={"recover": "payrelay.recovery.commands.recover"}, jobs=_jobs)
