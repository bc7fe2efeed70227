"""Draws charts as SVG: rectangles with classes, whose colours the style sheet has. Nothing in them is a text of others.

A chart's numbers are also in the table beside it, for whoever can't see it.
"""

from typing import Final, NamedTuple

from payrelay.console.rules.trends import Bars, BudgetPart

WIDTH: Final = 640
HEIGHT: Final = 160
_FLOOR: Final = 1.5
"""The height of the least that is drawn: one of thousands is there all the same."""


class Rectangle(NamedTuple):
    """One rectangle: where it is, how large, and its class."""

    x: float
    y: float
    width: float
    height: float
    tone: str


class Chart(NamedTuple):
    """What is drawn, and the number at the top of the scale."""

    rectangles: tuple[Rectangle, ...]
    top: int


def chart_of_bars(bars: Bars) -> Chart:
    """Draws a bar for each part, with the groups on top of each other."""
    tones = [tone for _, tone in bars.groups]
    return _stacked([list(zip(tones, part, strict=True)) for part in bars.parts], scale_of(bars.highest))


def chart_of_steps(steps: list[tuple[str, int]]) -> Chart:
    """Draws a bar for each step."""
    return _stacked([[("done", count)] for _, count in steps], scale_of(max((count for _, count in steps), default=0)))


def chart_of_budget(parts: tuple[BudgetPart, ...], limit: int | None) -> Chart:
    """Draws the most that was in use in each part; the scale ends at the budget where that is known."""
    highest = max((part.used or 0 for part in parts), default=0)
    tones = ["doubt" if part.was_open else "done" for part in parts]
    top = max(limit or 0, highest) or 1
    return _stacked([[(tone, part.used or 0)] for tone, part in zip(tones, parts, strict=True)], top)


def scale_of(highest: int) -> int:
    """Gives the top of a scale: the next of 1, 2, 5, 10, 20, 50, …; so that the scale changes seldom."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if highest <= factor * step:
                return factor * step
        step *= 10


def _stacked(columns: list[list[tuple[str, int]]], top: int) -> Chart:
    width = WIDTH / max(1, len(columns))
    drawn = []
    for number, column in enumerate(columns):
        base = float(HEIGHT)
        for tone, count in column:
            if count:
                height = max(_FLOOR, count / top * HEIGHT)
                base -= height
                x, y = round(number * width + 1, 1), round(base, 1)
                drawn.append(Rectangle(x, y, round(width - 2, 1), round(height, 1), tone))
    return Chart(tuple(drawn), top)
