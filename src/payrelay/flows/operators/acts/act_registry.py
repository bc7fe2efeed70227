"""What operators act on, by the noun in an address: how each is read, who sees it, and how an act is carried out."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias

from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acting import ActResult, ActTarget, ConfirmedAct
from payrelay.flows.relay import Relay

ReadTarget: TypeAlias = Callable[[Relay, str], Awaitable[ActTarget | None]]
"""Reads one thing by its id; None where there is none. Raises StoreError."""
CarryOut: TypeAlias = Callable[[Relay, ConfirmedAct], Awaitable[ActResult]]
"""Carries out a confirmed act.

Raises Refusal where nothing was done, StillRunning where it is under way, StoreError.
"""


class ActRegistry(NamedTuple):
    """What operators act on, of the relay and of each part.

    Attributes:
        readers: by noun.
        seen_by: what a role must allow to see a thing, beside what every role may; by noun.
        carried_out: by act.
    """

    readers: Mapping[str, ReadTarget]
    seen_by: Mapping[str, Act]
    carried_out: Mapping[Act, CarryOut]

    def with_those_of(self, other: "ActRegistry") -> "ActRegistry":
        """Gives these and others, none of which has the name of another."""
        return ActRegistry(
            {**self.readers, **other.readers},
            {**self.seen_by, **other.seen_by},
            {**self.carried_out, **other.carried_out},
        )
