"""A month of the books as an operator can close it: all of its days, as the last comparisons showed them."""

from datetime import timedelta
from urllib.parse import quote

from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.relay import Relay
from payrelay.reconciliation.acts.book_targets import MONTH, day_in, figure_facts, scope_and_name, seen_text
from payrelay.reconciliation.flows.read_pages import DaysView, read_month
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.days import SeenDay, added, month_name


async def read_month_target(relay: Relay, id_: str) -> ActTarget | None:
    """Reads a month such as ``gateway~2026-11``, of which a day was compared. Raises StoreError."""
    named = scope_and_name(relay, id_)
    first = None if named is None else day_in(f"{named[1]}-01")
    if named is None or first is None:
        return None
    month = await read_month(relay, named[0], first)
    compared = [each.sums for each in month.days if each.sums is not None]
    if not compared:
        return None
    why_not = _why_not(relay, named[0], month)
    return ActTarget(
        noun=MONTH,
        id=id_,
        title=f"The books of {month_name(first)}",
        account=month.account,
        principal="",
        state=why_not or "open",
        seen=seen_text(
            None
            if each.sums is None
            else SeenDay(each.sums.ran_at_ms, each.open_differences, each.closed_at_ms is not None)
            for each in month.days
        ),
        acts=() if why_not else (Act.CLOSE_DAY,),
        listed=(
            f"/console/reconciliation?account={quote(month.account)}&month={first:%Y-%m}",
            "The month in the books",
        ),
        facts=(
            ("Days", f"{month.first} to {month.last}, in {month.timezone}"),
            ("Days of which not everything can be known", str(sum(bool(each.unseen) for each in compared))),
            ("Days that are closed already", str(sum(each.closed_at_ms is not None for each in month.days))),
            *figure_facts(added(one for each in compared for one in each.sums), ""),
            *figure_facts(added(one for each in compared for one in each.corrections), "corrections, "),
            ("Differences still open", str(sum(each.open_differences for each in month.days))),
        ),
    )


def _why_not(relay: Relay, scope: BooksScope, month: DaysView) -> str:
    """Says why the month can't be closed now; empty where it can be."""
    if relay.clock.now_ms() < scope.zone.ends_ms(month.last):
        return "not over"
    missing = sum(each.sums is None for each in month.days)
    if missing:
        return f"not compared on {missing} of its days"
    if all(each.closed_at_ms is not None for each in month.days):
        return "closed"
    if month.closed_to is not None and month.closed_to < month.first - timedelta(days=1):
        return f"behind days that are open: the books are closed up to {month.closed_to}"
    return ""
