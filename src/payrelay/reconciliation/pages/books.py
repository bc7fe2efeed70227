"""The books: a month with its days, and one day with its differences and what they rest on."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import quote

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.web.asked import Asked
from payrelay.core.operators.roles import Act, may
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.acts.confirm import existing_target
from payrelay.flows.operators.acts.stale import seen_now
from payrelay.flows.operators.acts.targets import target_of
from payrelay.reconciliation.acts.book_targets import DAY, MONTH, day_in, name_in_books, order_of, state_of, verdict_of
from payrelay.reconciliation.flows.read_pages import (
    DaysView,
    default_month,
    read_books_day,
    read_month,
)
from payrelay.reconciliation.flows.scope import BooksScope, scope_of
from payrelay.reconciliation.rules.days import Sum, month_name
from payrelay.reconciliation.rules.verdicts import (
    BASIS_WORDS,
    CONCERN_WORDS,
    VERDICT_WORDS,
    BooksVerdict,
)


class SumsRow(NamedTuple):
    """The sums of one currency and one movement, by verdict; ``is_correction`` of days that were closed before."""

    currency: str
    movement: str
    is_correction: bool
    by_verdict: dict[BooksVerdict, Sum]


async def show_month(asked: Asked) -> ConsoleAnswer:
    """Shows the days of a month."""
    month = await month_of(asked)
    id_ = name_in_books(month.account, month_name(month.first))
    target = await target_of(asked.site.relay, MONTH, id_)
    can_close = target is not None and Act.CLOSE_DAY in target.acts and may(asked.visited.operator.role, Act.CLOSE_DAY)
    return asked.page(
        "books_month.html",
        month=month,
        month_id=id_,
        can_close=can_close,
        seen="" if target is None else await seen_now(asked.parts, target),
        accounts=sorted(asked.site.relay.accounts),
        rows=[(each, _rows_of(each.sums.sums, each.sums.corrections) if each.sums else []) for each in month.days],
        verdicts=VERDICT_WORDS,
        before=_month_path(month, month.first - timedelta(days=1)),
        behind=_month_path(month, month.last + timedelta(days=1)),
        csv_path=_month_path(month, month.first, "/console/reconciliation.csv"),
        verdict_of=verdict_of,
        order_of=order_of,
    )


async def show_day(asked: Asked) -> ConsoleAnswer:
    """Shows one day with its differences and what they rest on."""
    scope, day = named_in(asked)
    view = await read_books_day(asked.site.relay, scope, day, after=asked.form.get("after", ""))
    role = asked.visited.operator.role
    path = f"/console/reconciliation/{quote(scope.account, safe='')}/{day}"
    if view is None:
        return asked.page("books_unknown_day.html", status=404, account=scope.account, day=day)
    target = await existing_target(asked.site.relay, asked.actor, DAY, name_in_books(scope.account, str(day)))
    return asked.page(
        "books_day.html",
        view=view,
        report=view.report,
        others_left_out=view.others_left_out,
        day_id=target.id,
        seen=await seen_now(asked.parts, target),
        can_close=Act.CLOSE_DAY in target.acts and may(role, Act.CLOSE_DAY),
        can_close_differences=may(role, Act.CLOSE_DIFFERENCE),
        rows=_rows_of(view.report.sums, view.report.corrections),
        verdicts=VERDICT_WORDS,
        bases=BASIS_WORDS,
        concerns=CONCERN_WORDS,
        verdict_of=verdict_of,
        order_of=order_of,
        state_of=state_of,
        id_of=lambda each: name_in_books(scope.account, each.difference.id),
        month_path=f"/console/reconciliation?account={quote(scope.account)}&month={month_name(day)}",
        csv_path=f"{path}/list.csv",
        more_path=None if view.more is None else f"{path}?after={view.more}",
    )


async def month_of(asked: Asked) -> DaysView:
    """Reads the month that an address names. Raises Refusal (not_found, invalid_request), StoreError."""
    relay = asked.site.relay
    scope = scope_of(relay, asked.form.get("account") or min(relay.accounts))
    text = asked.form.get("month", "")
    first = day_in(f"{text}-01") if text else await default_month(relay, scope)
    if first is None or not date.min < first < date(date.max.year, 1, 1):
        raise Refusal(Code.INVALID_REQUEST, "a month must be such as 2026-11")
    return await read_month(relay, scope, first)


def _month_path(month: DaysView, day: date, path: str = "/console/reconciliation") -> str:
    return f"{path}?account={quote(month.account)}&month={month_name(day)}"


def named_in(asked: Asked) -> tuple[BooksScope, date]:
    """Reads the account and the day in an address. Raises Refusal (not_found)."""
    account, text = asked.names
    day = day_in(text)
    if day is None:
        raise Refusal(Code.NOT_FOUND, "an address of a day ends with a day such as 2026-11-22")
    return scope_of(asked.site.relay, account), day


def _rows_of(own: Iterable[Sum], corrections: Iterable[Sum]) -> list[SumsRow]:
    rows = []
    for is_correction, sums in ((False, own), (True, corrections)):
        found: dict[tuple[str, str], dict[BooksVerdict, Sum]] = defaultdict(dict)
        for each in sums:
            found[each.currency, each.movement][each.verdict] = each
        rows += [SumsRow(*key, is_correction, by_verdict) for key, by_verdict in found.items()]
    return rows
