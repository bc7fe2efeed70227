"""The command for the audit: looks whether anything was changed or removed, with a server running or without."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, FAULTY, CommandError, show, show_json
from payrelay.clock import Clock
from payrelay.core.moments import rfc3339

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from payrelay.flows.operators.audit import Audit, AuditFinding, Phase, Summary
    from payrelay.settings import Settings

_NOTED: Final = re.compile(r"(\d{1,18}):([0-9a-f]{64})")

app = group("audit", "The audit: finds what was changed or removed.")


@app.command(epilog=examples("payrelay audit verify", "payrelay audit verify --json --anchor 17:DIGEST"))
@awaited
async def verify(
    *,
    anchor: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER:DIGEST", help="An anchor as it was noted; repeatable.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Find what was changed or removed of operations and histories.

    Reads every operation, every journal entry and every stored answer, and changes nothing.
    """
    settings = read_settings()
    findings = []
    async with _audit(settings, dict(map(_noted, anchor or ()))) as audit:
        async for finding in audit.findings():
            if as_json:
                findings.append(finding)
            else:
                show(_line(finding))
    if as_json:
        shown = {"summary": _shown(audit.summary), "findings": msgspec.to_builtins(findings)}
        show_json(shown)
    else:
        show("\n".join(_summary_lines(audit.summary)))
    return FAULTY if audit.summary.findings else DONE


@asynccontextmanager
async def _audit(settings: "Settings", noted: dict[int, str]) -> "AsyncIterator[Audit]":
    """Opens the database, which a server may be using at the same time, with a progress bar on a terminal."""
    from payrelay.app import opened_trail
    from payrelay.cli.terminal.pages import Page, progress_bar
    from payrelay.flows.operators.audit import Audit

    async with opened_trail(settings, Clock()) as (trail, since_ms):
        with progress_bar(Page(stderr=True)) as bar:
            yield Audit(trail, since_ms, ProgressBars(bar), noted=noted)


def _noted(text: str) -> tuple[int, str]:
    match = _NOTED.fullmatch(text)
    if match is None:
        raise CommandError("--anchor takes a number, a colon and 64 hex digits, as the log and this command print them")
    return int(match[1]), match[2]


class ProgressBars:
    """A bar for each phase, from when it begins."""

    def __init__(self, bar: "Progress") -> None:
        self._bar = bar
        self._tasks: dict[Phase, TaskID] = {}

    def __call__(self, phase: "Phase", done: int, total: int) -> None:
        """Moves it."""
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase)
        self._bar.update(self._tasks[phase], completed=done, total=total)


def _shown(summary: "Summary") -> dict[str, object]:
    """Gives the summary for programs; times are texts, as everywhere outside the database."""
    members = msgspec.structs.asdict(summary)
    since_ms, until_ms = members.pop("chain_since_ms"), members.pop("anchored_until_ms")
    until = None if until_ms is None else rfc3339(until_ms, "seconds")
    return {"chain_since": rfc3339(since_ms, "seconds"), **members, "anchored_until": until}


def _line(finding: "AuditFinding") -> str:
    subject = finding.operation_id if finding.anchor is None else f"anchor {finding.anchor}"
    entry = "" if finding.version is None else f" entry {finding.version}:"
    return _printable(f"{subject}:{entry} {finding.text}")


def _printable(text: str) -> str:
    """Shows what a terminal would obey, or break the line at; whoever changed a row may have put it there."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _summary_lines(summary: "Summary") -> list[str]:
    compared = f"{summary.operations} operations with {summary.entries} journal entries, {summary.anchors} anchors"
    lines = [f"{compared}; the chain began at {rfc3339(summary.chain_since_ms, 'seconds')}."]
    if summary.entries_before_chain:
        lines.append(f"{summary.entries_before_chain} journal entries are from before the chain.")
    if summary.entries_unanchored:
        unanchored = summary.entries_unanchored
        lines.append(f"{unanchored} journal entries are not anchored yet: of these, removed ones can't be found.")
    if summary.newest_anchor is not None and summary.anchored_until_ms is not None:
        lines.append(
            f"The newest anchor, up to {rfc3339(summary.anchored_until_ms, 'seconds')}, is {summary.newest_anchor}."
        )
    lines.append(f"{summary.findings} findings." if summary.findings else "Nothing was changed or removed.")
    return lines
