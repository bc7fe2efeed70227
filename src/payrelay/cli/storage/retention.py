"""The commands about retention: how long data is kept, clearing what is old now, and shrinking the database's file."""

from typing import TYPE_CHECKING

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, CommandError, say
from payrelay.clock import Clock
from payrelay.core.moments import rfc3339, span_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from payrelay.flows.retention.clear import KindStatus

app = group("retention", "How long data is kept, and what was cleared.")


@app.command("status", epilog=examples("payrelay retention status", "payrelay retention status --json"))
@awaited
async def show_status(*, as_json: Json = False) -> int:
    """Tell how long data is kept, and how far the clearing has come."""
    from payrelay.app_commands import opened_clearing
    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.retention.clear import clearing_status

    settings, clock = read_settings(), Clock()
    async with opened_clearing(settings, clock) as opened:
        statuses = await clearing_status(opened.clearing)
    shown = [_shown(each, clock.now_ms()) for each in statuses]
    return show_result({"kinds": shown}, _table(statuses, clock.now_ms()), as_json=as_json)


@app.command("run", epilog=examples("payrelay retention run"))
@awaited
async def run() -> int:
    """Clear everything that is old now, while the service runs.

    The service does the same by itself, a little at a time. This may be interrupted and started again.
    """
    import asyncio

    from payrelay.app_commands import opened_clearing
    from payrelay.flows.retention.clear import clear_all

    settings, clock = read_settings(), Clock()
    async with opened_clearing(settings, clock) as opened:
        identity = await opened.identities.read()
        cleared = await clear_all(opened.clearing, clock.now_ms(), current=identity.current, pause=asyncio.sleep)
    say("Cleared: " + ", ".join(f"{number} {kind}" for kind, number in cleared.items()) + ".")
    return DONE


@app.command("shrink", epilog=examples("payrelay retention shrink"))
def shrink() -> int:
    """Write an embedded database's file anew, without free room in it.

    The service gives whole free pages back by itself; this also joins pages that are half empty. The service must be
    stopped. This needs free disk of twice what the file has in data.
    """
    from payrelay.app_commands import shrunk

    path = read_settings().embedded_path
    if path is None:
        raise CommandError("PostgreSQL uses freed room again by itself: see docs/production/sizing.md")
    before, after = shrunk(path)
    say(f"{path} had {_megabytes(before)}, and has {_megabytes(after)} now.")
    return DONE


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def _shown(status: "KindStatus", now_ms: int) -> dict[str, object]:
    return {
        "kind": status.kind,
        "period_seconds": None if status.period_ms is None else status.period_ms // 1000,
        "oldest": None if status.oldest_ms is None else rfc3339(status.oldest_ms, "seconds"),
        "overdue_seconds": status.overdue_ms(now_ms) // 1000,
        "cleared": status.cleared,
        "waiting": status.waiting,
        "ran_at": None if status.ran_at_ms is None else rfc3339(status.ran_at_ms, "seconds"),
    }


def _table(statuses: "list[KindStatus]", now_ms: int) -> "RenderableType":
    from payrelay.cli.terminal.pages import table

    rows = [
        (
            status.kind,
            "for ever" if status.period_ms is None else span_text(status.period_ms // 1000),
            "none" if status.oldest_ms is None else rfc3339(status.oldest_ms, "seconds"),
            span_text(status.overdue_ms(now_ms) // 1000) if status.overdue_ms(now_ms) else "no",
            str(status.cleared),
            str(status.waiting),
        )
        for status in statuses
    ]
    return table(("what", "kept", "oldest", "overdue", "cleared", "tried again"), rows, empty="Nothing is kept.")
