"""Reads a file of the gateway's or the bank's into the store, once however often it is fed.

Lines are stored in small units of work, so that an import that is interrupted is simply begun again. What a person says
of the file's completeness is stored last, and only where every line was read and the sums agree.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from itertools import islice
from typing import Final

import msgspec

from payrelay.core.operators.roles import Act
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.parts import Actor
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.entries import Movement, StatementLine, days_between
from payrelay.reconciliation.rules.files.profiles import Profile
from payrelay.reconciliation.rules.files.statement_files import read_statement
from payrelay.reconciliation.rules.files.summary import FileSummary, Read
from payrelay.reconciliation.store.lines import BATCH, StatementFile
from payrelay.reconciliation.store.stores import ReconciliationStores
from payrelay.store.engine.database import Unit

DAYS_MAX: Final = 400
"""Days that one file can be said to be complete for."""
_DETAILS_MAX: Final = 1_000
"""Characters of a line in the history."""


class FileToImport(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and how it is read; ``opened`` gives its lines anew each time that it is called."""

    name: str
    digest: str
    profile: Profile
    opened: Callable[[], Iterable[str]]

    def read(self, scope: BooksScope, now_ms: int) -> Iterator[Read]:
        """Reads the file once, from its beginning; lines of later than tomorrow are refused.

        Raises StatementUnreadableError.
        """
        until_ms = scope.zone.ends_ms(scope.zone.day(now_ms) + timedelta(days=1))
        zone, gateway_zone = scope.zone, scope.gateway_zone
        return read_statement(self.opened(), self.profile, zone=zone, gateway_zone=gateway_zone, until_ms=until_ms)

    def summary(self, scope: BooksScope, now_ms: int) -> FileSummary:
        """Reads the file once, and tells what it comes to. Raises StatementUnreadableError."""
        made = FileSummary()
        for each in self.read(scope, now_ms):
            made.add(each)
        return made


class Completeness(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of some files together: the days for which they have everything, and what they come to.

    ``total_minor`` and ``count`` are as printed on the statement; None where nobody read them there.
    """

    first: date
    last: date
    total_minor: int | None = None
    count: int | None = None


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file.

    Attributes:
        summary: what it came to.
        movements: what lines it may have.
        is_guess: nobody has tried its profile on a real file.
        new: how many of its lines were not known.
        was_known: it was fed before.
    """

    name: str
    digest: str
    summary: FileSummary
    movements: tuple[Movement, ...]
    is_guess: bool
    new: int
    was_known: bool


async def import_file(relay: Relay, scope: BooksScope, file: FileToImport, actor: Actor) -> ImportedFile:
    """Stores the lines of a file that are new; may be repeated, also after an interruption.

    Raises Refusal (forbidden) where the actor's role doesn't allow it; StatementUnreadableError; StoreError.
    """
    actor.require(Act.IMPORT_STATEMENT)
    now_ms = relay.clock.now_ms()
    summary = file.summary(scope, now_ms)
    earlier = await relay.find(ReconciliationStores).lines.file(scope.merchant, file.digest)
    stored = StatementFile(
        merchant=scope.merchant,
        digest=file.digest,
        name=file.name,
        profile=file.profile.name,
        is_guess=int(file.profile.is_guess),
        summary=msgspec.json.encode(summary).decode(),
        imported_by=actor.name,
        imported_at_ms=now_ms,
        is_whole=0,
    )
    await relay.find(ReconciliationStores).lines.put_file(stored)
    new = 0
    lines = (
        msgspec.structs.replace(each, known_at_ms=now_ms, place=f"{file.name}, {each.place}")
        for each in file.read(scope, now_ms)
        if isinstance(each, StatementLine)
    )
    while batch := list(islice(lines, BATCH)):
        new += await relay.find(ReconciliationStores).lines.add(scope.merchant, batch)
    await relay.find(ReconciliationStores).lines.put_file(msgspec.structs.replace(stored, is_whole=1))
    return ImportedFile(
        name=file.name,
        digest=file.digest,
        summary=summary,
        movements=file.profile.all_movements,
        is_guess=file.profile.is_guess,
        new=new,
        was_known=earlier is not None,
    )


async def say_complete(
    relay: Relay, scope: BooksScope, files: list[ImportedFile], said: Completeness, actor: Actor
) -> str:
    """Stores that files, which are one statement together, have everything of some days; gives what that rests on.

    Raises Refusal: forbidden; invalid_request where a line was refused, the sums differ, or the days can't be. Raises
    StoreError.
    """
    actor.require(Act.IMPORT_STATEMENT)
    _require_days(said)
    if relay.clock.now_ms() < scope.zone.ends_ms(said.last):
        raise Refusal(
            Code.INVALID_REQUEST, f"{said.last} is not over in {scope.zone.name}: no file has everything of it"
        )
    whole = FileSummary.together(each.summary for each in {each.digest: each for each in files}.values())
    if whole.refused_count:
        raise Refusal(Code.INVALID_REQUEST, _why_incomplete(whole, said))
    outside = [day for day in (whole.first_day, whole.last_day) if day and not said.first <= day <= said.last]
    if outside:
        raise Refusal(Code.INVALID_REQUEST, f"the files have lines of {outside[0]}, which is none of these days")
    fitting = whole.fitting(said.total_minor, said.count)
    if fitting.problem is not None:
        raise Refusal(Code.INVALID_REQUEST, fitting.problem)
    movements = sorted({movement for each in files for movement in each.movements})
    guess = "; the profile is a guess" if any(each.is_guess for each in files) else ""
    rests_on = f"{actor.name} said so; {', '.join(fitting.checked)}{guess}"
    now_ms = relay.clock.now_ms()
    digests = ", ".join(each.digest[:16] for each in files)
    act = actor.did(
        Act.IMPORT_STATEMENT,
        f"{scope.account}/{','.join(movements)}/{said.first}/{said.last}",
        at_ms=now_ms,
        details=f"complete for {said.first} to {said.last}: {rests_on}; files {digests}"[:_DETAILS_MAX],
    )
    by = (actor.name, now_ms, rests_on)

    def stored() -> Unit[None]:
        days = days_between(said.first, said.last)
        yield from relay.find(ReconciliationStores).lines.complete_days(scope.merchant, movements, days, by)
        yield from relay.acts.appended(act)

    await relay.find(ReconciliationStores).differences.write(stored)
    return rests_on


def _why_incomplete(whole: FileSummary, said: Completeness) -> str:
    """Says that lines were refused, and what wasn't compared for that."""
    why = f"refused lines: {whole.refused_count}; so the files aren't complete"
    names = {"sum": said.total_minor is not None or bool(whole.totals_minor), "number of lines": said.count is not None}
    uncompared = " and the ".join(name for name, is_said in names.items() if is_said)
    return f"{why}, and can't be compared with the {uncompared} that the statement says" if uncompared else why


def _require_days(said: Completeness) -> None:
    if said.first > said.last:
        raise Refusal(Code.INVALID_REQUEST, "the last day is before the first one")
    if (said.last - said.first).days >= DAYS_MAX:
        raise Refusal(Code.INVALID_REQUEST, f"these are more than {DAYS_MAX} days")
