"""Resolves open operations by asking the gateway: by schedule, and out of turn for a client or an operator.

Each match goes through ``core.payments.proof`` and ``flows.apply_change``, as every report does. An error during an
inquiry is no observation. How an operation is resolved follows from what the gateway can do
(``core.gateways.capabilities``). Nothing is refunded, cancelled or charged again out of an unclear state. Only a call
that the gateway does only once, or recognises by its key, is sent once more (``resend``).
"""

import asyncio
from contextlib import suppress
from typing import Final

from payrelay.core.outcomes import Evidence
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import INQUIRED, Event, Operation
from payrelay.core.payments.proof import GIVEN_UP_AFTER_MS, MatchResult, sending_window_of
from payrelay.errors import IllegalTransition, Outdated, StoreError
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.case import Case, Inquire, apply_resolution, is_inquired
from payrelay.flows.resolution.resolvers import resolve_case
from payrelay.gateways.gateway import Gateway

AT_ONCE_MAX: Final = 20
"""Operations that are resolved at the same time: as many as the gateway's usual budget lets through at once."""
LEASE_MS: Final = 180_000
"""How long a process leases an operation: longer than an inquiry lasts, with its control query and all waits."""
INQUIRE_NOW_AFTER_MS: Final = 5_000
"""How long after a change of an operation a client or an operator can bring the next inquiry forward."""
INQUIRIES_NOW_APART_S: Final = 5.0
"""Between two inquiries out of turn about one operation."""
INQUIRIES_NOW_MAX: Final = 1_000
"""Operations of which the process remembers when it last inquired out of turn."""
UNCONFIGURED_MS: Final = 300_000
"""When to try again to resolve an operation whose account isn't configured any more."""


async def resolve_due(relay: Relay) -> int:
    """Makes the inquiries that are due, about at most AT_ONCE_MAX operations, and waits for them; returns how many.

    Raises StoreError where the store can't be read.
    """
    due = await _lease_due(relay, AT_ONCE_MAX)
    await asyncio.gather(*(resolve_one(relay, operation) for operation in due))
    return len(due)


async def begin_due(relay: Relay) -> int:
    """Begins the inquiries that are due, in the background, so that a slow one delays no other; returns how many.

    At most AT_ONCE_MAX run at any time, besides those out of turn. Raises StoreError where the store can't be read.
    """
    scheduled = sum(not is_urgent for is_urgent in relay.under_way.being_resolved.values())
    due = await _lease_due(relay, AT_ONCE_MAX - scheduled)
    for operation in due:
        relay.background.start(resolve_one(relay, operation))
    return len(due)


async def _lease_due(relay: Relay, limit: int) -> list[Operation]:
    """Leases the operations that are due, each to one process only."""
    if limit <= 0:
        return []
    now_ms = relay.clock.now_ms()
    due_ms = await relay.resolution.next_due_ms()
    if due_ms is None or due_ms > now_ms:
        return []
    return await relay.resolution.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=limit)


async def resolve_one(
    relay: Relay, operation: Operation, *, is_urgent: bool = False, inquire: Inquire | None = None
) -> None:
    """Makes one try to resolve an operation, and stores the result. May be repeated; raises nothing but a cancellation.

    ``is_urgent`` is for a try out of turn: it doesn't wait for a permit, and stores nothing where it proves nothing.
    ``inquire`` asks for payments in place of the gateway, for a try that shares its inquiry with others of the order.
    """
    if operation.id in relay.under_way.being_resolved:
        if not is_urgent:  # an inquiry out of turn is under way: the one by schedule follows soon
            with suppress(StoreError):
                await relay.resolution.postpone(operation, relay.clock.now_ms() + INQUIRE_NOW_AFTER_MS)
        return
    relay.under_way.being_resolved[operation.id] = is_urgent
    try:
        await _resolve(relay, operation, is_urgent=is_urgent, inquire=inquire)
    except (Outdated, IllegalTransition):
        pass  # the operation was changed meanwhile
    except StoreError as error:
        relay.log.warning("resolution_not_stored", operation_id=operation.id, reason=str(error))
    except Exception:  # our own fault in one operation must not keep the others from being resolved
        relay.log.exception("resolution_failed", operation_id=operation.id)
    finally:
        del relay.under_way.being_resolved[operation.id]


