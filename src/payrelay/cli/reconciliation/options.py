"""The options that the commands of the reconciliation share, and how they are read."""

from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from
from payrelay.cli.terminal.messages import CommandError

if TYPE_CHECKING:
    from payrelay.core.reconciliation.days import DayReport
    from payrelay.core.reconciliation.files.profiles import Profile
    from payrelay.flows.console.parts import Actor

Account = Annotated[
    str | None, typer.Option(metavar="NAME", help="Whose books they are; needed with several accounts.")
]
DayOption = Annotated[str, typer.Option("--day", metavar="DAY", help="The day, such as 2026-11-22.")]
PROFILE_BYTES_MAX: Final = 100_000


def day_of(text: str) -> date:
    """Reads a day; raises CommandError."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text} is no day such as 2026-11-22") from None


def days_of(text: str) -> tuple[date, date]:
    """Reads one day, or the first and the last with two dots between them; raises CommandError."""
    first, _, last = text.partition("..")
    return day_of(first), day_of(last or first)


def amount_of(text: str | None) -> int | None:
    """Reads a sum, in hundredths; raises CommandError."""
    from payrelay.core.money import AmountError, minor_units

    if text is None:
        return None
    try:
        amount = Decimal(text.replace(",", ""))
        return 0 if amount == 0 else minor_units(amount)
    except (AmountError, InvalidOperation):
        raise CommandError(f"--total: {text} is no amount such as 1234500.00") from None


def profile_of(text: str) -> "Profile":
    """Gives the built-in profile of that name, or reads one from a file; raises CommandError."""
    from payrelay.core.reconciliation.files.profiles import BUILT_IN, ProfileError, read_profile

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
    from payrelay.flows.console.parts import Actor

    return Actor(operator_from(by))


def differences_in(report: "DayReport") -> int:
    """Counts the differences of a day."""
    from payrelay.core.reconciliation.verdicts import DIFFERENCES

    return sum(map(report.count, DIFFERENCES))
