"""What an operator looks at: the operations that need a person, those that are open, and all that is known of one."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.payments.explanations import reason_phrase
from payrelay.core.payments.operation import JournalEntry, Operation, OperationFilter, State
from payrelay.flows.payments.find_operations import chargebacks_of
from payrelay.flows.payments.operation_views import ChargebackView
from payrelay.flows.relay import Relay

OPEN: Final = (State.NEEDS_ATTENTION, State.UNKNOWN, State.PENDING)
"""What is shown where nothing else is asked for, in this order."""
_IN_ORDER: Final = frozenset(OPEN)
"""States that are read oldest first; of the others there may be millions, and the newest are wanted."""
_PAGE: Final = 200
"""Rows that are read at once where most of them may be passed over."""


class ReviewFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which operations are to be listed.

    Attributes:
        state: only those in this state; None for all that are open.
        account, order_id: only those of this account or order.
        is_all: the others too, whatever their state, newest first.
        limit: of each group, at least 1.
    """

    state: State | None = None
    account: str | None = None
    order_id: str | None = None
    is_all: bool = False
    limit: int = 50

    def has(self, operation: Operation) -> bool:
        """Tells whether account and order are the wanted ones."""
        return (self.account is None or operation.account == self.account) and (
            self.order_id is None or operation.order_id == self.order_id
        )


class ReviewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a list, and in a phrase why it stands where it does."""

    operation: Operation
    why: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Operations in one state, oldest first; ``state`` is None for those in various states that are not open."""

    state: State | None
    entries: list[ReviewEntry]
    has_more: bool


class OperationStudy(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one operation."""

    operation: Operation
    call: Effect
    history: list[JournalEntry]
    answer: Answer | None
    chargebacks: list[ChargebackView] = []


async def list_for_operator(relay: Relay, wanted: ReviewFilter) -> list[Group]:
    """Lists operations in groups; those without an operation are left out."""
    states = OPEN if wanted.state is None else (wanted.state,)
    groups = [await _group(relay, wanted, state) for state in states]
    if wanted.is_all and wanted.state is None:
        groups.append(await _group(relay, wanted, None))
    return [group for group in groups if group.entries]


async def study(relay: Relay, operation_id: str) -> OperationStudy | None:
    """Reads all that is known of an operation; None where there is no such one."""
    operation = await relay.journal.get(operation_id)
    if operation is None:
        return None
    return OperationStudy(
        operation=operation,
        call=await relay.journal.call_of(operation_id),
        history=await relay.journal.history(operation_id),
        answer=await relay.journal.answer_of(operation_id),
        chargebacks=await chargebacks_of(relay, operation_id),
    )


async def _group(relay: Relay, wanted: ReviewFilter, state: State | None) -> Group:
    is_in_order = state in _IN_ORDER
    rows = _oldest(relay, state) if state is not None and is_in_order else _newest(relay, wanted, state)
    found: list[Operation] = []
    async for operation in rows:
        if wanted.has(operation):
            found.append(operation)
        if len(found) > wanted.limit:
            break
    shown = found[: wanted.limit]
    entries = [
        ReviewEntry(operation=operation, why=reason_phrase(await relay.journal.history(operation.id)))
        for operation in (shown if is_in_order else reversed(shown))
    ]
    return Group(state=state, entries=entries, has_more=len(found) > wanted.limit)


async def _oldest(relay: Relay, state: State) -> AsyncIterator[Operation]:
    page = await relay.resolution.in_state(state)
    while page:
        for operation in page:
            yield operation
        page = await relay.resolution.in_state(state, after=page[-1].id)


async def _newest(relay: Relay, wanted: ReviewFilter, state: State | None) -> AsyncIterator[Operation]:
    """Gives operations in a state, or for None all that are not open."""
    asked = OperationFilter(state=state, account=wanted.account, order_id=wanted.order_id)
    before = None
    while page := await relay.journal.list(asked, before=before, limit=_PAGE):
        for operation in page:
            if state is not None or operation.state not in _IN_ORDER:
                yield operation
        before = page[-1].id
