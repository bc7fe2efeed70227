"""What the project aims at, and whether a run got there. Pure."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from contenders import Kind
from results import CALM_SHARE, Row, Spread

Form = Callable[[float], str]
"""How a figure is written."""


class Verdict(StrEnum):
    """How an aim came out."""

    MET = "met"
    SHORT = "short"
    BELOW_FLOOR = "below the floor"
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
        is_ceiling: whether the value should be at most the bound, not at least.
        is_steady: whether the value is the same on a busy machine.
        form: how a value is written.
    """

    text: str
    kind: Kind
    value: Callable[[Row], Spread | None]
    bound: float
    floor: float | None = None
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


AIMS = (
    Aim(
        text="read: at least 10 % of nginx (not under 6 %)",
        kind=Kind.READ,
        value=lambda row: row.of_nginx,
        bound=0.10,
        floor=0.06,
        form=percent,
    ),
    Aim(
        text="charge: at least 8 % of nginx (not under 5 %)",
        kind=Kind.CHARGE,
        value=lambda row: row.of_nginx,
        bound=0.08,
        floor=0.05,
        form=percent,
    ),
    Aim(
        text="replay: at least 25 % of nginx's charge",
        kind=Kind.REPLAY,
        value=lambda row: row.of_nginx,
        bound=0.25,
        form=percent,
    ),
    Aim(
        text="read: at least 10 times the usual relay",
        kind=Kind.READ,
        value=lambda row: row.of_usual,
        bound=10,
        form=times,
    ),
    Aim(
        text="charge: at least 8 times the usual relay",
        kind=Kind.CHARGE,
        value=lambda row: row.of_usual,
        bound=8,
        form=times,
    ),
    Aim(
        text="read: at most 1.5 ms added, one connection, median",
        kind=Kind.READ,
        value=lambda row: row.added_ms,
        bound=1.5,
        is_ceiling=True,
        form=milliseconds,
    ),
    Aim(
        text="charge: at most 1.5 ms added, one connection, median",
        kind=Kind.CHARGE,
        value=lambda row: row.added_ms,
        bound=1.5,
        is_ceiling=True,
        form=milliseconds,
    ),
    Aim(
        text="charge: at most two syncs of the disk and 0.6 ms, one connection, median",
        kind=Kind.CHARGE,
        value=lambda row: row.beside_syncs_ms,
        bound=0.6,
        is_ceiling=True,
        form=milliseconds,
    ),
    Aim(
        text="memory: at most 120 MB after charges under load",
        kind=Kind.CHARGE,
        value=lambda row: row.pss_mb,
        bound=120,
        is_ceiling=True,
        is_steady=True,
        form=megabytes,
    ),
)


def results(rows: list[Row], contenders: list[str]) -> list[Result]:
    """Holds the named contenders against every aim."""
    by_name = {(row.contender, row.kind): row for row in rows}
    return [_result(aim, name, by_name.get((name, aim.kind))) for aim in AIMS for name in contenders]


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
    return Verdict.BELOW_FLOOR if aim.floor is not None and value < aim.floor else Verdict.SHORT