def inquire_now(relay: Relay, operation: Operation) -> None:
    """Begins a status inquiry about an open operation out of turn, in the background, for a client or an operator.

    Does nothing where the operation has just changed, another inquiry out of turn was just made, or too many run.
    """
    now_ms = relay.clock.now_ms()
    if operation.state not in INQUIRED or now_ms - operation.updated_at_ms < INQUIRE_NOW_AFTER_MS:
        return
    now_s = relay.clock.boot_s()
    inquired_now_s = relay.under_way.inquired_now.get(operation.id)
    is_too_soon = inquired_now_s is not None and now_s - inquired_now_s < INQUIRIES_NOW_APART_S
    if is_too_soon or sum(relay.under_way.being_resolved.values()) >= AT_ONCE_MAX:
        return
    relay.under_way.inquired_now.pop(operation.id, None)
    if len(relay.under_way.inquired_now) >= INQUIRIES_NOW_MAX:
        del relay.under_way.inquired_now[next(iter(relay.under_way.inquired_now))]
    relay.under_way.inquired_now[operation.id] = now_s
    relay.background.start(resolve_one(relay, operation, is_urgent=True))


async def _resolve(relay: Relay, operation: Operation, *, is_urgent: bool, inquire: Inquire | None) -> None:
    """Makes the try, unless the database is behind: what it lacks may own the payment that would be the proof."""
    if await relay.database.lost_commits.is_behind():
        return
    account = relay.account_of(operation.account, operation.merchant)
    if account is None:
        relay.log.warning("resolution_without_account", operation_id=operation.id, account=operation.account)
        await _without_account(relay, operation)
        return
    until_s = relay.clock.boot_s() + (0 if is_urgent else account.queue_s)
    case = await open_case(relay, account, operation, is_urgent=is_urgent, until_s=until_s)
    case.inquire_elsewhere = inquire
    if not is_inquired(case.operation):
        return
    if relay.hooks.spans is None:
        await resolve_case(case)
        return
    # The first entry names the span of the request, however long ago that was.
    began = case.history[0].evidence.traceparent
    with relay.hooks.spans.after(began, f"resolve {operation.kind}", payrelay__operation__id=operation.id):
        await resolve_case(case)


async def open_case(relay: Relay, account: Gateway, operation: Operation, *, is_urgent: bool, until_s: float) -> Case:
    """Reads everything that the proof rests on.

    Raises Outdated where the operation was changed since it was read, or another server that lacks it has taken the
    writes meanwhile, and StoreError.
    """
    history = await relay.journal.history(operation.id)
    if not history or history[-1].version != operation.version:
        raise Outdated(f"operation {operation.id} was changed since it was read")
    try:
        call = await relay.journal.call_of(operation.id)
    except LookupError as error:
        raise Outdated(f"operation {operation.id} is gone since it was read") from error
    return Case(
        relay=relay,
        account=account,
        operation=operation,
        call=call,
        history=history,
        span=sending_window_of(history, operation, int(account.timeout_s * 1000)),
        is_urgent=is_urgent,
        until_s=until_s,
    )


async def _without_account(relay: Relay, operation: Operation) -> None:
    """Waits for an account that isn't configured any more; after a week the operation needs an operator's attention."""
    now_ms = relay.clock.now_ms()
    if operation.state not in INQUIRED or now_ms - operation.updated_at_ms < GIVEN_UP_AFTER_MS:
        await relay.resolution.postpone(operation, now_ms + UNCONFIGURED_MS)
        return
    await apply_resolution(relay, operation, Report(event=Event.UNCLEAR, evidence=Evidence(seen=MatchResult.UNSEEN)))
