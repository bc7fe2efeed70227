"""The page for people: what happened to the money, what was notified of, which calls came."""

from payrelay_simulator.clock import gateway_date
from payrelay_simulator.pages.drawing import templates
from payrelay_simulator.world import World

# Rows of each table, the newest; the control API tells all.
ROWS_MAX = 100


def overview_page(world: World, *, refresh_s: int | None = None) -> str:
    """Return the page; with `refresh_s` the browser asks for it again after so many seconds."""
    notifications = world.notifications.records()
    entries, calls = world.ledger.entries(), world.calls.records()
    return templates.get_template("overview.html").render(
        now=gateway_date(world.clock.now()),
        gateway_date=gateway_date,
        refresh_s=refresh_s,
        entries=entries[: -ROWS_MAX - 1 : -1],
        entries_total=len(entries),
        notifications=notifications[: -ROWS_MAX - 1 : -1],
        notifications_total=len(notifications),
        calls=calls[: -ROWS_MAX - 1 : -1],
        calls_total=world.calls.arrived,
        faults=[*world.faults.pending, *world.notifications.faults.pending],
    )
