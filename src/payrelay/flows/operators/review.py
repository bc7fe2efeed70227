"""Lists for operators what needs a person or is open, and shows all that is known of one operation."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.orders.paid_again import OrderPayment, standing
from payrelay.core.payments.explanations import reason_phrase
from payrelay.core.payments.operation import JournalEntry, Operation, OperationFilter, State
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import CallCleared
from payrelay.flows.payments.find_operations import chargebacks_of
from payrelay.flows.payments.operation_views import ChargebackView
from payrelay.flows.relay import Relay

OPEN: Final = (State.NEEDS_ATTENTION, State.HELD, State.UNKNOWN, State.PENDING)
"""The states that are listed by default, in this order. They are read oldest first; of other states there may be
millions, and an operator wants the newest."""
PAID_AGAIN_MS: Final = 30 * DAY_MS
"""How long an order that was paid again is listed. Nobody has to say that a customer meant to pay twice."""
_PAGE: Final = 200
"""Rows that are read at once where most of them may be passed over."""


class ReviewFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which operations to list.

    Attributes:
        state: only those in this state; None for all in OPEN.
        account, order_id: only those of this account or order.
        is_all: also those that are not in OPEN, newest first.
        limit: how many of each group, at least 1.
    """

    state: State | None = None
    account: str | None = None
    order_id: str | None = None
    is_all: bool = False
    limit: int = 50

    def has(self, operation: Operation) -> bool:
        """Tells whether account and order of an operation pass the filter."""
        return (self.account is None or operation.account == self.account) and (
            self.order_id is None or operation.order_id == self.order_id
        )


class ReviewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a list, and a phrase with the reason of its state."""

    operation: Operation
    why: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Operations in one state, oldest first; ``state`` is None for operations in various states outside OPEN."""

    state: State | None
    entries: list[ReviewEntry]
    has_more: bool


class OrderPaidAgain(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was paid again, since when, and its payments that stand."""

    account: str
    order_id: str
    since_ms: int
    standing: list[OrderPayment]


class OperationStudy(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one operation; ``call`` is None where it is no longer kept."""

    operation: Operation
    call: Effect | None
    history: list[JournalEntry]
    answer: Answer | None
    chargebacks: list[ChargebackView] = []


async def list_for_operator(relay: Relay, review_filter: ReviewFilter) -> list[Group]:
    """Lists operations in groups; empty groups are left out. Raises StoreError."""
    states: tuple[State | None, ...] = OPEN if review_filter.state is None else (review_filter.state,)
    if review_filter.is_all and review_filter.state is None:
        states = (*states, None)
    groups = [await _group(relay, review_filter, state) for state in states]
    return [group for group in groups if group.entries]


async def list_paid_again(relay: Relay, *, limit: int) -> list[OrderPaidAgain]:
    """Lists orders that were paid again in the last PAID_AGAIN_MS, the oldest first. Raises StoreError.

    One is left out once all its payments but one are given back. ``limit`` is of further payments, the newest ones.
    """
    now_ms = relay.clock.now_ms()
    told = await relay.money.paid_again.told(since_ms=now_ms - PAID_AGAIN_MS, limit=limit)
    found = []
    # An order with two further payments is listed once, since the first of them.
    for (merchant, order_id), since_ms in {(each.merchant, each.order_id): each.told_at_ms for each in told}.items():
        payments = standing((await relay.money.paid_again.of_order(merchant, order_id, now_ms=now_ms))[1])
        if len(payments) > 1:
            account = payments[0].account
            found.append(OrderPaidAgain(account=account, order_id=order_id, since_ms=since_ms, standing=payments))
    return sorted(found, key=lambda each: each.since_ms)


async def study(relay: Relay, operation_id: str) -> OperationStudy | None:
    """Reads all that is known of an operation; None where there is none with this id. Raises StoreError."""
    operation = await relay.journal.get(operation_id)
    if operation is None:
        return None
    return OperationStudy(
        operation=operation,
        call=await _call_of(relay, operation_id),
        history=await relay.journal.history(operation_id),
        answer=await relay.journal.answer_of(operation_id),
        chargebacks=await chargebacks_of(relay, operation_id),
    )


async def _call_of(relay: Relay, operation_id: str) -> Effect | None:
    try:
        return await relay.journal.call_of(operation_id)
    except CallCleared:
        return None


async def _group(relay: Relay, review_filter: ReviewFilter, state: State | None) -> Group:
    is_oldest_first = state in OPEN
    rows = _oldest(relay, state) if state is not None and is_oldest_first else _newest(relay, review_filter, state)
    found: list[Operation] = []
    async for operation in rows:
        if review_filter.has(operation):
            found.append(operation)
        if len(found) > review_filter.limit:
            break
    shown = found[: review_filter.limit]
    entries = [
        ReviewEntry(operation=operation, why=reason_phrase(await relay.journal.history(operation.id)))
        for operation in (shown if is_oldest_first else reversed(shown))
    ]
    return Group(state=state, entries=entries, has_more=len(found) > review_filter.limit)


async def _oldest(relay: Relay, state: State) -> AsyncIterator[Operation]:
    page = await relay.resolution.in_state(state)
    while page:
        for operation in page:
            yield operation
        page = await relay.resolution.in_state(state, after=page[-1].id)


async def _newest(relay: Relay, review_filter: ReviewFilter, state: State | None) -> AsyncIterator[Operation]:
    """Yields operations in a state, or for None all that are not in OPEN, newest first."""
    operation_filter = OperationFilter(state=state, account=review_filter.account, order_id=review_filter.order_id)
    before = None
    while page := await relay.journal.list(operation_filter, before=before, limit=_PAGE):
        for operation in page:
            if state is not None or operation.state not in OPEN:
                yield operation
        before = page[-1].id
