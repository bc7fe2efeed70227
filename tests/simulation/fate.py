"""What a seed decides: how a run is made up, and every chance in it."""

import dataclasses
from random import Random
from typing import Any, Final, get_args, get_type_hints

from payrelay_simulator.switches import Switches

LIMITS: Final = ((20, 10), (20, 10), (20, 10), (5, 10), (3, 4), (0, 10))
"""The gateway's budgets, calls in seconds; 0 calls is none."""
POINTS: Final = (
    "before_write",
    "after_write",
    "before_commit",
    "after_commit",
    "before_send",
    "after_send",
    "accepting",
    "accepted",
    "granting",
    "granted",
    "sending",
    "resending",
    "resent",
    "replied",
    "recording",
    "recorded",
    "looking",
    "looked",
    "probing",
    "probed",
)
"""Where a process may be made to die by name, besides at any step at all."""
FIXED_SWITCHES: Final = {"installments", "accelerated_interval_s", "rate_limit_calls", "rate_limit_window_s"}
"""Of the gateway's switches, those that are not drawn: subscriptions by the minute would fill half a year."""


def chance(seed: int, purpose: str) -> Random:
    """Gives a sequence of its own for each purpose, so that one doesn't disturb another."""
    return Random(f"{seed}:{purpose}")  # noqa: S311, it has to be the same each time


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """How a run is made up.

    Attributes:
        seed: what all of it follows from.
        is_shuffled: whether what is ready at the same time is taken in any order.
        has_two: whether two processes share a database, in place of one that owns it.
        limit: the gateway's budget, calls in seconds.
        fault_share: of the calls to the gateway that meet a fault, while there are any.
        store_fault_share: of the store's writes that fail.
        client_fault_share: of the clients' requests that lose their way or their answer.
        chaos_s: until when there are faults.
        latency_s: of the gateway, usually.
        commit_s: of the disk, at most.
        skew_s: how far the gateway's clock is off.
        crashes: how each process ends in turn: at a step, at a point for the n-th time, or cleanly.
        stalls: seconds that pass at once before a step.
        clients: how many there are.
        blind_s: from when and until when the gateway's searches find nothing at all.
        spares_reads: whether faults befall only what changes something.
        is_narrow: whether all charges are alike, so that one may be taken for another.
        switches: how the gateway behaves where its documents are silent.
    """

    seed: int
    is_shuffled: bool
    has_two: bool
    limit: tuple[int, int]
    fault_share: float
    store_fault_share: float
    client_fault_share: float
    chaos_s: float
    latency_s: float
    commit_s: float
    skew_s: float
    crashes: tuple[tuple[str, int], ...]
    stalls: dict[int, float]
    clients: int
    blind_s: tuple[float, float]
    spares_reads: bool
    is_narrow: bool
    switches: Switches

    @classmethod
    def of(cls, seed: int) -> "Fate":
        """Draws it all."""
        draw = chance(seed, "fate")
        limit = draw.choice(LIMITS)
        return cls(
            seed=seed,
            is_shuffled=draw.random() < 0.5,
            has_two=draw.random() < 0.25,
            limit=limit,
            fault_share=draw.choice((0.0, 0.1, 0.25, 0.5, 0.8)),
            store_fault_share=draw.choice((0.0, 0.0, 0.0, 0.02, 0.1)),
            client_fault_share=draw.choice((0.0, 0.1, 0.4)),
            chaos_s=draw.choice((60.0, 60.0, 200.0, 200.0, 4_000.0, 200_000.0)),
            latency_s=draw.choice((0.05, 0.3, 2.0)),
            commit_s=draw.choice((0.0, 0.01, 0.5)),
            skew_s=draw.choice((0.0, 0.0, 90.0, -90.0)),
            crashes=tuple(_end(draw) for _ in range(draw.choice((0, 0, 1, 1, 2, 3, 6)))),
            stalls={draw.randrange(1, 3_000): draw.choice((0.5, 12.0, 70.0)) for _ in range(draw.choice((0, 0, 0, 2)))},
            clients=draw.randint(1, 4),
            blind_s=_blind_s(draw),
            spares_reads=draw.random() < 0.4,
            is_narrow=draw.random() < 0.4,
            switches=_switches(draw, limit),
        )

    def chance(self, purpose: str) -> Random:
        """Gives the sequence for one purpose."""
        return chance(self.seed, purpose)


def _end(draw: Random) -> tuple[str, int]:
    """Draws how one process ends: half the time at any step, otherwise where it hurts."""
    kind = draw.random()
    if kind < 0.45:
        return "step", int(10 ** draw.uniform(1.0, 3.5))
    if kind < 0.9:
        return draw.choice(POINTS), draw.choice((1, 1, 1, 2, 3, 5))
    return "stop", draw.randint(1, 120)


def _blind_s(draw: Random) -> tuple[float, float]:
    """Draws a time in which the gateway's index is broken, of up to five days; mostly none."""
    if draw.random() < 0.8:
        return 0.0, 0.0
    from_s = draw.uniform(0, 100)
    return from_s, from_s + draw.choice((600.0, 400_000.0))


def _switches(draw: Random, limit: tuple[int, int]) -> Switches:
    drawn: dict[str, Any] = {}
    for name, kind in get_type_hints(Switches).items():
        choices = get_args(kind)
        if name not in FIXED_SWITCHES and choices:
            drawn[name] = choices[0] if draw.random() < 0.75 else draw.choice(choices)
    return Switches(**drawn, installments="calendar", rate_limit_calls=limit[0], rate_limit_window_s=float(limit[1]))
