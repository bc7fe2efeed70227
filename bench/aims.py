"""What the project aims at, and whether a run got there. Pure."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from contenders import POSTGRESQL, SQLITE, Kind
from results import CALM_SHARE, Row, Spread

Form = Callable[[float], str]
"""How a figure is written."""


class Verdict(StrEnum):
    """How an aim came out."""

    MET = "met"
    SHORT = "short"
    BEYOND_FLOOR = "misses the floor"
    INVALID = "invalid"
    DISTURBED = "disturbed, doesn't count"
    NOT_MEASURED = "not measured"


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """One aim.

    Attributes:
        text: what it says.
        kind: the row that it is read from.
        value: what is compared, from that row.
        bound: what is aimed at.
        floor: what is not accepted, for an aim that has one.
        contender: of whom alone it is; empty for every contender that is held against the aims.
        is_ceiling: whether the value should be at most the bound, not at least.
        is_steady: whether the value is the same on a busy machine.
        form: how a value is written.
    """

    text: str
    kind: Kind
    value: Callable[[Row], Spread | None]
    bound: float
    floor: float | None = None
    contender: str = ""
    is_ceiling: bool = False
    is_steady: bool = False
    form: Form


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How one contender stands to one aim."""

    aim: str
    contender: str
    found: str
    verdict: Verdict


def percent(value: float) -> str:
    """Writes a share."""
    return f"{value * 100:.1f} %"


def times(value: float) -> str:
    """Writes a multiple."""
    return f"{value:.1f} x"


def milliseconds(value: float) -> str:
    """Writes a latency."""
    return f"{value:.2f} ms"


def megabytes(value: float) -> str:
    """Writes a size."""
    return f"{value:.0f} MB"


def _cpu(kind: Kind, contender: str, bound: float, floor: float) -> Aim:
    return Aim(
        text=f"{kind.value}: at most {bound:g} times the processor time of nginx (not over {floor:g})",
        kind=kind,
        value=lambda row: row.cpu_of_nginx,
        bound=bound,
        floor=floor,
        contender=contender,
        is_ceiling=True,
        form=times,
    )


def _rate(kind: Kind, bound: float, floor: float) -> Aim:
    peer = "nginx's charge" if kind is Kind.REPLAY else "nginx"
    return Aim(
        text=f"{kind.value}: at least {bound:.0%} of {peer} (not under {floor:.0%})".replace("%", " %"),
        kind=kind,
        value=lambda row: row.of_nginx,
        bound=bound,
        floor=floor,
        contender=SQLITE,
        form=percent,
    )


def _of_usual(kind: Kind, bound: float, floor: float) -> Aim:
    return Aim(
        text=f"{kind.value}: at least {bound:g} times the usual relay (not under {floor:g})",
        kind=kind,
        value=lambda row: row.of_usual,
        bound=bound,
        floor=floor,
        form=times,
    )


def _added(kind: Kind) -> Aim:
    return Aim(
        text=f"{kind.value}: at most 1.5 ms added, one connection, median",
        kind=kind,
        value=lambda row: row.added_ms,
        bound=1.5,
        is_ceiling=True,
        form=milliseconds,
    )


AIMS = (
    _cpu(Kind.READ, SQLITE, 8, 10),
    _cpu(Kind.READ, POSTGRESQL, 9, 12),
    _cpu(Kind.CHARGE, SQLITE, 14, 18),
    _cpu(Kind.CHARGE, POSTGRESQL, 18, 25),
    _cpu(Kind.REPLAY, SQLITE, 5, 6.5),
    _cpu(Kind.REPLAY, POSTGRESQL, 6, 8),
    _rate(Kind.READ, 0.13, 0.10),
    _rate(Kind.CHARGE, 0.08, 0.06),
    _rate(Kind.REPLAY, 0.25, 0.19),
    _of_usual(Kind.READ, 30, 22),
    _of_usual(Kind.CHARGE, 14, 10),
    _added(Kind.READ),
    _added(Kind.CHARGE),
    Aim(
        text="charge: at most two syncs of the disk and 0.6 ms, one connection, median",
        kind=Kind.CHARGE,
        value=lambda row: row.beside_syncs_ms,
        bound=0.6,
        is_ceiling=True,
        form=milliseconds,
    ),
    Aim(
        text="memory: at most 90 MB after charges under load (not over 100)",
        kind=Kind.CHARGE,
        value=lambda row: row.pss_mb,
        bound=90,
        floor=100,
        contender=SQLITE,
        is_ceiling=True,
        is_steady=True,
        form=megabytes,
    ),
)


def results(rows: list[Row], contenders: list[str]) -> list[Result]:
    """Holds the named contenders against every aim."""
    by_name = {(row.contender, row.kind): row for row in rows}
    return [
        _result(aim, name, by_name.get((name, aim.kind)))
        for aim in AIMS
        for name in contenders
        if aim.contender in {"", name}
    ]


def _result(aim: Aim, contender: str, row: Row | None) -> Result:
    value = None if row is None else aim.value(row)
    if row is None or value is None:
        return Result(aim=aim.text, contender=contender, found="-", verdict=Verdict.NOT_MEASURED)
    found = f"{aim.form(value.middle)} ({aim.form(value.low)} to {aim.form(value.high)})"
    return Result(aim=aim.text, contender=contender, found=found, verdict=_verdict(aim, row, value.middle))


def _verdict(aim: Aim, row: Row, value: float) -> Verdict:
    if row.problems:
        return Verdict.INVALID
    if row.disturbed > CALM_SHARE and not aim.is_steady:
        return Verdict.DISTURBED
    if value <= aim.bound if aim.is_ceiling else value >= aim.bound:
        return Verdict.MET
    if aim.floor is None:
        return Verdict.SHORT
    is_beyond = value > aim.floor if aim.is_ceiling else value < aim.floor
    return Verdict.BEYOND_FLOOR if is_beyond else Verdict.SHORT
