"""Subscriptions in the store: each fact is merged with the known ones, in the unit of work that writes its events."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.subscriptions.subscription import Fact, Subscription, event_of, events_of, kind_of_payment, merged
from payrelay.errors import Outdated
from payrelay.store.digests.rows import RowDigests, RowVerifier
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.events.outbox import put as put_event
from payrelay.store.imports.payments import is_imported
from payrelay.store.payments.paid_again import OrderPayment, tell_if_paid_again
from payrelay.store.statements import subscriptions as statements
from payrelay.store.statements.pagination import columns_of
from payrelay.store.statements.subscriptions import INSTALLMENTS, SUBSCRIPTIONS

FACTS_MAX: Final = 200
"""Facts of one unit of work."""
PAGE_MAX: Final = 200
FAILED_MAX: Final = 3
"""Failed installments of one subscription that are stored in a day. The gateway tries a card once a day. No record
shows a failure, and nobody signs the number of its payment: whoever has one notification may post any number of others.
"""
FAILED_READ: Final = 3
"""Failed installments that are read for the last one: somebody may have written others into the database."""
_PAYMENT: Final = INSTALLMENTS.columns.index("payment")
_IS_PAID: Final = INSTALLMENTS.columns.index("is_paid")
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
    """Stores the known facts of subscriptions in a database. A row whose digest is wrong counts as not existing."""

    def __init__(self, database: Database, new_id: NewId, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows
        self._key = rows.key
        self._new_id = new_id

    async def note(self, owner: SubscriptionOwner, facts: Sequence[Fact], *, now_ms: int, is_news: bool = True) -> None:
        """Merges facts with the known ones, and writes their events; at most FACTS_MAX facts at once.

        With ``is_news`` False the owner knows these facts: events are written of earlier ones alone. An installment
        that was imported is never news. Where the first payment of a plan is a further one of its order, that is told
        in the same unit of work. May be repeated: a known fact changes nothing, and its event is written once.
        Raises StoreError.
        """
        verifier = self._rows.verifier()
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                await self._database.write(self._note(owner, facts, now_ms, verifier, is_news=is_news))
                break
            except Outdated:  # another process was quicker with this subscription; merge with its result
                if attempt == _ATTEMPTS_MAX:
                    raise
        await self._rows.report_all(verifier.wrong)

    async def summary(self, merchant: str, subscription_id: str) -> SubscriptionSummary | None:
        """Reads the summary of a subscription; None where nothing is known of it."""
        found = await self._rows.verified(lambda verifier: _summary(merchant, subscription_id, verifier))
        return found[0] if found else None

    async def is_paid(self, merchant: str, subscription_id: str, payment: str) -> bool:
        """Tells whether a payment is among the paid installments of a subscription."""
        key = (merchant, subscription_id, payment)
        rows = await self._database.read(all_rows(Statement(statements.INSTALLMENT, key)))
        return any(row[_IS_PAID] for row in await self._rows.trusted(INSTALLMENTS, rows))

    async def list(
        self, merchant: str, *, after: str, limit: int, principals: frozenset[str] | None = None
    ) -> _Summaries:
        """Reads one page of a merchant's known subscriptions, by their ids above ``after``.

        With ``principals``, only those whose principal is one of them or isn't known.
        """
        limit, begin = min(limit, PAGE_MAX), (merchant, after)
        lists = [_List(statements.LIST_SUBSCRIPTIONS, begin)]
        if principals is not None:
            lists = [_List(statements.LIST_OF_PRINCIPAL, begin, (principal,)) for principal in sorted(principals)]
            lists.append(_List(statements.LIST_OF_NOBODY, begin))
        return await self._rows.verified(lambda verifier: _first_of(lists, limit, verifier), is_page=True)

    async def list_for_operator(self, filters: SubscriptionFilter, *, after: tuple[str, str], limit: int) -> _Summaries:
        """Reads one page of all merchants' known subscriptions, by their ids and merchants above ``after``."""
        equal = columns_of(filters)
        listed = _List(statements.LIST_FOR_OPERATOR[tuple(equal)], after, tuple(equal.values()), is_of_merchant=False)
        return await self._rows.verified(lambda verifier: _page(listed, min(limit, PAGE_MAX), verifier), is_page=True)

    async def of_id(self, subscription_id: str) -> _Summaries:
        """Reads what is known of a subscription, whatever its merchant."""
        return await self._rows.verified(lambda verifier: _of_id(subscription_id, verifier))

    def _note(
        self, owner: SubscriptionOwner, facts: Sequence[Fact], now_ms: int, verifier: RowVerifier, *, is_news: bool
    ) -> Unit[None]:
        # Always in one order: otherwise two units that note equal subscriptions at once would wait for each other.
        noted = sorted(facts[:FACTS_MAX], key=lambda each: (each.subscription_id, each.payment or ""))
        begun = []
        for fact in noted:
            first = yield from self._note_one(owner, fact, now_ms, verifier, is_news=is_news)
            if first is not None:
                begun.append(first)
        # Behind the rows of all subscriptions, and for the same reason in one order.
        for first in sorted(begun, key=lambda each: each.order_id) if is_news else ():
            paid = {each.payment for each in noted if each.is_paid and each.subscription_id == first.plan}
            yield from tell_if_paid_again(first, at_ms=now_ms, key=self._key, of_plan=len(paid))

    def _note_one(
        self, owner: SubscriptionOwner, fact: Fact, now_ms: int, verifier: RowVerifier, *, is_news: bool
    ) -> Unit[OrderPayment | None]:
        """Notes one fact; gives the payment that it is about where that is the first known one of a plan."""
        key = (owner.merchant, fact.subscription_id)
        rows = yield Statement(statements.GET_SUBSCRIPTION, key)
        before = SUBSCRIPTIONS.value(rows[0][:-1]) if rows else _unknown(owner, fact)
        # Reports go on being merged with a forged row, which gets no digest: so nobody comes to own the subscription,
        # and nobody is told of it.
        is_right = not rows or bool(verifier.right(SUBSCRIPTIONS, rows))
        after = merged(before, fact, principal=owner.principal)
        is_first_owned = before.principal is None and after.principal is not None
        earlier = (yield from _known_installments(before, verifier)) if rows and is_first_owned else []
        is_new_payment = False
        if fact.payment is not None:
            at_ms = fact.payment_at_ms if fact.payment_at_ms is not None else fact.at_ms
            columns = (*key, fact.payment, int(fact.is_paid), fact.payment_minor, at_ms)
            installment = self._key.digested(INSTALLMENTS, columns)
            of_day = (at_ms - DAY_MS, FAILED_MAX)
            is_new_payment = bool((yield Statement(statements.ADD_INSTALLMENT, (*installment, *of_day))))
            if is_new_payment and fact.is_paid:
                subject = statements.installment_subject(fact.subscription_id, fact.payment)
                yield Statement(statements.LEARN, (owner.merchant, subject, now_ms))
        if after == before and rows and not is_new_payment:
            return None
        after = msgspec.structs.replace(after, version=before.version + 1)
        change = statements.CHANGE_SUBSCRIPTION if rows else statements.ADD_SUBSCRIPTION
        row = SUBSCRIPTIONS.row(after)
        digest = self._key.of(SUBSCRIPTIONS, row) if is_right else ""
        if not (yield Statement(change, (*row, digest))):
            raise Outdated(f"the subscription {fact.subscription_id!r} was changed since it was read")
        installments = (yield from _paid_installments(after, verifier)) if is_right else ()
        first = _payment_of(after, fact) if is_new_payment and fact.is_paid and len(installments) == 1 else None
        if after.principal is None or not is_right:
            return first
        paid = _paid(after, installments)
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
            event = event_of(after, kind, event_id, at_ms=now_ms, paid=paid, fact=subject_fact)
            yield from put_event(event, self._key)
        return first


