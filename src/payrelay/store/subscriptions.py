"""Subscriptions in the store: each fact is merged with the known ones, in the unit of work that writes its events."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.subscriptions.subscription import Fact, Subscription, event_of, events_of, kind_of_payment, merged
from payrelay.errors import Outdated
from payrelay.store.digests.rows import INSTALLMENTS, SUBSCRIPTIONS, RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.rows import struct_of
from payrelay.store.events.outbox import put as put_event
from payrelay.store.imports.payments import is_imported
from payrelay.store.statements import subscriptions as statements
from payrelay.store.statements.pagination import columns_of
from payrelay.store.statements.payment_owners import LEARN, installment_subject

FACTS_MAX: Final = 200
"""Facts of one unit of work."""
PAGE_MAX: Final = 200
FAILED_MAX: Final = 3
"""Failed installments of one subscription that are stored in a day. The gateway tries a card once a day. No record
shows a failure, and nobody signs the number of its payment: whoever has one notification may post any number of others.
"""
_ATTEMPTS_MAX: Final = 5
"""Each further attempt needs another process that noted a fact of the subscription in between."""

NewId: TypeAlias = Callable[[str, int], str]


class Installment(msgspec.Struct, frozen=True, kw_only=True):
    """The payment of one installment: its id, or None where it has none; its amount; and its time."""

    payment_id: str | None
    amount_minor: int | None
    at_ms: int


class SubscriptionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription's known facts, the number of its paid installments, and the last ones paid and failed."""

    subscription: Subscription
    paid: int
    last_paid: Installment | None
    last_failure: Installment | None


_Summaries: TypeAlias = list[SubscriptionSummary]


class SubscriptionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the subscriptions to list: those that are equal in every field that is given."""

    account: str | None = None
    order_id: str | None = None


class SubscriptionOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The account and merchant of a subscription, and the principal that gets its events, where it is known."""

    account: str
    merchant: str
    principal: str | None = None


