"""Pages for people: tables, facts and progress, for any width of terminal.

A cell is shown as it stands: neither the terminal nor the markup of Rich obeys what a client or the gateway wrote.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from payrelay.cli.terminal.messages import DONE, show_json
from payrelay.core.payments.explanations import printable

ID_WIDTH: Final = len("ntf_") + 32
"""Ids are never broken, so that they can be copied."""

Cell = str | Text | Sequence[str]
"""A text, several that stand below each other, or one that is printable already and has its style."""


class Page(Console):
    """Standard output or, with ``stderr``, standard error; a closed pipe is left to whoever runs the commands."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False)

    def on_broken_pipe(self) -> None:
        """Passes the error on; Rich would end the program with an exit code of its own."""
        raise BrokenPipeError

    def write(self, content: RenderableType) -> None:
        """Writes one part of a page."""
        self.print(content)

    def write_line(self, line: Cell) -> None:
        """Writes lines without breaks of our own, so that each is one line where it is copied."""
        self.print(cell(line), soft_wrap=True)


def table(
    titles: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str, ids: str = "", leading: int = 0
) -> RenderableType:
    """Draws a table; where there is no row, says so by ``empty``.

    The column that is called ``ids`` is as wide as an id; the columns ``age``, ``day`` and ``id`` are never broken.
    """
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, leading=leading)
    for title in titles:
        shown.add_column(
            title,
            overflow="fold",  # what is cut off can't be copied
            width=ID_WIDTH if title == ids else None,
            justify="right" if title == "age" else "left",
            no_wrap=title in {"age", "day", "id"},
        )
    for row in rows:
        shown.add_row(*map(cell, row))
    return shown if shown.row_count else Text(empty)


def show_result(data: object, page: RenderableType, *, as_json: bool) -> int:
    """Writes a result on standard output, as JSON for programs or as a page for people, and gives the exit code."""
    if as_json:
        show_json(data)
    else:
        Page().write(page)
    return DONE


def entry(name: str, *lines: str | None) -> Text:
    """Gives the cell of one thing: its id in bold, and in lines below it what is known of it."""
    below = [line for line in lines if line is not None]
    return Text("\n").join([Text(printable(name), style="bold"), *([cell(below)] if below else [])])


def facts(pairs: Iterable[tuple[str, Cell]]) -> Table:
    """Draws names with what they stand for."""
    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in pairs:
        shown.add_row(name, cell(value))
    return shown


def progress_bar(console: Console) -> Progress:
    """Gives the bar of a long command; it shows nothing where the console is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def cell(value: Cell) -> Text:
    """Shows a value as it stands, and each of several in a line of its own."""
    if isinstance(value, Text):
        return value
    return Text("\n").join(Text(printable(line)) for line in ([value] if isinstance(value, str) else value))