def _not_imported(merchant: str, facts: Sequence[Fact]) -> Unit[list[Fact]]:
    """Gives those of some installments that were not imported; the shop knew the others before."""
    news = []
    for fact in facts:
        if not (fact.is_paid and (yield from is_imported(merchant, fact.payment or ""))):
            news.append(fact)  # noqa: PERF401, a comprehension can't yield
    return news


def _unknown(owner: SubscriptionOwner, fact: Fact) -> Subscription:
    return Subscription(merchant=owner.merchant, subscription_id=fact.subscription_id, account=owner.account)


def _payment_of(plan: Subscription, fact: Fact) -> OrderPayment | None:
    """Gives the payment of an installment; None where the plan's order isn't known."""
    if plan.order_id is None:
        return None
    return OrderPayment(
        merchant=plan.merchant,
        order_id=plan.order_id,
        account=plan.account,
        principal=plan.principal,
        payment_id=_number(fact.payment),
        plan=plan.subscription_id,
        amount_minor=fact.payment_minor,
        currency=plan.currency,
        at_ms=fact.at_ms if fact.payment_at_ms is None else fact.payment_at_ms,
    )


def _number(payment: Value) -> str | None:
    """Gives a payment's number; None for the name of an installment that was told without one."""
    return str(payment) if str(payment).isdigit() else None