class Subscriptions:
    """Stores the known facts of subscriptions in a database."""

    def __init__(self, database: Database, new_id: NewId, rows: RowDigests) -> None:
        self._database = database
        self._key = rows.key
        self._new_id = new_id

    async def note(self, owner: SubscriptionOwner, facts: Sequence[Fact], *, now_ms: int, is_news: bool = True) -> None:
        """Merges facts with the known ones, and writes their events; at most FACTS_MAX facts at once.

        With ``is_news`` False the owner knows these facts: events are written of earlier ones alone. An installment
        that was imported is never news. May be repeated: a known fact changes nothing, and its event is written once.
        Raises StoreError.
        """
        for _ in range(_ATTEMPTS_MAX - 1):
            try:
                return await self._database.write(self._note(owner, facts, now_ms, is_news=is_news))
            except Outdated:
                continue  # another process was quicker with this subscription; merge with its result
        return await self._database.write(self._note(owner, facts, now_ms, is_news=is_news))

    async def summary(self, merchant: str, subscription_id: str) -> SubscriptionSummary | None:
        """Reads the summary of a subscription; None where nothing is known of it."""
        return await self._database.read(_summary(merchant, subscription_id))

    async def is_paid(self, merchant: str, subscription_id: str, payment: str) -> bool:
        """Tells whether a payment is among the paid installments of a subscription."""
        key = (merchant, subscription_id, payment)
        return bool(await self._database.read(all_rows(Statement(statements.IS_PAID, key))))

    async def list(
        self, merchant: str, *, after: str, limit: int, principals: frozenset[str] | None = None
    ) -> _Summaries:
        """Reads one page of a merchant's known subscriptions, by their ids above ``after``.

        With ``principals``, only those whose principal is one of them or isn't known.
        """
        limit = min(limit, PAGE_MAX)
        pages = [Statement(statements.LIST_SUBSCRIPTIONS, (merchant, after, limit))]
        if principals is not None:
            place = pages[0].parameters
            pages = [Statement(statements.LIST_OF_PRINCIPAL, (*place, principal)) for principal in sorted(principals)]
            pages.append(Statement(statements.LIST_OF_NOBODY, place))
        return await self._database.read_page(_first_of(pages, limit))

    async def list_for_operator(self, filters: SubscriptionFilter, *, after: tuple[str, str], limit: int) -> _Summaries:
        """Reads one page of all merchants' known subscriptions, by their ids and merchants above ``after``."""
        equal = columns_of(filters)
        page = statements.LIST_FOR_OPERATOR[tuple(equal)]
        return await self._database.read_page(_page(Statement(page, (*after, min(limit, PAGE_MAX), *equal.values()))))

    async def of_id(self, subscription_id: str) -> _Summaries:
        """Reads what is known of a subscription, whatever its merchant."""
        return await self._database.read(_page(Statement(statements.OF_ID, (subscription_id,))))

    def _note(self, owner: SubscriptionOwner, facts: Sequence[Fact], now_ms: int, *, is_news: bool) -> Unit[None]:
        # Always in one order: otherwise two units that note equal subscriptions at once would wait for each other.
        for fact in sorted(facts[:FACTS_MAX], key=lambda each: (each.subscription_id, each.payment or "")):
            yield from self._note_one(owner, fact, now_ms, is_news=is_news)

    def _note_one(self, owner: SubscriptionOwner, fact: Fact, now_ms: int, *, is_news: bool) -> Unit[None]:
        key = (owner.merchant, fact.subscription_id)
        rows = yield Statement(statements.GET_SUBSCRIPTION, key)
        before = struct_of(rows[0][:-1], Subscription) if rows else _unknown(owner, fact)
        # Reports go on being merged with a forged row, which gets no digest: so nobody comes to own the subscription.
        is_right = not rows or self._key.fits(SUBSCRIPTIONS, (*_owned(before), rows[0][-1]))
        after = merged(before, fact, principal=owner.principal)
        is_first_owned = before.principal is None and after.principal is not None
        earlier = (yield from _known_installments(before)) if rows and is_first_owned else []
        is_new_payment = False
        if fact.payment is not None:
            at_ms = fact.payment_at_ms if fact.payment_at_ms is not None else fact.at_ms
            covered = (*key, fact.payment, int(fact.is_paid))
            installment = (*covered, fact.payment_minor, at_ms, self._key.of(INSTALLMENTS, covered))
            of_day = (at_ms - DAY_MS, FAILED_MAX)
            is_new_payment = bool((yield Statement(statements.ADD_INSTALLMENT, (*installment, *of_day))))
            if is_new_payment and fact.is_paid:
                subject = installment_subject(fact.subscription_id, fact.payment)
                yield Statement(LEARN, (owner.merchant, subject, now_ms))
        if after == before and rows and not is_new_payment:
            return
        after = msgspec.structs.replace(after, version=before.version + 1)
        change = statements.CHANGE_SUBSCRIPTION if rows else statements.ADD_SUBSCRIPTION
        digest = self._key.of(SUBSCRIPTIONS, _owned(after)) if is_right else ""
        if not (yield Statement(change, (*msgspec.structs.astuple(after), digest))):
            raise Outdated(f"the subscription {fact.subscription_id!r} was changed since it was read")
        if after.principal is None:
            return
        paid = yield from _paid(after)
        # Installments that were noted before the owner was known had no events.
        unpublished = [
            (kind_of_payment(tried), tried)
            for tried in (yield from _not_imported(owner.merchant, earlier))
            if tried.payment != fact.payment or is_news
        ]
        news: list[tuple[str, Fact | None]] = []
        if is_news:
            is_told = is_new_payment and bool((yield from _not_imported(owner.merchant, [fact])))
            news = events_of(before, after, fact, is_new_payment=is_told)
        for kind, subject_fact in (*unpublished, *news):
            event_id = self._new_id("evt", now_ms)
            yield from put_event(event_of(after, kind, event_id, at_ms=now_ms, paid=paid, fact=subject_fact))


