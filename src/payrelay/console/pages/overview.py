"""How it goes: charts, what is open, the state of accounts and endpoints, and a recovery."""

from contextlib import suppress

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.cases.overview import read_overview
from payrelay.console.rules.trends import LOOKED_MAX, WAITING_MAX, TrendSpan
from payrelay.console.web.asked import Asked
from payrelay.console.web.charts import HEIGHT, WIDTH, chart_of_bars, chart_of_budget, chart_of_steps
from payrelay.core.operators.roles import Act, may

_SPANS = {TrendSpan.HOUR: "the last hour", TrendSpan.DAY: "the last day", TrendSpan.WEEK: "the last week"}
_KINDS = {"release": "void"}


async def show(asked: Asked) -> ConsoleAnswer:
    """Shows how it goes, in the time that is chosen."""
    span = TrendSpan.DAY
    with suppress(ValueError):
        span = TrendSpan(asked.form.get("span", ""))
    seen = await read_overview(asked.cases, asked.actor, span)
    charts = (
        ("operations", "Operations, by how they ended", seen.operations),
        ("checkouts", "Pages for customers, by how they ended", seen.checkouts),
        ("notifications", "Notifications of the gateway", seen.notifications),
        ("deliveries", "Deliveries of events to your endpoints", seen.deliveries),
    )
    return asked.page(
        "overview.html",
        live=f"/console/overview?span={span}",
        seen=seen,
        span=span,
        spans=_SPANS,
        charts=[(id_, title, bars, chart_of_bars(bars)) for id_, title, bars in charts],
        paces=chart_of_steps(seen.paces),
        budgets=[(each, chart_of_budget(each.before, each.budget.limit_calls)) for each in seen.accounts],
        kinds=_KINDS,
        size=(WIDTH, HEIGHT),
        looked_max=LOOKED_MAX,
        waiting_max=WAITING_MAX,
        can_act=may(asked.visited.operator.role, Act.ADD_NOTE),
    )
