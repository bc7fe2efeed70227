"""What the commands of the reconciliation print for people."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from payrelay.cli.terminal.pages import Cell, table
from payrelay.core.moments import spoken
from payrelay.core.money import decimal_text
from payrelay.reconciliation.rules.days import added
from payrelay.reconciliation.rules.entries import Zone
from payrelay.reconciliation.rules.verdicts import VERDICT_WORDS, BooksFinding

if TYPE_CHECKING:
    from payrelay.reconciliation.flows.read import DayView, DifferenceView
    from payrelay.reconciliation.flows.read_pages import DaysView, ListedDay
    from payrelay.reconciliation.rules.days import DayReport, Sum


def day_page(report: "DayReport", now_ms: int) -> RenderableType:
    """Draws what a day came to."""
    age = (Zone(report.timezone).day(now_ms) - report.day).days
    head = (
        f"{report.account}, {report.day} in {report.timezone}, compared {spoken(report.ran_at_ms)} UTC, {age} days old"
    )
    parts: list[RenderableType] = [Text(head), _sums(report.sums)]
    if report.corrections:
        parts += [Text("Corrections of days that were closed before:"), _sums(report.corrections)]
    parts += [Text(f"Rests on: {each}") for each in report.rests_on]
    parts += [Text(f"Not known: {each.movement}: {each.why}") for each in report.unseen]
    if report.listed:
        parts.append(_findings(report.listed))
    if report.left_out:
        parts.append(Text(f"{report.left_out} more are not listed; the differences among them are stored."))
    return Group(*parts)


def days_page(view: "DaysView") -> RenderableType:
    """Draws the figures of several days, each in a line, and what they come to together."""
    head = f"{view.account}, {view.first} to {view.last} in {view.timezone}"
    closed = "no day is closed yet" if view.closed_to is None else f"the books are closed up to {view.closed_to}"
    rows = [[str(each.day), _state_of(each), _counts(each), str(each.open_differences)] for each in view.days]
    titles = ("day", "state", "what it came to", "still open")
    compared = [each.sums for each in view.days if each.sums is not None]
    parts: list[RenderableType] = [
        Text(f"{head}; {closed}."),
        table(titles, rows, empty="None of these days has come."),
        Text("Together:"),
        _sums(added(one for each in compared for one in each.sums)),
    ]
    corrections = added(one for each in compared for one in each.corrections)
    if corrections:
        parts += [Text("Corrections of days that were closed before:"), _sums(corrections)]
    return Group(*parts)


def _state_of(day: "ListedDay") -> str:
    if day.sums is None:
        return "not compared"
    state = "open" if day.closed_at_ms is None else "closed"
    return f"{state}, not complete" if day.sums.unseen else state


def _counts(day: "ListedDay") -> str:
    """Tells how many things have each verdict, corrections included."""
    if day.sums is None:
        return "-"
    sums = (*day.sums.sums, *day.sums.corrections)
    counts = {verdict: sum(each.count for each in sums if each.verdict is verdict) for verdict in VERDICT_WORDS}
    told = [f"{count} {VERDICT_WORDS[verdict]}" for verdict, count in counts.items() if count]
    return ", ".join(told) or "nothing happened"


def differences_page(found: "Iterable[DifferenceView]") -> RenderableType:
    """Draws stored differences, with who closed each."""
    rows = [
        (
            each.difference.id,
            [
                f"{each.difference.movement} {each.difference.identity}, {each.difference.day}",
                _verdict(each.finding),
                each.finding.why,
            ],
            _amounts(each.finding),
            f"{each.age_days}d",
            _state(each),
        )
        for each in found
    ]
    return table(("id", "what", "amounts", "age", "closed"), rows, empty="No difference.", leading=1)


def closed_line(view: "DayView") -> RenderableType:
    """Tells whether a day is closed, and by whom."""
    if view.closed_at_ms is None:
        return Text("The day is open.")
    return Text(f"The day was closed by {view.closed_by} at {spoken(view.closed_at_ms)} UTC: {view.closed_reason}")


def _sums(sums: "Iterable[Sum]") -> RenderableType:
    sums = list(sums)
    rows = [
        (
            each.currency,
            each.movement,
            VERDICT_WORDS[each.verdict],
            str(each.count),
            decimal_text(each.ours_minor),
            decimal_text(each.theirs_minor),
            decimal_text(each.fee_minor),
        )
        for each in sums
    ]
    titles = ("currency", "what", "verdict", "count", "ours", "theirs", "fees")
    drawn = table(titles, rows, empty="Nothing happened on this day, as far as is known.")
    bases = [f"{each.currency} {each.movement}, agreed: {said}." for each in sums for said in each.bases]
    return Group(drawn, *map(Text, bases))


def _findings(found: Iterable[BooksFinding]) -> RenderableType:
    rows = [
        (
            each.id,
            [
                f"{each.movement} {each.identity}, {each.day}",
                _verdict(each),
                each.why,
                *(text for text in (_ours(each), _theirs(each)) if text),
            ],
            _amounts(each),
        )
        for each in found
    ]
    return table(("id", "what", "amounts"), rows, empty="-", leading=1)


def _verdict(found: BooksFinding) -> str:
    aspects = f" ({', '.join(found.aspects)})" if found.aspects else ""
    return f"{VERDICT_WORDS[found.verdict]}{aspects}"


def _amounts(found: BooksFinding) -> Cell:
    ours, theirs = found.ours_minor, found.theirs_minor
    return [
        f"ours {found.currency} {'-' if ours is None else decimal_text(ours)}",
        f"theirs {found.currency} {'-' if theirs is None else decimal_text(theirs)}",
    ]


def _ours(found: BooksFinding) -> str:
    return "" if found.ours is None else f"ours: {found.ours.id}, order {found.ours.order_id}, {found.ours.standing}"


def _theirs(found: BooksFinding) -> str:
    line = found.theirs
    if line is None:
        return ""
    word = f' ("{line.word}")' if line.word else ""
    return f"theirs: {line.place}, {line.day}, {line.state}{word}"


def _state(view: "DifferenceView") -> Cell:
    stored = view.difference
    if stored.is_open:
        return "open" if view.is_found_still else ["open", "the last comparison found it no more"]
    return [f"by {stored.closed_by}", stored.closed_reason or ""]
