"""Find: one field for whatever somebody names, filters beside it, and what is shown as CSV.

The whole search is in the address, so that it can be shared and gone back to.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.cases.find import find
from payrelay.console.rules.finding import KINDS, STATES, TEXT_LENGTH_MAX, Found, Hit, Search, SearchError, Thing
from payrelay.console.web.asked import Asked
from payrelay.console.web.rendering import csv
from payrelay.core.moments import rfc3339
from payrelay.core.money import AmountError, decimal_text, typed_minor
from payrelay.core.text.csv_text import csv_text

FIELDS: Final = ("q", "kind", "state", "account", "amount", "from", "to", "before")
"""What an address of a search may have."""
FILTERS: Final = FIELDS[1:7]
_COLUMNS: Final = (
    *("time", "what", "id", "account", "order_id", "state", "amount", "currency", "payment_id", "subscription_id"),
    "found_by",
)


async def show(asked: Asked) -> ConsoleAnswer:
    """Shows the form, and what was found where something is looked for."""
    found, error = None, None
    try:
        search = search_of(asked.form, asked.sent.zone)
        if any(asked.form.get(name) for name in FIELDS):
            found = await find(asked.cases, asked.actor, search)
    except SearchError as wrong:
        error = str(wrong)
    return asked.page(
        "find.html",
        status=200 if error is None else 422,
        error=error,
        given=asked.form,
        has_filter=any(asked.form.get(name) for name in FILTERS),
        kinds=[str(kind) for kind in KINDS],
        states=[str(state) for state in STATES],
        accounts=sorted(asked.cases.relay.accounts),
        found=found,
        looked_back_to_ms=None if found is None else found.looked_back_to_ms,
        what=what_of,
        csv_path=path_of(asked.form, "/console/find.csv"),
        older_path=path_of({**asked.form, "before": (found.older if found else None) or ""}),
    )


async def as_csv(asked: Asked) -> ConsoleAnswer:
    """Gives the same page of a search as a table that a spreadsheet opens; times are in UTC."""
    try:
        search = search_of(asked.form, asked.sent.zone)
    except SearchError as wrong:
        return asked.page("message.html", status=422, title="That can't be looked for", text=str(wrong))
    found = await find(asked.cases, asked.actor, search)
    return csv("payrelay-find.csv", csv_text(_COLUMNS, _rows(found)))


def search_of(form: Mapping[str, str], zone: str) -> Search:
    """Reads a search from the fields of an address. Raises SearchError, which names the field that is wrong."""
    text = form.get("q", "").strip()
    if len(text) > TEXT_LENGTH_MAX:
        raise SearchError(f"No id is longer than {TEXT_LENGTH_MAX} characters.")
    until = _day_ms(form, "to", zone, days=1)
    return Search(
        text=text,
        kind=_one_of(form, "kind", KINDS),
        state=_one_of(form, "state", STATES),
        account=form.get("account") or None,
        amount_minor=_amount(form.get("amount", "")),
        since_ms=_day_ms(form, "from", zone),
        until_ms=until,
        before=form.get("before") or None,
    )


def path_of(form: Mapping[str, str], path: str = "/console/find") -> str:
    """Gives the address of a search, with those of its fields that have a value."""
    return f"{path}?{urlencode([(name, form[name]) for name in FIELDS if form.get(name)])}"


def what_of(hit: Hit) -> str:
    """Names what was found, for people."""
    if hit.noun is Thing.CHECKOUT:
        return f"page: {hit.kind}"
    if hit.noun is Thing.NOTIFICATION:
        return f"notification: {hit.kind}"
    return hit.kind if hit.noun is Thing.OPERATION and hit.kind is not None else hit.noun.value


def _one_of(form: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    value = form.get(name) or None
    if value is not None and value not in choices:
        raise SearchError(f"There is no such {name}.")
    return value


def _amount(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return typed_minor(text)
    except AmountError as error:
        raise SearchError(f"The amount {error}.") from None


def _day_ms(form: Mapping[str, str], name: str, zone: str, *, days: int = 0) -> int | None:
    """Reads a day; gives its beginning in the reader's zone, or that of some days later."""
    text = form.get(name, "").strip()
    if not text:
        return None
    try:
        day = date.fromisoformat(text) + timedelta(days=days)
        return int(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise SearchError("A day must be a date such as 2026-11-23.") from None


def _rows(found: Found) -> list[tuple[str, ...]]:
    return [
        (
            rfc3339(hit.at_ms, "seconds") if hit.at_ms else "",
            what_of(hit),
            hit.id,
            hit.account,
            hit.order_id or "",
            hit.state or "",
            "" if hit.amount_minor is None else decimal_text(hit.amount_minor),
            hit.currency or "",
            hit.payment_id or "",
            hit.subscription_id or "",
            hit.found_by,
        )
        for hit in found.hits
    ]
