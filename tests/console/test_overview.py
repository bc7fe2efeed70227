"""How it goes: counts are those of the rows, each part's state is shown, and nobody sees more than the role allows."""

import dataclasses
import re

import pytest
from tests.console.browsing import console_on, signed_in
from tests.flows.console.books import ended, everything, operation
from tests.flows.console.desk import MINUTE_MS, START_MS, Desk
from tests.flows.console.test_find import hired

from payrelay.console.dispatch import Console
from payrelay.console.flows.cases.overview import Overview, read_overview
from payrelay.console.rules.trends import LOOKED_MAX, PACES, Bars, BudgetPart, TrendSpan
from payrelay.console.web.charts import HEIGHT, chart_of_bars, chart_of_budget, chart_of_steps, scale_of
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.gateways.pauses import Pause
from payrelay.core.operators.roles import Role
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, State
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query

HOSTILE = "<script>alert(1)</script>\"'&"


async def seen(desk: Desk, span: TrendSpan = TrendSpan.HOUR) -> Overview:
    """Reads how it goes, for a viewer."""
    return await read_overview(desk.cases, await hired(desk, Role.VIEWER), span)


async def test_everything_that_began_is_counted_once(desk: Desk) -> None:
    """The bars are the rows: operations, pages, notifications and deliveries, each by how it ended."""
    await everything(desk)
    desk.clock.at_ms = START_MS + 30 * MINUTE_MS
    shown = await seen(desk)
    tables = {"operations": shown.operations, "checkouts": shown.checkouts, "notifications": shown.notifications}
    for table, bars in tables.items():
        [[count]] = await desk.database.read(all_rows(Statement(query(f"SELECT count(*) FROM {table}"), ())))  # noqa: S608
        assert (sum(bars.totals), bars.is_cut) == (count, False), table
    assert sum(shown.deliveries.totals) > 0
    assert shown.operations.totals[0] == sum(each.count for each in shown.sums)


async def test_what_began_before_is_not_counted(desk: Desk) -> None:
    """The last hour is an hour; the last week has what the hour leaves out."""
    await operation(desk, 1, at_ms=START_MS)
    desk.clock.at_ms = START_MS + 3 * 60 * MINUTE_MS

    assert sum((await seen(desk)).operations.totals) == 0
    assert (
        sum((await read_overview(desk.cases, await hired(desk, Role.SUPPORT), TrendSpan.WEEK)).operations.totals) == 1
    )


async def test_an_outcome_is_timed_from_the_request_to_the_state_that_holds(desk: Desk) -> None:
    """One that was known at once, and one that was unknown for two minutes; an open one has no time yet."""
    quick = await operation(desk, 1)
    await ended(desk, quick, Event.SUCCEEDED, START_MS + 800, Evidence())
    slow = await operation(desk, 2)
    unknown = await ended(desk, slow, Event.UNKNOWN, START_MS + 900, Evidence())
    await ended(desk, unknown, Event.SUCCEEDED, START_MS + 2 * MINUTE_MS, Evidence())
    await operation(desk, 3)
    desk.clock.at_ms = START_MS + 10 * MINUTE_MS
    shown = await seen(desk)

    assert dict(shown.paces) == {**{name: 0 for _, name in PACES}, "longer": 0, "up to 1 s": 1, "up to 10 min": 1}
    assert [(each.kind, each.count, each.with_amount) for each in shown.sums] == [("charge", 2, 2)]


async def test_what_is_open_and_who_paused_an_account_is_shown(desk: Desk) -> None:
    """With who did it, and the budget as this process saw it; why is in an operator's own words, for support."""
    unknown = await operation(desk, 1)
    await ended(desk, unknown, Event.UNKNOWN, START_MS + 900, Evidence())
    await desk.relay.pauses.add(Pause(account="gateway", since_ms=START_MS, reason="they deploy", operator="ada"))
    desk.cases.budgets.look()
    shown = await seen(desk)

    assert shown.open[State.UNKNOWN].total == 1
    [account] = shown.accounts
    assert account.pause is not None
    assert (account.pause.operator, account.pause.reason) == ("ada", "")
    [told] = (await read_overview(desk.cases, await hired(desk, Role.SUPPORT), TrendSpan.HOUR)).accounts
    assert told.pause is not None
    assert told.pause.reason == "they deploy"
    assert account.before[-1].used is not None
    assert account.before[0].used is None
    assert shown.recovery.ends_at_ms is None


async def test_a_recovery_is_told_with_its_queue(desk: Desk) -> None:
    """Since when commits are lost, who must still acknowledge, and when it ends by itself."""
    lost = LostWindow(since_ms=START_MS - 60 * MINUTE_MS, until_ms=START_MS)
    current = Incarnation(number=2, reason=Beginning.RECOVERED, began_at_ms=START_MS, lost=lost, operator="ada")

    async def read() -> DatabaseIdentity:
        return DatabaseIdentity(id="0" * 32, incarnations=(current,))

    relay = dataclasses.replace(
        desk.relay,
        database=dataclasses.replace(desk.relay.database, lost_commits=LostCommits(read, desk.clock, desk.relay.log)),
    )
    desk.cases = dataclasses.replace(desk.cases, relay=relay)
    window = await signed_in(desk, console_on(desk), "viewer@shop.example", Role.VIEWER)
    await window.get("/console/overview")

    assert "A recovery is under way" in window.text
    assert "Begun by ada" in window.text
    assert 'href="/console/queue#held"' in window.text


