"""The books as tables to be saved: the figures of a month, and what is listed of a day."""

from typing import Final

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import csv
from payrelay.core.money import decimal_text
from payrelay.core.text.csv_text import csv_text
from payrelay.errors import Code, Refusal
from payrelay.reconciliation.acts.book_targets import order_of, state_of, verdict_of
from payrelay.reconciliation.flows.read import DifferenceView
from payrelay.reconciliation.flows.read_pages import SAVED_MAX, BooksDayView, DaySums, read_books_day
from payrelay.reconciliation.pages.books import month_of, named_in
from payrelay.reconciliation.rules.days import Sum, month_name
from payrelay.reconciliation.rules.verdicts import BASIS_WORDS, VERDICT_WORDS, BooksFinding

_SUM_COLUMNS: Final = (
    *("account", "day", "state", "age_days", "currency", "what", "verdict", "is_correction", "count"),
    *("ours", "theirs", "fees", "without_amount", "took_no_money", "by_state", "open_differences"),
)
_FINDING_COLUMNS: Final = (
    *("account", "day", "id", "what", "name", "order_id", "payment_id", "verdict", "currency", "ours", "theirs"),
    *("says", "rests_on", "our_entry", "their_line", "their_day", "fee", "age_days", "state", "is_correction"),
)


async def month_as_csv(asked: Asked) -> ConsoleAnswer:
    """Gives the same days as a table; a day that was not compared has one line without sums."""
    month = await month_of(asked)
    rows = []
    for each in month.days:
        state = "closed" if each.closed_at_ms is not None else "not compared" if each.sums is None else "open"
        head = (month.account, str(each.day), state, str(each.age_days))
        lines = [] if each.sums is None else _lines_of(each.sums)
        rows += [(*head, *line, str(each.open_differences)) for line in lines or [("",) * 11]]
    return csv(f"payrelay-books-{month_name(month.first)}.csv", csv_text(_SUM_COLUMNS, rows))


async def day_as_csv(asked: Asked) -> ConsoleAnswer:
    """Gives what is listed of a day as a table."""
    scope, day = named_in(asked)
    view = await read_books_day(asked.site.relay, scope, day, limit=SAVED_MAX, others=SAVED_MAX)
    if view is None:
        raise Refusal(Code.NOT_FOUND, f"{day} was not compared yet")
    rows = [_finding_fields(view, each.finding, each) for each in view.differences]
    rows += [_finding_fields(view, each, None) for each in view.others]
    return csv(f"payrelay-books-{day}.csv", csv_text(_FINDING_COLUMNS, rows))


def _lines_of(sums: DaySums) -> list[tuple[str, ...]]:
    lines = [_sum_fields(each, is_correction=False) for each in sums.sums]
    return lines + [_sum_fields(each, is_correction=True) for each in sums.corrections]


def _sum_fields(each: Sum, *, is_correction: bool) -> tuple[str, ...]:
    return (
        each.currency,
        each.movement,
        VERDICT_WORDS[each.verdict],
        "yes" if is_correction else "no",
        str(each.count),
        decimal_text(each.ours_minor),
        decimal_text(each.theirs_minor),
        decimal_text(each.fee_minor),
        str(each.unknown),
        str(each.moved_nothing),
        str(each.by_state),
    )


def _finding_fields(view: BooksDayView, each: BooksFinding, stored: DifferenceView | None) -> tuple[str, ...]:
    ours, theirs = each.ours, each.theirs
    payment = (None if ours is None else ours.payment_id) or (None if theirs is None else theirs.payment_id)
    return (
        view.report.account,
        str(each.day),
        each.id,
        each.movement,
        each.identity,
        order_of(each) or "",
        payment or "",
        verdict_of(each),
        each.currency,
        _amount(each.ours_minor),
        _amount(each.theirs_minor),
        each.why,
        BASIS_WORDS[each.basis],
        "" if ours is None else ours.id,
        "" if theirs is None else theirs.place,
        "" if theirs is None else str(theirs.day),
        _amount(None if theirs is None else theirs.fee_minor),
        str(view.age_days if stored is None else stored.age_days),
        "" if stored is None else state_of(stored),
        "yes" if each.day != view.report.day else "no",
    )


def _amount(amount_minor: int | None) -> str:
    return "" if amount_minor is None else decimal_text(amount_minor)
