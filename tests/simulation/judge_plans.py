"""The verdict on subscriptions: how they stand by our books, against the gateway's ledger and what it told."""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, Protocol

import msgspec
from tests.simulation.clients import Ask, Told
from tests.simulation.fate import Fate
from tests.simulation.hostility import RIVAL
from tests.simulation.loop import wait_seconds
from tests.simulation.losses import Loss
from tests.simulation.network import Gateway
from tests.simulation.postman import Posted
from tests.simulation.process import START_MS

from payrelay.core.moments import day_at
from payrelay.core.subscriptions.schedule import may_be_next, schedule_shown
from payrelay.store.subscriptions import FAILED_MAX
from payrelay_simulator.clock import STANDING_START
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.records import Subscription

PAID: Final = frozenset({"installment", "retry"})
WORDS: Final = {"ACTIVE": "active", "FAILED": "stopped", "CANCELLED": "stopped", "COMPLETED": "completed"}
READ_TRIES: Final = 3
NOTED_WITHIN_S: Final = 10.0
"""What is read is answered first, and noted then."""
_KNOWN: Final = "SELECT subscription_id, principal FROM subscriptions ORDER BY subscription_id"
"""With who began each, where that is known."""
_OF_ORDER: Final = "SELECT principal FROM checkouts WHERE order_id = ?"
_OF_ORDER_BEFORE: Final = (
    "SELECT principal FROM checkouts WHERE order_id = $1 AND created_at_ms < $2 AND (payment_id IS NOT NULL"
    " OR subscription_id IS NOT NULL OR opened_at_ms IS NOT NULL"
    " OR EXISTS (SELECT 1 FROM signed_texts WHERE subject = checkouts.id))"
    " UNION ALL SELECT principal FROM operations WHERE order_id = $1 AND created_at_ms < $2 AND state = 'succeeded'"
    " AND kind IN ('charge', 'authorization', 'capture', 'retry')"
)
"""Who had an order before commits were lost, and for good, as far as the books that are left tell."""
_INSTALLMENTS: Final = "SELECT payment FROM installments WHERE subscription_id = ? AND is_paid = 1"
_EVENTS: Final = (
    "SELECT subject, type, data, at_ms FROM seen_events WHERE subject LIKE 'subscription:%' ORDER BY number"
)
_APPLIED: Final = (
    "SELECT digest FROM notifications WHERE state = 'applied' "
    "AND why IN ('subscription_noted', 'other_schedule_stopped', 'checkout_finished', 'paid_again') "
    "OR why = 'second_payment'"
)


class Last(msgspec.Struct, frozen=True):
    """An installment as it is shown."""

    payment_id: str | None


class Shown(msgspec.Struct, frozen=True):
    """How a subscription stands, as a shop is told of it."""

    state: str
    installments_paid: int
    next_on: str | None
    last_paid: Last | None
    last_failure: Last | None


class Event(msgspec.Struct, frozen=True):
    """What an event says of a subscription."""

    state: str
    installments_paid: int
    payment_id: str | None = None


class Judged(Protocol):
    """A run that is over."""

    fate: Fate
    gateway: Gateway
    auditor: sqlite3.Connection
    subscription_ids: list[str]
    loss: Loss | None

    async def call(self, ask: Ask, patience_s: float) -> Told:
        """Asks as a client does."""
        ...

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        ...

    def count_up(self, what: str, number: int) -> None:
        """Counts so many more."""
        ...


async def judge_plans(run: Judged, posted: list[Posted]) -> None:
    """Looks at all of it, before and after the gateway is read once more, and blames."""
    entries: dict[str, list[LedgerEntry]] = defaultdict(list)
    for entry in run.gateway.world.ledger.entries():
        if entry.subscription_id is not None:
            entries[str(entry.subscription_id)].append(entry)
    for fault in _faults_of_events(run, entries):
        run.blame(fault)
    applied = {row[0] for row in run.auditor.execute(_APPLIED)}
    for subscription_id, principal in run.auditor.execute(_KNOWN).fetchall():
        plan = run.gateway.world.state.subscriptions.get(int(subscription_id))
        if plan is None:
            run.blame(f"subscription {subscription_id} is known, and the gateway has none of that number")
            continue
        news = [each for each in posted if _is_news_of(plan, each)]
        taken = [each for each in news if hashlib.sha256(each.body).hexdigest() in applied]
        paid = [entry for entry in entries[subscription_id] if entry.kind in PAID]
        run.count_up("installments", len(paid))
        if subscription_id in run.subscription_ids:  # nobody is notified of those that were there from the beginning
            continue
        owner = principal or _owner_of_order(run, plan)
        if owner is None and run.loss is not None and run.loss.ended_s is None:
            if not await _is_reserved(run, subscription_id):
                run.blame(f"subscription {subscription_id} has no known owner, and is open to all")
            continue
        reader = owner or "shop"
        for fault in (
            *_faults_of_installments(run, subscription_id, paid),
            *_faults_of_standing(plan, await _shown(run, subscription_id, reader), paid, taken, news),
            *await _faults_after_reading(run, plan, paid, reader),
        ):
            run.blame(f"subscription {subscription_id} {fault}")


