"""The page for people: what happened to the money, what was notified of, which calls came."""

from urllib.parse import quote

import msgspec

from payrelay_simulator.clock import gateway_date
from payrelay_simulator.pages.drawing import templates
from payrelay_simulator.presses import PRESSES
from payrelay_simulator.world import World

# Rows of each table, the newest; the control API tells all.
ROWS_MAX = 100


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown: every order or one, with a sentence on what was just pressed, and again after some seconds."""

    order_id: str | None = None
    refresh_s: int | None = None
    said: str = ""

    def address(self, *, order_id: str | None = None, refresh_s: int | None = None) -> str:
        """The page's address for an order, coming again or not."""
        parts = [f"order_id={quote(order_id, safe='')}"] if order_id else []
        parts += [f"refresh={refresh_s}"] if refresh_s else []
        return "/_sim/" + ("?" + "&".join(parts) if parts else "")


def overview_page(world: World, shown: Shown | None = None) -> str:
    """Return the page, of all orders or of one."""
    shown = shown or Shown()
    order_id = shown.order_id
    notifications = world.notifications.records(order_id=order_id)
    entries = [each for each in world.ledger.entries() if order_id in {None, each.order_id}]
    calls = [each for each in world.calls.records() if order_id in {None, each.order_id}]
    return templates.get_template("overview.html").render(
        now=gateway_date(world.clock.now()),
        gateway_date=gateway_date,
        shown=shown,
        presses=PRESSES,
        entries=entries[: -ROWS_MAX - 1 : -1],
        entries_total=len(entries),
        notifications=notifications[: -ROWS_MAX - 1 : -1],
        notifications_total=len(notifications),
        calls=calls[: -ROWS_MAX - 1 : -1],
        calls_total=world.calls.arrived if order_id is None else len(calls),
        faults=[*world.faults.pending, *world.notifications.faults.pending],
    )
