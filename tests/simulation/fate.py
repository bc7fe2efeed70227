"""What a seed decides: how a run is made up, and every chance in it."""

import dataclasses
from random import Random
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from tests.simulation.hostility import SWITCHED_ON, HostileFate
from tests.simulation.losses import LossFate

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


PAGES_SHARE: Final = 1 / 3
"""Of the lives, those in which customers are asked on the gateway's pages: each of them costs more than another one."""


BANKS_SHARE: Final = 0.5
"""Of the lives, those in which refunds fail or are made elsewhere, or the gateway's copies lag behind."""

CLEARING_SHARE: Final = 0.3
"""Of lives in which the clearing goes on meanwhile."""


def chance(seed: int, purpose: str) -> Random:
    """Gives a sequence of its own for each purpose, so that one doesn't disturb another."""
    return Random(f"{seed}:{purpose}")  # noqa: S311, it has to be the same each time


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PageFate:
    """How it goes with the gateway's pages, its notifications and our events, in a life that has them.

    Attributes:
        buyers: how many there are who are asked on the gateway's pages.
        loss_share: of the notifications that get lost on the way there, or their answer on the way back.
        late_share: of those that take their time.
        copy_share: of those that come more than once.
        forged_share: of those beside which comes one that is not the gateway's.
        retries: how often the gateway tries one again that was not answered well; PayHere documents nothing.
        retry_s: how long it waits between two tries.
        has_endpoint: whether somebody gets the events sent.
        endpoint_fault_share: of the sendings of events that fail.
        are_orders_shared: whether charges and checkouts meet on the same orders.
        chargeback_share: of the payments that the payers' banks take back.
        edited_share: of the forms for a subscription whose schedule the person edits: it is in no signed text.
        tabs: how many shops have customers with two tabs, who pay one order on a page and by a stored card.
    """

    buyers: int
    loss_share: float
    late_share: float
    copy_share: float
    forged_share: float
    retries: int
    retry_s: float
    has_endpoint: bool
    endpoint_fault_share: float
    are_orders_shared: bool
    chargeback_share: float
    edited_share: float = 0.2
    tabs: int = 0

    @classmethod
    def of(cls, draw: Random) -> "PageFate":
        """Draws it all."""
        return cls(
            buyers=draw.randint(1, 2),
            loss_share=draw.choice((0.0, 0.0, 0.2, 0.6, 1.0)),
            late_share=draw.choice((0.0, 0.3, 0.7)),
            copy_share=draw.choice((0.0, 0.3)),
            forged_share=draw.choice((0.0, 0.3)),
            retries=draw.choice((0, 0, 3, 10)),
            retry_s=draw.choice((60.0, 3_600.0)),
            has_endpoint=draw.random() < 0.5,
            endpoint_fault_share=draw.choice((0.0, 0.2, 0.5)),
            are_orders_shared=draw.random() < 0.2,
            chargeback_share=0.3 if draw.random() < 0.6 else 0.0,
            tabs=draw.choice((0, 1)),
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class BankFate:
    """What becomes of refunds later, and how the gateway shows what went back.

    Attributes:
        failed_share: of the refunds, those that a bank doesn't take.
        rest_share: of the refunds of parts, those after which somebody gives back the rest in the gateway's portal.
        lag_s: how long a copy of the gateway's records doesn't show what went back; less than an hour.
        stale_share: of the searches, those that such a copy answers.
    """

    failed_share: float
    rest_share: float
    lag_s: float
    stale_share: float

    @classmethod
    def of(cls, draw: Random) -> "BankFate":
        """Draws it all."""
        return cls(
            failed_share=draw.choice((0.0, 0.3, 0.6)),
            rest_share=draw.choice((0.3, 1.0)),
            lag_s=draw.choice((20.0, 200.0, 900.0)),
            stale_share=draw.choice((0.0, 0.5)),
        )


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
        pages: how it goes with the gateway's pages; None for a life without them.
        hostile: who means harm; None for a life in which nobody does.
        loss: how the database goes back in time; None for a life in which it doesn't.
        clears: whether calls of operations that are final are cleared at once.
        key_loss_share: of the repeats with an Idempotency-Key that come without it from then on.
        banks: what becomes of refunds later; None for a life in which they stand, and show themselves at once.
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
    pages: PageFate | None
    hostile: HostileFate | None
    loss: LossFate | None
    clears: bool = False
    key_loss_share: float = 0.0
    banks: BankFate | None = None

    @classmethod
    def of(cls, seed: int, hostilities: frozenset[str] = SWITCHED_ON) -> "Fate":
        """Draws it all."""
        draw, of_pages, of_banks = chance(seed, "fate"), chance(seed, "pages"), chance(seed, "banks")
        limit = draw.choice(LIMITS)
        pages = PageFate.of(of_pages) if of_pages.random() < PAGES_SHARE else None
        return cls(
            seed=seed,
            clears=chance(seed, "clearing").random() < CLEARING_SHARE,
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
            switches=_switches(draw, limit, pages),
            pages=pages,
            hostile=HostileFate.of(chance(seed, "hostility"), has_pages=pages is not None, switched_on=hostilities),
            loss=LossFate.of(chance(seed, "loss")),
            key_loss_share=chance(seed, "lost keys").choice((0.0, 0.0, 0.2, 0.6)),
            banks=BankFate.of(of_banks) if of_banks.random() < BANKS_SHARE else None,
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


def _switches(draw: Random, limit: tuple[int, int], pages: PageFate | None) -> Switches:
    drawn: dict[str, Any] = {}
    for name, kind in get_type_hints(Switches).items():
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        if name not in FIXED_SWITCHES and choices:
            drawn[name] = choices[0] if draw.random() < 0.75 else draw.choice(choices)
    if pages is not None:
        drawn |= {"notification_retries": pages.retries, "notification_retry_interval_s": pages.retry_s}
    return Switches(**drawn, installments="calendar", rate_limit_calls=limit[0], rate_limit_window_s=float(limit[1]))
