"""The options that the commands of the reconciliation share, and how they are read."""

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from
from payrelay.cli.terminal.messages import DONE, FAULTY, UNCOVERED, CommandError

if TYPE_CHECKING:
    from payrelay.flows.operators.parts import Actor
    from payrelay.reconciliation.rules.days import DayReport
    from payrelay.reconciliation.rules.files.profiles import Profile

Account = Annotated[
    str | None, typer.Option(metavar="NAME", help="Whose books they are; needed with several accounts.")
]
DAYS_HELP: Final = (
    "A day such as 2026-11-22, a month such as 2026-11, or the first and the last: 2026-11-01..2026-11-15."
)
DaysOption = Annotated[str, typer.Option("--day", "--days", metavar="DAYS", help=DAYS_HELP)]
DAYS_MAX: Final = 400
"""Days of one command: a year, and the month before it."""
_FIRST: Final = date(1970, 1, 2)
_LAST: Final = date(9000, 1, 1)
"""Days around them have no moments that can be counted."""
_MONTH: Final = re.compile(r"\d{4}-\d{2}", re.ASCII)
PROFILE_BYTES_MAX: Final = 100_000


def day_of(text: str) -> date:
    """Reads a day; raises CommandError."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text or not _FIRST <= day <= _LAST:
        raise CommandError(f"{text} is no day such as 2026-11-22, and no month such as 2026-11")
    return day


def days_of(text: str) -> tuple[date, date]:
    """Reads a day, a month, or the first and the last with two dots between them; raises CommandError."""
    first, _, last = text.partition("..")
    days = _days_of(first)[0], _days_of(last or first)[1]
    if not 0 <= (days[1] - days[0]).days < DAYS_MAX:
        raise CommandError(f"{text} must be 1 to {DAYS_MAX} days, the first one first")
    return days


def _days_of(text: str) -> tuple[date, date]:
    from payrelay.reconciliation.rules.entries import last_of_month

    if _MONTH.fullmatch(text) is None:
        day = day_of(text)
        return day, day
    first = day_of(f"{text}-01")
    return first, last_of_month(first)


def amount_of(text: str | None) -> int | None:
    """Reads a sum, in hundredths; raises CommandError."""
    from payrelay.core.money import AmountError, typed_minor

    try:
        return None if text is None else typed_minor(text, may_be_0=True)
    except AmountError as error:
        raise CommandError(f"--total: {text} is no amount such as 1234500.00: it {error}") from None


def profile_of(text: str) -> "Profile":
    """Gives the built-in profile of that name, or reads one from a file; raises CommandError."""
    from payrelay.reconciliation.rules.files.profiles import BUILT_IN, ProfileError, read_profile

    if text in BUILT_IN:
        return BUILT_IN[text]
    path = Path(text)
    if path.suffix not in {".toml", ".json"}:
        names = ", ".join(sorted(BUILT_IN))
        raise CommandError(f"--profile: {text} is none of {names}, and no .toml or .json file")
    try:
        with path.open("rb") as opened:
            content = opened.read(PROFILE_BYTES_MAX)
    except OSError as error:
        raise CommandError(f"--profile: {text} can't be read: {error.strerror}") from None
    try:
        return read_profile(content, is_toml=path.suffix == ".toml")
    except ProfileError as error:
        raise CommandError(f"--profile: {text}: {error}") from None


def actor_from(by: str | None) -> "Actor":
    """Gives who acts, for the history; raises CommandError."""
    from payrelay.flows.operators.parts import Actor

    return Actor(operator_from(by))


def differences_in(report: "DayReport") -> int:
    """Counts the differences of a day."""
    from payrelay.reconciliation.rules.verdicts import DIFFERENCES

    return sum(map(report.count, DIFFERENCES))


def code_of(report: "DayReport") -> int:
    """Gives the exit code of a comparison."""
    from payrelay.reconciliation.rules.verdicts import BooksVerdict

    if differences_in(report):
        return FAULTY
    is_covered = not report.unseen and not report.count(BooksVerdict.UNKNOWABLE) and not report.count(BooksVerdict.OPEN)
    return DONE if is_covered else UNCOVERED
