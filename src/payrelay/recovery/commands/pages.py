"""What the commands for a recovery show."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from payrelay.core.moments import rfc3339, spoken
from payrelay.core.payments.explanations import printable
from payrelay.core.payments.operation import Kind

if TYPE_CHECKING:
    from payrelay.recovery.flows.reports.show_status import RecoveryStatus


def held_in_words(held: Mapping[Kind, int]) -> str:
    """Counts held operations by their kinds: ``2 of kind authorization, 1 of kind void``."""
    return ", ".join(f"{count} of kind {kind}" for kind, count in held.items())


def status_lines(status: "RecoveryStatus") -> Iterator[str]:
    """Tells where a recovery stands."""
    current = status.incarnation
    yield f"Database {status.database_id}, incarnation {current.number}, since {spoken(current.began_at_ms)} UTC."
    if current.behind:
        yield f"The database is behind: {current.behind}. Nothing takes effect until `payrelay recover` was run."
    elif current.lost is None:
        yield "No commits are known to be lost."
    if current.lost is not None:
        by = f" By {printable(current.operator)}." if current.operator else ""
        because = f" {printable(current.note)}" if current.note else ""
        lost = f"{spoken(current.lost.since_ms)} to {spoken(current.lost.until_ms)}"
        yield f"Commits from {lost} UTC count as lost.{by}{because}"
    if status.ahead_ms:
        yield f"The clock was {status.ahead_ms // 1000} s ahead when the recovery was begun. Set it right."
    if current.ended_recovery_at_ms is not None:
        yield f"The recovery ended at {spoken(current.ended_recovery_at_ms)} UTC."
    if status.ends_at_ms is not None:
        yield f"The recovery is under way, and ends by itself at {spoken(status.ends_at_ms)} UTC."
        yield f"Acknowledged: {_names(sorted(current.acknowledged))}. Not yet: {_names(status.waiting_for)}."
    for report in current.reports:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in report.verdicts.items())
        by = f" by {printable(report.operator)}" if report.operator else ""
        yield f"Report of {report.account}, {spoken(report.at_ms)} UTC{by}, sha256:{report.digest}: {verdicts}."
    yield f"Held: {held_in_words(status.held) or 'nothing'}."
    if status.held:
        yield "`payrelay operations list --state held` lists them; `payrelay recover decide` decides."
    elif status.ends_at_ms is not None and not status.waiting_for:
        yield "All known principals have acknowledged: `payrelay recover end` ends it."


def status_json(status: "RecoveryStatus") -> dict[str, object]:
    """Gives where a recovery stands, for programs."""
    current = status.incarnation
    return {
        "database_id": status.database_id,
        "incarnation": current.number,
        "began_at": rfc3339(current.began_at_ms),
        "is_recovering": current.is_recovering,
        "behind": current.behind or None,
        "lost_since": None if current.lost is None else rfc3339(current.lost.since_ms),
        "lost_until": None if current.lost is None else rfc3339(current.lost.until_ms),
        "operator": current.operator,
        "note": current.note,
        "acknowledged": {name: rfc3339(at_ms) for name, at_ms in current.acknowledged.items()},
        "waiting_for": status.waiting_for,
        "held": status.held,
        "reports": [
            {
                "digest": each.digest,
                "account": each.account,
                "at": rfc3339(each.at_ms),
                "operator": each.operator,
                "verdicts": each.verdicts,
            }
            for each in current.reports
        ],
        "clock_ahead_s": status.ahead_ms // 1000,
        "ends_at": None if status.ends_at_ms is None else rfc3339(status.ends_at_ms),
        "ended_at": None if current.ended_recovery_at_ms is None else rfc3339(current.ended_recovery_at_ms),
    }


def _names(names: list[str]) -> str:
    return ", ".join(map(printable, names)) or "none"