def _is_news_of(plan: Subscription, each: Posted) -> bool:
    """Tells whether a notification reports a plan: its order must be the plan's too, which alone of the two is signed.

    News that was read as of another order may finish a checkout of that order, and tells nothing of the plan it names.
    """
    return (each.fields.get("subscription_id"), each.fields["order_id"]) == (str(plan.subscription_id), plan.order_id)


def _owner_of_order(run: Judged, plan: Subscription) -> str | None:
    """Gives who has the order of a plan that nobody is known to have begun; None where nobody is known to have it.

    The books may learn of the order only when the plan is read.
    """
    if run.loss is not None and run.loss.ended_s is None:
        owner = run.auditor.execute(_OF_ORDER_BEFORE, (plan.order_id, run.loss.since_ms)).fetchone()
    else:
        owner = run.auditor.execute(_OF_ORDER, (plan.order_id,)).fetchone()
    return None if owner is None else str(owner[0])


async def _is_reserved(run: Judged, subscription_id: str) -> bool:
    """Tells whether nobody is shown a subscription whose maker may be lost."""
    asks = [
        Ask(principal=principal, method="GET", path=f"{path}/{subscription_id}", body=b"")
        for principal in ("shop", "app", RIVAL)
        for path in ("subscriptions", "subscription-states")
    ]
    heard = [(await run.call(ask, 60.0)).heard for ask in asks]
    return not any(each is not None and each.http_status == 200 for each in heard)


def _faults_of_events(run: Judged, entries: dict[str, list[LedgerEntry]]) -> Iterator[str]:
    """Told is what was true by then: installments, each once and never more than there were; states go forward."""
    told: set[tuple[str, str | None]] = set()
    before: dict[str, Event] = {}
    for subject, type_, data, at_ms in run.auditor.execute(_EVENTS):
        event, subscription_id = msgspec.json.decode(data, type=Event), subject.partition(":")[2]
        at_s = (at_ms - START_MS) / 1000
        by_then = [each for each in entries[subscription_id] if _at_s(run, each) <= at_s]
        number = sum(each.kind in PAID for each in by_then)
        if event.installments_paid > number:
            yield f"{subject} was told to have {event.installments_paid} paid installments, and had {number}"
        if type_ == "subscription.installment_paid":
            if (subject, event.payment_id) in told:
                yield f"{subject} was told twice to have been paid by {event.payment_id}"
            told.add((subject, event.payment_id))
        last = before.get(subject, event)
        if event.installments_paid < last.installments_paid:
            yield f"{subject} was told to have fewer installments paid than before: {last}, {event}"
        is_revived = any(each.kind == "retry" for each in by_then)
        if last.state == "completed" != event.state or (
            last.state == "stopped" and event.state == "active" and not is_revived
        ):
            yield f"{subject} went back from {last.state} to {event.state} by {type_}"
        before[subject] = event


def _at_s(run: Judged, entry: LedgerEntry) -> float:
    return (entry.at - STANDING_START).total_seconds() - run.fate.skew_s


def _faults_of_installments(run: Judged, subscription_id: str, paid: list[LedgerEntry]) -> Iterator[str]:
    """Each payment that is counted is one of the ledger's."""
    made = {str(each.payment_id) for each in paid}
    for (payment,) in run.auditor.execute(_INSTALLMENTS, (subscription_id,)):
        if payment not in made:
            yield f"has {payment} among its paid installments, and the ledger has {sorted(made)}"