def _paid(subscription: Subscription, installments: Sequence[Row]) -> int:
    """Counts the paid installments: the notified number, or the number of known payments, whichever is more."""
    return max(subscription.notified_paid or 0, len(installments))


def _paid_installments(subscription: Subscription, verifier: RowVerifier) -> Unit[Sequence[Row]]:
    """Reads the paid installments, the last one first."""
    key = (subscription.merchant, subscription.subscription_id)
    rows = yield Statement(statements.PAID_INSTALLMENTS, key)
    return verifier.right(INSTALLMENTS, rows)


def _known_installments(subscription: Subscription, verifier: RowVerifier) -> Unit[list[Fact]]:
    """Reads the known installments as facts; the oldest first, at most FACTS_MAX."""
    key = (subscription.merchant, subscription.subscription_id, FACTS_MAX)
    rows = yield Statement(statements.LIST_INSTALLMENTS, key)
    names = ("payment", "is_paid", "payment_minor", "at_ms")
    known = {"subscription_id": subscription.subscription_id, "is_seen": True}
    installments = [dict(zip(names, row[_PAYMENT:], strict=True)) for row in verifier.right(INSTALLMENTS, rows)]
    return [msgspec.convert({**known, **members}, Fact, strict=False) for members in installments]


def _summary(merchant: str, subscription_id: str, verifier: RowVerifier) -> Unit[list[SubscriptionSummary]]:
    rows = yield Statement(statements.GET_SUBSCRIPTION, (merchant, subscription_id))
    return (yield from _summaries(_subscriptions(rows, verifier), verifier))


def _of_id(subscription_id: str, verifier: RowVerifier) -> Unit[list[SubscriptionSummary]]:
    rows = yield Statement(statements.OF_ID, (subscription_id,))
    return (yield from _summaries(_subscriptions(rows, verifier), verifier))


def _page(listed: "_List", limit: int, verifier: RowVerifier) -> Unit[list[SubscriptionSummary]]:
    found = yield from _first_rows(listed, limit, verifier)
    return (yield from _summaries(found, verifier))


def _first_of(lists: Sequence["_List"], limit: int, verifier: RowVerifier) -> Unit[list[SubscriptionSummary]]:
    """Reads several lists of one merchant's subscriptions, and gives the first of all by their ids."""
    found: list[Subscription] = []
    for listed in lists:
        found += yield from _first_rows(listed, limit, verifier)
    found.sort(key=lambda each: each.subscription_id)
    return (yield from _summaries(found[:limit], verifier))


class _List(NamedTuple):
    """A list of subscriptions: its query, the key behind which it begins, and what its rows are equal in.

    ``is_of_merchant``: the key's first part is the merchant of all rows; else the key is an id and its merchant.
    """

    query: Query
    after: tuple[str, str]
    equal: tuple[Value, ...] = ()
    is_of_merchant: bool = True


def _first_rows(listed: _List, limit: int, verifier: RowVerifier) -> Unit[list[Subscription]]:
    """Reads ``limit`` subscriptions whose rows are right, or as many as there are."""
    found: list[Subscription] = []
    after = listed.after
    while (left := limit - len(found)) > 0:
        rows = yield Statement(listed.query, (*after, left, *listed.equal))
        found += _subscriptions(rows, verifier)
        if len(rows) < left:
            break
        merchant, subscription_id = str(rows[-1][0]), str(rows[-1][1])  # wrong rows must not end the list
        after = (merchant, subscription_id) if listed.is_of_merchant else (subscription_id, merchant)
    return found


def _subscriptions(rows: Sequence[Row], verifier: RowVerifier) -> list[Subscription]:
    return verifier.values(SUBSCRIPTIONS, rows)


def _summaries(subscriptions: Sequence[Subscription], verifier: RowVerifier) -> Unit[list[SubscriptionSummary]]:
    found = []
    for subscription in subscriptions:
        paid = yield from _paid_installments(subscription, verifier)
        key = (subscription.merchant, subscription.subscription_id, FAILED_READ)
        rows = yield Statement(statements.FAILED_INSTALLMENTS, key)
        summary = SubscriptionSummary(
            subscription=subscription,
            paid=_paid(subscription, paid),
            last_paid=_first(paid),
            last_failure=_first(verifier.right(INSTALLMENTS, rows)),
        )
        found.append(summary)
    return found


def _first(installments: Sequence[Row]) -> Installment | None:
    if not installments:
        return None
    payment, _, amount_minor, at_ms = installments[0][_PAYMENT:]
    return msgspec.convert({"payment_id": _number(payment), "amount_minor": amount_minor, "at_ms": at_ms}, Installment)
