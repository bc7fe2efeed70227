"""The commands for the audit: look whether anything was changed or removed, and print the newest anchor."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from payrelay.cli.session import operator_from, read_settings, reason_from
from payrelay.cli.terminal.declaring import By, Json, Reason, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, FAULTY, NOT_FOUND, UNCOVERED, CommandError, show, show_json
from payrelay.clock import Clock
from payrelay.core.moments import moment_of, rfc3339

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from payrelay.core.database.incarnations import Incarnation, LostWindow
    from payrelay.core.payments.audit_chain import AnchorExplanation
    from payrelay.flows.audit.audit import Audit, AuditFinding, Phase, Summary
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
    anchors: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file of noted anchors, one in a line, as PAYRELAY_ANCHOR_PATH names it."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Find what was changed or removed of histories and other rows.

    Reads every operation, every journal entry, every stored answer and every row with a digest, and changes nothing.
    """
    settings = read_settings()
    noted = [*map(_noted, anchor or ()), *(each for path in anchors or () for each in _noted_in(path))]
    findings = []
    async with _audit(settings, _by_number(noted)) as audit:
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
    if audit.summary.findings:
        return FAULTY
    return DONE if audit.summary.is_verified else UNCOVERED


@app.command("anchor", epilog=examples("payrelay audit anchor >> anchors-of-the-shop.txt"))
@awaited
async def print_anchor() -> int:
    """Print the newest anchor, to be kept outside the database."""
    from payrelay.app_commands import opened_trail

    async with opened_trail(read_settings(), Clock()) as trail:
        newest = await trail.last_anchor()
    if newest is None:
        raise CommandError("there is no anchor yet: a running service makes one each hour", NOT_FOUND)
    show(f"{rfc3339(newest.until_ms, 'seconds')} {newest.text}")
    return DONE


@app.command(
    "explain",
    epilog=examples("payrelay audit explain --from 20261121T10Z --until 20261121T11Z --reason NTP"),
)
@awaited
async def explain(
    *,
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="The first wrong time.  [required]")] = "",
    until: Annotated[str, typer.Option("--until", metavar="TIME", help="The last wrong time.  [required]")] = "",
    reason: Reason = "",
    by: By = None,
) -> int:
    """Explain entries that a wrong clock dated into the past.

    It adds a signed line for each anchor, and changes nothing. It refuses where the audit finds anything else.
    """
    from payrelay.app_commands import opened_trail
    from payrelay.flows.audit.audit import find_explainable

    settings, who, why = read_settings(), operator_from(by), reason_from(reason)
    from_ms, until_ms = _time(since, "--from"), _time(until, "--until")
    async with _audit(settings, {}) as audit, opened_trail(settings, Clock()) as trail:
        explanations = await find_explainable(
            audit, trail, from_ms=from_ms, until_ms=until_ms, operator=who, reason=why, at_ms=Clock().now_ms()
        )
        for each in explanations:
            await trail.explain(each)
            show(_explained(each))
    if not explanations:
        raise CommandError("no anchor needs an explanation", NOT_FOUND)
    return DONE


def _time(text: str, option: str) -> int:
    try:
        return moment_of(text)
    except ValueError:
        raise CommandError(f"{option} takes a time with its zone, such as 2026-11-21T10:00:00Z") from None


def _explained(each: "AnchorExplanation") -> str:
    entries = f"{each.present_entries - each.entries} entries came into its span later"
    when = rfc3339(each.at_ms, "seconds")
    return _printable(f"Anchor {each.number}: {entries}; explained at {when}, by {each.operator}: “{each.reason}”.")


@asynccontextmanager
async def _audit(settings: "Settings", noted: dict[int, str]) -> "AsyncIterator[Audit]":
    """Opens the database, which a server may be using at the same time, with a progress bar on a terminal."""
    from payrelay.app_commands import opened_audit
    from payrelay.cli.terminal.pages import Page, progress_bar

    with progress_bar(Page(stderr=True)) as bar:
        async with opened_audit(settings, Clock(), ProgressBars(bar), noted) as audit:
            yield audit


def _noted(text: str) -> tuple[int, str]:
    match = _NOTED.fullmatch(text)
    if match is None:
        raise CommandError("--anchor takes a number, a colon and 64 hex digits, as the log and this command print them")
    return int(match[1]), match[2]


