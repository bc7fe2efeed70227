"""Draws a run: throughput and processor time per request, with the spread of the rounds."""

from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import results
from contenders import BARE, NGINX, POSTGRESQL, SQLITE, USUAL, Kind
from results import Row, Run, Spread

COLOURS = {NGINX: "#9aa0a6", USUAL: "#c58b3c", BARE: "#8a6fb0", SQLITE: "#1f6f8b", POSTGRESQL: "#5aa9c4"}
BAR = 0.8


def draw(run: Run, path: Path) -> None:
    """Writes the picture; the same run gives the same bytes."""
    rows = [row for row in results.rows(run) if row.rate is not None]
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "payrelay", "font.size": 9, "font.family": "DejaVu Sans"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.42 * len(rows) + 1.6), sharey=True)
    _bars(left, rows, [row.rate for row in rows], "requests per second on one core (logarithmic, more is better)")
    _bars(right, rows, [row.cpu_us for row in rows], "processor time per request in µs (logarithmic, less is better)")
    left.set_yticks(range(len(rows)), [f"{row.kind.value}: {row.contender}" for row in rows])
    left.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _bars(axes: Axes, rows: list[Row], spreads: list[Spread | None], title: str) -> None:
    """Draws one panel on a logarithmic scale, since nginx and a relay are far apart."""
    for place, (row, spread) in enumerate(zip(rows, spreads, strict=True)):
        if spread is None:
            continue
        reach = [[spread.middle - spread.low], [spread.high - spread.middle]]
        axes.barh(place, spread.middle, BAR, color=COLOURS[row.contender], xerr=reach, ecolor="#333333", capsize=2)
        axes.annotate(
            f"{spread.middle:,.0f}", (spread.high, place), xytext=(5, 0), textcoords="offset points", va="center"
        )
    axes.set_xscale("log")
    axes.margins(x=0.18)
    axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    for place in _first_of_kinds(rows)[1:]:
        axes.axhline(place - 0.5, color="#dddddd", linewidth=0.8)


def _first_of_kinds(rows: list[Row]) -> list[int]:
    kinds = [row.kind for row in rows]
    return [kinds.index(kind) for kind in Kind if kind in kinds]