def _may_be_next(plan: Subscription, each: Posted) -> bool:
    """Tells whether the next date that a notification says is one that is believed: it is not signed."""
    received_on = day_at(START_MS + int(each.at_s * 1000), "Asia/Colombo")
    schedule = schedule_shown(f"charged every {plan.recurrence.count} {plan.recurrence.unit}")
    return may_be_next(each.fields.get("item_rec_date_next", ""), received_on, schedule)


def _faults_of_standing(
    plan: Subscription, shown: Shown | None, paid: list[LedgerEntry], taken: list[Posted], news: list[Posted]
) -> Iterator[str]:
    """What is shown without a look at the gateway is no more than was, and no less than was told and taken up.

    News of one of its payments may have been noted before the process died, and doubted when they were taken again.
    """
    if shown is None:
        yield "is known, and not shown"
        return
    made = {str(each.payment_id) for each in paid}
    told = {each.fields.get("payment_id", "") for each in taken if each.fields["status_code"] == "2"} & made
    if not len(told) <= shown.installments_paid <= len(paid):
        yield f"is shown with {shown.installments_paid} paid, told were {sorted(told)}, the ledger has {sorted(made)}"
    dates = [each.fields["item_rec_date_next"] for each in taken if _may_be_next(plan, each)]
    # A date that was too far away on the day of the first delivery isn't believed when the same comes again later.
    firsts = {each.body: each for each in reversed(taken)}.values()
    dates_at_first = [each.fields["item_rec_date_next"] for each in firsts if _may_be_next(plan, each)]
    others = {each.fields.get("item_rec_date_next") for each in news if each.fields.get("payment_id") in made}
    noted = {date for date in others if date is not None and date > max(dates, default="")}
    if shown.state == "active" and shown.next_on not in {
        max(dates, default=None),
        max(dates_at_first, default=None),
        *noted,
    }:
        yield f"is shown to go on on {shown.next_on}, and told was {sorted(dates)}"
    failed = {each.fields.get("payment_id", "") for each in taken if each.fields["status_code"] == "-2"} - made
    last = None if shown.last_failure is None else shown.last_failure.payment_id
    # Of more that may have come in one day, such as made-up ones, only the first are kept.
    if last != max(failed, key=int, default=None) and not (len(failed) > FAILED_MAX and last in failed):
        yield f"is shown to have failed last with {last}, and told was {sorted(failed)}"


async def _faults_after_reading(run: Judged, plan: Subscription, paid: list[LedgerEntry], principal: str) -> list[str]:
    """Once it was read, it stands as it does at the gateway."""
    path = f"subscriptions/{plan.subscription_id}"
    if not await _is_read(run, path, principal) or not await _is_read(run, f"{path}/payments", principal):
        return ["can't be read when all is over"]
    await wait_seconds(NOTED_WITHIN_S)
    shown = await _shown(run, str(plan.subscription_id), principal)
    if shown is None:
        return ["isn't shown when it was read"]
    world, faults = run.gateway.world, []
    received = []
    for each in paid:
        payment = world.state.payments[each.payment_id or 0]
        if payment.is_visible(world.clock.now()) and not payment.is_charged_back and not payment.refunds:
            received.append(payment.payment_id)
    if not len(received) <= shown.installments_paid <= len(paid):
        faults.append(f"is shown with {shown.installments_paid} paid when it was read, and the ledger has {paid}")
    if shown.state != WORDS[plan.status]:
        faults.append(f"is shown as {shown.state} when it was read, and is {plan.status}")
    last = 0 if shown.last_paid is None else int(shown.last_paid.payment_id or 0)
    if last < max(received, default=0):
        faults.append(f"is shown as paid last by {last} when it was read, and was by {received}")
    return faults


async def _is_read(run: Judged, path: str, principal: str) -> bool:
    for _ in range(READ_TRIES):
        told = await run.call(Ask(principal=principal, method="GET", path=path, body=b""), 60.0)
        if told.heard is not None and told.heard.http_status == 200 and "payrelay-stale" not in told.heard.headers:
            return True
    return False


async def _shown(run: Judged, subscription_id: str, principal: str) -> Shown | None:
    ask = Ask(principal=principal, method="GET", path=f"subscription-states/{subscription_id}", body=b"")
    heard = (await run.call(ask, 60.0)).heard
    if heard is None or heard.http_status != 200:
        return None
    return msgspec.convert(msgspec.json.decode(heard.body)["data"], Shown)
