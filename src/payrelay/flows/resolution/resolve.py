"""Settles what is open by asking the gateway: by schedule, and when somebody asks.

Whatever is found goes through ``core.payments.proof`` and ``flows.apply_change``, like every other news. An error while
looking is no observation. Which way leads there follows from what the gateway can do (``core.gateways.capabilities``).
Nothing is refunded, cancelled or charged again out of an unclear state; what is sent once more is what the gateway does
only once, and what it knows again by our key (``resend``).
"""

import asyncio
from contextlib import suppress
from typing import Final

from payrelay.core.outcomes import Evidence
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import INQUIRED, Event, Operation
from payrelay.core.payments.proof import GIVEN_UP_AFTER_MS, MatchResult
from payrelay.errors import IllegalTransition, Outdated, StoreError
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.case import apply_resolution, is_inquired
from payrelay.flows.resolution.open_case import open_case
from payrelay.flows.resolution.stories import resolve_case

AT_ONCE_MAX: Final = 20
"""Operations that are looked for at the same time: as many as the gateway's usual budget lets through at once."""
LEASE_MS: Final = 180_000
"""How long a process keeps what it took to look for: longer than a look lasts, with its control query and all waits."""
INQUIRE_NOW_AFTER_MS: Final = 5_000
"""How long an operation is left alone after a change before somebody's question makes us look again."""
INQUIRIES_NOW_APART_S: Final = 5.0
"""Between two looks at the same operation because somebody asks."""
INQUIRIES_NOW_MAX: Final = 1_000
"""Operations of which we remember when we last looked because somebody asked."""
UNCONFIGURED_MS: Final = 300_000
"""When to try again what belongs to an account that isn't configured any more."""


async def resolve_due(relay: Relay) -> int:
    """Looks for what is due, at most AT_ONCE_MAX operations, and waits for that; gives how many there were.

    Raises StoreError where the store can't be asked.
    """
    due = await _take_due(relay, AT_ONCE_MAX)
    await asyncio.gather(*(resolve_one(relay, operation) for operation in due))
    return len(due)


async def begin_due(relay: Relay) -> int:
    """Begins to look for what is due, in the background, so that one slow look holds up no other; gives how many.

    At most AT_ONCE_MAX are looked for at any time, besides those that somebody asks for. Raises StoreError where the
    store can't be asked.
    """
    scheduled = sum(not is_urgent for is_urgent in relay.being_resolved.values())
    due = await _take_due(relay, AT_ONCE_MAX - scheduled)
    for operation in due:
        relay.background.start(resolve_one(relay, operation))
    return len(due)


async def _take_due(relay: Relay, limit: int) -> list[Operation]:
    """Takes what is due; of several processes each operation is taken by one."""
    if limit <= 0:
        return []
    now_ms = relay.clock.now_ms()
    due_ms = await relay.resolution.next_due_ms()
    if due_ms is None or due_ms > now_ms:
        return []
    return await relay.resolution.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=limit)


async def resolve_one(relay: Relay, operation: Operation, *, is_urgent: bool = False) -> None:
    """Looks once for one operation, and stores what that came to. May be repeated; raises nothing but a cancellation.

    ``is_urgent`` is for a look out of turn: it doesn't wait for a place in the gateway's budget, and leaves no trace
    where it settles nothing.
    """
    if operation.id in relay.being_resolved:
        if not is_urgent:
            await _come_again(relay, operation)
        return
    relay.being_resolved[operation.id] = is_urgent
    try:
        await _resolve(relay, operation, is_urgent=is_urgent)
    except (Outdated, IllegalTransition):
        pass  # somebody else brought news meanwhile
    except StoreError as error:
        relay.log.warning("settling_not_stored", operation_id=operation.id, reason=str(error))
    except Exception:  # what can't be settled by our own fault must not keep the others from it
        relay.log.exception("settling_failed", operation_id=operation.id)
    finally:
        del relay.being_resolved[operation.id]


def inquire_now(relay: Relay, operation: Operation) -> None:
    """Looks for an open operation in the background because somebody asks for it, unless that was done just now."""
    now_ms = relay.clock.now_ms()
    if operation.state not in INQUIRED or now_ms - operation.updated_at_ms < INQUIRE_NOW_AFTER_MS:
        return
    now_s = relay.clock.boot_s()
    inquired_now_s = relay.inquired_now.get(operation.id)
    is_too_soon = inquired_now_s is not None and now_s - inquired_now_s < INQUIRIES_NOW_APART_S
    if is_too_soon or sum(relay.being_resolved.values()) >= AT_ONCE_MAX:
        return
    relay.inquired_now.pop(operation.id, None)
    if len(relay.inquired_now) >= INQUIRIES_NOW_MAX:
        del relay.inquired_now[next(iter(relay.inquired_now))]
    relay.inquired_now[operation.id] = now_s
    relay.background.start(resolve_one(relay, operation, is_urgent=True))


async def _resolve(relay: Relay, operation: Operation, *, is_urgent: bool) -> None:
    account = relay.account_of(operation.account, operation.merchant)
    if account is None:
        relay.log.warning("settling_without_account", operation_id=operation.id, account=operation.account)
        await _without_account(relay, operation)
        return
    until_s = relay.clock.boot_s() + (0 if is_urgent else account.queue_s)
    case = await open_case(relay, account, operation, is_urgent=is_urgent, until_s=until_s)
    if is_inquired(case.operation):
        await resolve_case(case)


async def _come_again(relay: Relay, operation: Operation) -> None:
    """Gives an operation its turn again soon that is just being looked for because somebody asked."""
    with suppress(StoreError):
        await relay.resolution.postpone(operation, relay.clock.now_ms() + INQUIRE_NOW_AFTER_MS)


async def _without_account(relay: Relay, operation: Operation) -> None:
    """Waits for an account that isn't configured any more, and after a week gives the operation to a person."""
    now_ms = relay.clock.now_ms()
    if operation.state not in INQUIRED or now_ms - operation.updated_at_ms < GIVEN_UP_AFTER_MS:
        await relay.resolution.postpone(operation, now_ms + UNCONFIGURED_MS)
        return
    await apply_resolution(relay, operation, Report(event=Event.UNCLEAR, evidence=Evidence(seen=MatchResult.UNSEEN)))
