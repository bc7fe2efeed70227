"""Days and differences of the books, as an operator can act on them; as the store has them now.

Each has the account before its name, as in ``day/gateway~2026-11-22``: a database may have the books of several.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final
from urllib.parse import quote

from payrelay.core.money import money_text
from payrelay.core.operators.confirmations import Confirmation
from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.read import DifferenceView, difference_view
from payrelay.reconciliation.flows.read_pages import read_books_day
from payrelay.reconciliation.flows.scope import BooksScope, scope_of
from payrelay.reconciliation.rules.days import DayReport, SeenDay, Sum
from payrelay.reconciliation.rules.verdicts import BASIS_WORDS, VERDICT_WORDS, BooksFinding
from payrelay.reconciliation.store.stores import ReconciliationStores

DAY: Final = "day"
MONTH: Final = "month"
DIFFERENCE: Final = "difference"


def listed_on(account: str, day: date) -> tuple[str, str]:
    """Gives the address of a day's page, and what leads there."""
    return f"/console/reconciliation/{quote(account, safe='')}/{day}", "The day in the books"


def name_in_books(account: str, name: str) -> str:
    """Gives what stands in an address for a day or a difference of an account."""
    return f"{account}~{name}"


def scope_and_name(relay: Relay, id_: str) -> tuple[BooksScope, str] | None:
    """Reads what stands in an address; None where there is no such account."""
    account, _, name = id_.partition("~")
    return (scope_of(relay, account), name) if account in relay.accounts else None


def day_in(text: str) -> date | None:
    """Reads a day such as ``2026-11-22``; None where it is none, or is written otherwise."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None


def seen_text(days: Iterable[SeenDay | None]) -> str:
    """Gives what a form names of days that it shows; None for a day that was not compared."""
    return "_".join(
        "none" if each is None else f"{each.ran_at_ms}-{each.open_differences}-{int(each.is_closed)}" for each in days
    )


def seen_in(confirmation: Confirmation) -> list[SeenDay]:
    """Reads the days that a confirmation showed, all of which were compared."""
    days = confirmation.seen.rpartition(".")[0].split("_")
    return [SeenDay(ran, opened, bool(closed)) for ran, opened, closed in (map(int, each.split("-")) for each in days)]


async def read_day(relay: Relay, id_: str) -> ActTarget | None:
    """Reads a day that was compared. Raises StoreError."""
    named = scope_and_name(relay, id_)
    day = None if named is None else day_in(named[1])
    if named is None or day is None:
        return None
    scope = named[0]
    view = await read_books_day(relay, scope, day, limit=1, others=0)
    if view is None:
        return None
    opened = (await relay.find(ReconciliationStores).differences.open_by_day(scope.merchant, day, day)).get(day, 0)
    return ActTarget(
        noun=DAY,
        id=id_,
        title=f"The books of {day}",
        account=scope.account,
        principal="",
        state=f"closed by {view.closed_by}: {view.closed_reason}" if view.is_closed else "open",
        seen=seen_text([SeenDay(view.report.ran_at_ms, opened, view.is_closed)]),
        acts=(Act.CLOSE_DAY,) if view.is_next else (),
        listed=listed_on(scope.account, day),
        facts=(
            ("Day", f"{day}, in {scope.zone.name}"),
            *figures_of(view.report),
            ("Differences still open", str(opened)),
        ),
    )


async def read_difference(relay: Relay, id_: str) -> ActTarget | None:
    """Reads a difference that was found. Raises StoreError."""
    named = scope_and_name(relay, id_)
    if named is None:
        return None
    scope, name = named
    stored = await relay.find(ReconciliationStores).differences.get(scope.merchant, name)
    if stored is None:
        return None
    day = await relay.find(ReconciliationStores).differences.day(scope.merchant, stored.booked_on)
    view = difference_view(relay, scope, stored, 0 if day is None else day.ran_at_ms)
    found = view.finding
    return ActTarget(
        noun=DIFFERENCE,
        id=id_,
        title=f"Difference: {found.movement} {found.identity}",
        account=scope.account,
        principal="",
        state=state_of(view),
        seen=f"{stored.digest}-{stored.is_open}-{int(view.is_found_still)}",
        acts=(Act.CLOSE_DIFFERENCE,) if stored.is_open else (),
        listed=listed_on(scope.account, stored.booked_on),
        order_id=order_of(found),
        facts=(("Day", str(stored.day)), ("In the list of", str(stored.booked_on)), *facts_of(found)),
    )


def figures_of(report: DayReport) -> tuple[tuple[str, str], ...]:
    """Gives what a day came to, by currency, movement and verdict, as pairs of a title and a text."""
    own, corrected = figure_facts(report.sums, ""), figure_facts(report.corrections, "corrections, ")
    return (*own, *corrected) or (("Figures", "nothing happened on this day, as far as is known"),)


def figure_facts(sums: Iterable[Sum], before: str) -> tuple[tuple[str, str], ...]:
    """Gives sums as pairs of a title, with a word before what they are of, and a text."""
    return tuple(
        (
            f"{each.currency}, {before}{each.movement}, {VERDICT_WORDS[each.verdict]}",
            _figure(each),
        )
        for each in sums
    )


def _figure(each: Sum) -> str:
    ours, theirs = money_text(each.ours_minor, each.currency), money_text(each.theirs_minor, each.currency)
    return "; ".join((f"{each.count}; ours {ours}, theirs {theirs}", *each.bases))


def facts_of(found: BooksFinding) -> tuple[tuple[str, str], ...]:
    """Gives what a finding says, as pairs of a title and a text."""
    return (
        ("Verdict", verdict_of(found)),
        ("Ours", money_text(found.ours_minor, found.currency) or "nothing, or not known"),
        ("Theirs", money_text(found.theirs_minor, found.currency) or "nothing, or not known"),
        ("What it says", found.why),
        ("Rests on", BASIS_WORDS[found.basis]),
    )


def verdict_of(found: BooksFinding) -> str:
    """Gives the verdict in words, with what the sides differ in."""
    aspects = f" ({', '.join(found.aspects)})" if found.aspects else ""
    return f"{VERDICT_WORDS[found.verdict]}{aspects}"


def order_of(found: BooksFinding) -> str | None:
    """Gives the order that a finding is about, as our books have it, or else the statement; None where neither says."""
    ours = None if found.ours is None else found.ours.order_id
    return ours or (None if found.theirs is None else found.theirs.order_id)


def state_of(view: DifferenceView) -> str:
    """Tells whether a difference is open, or who closed it and why."""
    stored = view.difference
    if not stored.is_open:
        return f"closed by {stored.closed_by}: {stored.closed_reason}"
    return "open" if view.is_found_still else "open; the last comparison of its day found it no more"