def _noted_in(path: Path) -> list[tuple[int, str]]:
    """Reads a file of anchors: each is the last word of its line."""
    try:
        words = [line.split()[-1] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: the anchors can't be read: {error}") from None
    wrong = next((word for word in words if _NOTED.fullmatch(word) is None), None)
    if wrong is not None:
        raise CommandError(f"{path}: a line doesn't end with an anchor, which is a number, a colon and 64 hex digits")
    return [_noted(word) for word in words]


def _by_number(noted: list[tuple[int, str]]) -> dict[int, str]:
    """Raises CommandError where two digests were noted under one number: one of them is no anchor of this database."""
    digests: dict[int, str] = {}
    for number, digest in noted:
        if digests.setdefault(number, digest) != digest:
            raise CommandError(f"two different anchors were noted under the number {number}")
    return digests


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
    times = {name: members.pop(f"{name}_ms") for name in ("chain_since", "anchored_until", "cleared_until")}
    texts = {name: None if at_ms is None else rfc3339(at_ms, "seconds") for name, at_ms in times.items()}
    gaps = [
        {
            "incarnation": each.number,
            "began_at": rfc3339(each.began_at_ms, "seconds"),
            "lost_since": rfc3339(each.lost.since_ms, "seconds"),
            "lost_until": rfc3339(each.lost.until_ms, "seconds"),
            "operator": each.operator,
            "note": each.note,
        }
        for each in members.pop("incarnations")
        if each.lost is not None
    ]
    members["explained"] = msgspec.to_builtins(summary.explained)
    return {"is_verified": summary.is_verified, **texts, **members, "lost_windows": gaps}


def _line(finding: "AuditFinding") -> str:
    subject = finding.row or finding.operation_id
    subject = subject if finding.anchor is None else f"anchor {finding.anchor}"
    entry = "" if finding.version is None else f" entry {finding.version}:"
    return _printable(f"{subject}:{entry} {finding.text}")


def _printable(text: str) -> str:
    """Shows what a terminal would obey, or break the line at; whoever changed a row may have put it there."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _summary_lines(summary: "Summary") -> list[str]:
    compared = f"{summary.operations} operations with {summary.entries} journal entries, {summary.anchors} anchors"
    since = rfc3339(summary.chain_since_ms, "seconds")
    lines = [f"{compared}, {summary.rows} other rows; the chain began at {since}.", *_gaps(summary)]
    if summary.newest_anchor is not None and summary.anchored_until_ms is not None:
        lines.append(
            f"The newest anchor, up to {rfc3339(summary.anchored_until_ms, 'seconds')}, is {summary.newest_anchor}."
        )
    if summary.newest_act is not None:
        lines.append(f"{summary.acts} acts of operators; the newest is {summary.newest_act}.")
    if summary.findings:
        return [*lines, f"{summary.findings} findings."]
    if summary.is_verified:
        return [*lines, "Verified: nothing was changed or removed."]
    return [*lines, "Not verified: nothing wrong was found, but not everything is covered."]


def _lost(incarnation: "Incarnation", lost: "LostWindow") -> str:
    began = f"Incarnation {incarnation.number} began at {rfc3339(incarnation.began_at_ms, 'seconds')}"
    by = f", by {incarnation.operator}, because “{incarnation.note}”" if incarnation.operator else ""
    between = f"from {rfc3339(lost.since_ms, 'seconds')} to {rfc3339(lost.until_ms, 'seconds')}"
    return _printable(f"{began}{by}: what was stored {between} may be lost.")


def _gaps(summary: "Summary") -> list[str]:
    """Says what the audit can't see, or sees only from some time on."""
    lines = [_lost(each, each.lost) for each in summary.incarnations if each.lost is not None]
    lines += map(_explained, summary.explained)
    if summary.anchors_lost:
        numbers = ", ".join(map(str, summary.anchors_lost))
        lines.append(
            f"{len(summary.anchors_lost)} noted anchors are not here as they were noted, and may be among what is lost:"
            f" {numbers}."
        )
    if summary.cleared_until_ms is not None:
        until = rfc3339(summary.cleared_until_ms, "seconds")
        lines.append(
            f"Cleared, as their periods of retention were over: {summary.entries_cleared} journal entries of"
            f" {summary.histories_cleared} operations, {summary.answers_cleared} answers,"
            f" {summary.calls_cleared} calls, of operations up to {until}. What is left of them is compared."
        )
    young = summary.entries_unanchored - summary.entries_overdue
    if young:
        lines.append(f"{young} journal entries are not anchored yet: of these, removed ones can't be found.")
    if summary.entries_overdue:
        lines.append(
            f"{summary.entries_overdue} journal entries should be anchored by now, and are not: either no service was"
            " running since, or anchors were removed."
        )
    return lines
