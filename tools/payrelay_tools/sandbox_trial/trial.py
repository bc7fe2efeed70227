"""The interface of a sandbox trial: what was found out at a gateway's sandbox, and whom it asks for help.

A trial does all that can be tried at a sandbox. It compares what comes with the protocol that the adapter was written
for. A finding has no secret and no personal data, so that it can be sent to the maintainers.
"""

from collections.abc import Callable, Collection, MutableMapping
from enum import StrEnum
from typing import Protocol

import msgspec

from payrelay.core.secret import STARS


class TrialVerdict(StrEnum):
    """What a step of a trial came to."""

    AS_KNOWN = "as known"
    """The gateway does what the protocol says that we know."""
    DIFFERS = "differs"
    """The gateway does something else."""
    LEARNT = "learnt"
    """The protocol says nothing here; what the gateway does is in the finding."""
    NOT_TRIED = "not tried"
    """The step needs something that an earlier one did not yield, or was skipped."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one step found.

    Attributes:
        step: its name, unique within a trial.
        question: what it asks.
        known: what the protocol says, and how that is known: documented, observed, guessed or open.
        verdict: what it came to.
        differences: each difference in words; empty unless the verdict is DIFFERS.
        seen: what came, with its shape in place of its values.
    """

    step: str
    question: str
    known: str
    verdict: TrialVerdict
    differences: tuple[str, ...] = ()
    seen: object = None


class TrialForm(msgspec.Struct, frozen=True, kw_only=True):
    """A form that a person brings to the gateway's page: its name, what to do there, and what is posted where.

    ``heard_within_s`` is how long its notifications are waited for, once the person is done. ``refuses_first``: the
    first one is answered with 503, to see whether it comes again.
    """

    name: str
    task: str
    action: str
    fields: dict[str, str]
    heard_within_s: float = 20.0
    refuses_first: bool = False

    def __repr__(self) -> str:
        return f"TrialForm(name={self.name!r}, fields={STARS})"


class TrialNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the address for notifications, as it came, and the seconds since its form was shown."""

    content_type: str
    body: bytes
    after_s: float

    def __repr__(self) -> str:
        return f"TrialNotification({STARS})"


class TrialVisit(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a form.

    Attributes:
        answer: what the person said: ``done``, ``refused`` (the page took no such form) or ``skipped``; ``waited``
            where the time was over first.
        notifications: all that came meanwhile, in their order.
        came_back: ``return`` or ``cancel``, by which address the browser came back; None where it didn't.
        parameters: the names of the parameters that the gateway added to that address.
    """

    answer: str
    notifications: tuple[TrialNotification, ...] = ()
    came_back: str | None = None
    parameters: tuple[str, ...] = ()


class TrialDesk(Protocol):
    """The person who helps with a trial, and the addresses that the gateway is given."""

    def address_of(self, form: str, what: str) -> str:
        """Gives the address of a form for ``return``, ``cancel`` or ``notify``."""

    async def bring(self, form: TrialForm, *, notifications: int) -> TrialVisit:
        """Has a person bring a form to the gateway's page. Waits for so many notifications, with a limit."""

    async def hear(self, form: str, *, for_s: float) -> tuple[TrialNotification, ...]:
        """Waits for a further notification for a form, at most so many seconds; gives all that came."""


class SandboxTrial(Protocol):
    """The trial of one account at a gateway's sandbox."""

    @property
    def refusal(self) -> str | None:
        """Why nothing may be tried on this account, such as that it is live; None where it may."""

    @property
    def step_names(self) -> tuple[str, ...]:
        """The names of all steps, in their order."""

    async def run(
        self,
        desk: TrialDesk,
        *,
        done: Collection[str],
        kept: MutableMapping[str, str],
        note: Callable[[Finding], None],
    ) -> None:
        """Takes the steps that aren't done, and notes each finding at once.

        ``kept`` is what later steps need of earlier ones: ids and tokens. It is secret. It is kept, so that a trial
        that was broken off can be gone on with. Raises ValueError where there is a refusal.
        """

    async def close(self) -> None:
        """Closes all connections."""