def _not_imported(merchant: str, facts: Sequence[Fact]) -> Unit[list[Fact]]:
    """Gives those of some installments that were not imported; the shop knew the others before."""
    news = []
    for fact in facts:
        if not (fact.is_paid and (yield from is_imported(merchant, fact.payment or ""))):
            news.append(fact)  # noqa: PERF401, a comprehension can't yield
    return news


def _owned(subscription: Subscription) -> tuple[str | None, ...]:
    """Gives what says who owns a subscription, as its digest covers it."""
    return (subscription.merchant, subscription.subscription_id, subscription.principal, subscription.order_id)


def _unknown(owner: SubscriptionOwner, fact: Fact) -> Subscription:
    return Subscription(merchant=owner.merchant, subscription_id=fact.subscription_id, account=owner.account)


def _paid(subscription: Subscription) -> Unit[int]:
    """Counts the paid installments: the notified number, or the number of known payments, whichever is more."""
    key = (subscription.merchant, subscription.subscription_id)
    rows = yield Statement(statements.COUNT_PAID, key)
    counted = rows[0][0]
    return max(subscription.notified_paid or 0, counted if isinstance(counted, int) else 0)


def _known_installments(subscription: Subscription) -> Unit[list[Fact]]:
    """Reads the known installments as facts; the oldest first, at most FACTS_MAX."""
    key = (subscription.merchant, subscription.subscription_id, FACTS_MAX)
    rows = yield Statement(statements.LIST_INSTALLMENTS, key)
    names = ("payment", "is_paid", "payment_minor", "at_ms")
    known = {"subscription_id": subscription.subscription_id, "is_seen": True}
    return [msgspec.convert({**known, **dict(zip(names, row, strict=True))}, Fact, strict=False) for row in rows]


def _summary(merchant: str, subscription_id: str) -> Unit[SubscriptionSummary | None]:
    rows = yield Statement(statements.GET_SUBSCRIPTION, (merchant, subscription_id))
    if not rows:
        return None
    return (yield from _summary_of(struct_of(rows[0][:-1], Subscription)))


def _summary_of(subscription: Subscription) -> Unit[SubscriptionSummary]:
    paid = yield from _paid(subscription)
    last_paid = yield from _last(subscription, is_paid=True)
    last_failure = yield from _last(subscription, is_paid=False)
    return SubscriptionSummary(subscription=subscription, paid=paid, last_paid=last_paid, last_failure=last_failure)


def _page(page: Statement) -> "Unit[list[SubscriptionSummary]]":
    rows = yield page
    found = []
    for row in rows:
        found.append((yield from _summary_of(struct_of(row, Subscription))))  # noqa: PERF401, a comprehension can't yield
    return found


def _first_of(pages: Sequence[Statement], limit: int) -> "Unit[list[SubscriptionSummary]]":
    """Reads several pages of one merchant's subscriptions, and gives the first of all by their ids."""
    rows: list[Row] = []
    for page in pages:
        rows += yield page
    found = sorted((struct_of(row, Subscription) for row in rows), key=lambda each: each.subscription_id)
    summaries = []
    for subscription in found[:limit]:
        summaries.append((yield from _summary_of(subscription)))  # noqa: PERF401, a comprehension can't yield
    return summaries


def _last(subscription: Subscription, *, is_paid: bool) -> Unit[Installment | None]:
    key = (subscription.merchant, subscription.subscription_id, int(is_paid))
    rows = yield Statement(statements.LAST_INSTALLMENT, key)
    if not rows:
        return None
    payment, amount_minor, at_ms = rows[0]
    named = str(payment) if str(payment).isdigit() else None
    return msgspec.convert({"payment_id": named, "amount_minor": amount_minor, "at_ms": at_ms}, Installment)
