"""Subscriptions as they are known: each fact is joined to what was known, in the unit of work that tells of it."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.subscriptions.subscription import Fact, Subscription, event_of, events_of, joined, kind_of_payment
from payrelay.errors import Outdated
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.rows import struct_of
from payrelay.store.events.outbox import put as put_event
from payrelay.store.statements import subscriptions as statements

FACTS_MAX: Final = 200
"""Facts of one unit of work."""
PAGE_MAX: Final = 200
_ATTEMPTS_MAX: Final = 5
"""Each further attempt needs another process to have noted something of the same subscription in between."""

NewId: TypeAlias = Callable[[str, int], str]


class Installment(msgspec.Struct, frozen=True, kw_only=True):
    """One installment that was tried: its payment, None where it has no id; how much; and when."""

    payment_id: str | None
    amount_minor: int | None
    at_ms: int


class SubscriptionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How a subscription stands: what is known of it, how many installments are paid, and its last ones."""

    subscription: Subscription
    paid: int
    last_paid: Installment | None
    last_failure: Installment | None


class SubscriptionOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose subscription it is: under which account and merchant, and who is told of it where that is known."""

    account: str
    merchant: str
    principal: str | None = None


class Subscriptions:
    """Keeps what is known of subscriptions in a database."""

    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def note(self, whose: SubscriptionOwner, facts: Sequence[Fact], *, now_ms: int) -> None:
        """Joins facts to what is known, with the events that tell of it; at most FACTS_MAX at once.

        May be repeated: what is known already changes nothing, and is told once. Raises StoreError.
        """
        for _ in range(_ATTEMPTS_MAX - 1):
            try:
                return await self._database.write(self._note(whose, facts, now_ms))
            except Outdated:
                continue  # another process was quicker with the same subscription; it is joined to that
        return await self._database.write(self._note(whose, facts, now_ms))

    async def summary(self, merchant: str, subscription_id: str) -> SubscriptionSummary | None:
        """Reads how a subscription stands; None where nothing is known of it."""
        return await self._database.read(_summary(merchant, subscription_id))

    async def is_paid(self, merchant: str, subscription_id: str, payment: str) -> bool:
        """Tells whether a payment is among the paid installments of a subscription."""
        key = (merchant, subscription_id, payment)
        return bool(await self._database.read(all_rows(Statement(statements.IS_PAID, key))))

    async def list(self, merchant: str, *, after: str, limit: int) -> "list[SubscriptionSummary]":
        """Reads one page of those that are known, by their ids above ``after``."""
        return await self._database.read(_page(merchant, after, min(limit, PAGE_MAX)))

    def _note(self, whose: SubscriptionOwner, facts: Sequence[Fact], now_ms: int) -> Unit[None]:
        # Always in the same order: two that note the same ones at once would wait for each other otherwise.
        for fact in sorted(facts[:FACTS_MAX], key=lambda each: (each.subscription_id, each.payment or "")):
            yield from self._note_one(whose, fact, now_ms)

    def _note_one(self, whose: SubscriptionOwner, fact: Fact, now_ms: int) -> Unit[None]:
        key = (whose.merchant, fact.subscription_id)
        rows = yield Statement(statements.GET_SUBSCRIPTION, key)
        before = _subscription(rows[0]) if rows else _unknown(whose, fact)
        after = joined(before, fact, principal=whose.principal)
        is_first_told = before.principal is None and after.principal is not None
        earlier = (yield from _tried(before)) if rows and is_first_told else []
        is_new_payment = False
        if fact.payment is not None:
            at_ms = fact.payment_at_ms if fact.payment_at_ms is not None else fact.at_ms
            tried = (*key, fact.payment, int(fact.is_paid), fact.payment_minor, at_ms)
            is_new_payment = bool((yield Statement(statements.ADD_INSTALLMENT, tried)))
        if after == before and rows and not is_new_payment:
            return
        after = msgspec.structs.replace(after, version=before.version + 1)
        change = statements.CHANGE_SUBSCRIPTION if rows else statements.ADD_SUBSCRIPTION
        if not (yield Statement(change, _parameters(after))):
            raise Outdated(f"the subscription {fact.subscription_id!r} was changed since it was read")
        if after.principal is None:
            return
        paid = yield from _paid(after)
        # What was noted before it was known whose it is was told to nobody.
        untold = [(kind_of_payment(tried), tried) for tried in earlier]
        for kind, told in (*untold, *events_of(before, after, fact, is_new_payment=is_new_payment)):
            event_id = self._new_id("evt", now_ms)
            yield from put_event(event_of(after, kind, event_id, at_ms=now_ms, paid=paid, fact=told))


def _unknown(whose: SubscriptionOwner, fact: Fact) -> Subscription:
    return Subscription(merchant=whose.merchant, subscription_id=fact.subscription_id, account=whose.account)


def _paid(subscription: Subscription) -> Unit[int]:
    """Counts what is paid: as told, or as it is known by its payments, whichever is more."""
    key = (subscription.merchant, subscription.subscription_id)
    rows = yield Statement(statements.COUNT_PAID, key)
    counted = rows[0][0]
    return max(subscription.notified_paid or 0, counted if isinstance(counted, int) else 0)


def _tried(subscription: Subscription) -> Unit[list[Fact]]:
    """Reads the installments that are known, as facts; the oldest first, at most FACTS_MAX."""
    key = (subscription.merchant, subscription.subscription_id, FACTS_MAX)
    rows = yield Statement(statements.LIST_INSTALLMENTS, key)
    names = ("payment", "is_paid", "payment_minor", "at_ms")
    known = {"subscription_id": subscription.subscription_id, "is_seen": True}
    return [msgspec.convert({**known, **dict(zip(names, row, strict=True))}, Fact, strict=False) for row in rows]


def _summary(merchant: str, subscription_id: str) -> Unit[SubscriptionSummary | None]:
    rows = yield Statement(statements.GET_SUBSCRIPTION, (merchant, subscription_id))
    if not rows:
        return None
    return (yield from _summary_of(_subscription(rows[0])))


def _summary_of(subscription: Subscription) -> Unit[SubscriptionSummary]:
    paid = yield from _paid(subscription)
    last_paid = yield from _last(subscription, is_paid=True)
    last_failure = yield from _last(subscription, is_paid=False)
    return SubscriptionSummary(subscription=subscription, paid=paid, last_paid=last_paid, last_failure=last_failure)


def _page(merchant: str, after: str, limit: int) -> "Unit[list[SubscriptionSummary]]":
    rows = yield Statement(statements.LIST_SUBSCRIPTIONS, (merchant, after, limit))
    found = []
    for row in rows:
        found.append((yield from _summary_of(_subscription(row))))  # noqa: PERF401, a comprehension can't yield
    return found


def _last(subscription: Subscription, *, is_paid: bool) -> Unit[Installment | None]:
    key = (subscription.merchant, subscription.subscription_id, int(is_paid))
    rows = yield Statement(statements.LAST_INSTALLMENT, key)
    if not rows:
        return None
    payment, amount_minor, at_ms = rows[0]
    named = str(payment) if str(payment).isdigit() else None
    return msgspec.convert({"payment_id": named, "amount_minor": amount_minor, "at_ms": at_ms}, Installment)


def _parameters(subscription: Subscription) -> tuple[Value, ...]:
    return msgspec.structs.astuple(subscription)


def _subscription(row: Row) -> Subscription:
    return struct_of(row, Subscription)