async def test_a_full_table_is_counted_in_part_and_says_so(desk: Desk) -> None:
    """No page reads more than its bound, and what it leaves out is told as not counted, not as zero."""
    desk.clock.at_ms = START_MS + 3 * 60 * MINUTE_MS
    first = await operation(desk, 0, at_ms=START_MS)
    columns = "id account merchant principal kind state version subject fingerprint request_id created_at_ms"
    columns = ", ".join([*columns.split(), "updated_at_ms", "send_by_ms", "sealed_call"])
    made = query(
        f"""INSERT INTO operations ({columns}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT $2)
        SELECT printf('op_%012x%020x', $1 + i, i), account, merchant, principal, kind, 'succeeded', version, 's' || i,
        fingerprint, request_id, $1 + i, $1 + i, send_by_ms, sealed_call FROM n, operations WHERE id = $3"""  # noqa: S608
    )
    since_ms = START_MS + 2 * 60 * MINUTE_MS
    await desk.database.write(all_rows(Statement(made, (since_ms, LOOKED_MAX + 5, first.id), is_whole=True)))
    shown = await seen(desk, TrendSpan.DAY)

    assert sum(shown.operations.totals) == LOOKED_MAX
    assert (shown.operations.is_cut, shown.operations.counted_since_ms) == (True, since_ms + 6)
    window = await signed_in(desk, console_on(desk), "eve@shop.example", Role.VIEWER)
    await window.get("/console/overview?span=day")
    assert f"Only the newest {LOOKED_MAX} are counted" in window.text
    assert "not counted" in window.text


@pytest.mark.parametrize("role", Role)
async def test_links_lead_only_where_the_role_may_go(desk: Desk, console: Console, role: Role) -> None:
    """A viewer sees the state of an account, and no link to its acts; every link that is shown opens."""
    await everything(desk)
    window = await signed_in(desk, console, "ada@shop.example", role)
    for span in ("hour", "day", "week", "nonsense"):
        await window.get(f"/console/overview?span={span}")
        assert window.title == "Overview"
    links = set(re.findall(r'href="(/console/[^"#]*)', window.text))

    assert any(link.startswith("/console/act/account/") for link in links) is (role is not Role.VIEWER)
    for link in links - {"/console/assets/console.css"}:
        assert (await window.send("GET", link.replace("&amp;", "&"))).status == 200, link


async def test_hostile_texts_and_secret_addresses_stay_out(desk: Desk) -> None:
    """Labels, reasons and names are shown as text; an endpoint's path, which may be a secret, isn't shown at all."""
    await everything(desk, text=HOSTILE)
    [endpoint] = await desk.relay.dispatch.endpoints.list_all()
    await desk.relay.pauses.add(Pause(account="gateway", since_ms=START_MS, reason=HOSTILE, operator=HOSTILE))
    window = await signed_in(desk, console_on(desk), "viewer@shop.example", Role.VIEWER)
    await window.get("/console/overview")

    assert "alert(1)" in window.text
    assert "<script>alert" not in window.text
    assert endpoint.url not in window.text


async def test_the_start_leads_to_it(desk: Desk, console: Console) -> None:
    """From the page that somebody sees first."""
    window = await signed_in(desk, console, "ada@shop.example", Role.VIEWER)

    assert 'href="/console/overview"' in window.text


def test_a_bar_is_as_high_as_its_number() -> None:
    """On a scale whose top is a round number; one of thousands is drawn too."""
    bars = Bars(
        groups=(("a", "done"), ("b", "doubt")), parts=((50, 50), (0, 0), (1_999, 1)), counted_since_ms=0, is_cut=False
    )
    chart = chart_of_bars(bars)

    assert chart.top == scale_of(2_000) == 2_000
    assert [(each.tone, each.height) for each in chart.rectangles] == [
        *(("done", 4.0), ("doubt", 4.0)),
        *(("done", 159.9), ("doubt", 1.5)),
    ]
    assert [scale_of(each) for each in (0, 1, 3, 11, 51)] == [1, 1, 5, 20, 100]
    assert chart_of_steps([("x", 0), ("y", 2)]).rectangles[0].height == HEIGHT


def test_the_scale_of_a_budget_is_the_budget() -> None:
    """So that a bar to the top means that nothing was left; where the circuit was open, the bar has the other mark."""
    parts = (BudgetPart(None, 0, was_open=False), BudgetPart(30, 0, was_open=False), BudgetPart(15, 1, was_open=True))

    assert chart_of_budget(parts, 30).top == 30
    assert [(each.tone, each.height) for each in chart_of_budget(parts, 30).rectangles] == [
        ("done", HEIGHT),
        ("doubt", HEIGHT / 2),
    ]
    assert chart_of_budget(parts, None).top == 30
    assert chart_of_budget((), None).top == 1
