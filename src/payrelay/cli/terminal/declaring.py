"""How commands are declared: groups, examples, and the options that several of them have."""

from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import Annotated, Any, ParamSpec

import typer

P = ParamSpec("P")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is stored.  [required]", show_default=False)]
By = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who decides; the user who is logged in where it is missing.")
]
Sure = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation; needed without a terminal.")]


def group(name: str | None = None, purpose: str | None = None) -> typer.Typer:
    """Makes a group of commands; one without a name only holds commands that stand by themselves."""
    return typer.Typer(name=name, help=purpose, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def examples(*lines: str) -> str:
    """Writes the end of a command's help: calls to copy."""
    return "\n".join(["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)])


def state_help(states: Iterable[str]) -> str:
    """Writes the help of an option that narrows a list to one state."""
    return f"Only those in one state: {', '.join(states)}."


def awaited(work: Callable[P, Coroutine[Any, Any, int]]) -> Callable[P, int]:
    """Makes a command of a coroutine function, which returns the exit code."""

    @wraps(work)
    def run(*arguments: P.args, **options: P.kwargs) -> int:
        import uvloop

        return uvloop.run(work(*arguments, **options))

    return run
