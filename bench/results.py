"""Turns raw samples into rows with their spread, ratios and added latency. Pure: it measures and writes nothing."""

from collections.abc import Callable, Iterable
from statistics import median

import msgspec

from contenders import DIRECT, NAMES, NGINX, POSTGRESQL, SQLITE, USUAL, Kind
from machine import Machine
from measure import Sample

SYNCS_OF_CHARGE = 2
"""Its intent is on disk before the call, and its outcome before the answer."""
CALM_SHARE = 0.05
"""What others may take of both cores before a measurement counts as disturbed; the system itself takes 1 or 2 %."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much was measured."""

    rounds: int
    load_s: int
    latency_s: int
    warm_up_s: int
    connections: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run, whole: what is written to the raw file."""

    started_at: str
    command: str
    plan: Plan
    machine: Machine
    samples: list[Sample]
    absent: list[str]


class Spread(msgspec.Struct, frozen=True):
    """The median over the rounds, and the lowest and highest of them."""

    middle: float
    low: float
    high: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one contender did under one kind of request; None where it doesn't apply or isn't known.

    Attributes:
        contender: who.
        kind: what was asked for.
        rate: requests per second under full load.
        p50_ms: latency under full load.
        p99_ms: the same.
        cpu_us: processor time of the server per request.
        database_cpu_us: processor time of its database per request, beside that.
        core_share: how much of its core the server had; 1 is all.
        pss_mb: proportional set size after the load.
        rss_mb: resident set size after the load.
        database_pss_mb: proportional set size of its database.
        of_nginx: rate as a share of nginx's in the same round (a replay: of nginx's charge).
        of_usual: rate as a multiple of the usual relay's in the same round.
        cpu_of_nginx: processor time of the server as a multiple of nginx's in the same round.
        alone_ms: latency with one connection.
        added_ms: that latency less the gateway's own, asked directly, in the same round.
        sync_ms: one sync of the disk, beside that latency; for a charge.
        beside_syncs_ms: that latency less the two syncs that a charge promises, in the same round; for Payrelay.
        disturbed: what others took of both cores, at the median, while this or what it is compared with was measured.
        problems: why the row doesn't count.
    """

    contender: str
    kind: Kind
    rate: Spread | None
    p50_ms: Spread | None
    p99_ms: Spread | None
    cpu_us: Spread | None
    database_cpu_us: Spread | None
    core_share: Spread | None
    pss_mb: Spread | None
    rss_mb: Spread | None
    database_pss_mb: Spread | None
    of_nginx: Spread | None
    of_usual: Spread | None
    cpu_of_nginx: Spread | None
    alone_ms: Spread | None
    added_ms: Spread | None
    sync_ms: Spread | None
    beside_syncs_ms: Spread | None
    disturbed: float
    problems: list[str]


Value = Callable[[Sample], float]


def spread(values: Iterable[float]) -> Spread | None:
    """Gives the median and the range; None of nothing."""
    found = list(values)
    return Spread(median(found), min(found), max(found)) if found else None


def rows(run: Run) -> list[Row]:
    """Gives the rows: by what was asked for, then in the order of the contenders."""
    seen = {(sample.contender, sample.kind) for sample in run.samples}
    return [_row(run, name, kind) for kind in Kind for name in NAMES if (name, kind) in seen]


def foreign_share(run: Run) -> Spread | None:
    """Gives what others on the machine took of both cores while it was measured."""
    return spread(sample.foreign_share for sample in run.samples)


def _row(run: Run, contender: str, kind: Kind) -> Row:
    loaded = _by_round(run, contender, kind, is_alone=False)
    alone = _by_round(run, contender, kind, is_alone=True)
    like = Kind.CHARGE if kind is Kind.REPLAY else kind  # nobody else can replay
    nginx = _by_round(run, NGINX, like, is_alone=False)
    usual = _by_round(run, USUAL, like, is_alone=False)
    direct = _by_round(run, DIRECT, like, is_alone=True)

    def of(value: Value) -> Spread | None:
        return spread(map(value, loaded.values()))

    return Row(
        contender=contender,
        kind=kind,
        rate=of(lambda sample: sample.rate),
        p50_ms=of(lambda sample: sample.sent.p50_us / 1e3),
        p99_ms=of(lambda sample: sample.sent.p99_us / 1e3),
        cpu_us=of(_cpu_us),
        database_cpu_us=of(lambda sample: sample.database_cpu_s / sample.sent.requests * 1e6),
        core_share=of(lambda sample: sample.cpu_s / (sample.sent.duration_us / 1e6)),
        pss_mb=of(lambda sample: sample.pss_mb),
        rss_mb=of(lambda sample: sample.rss_mb),
        database_pss_mb=of(lambda sample: sample.database_pss_mb),
        of_nginx=_ratio(loaded, nginx, lambda sample: sample.rate),
        of_usual=_ratio(loaded, usual, lambda sample: sample.rate),
        cpu_of_nginx=_ratio(loaded, nginx, _cpu_us),
        alone_ms=spread(sample.sent.p50_us / 1e3 for sample in alone.values()),
        added_ms=spread(
            (alone[number].sent.p50_us - direct[number].sent.p50_us) / 1e3 for number in alone if number in direct
        ),
        sync_ms=spread(sample.sync_us / 1e3 for sample in alone.values() if sample.sync_us),
        beside_syncs_ms=spread(
            (sample.sent.p50_us - SYNCS_OF_CHARGE * sample.sync_us) / 1e3
            for sample in alone.values()
            if sample.sync_us and contender in {SQLITE, POSTGRESQL}
        ),
        disturbed=max(map(_disturbance, (loaded, alone, nginx, usual))),
        problems=[
            f"round {sample.round_number}, {sample.connections} connections: {problem}"
            for sample in run.samples
            if (sample.contender, sample.kind) == (contender, kind)
            for problem in sample.problems
        ],
    )


def _by_round(run: Run, contender: str, kind: Kind, *, is_alone: bool) -> dict[int, Sample]:
    """Gives the samples that can be counted with."""
    return {
        sample.round_number: sample
        for sample in run.samples
        if (sample.contender, sample.kind) == (contender, kind)
        and (sample.connections == 1) is is_alone
        and sample.sent.requests
    }


def _ratio(ours: dict[int, Sample], theirs: dict[int, Sample], value: Value) -> Spread | None:
    """Compares within a round, so that a slow minute of the machine weighs on both."""
    return spread(value(ours[number]) / value(theirs[number]) for number in ours if number in theirs)


def _disturbance(samples: dict[int, Sample]) -> float:
    return median(sample.foreign_share for sample in samples.values()) if samples else 0.0


def _cpu_us(sample: Sample) -> float:
    return sample.cpu_s / sample.sent.requests * 1e6
