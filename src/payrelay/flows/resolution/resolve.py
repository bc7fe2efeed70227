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
from payrelay.core.payments.operation import PROBED, Event, Operation
from payrelay.core.payments.proof import GIVEN_UP_AFTER_MS, Seen
from payrelay.errors import IllegalTransition, Outdated, StoreError
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.case import apply_settling, is_looked_for
from payrelay.flows.resolution.open_case import open_case
from payrelay.flows.resolution.stories import settle_case

AT_ONCE_MAX: Final = 20
"""Operations that are looked for at the same time: as many as the gateway's usual budget lets through at once."""
TAKEN_FOR_MS: Final = 180_000
"""How long a process keeps what it took to look for: longer than a look lasts, with its control query and all waits."""
NUDGED_AFTER_MS: Final = 5_000
"""How long an operation is left alone after a change before somebody's question makes us look again."""
NUDGES_APART_S: Final = 5.0
"""Between two looks at the same operation because somebody asks."""
NUDGES_MAX: Final = 1_000
"""Operations of which we remember when we last looked because somebody asked."""
UNCONFIGURED_MS: Final = 300_000
"""When to try again what belongs to an account that isn't configured any more."""


async def settle_due(relay: Relay) -> int:
    """Looks for what is due, at most AT_ONCE_MAX operations, and waits for that; gives how many there were.

    Raises StoreError where the store can't be asked.
    """
    due = await _take_due(relay, AT_ONCE_MAX)
    await asyncio.gather(*(settle_one(relay, operation) for operation in due))
    return len(due)


async def begin_due(relay: Relay) -> int:
    """Begins to look for what is due, in the background, so that one slow look holds up no other; gives how many.

    At most AT_ONCE_MAX are looked for at any time, besides those that somebody asks for. Raises StoreError where the
    store can't be asked.
    """
    scheduled = sum(not is_nudged for is_nudged in relay.being_settled.values())
    due = await _take_due(relay, AT_ONCE_MAX - scheduled)
    for operation in due:
        relay.background.start(settle_one(relay, operation))
    return len(due)


async def _take_due(relay: Relay, limit: int) -> list[Operation]:
    """Takes what is due; of several processes each operation is taken by one."""
    if limit <= 0:
        return []
    now_ms = relay.clock.now_ms()
    due_ms = await relay.settling.next_due_ms()
    if due_ms is None or due_ms > now_ms:
        return []
    return await relay.settling.take_due(now_ms, until_ms=now_ms + TAKEN_FOR_MS, limit=limit)


async def settle_one(relay: Relay, operation: Operation, *, is_nudged: bool = False) -> None:
    """Looks once for one operation, and stores what that came to. May be repeated; raises nothing but a cancellation.

    ``is_nudged`` is for a look out of turn: it doesn't wait for a place in the gateway's budget, and leaves no trace
    where it settles nothing.
    """
    if operation.id in relay.being_settled:
        if not is_nudged:
            await _come_again(relay, operation)
        return
    relay.being_settled[operation.id] = is_nudged
    try:
        await _settle(relay, operation, is_nudged=is_nudged)
    except (Outdated, IllegalTransition):
        pass  # somebody else brought news meanwhile
    except StoreError as error:
        relay.log.warning("settling_not_stored", operation_id=operation.id, reason=str(error))
    except Exception:  # what can't be settled by our own fault must not keep the others from it
        relay.log.exception("settling_failed", operation_id=operation.id)
    finally:
        del relay.being_settled[operation.id]


def nudge(relay: Relay, operation: Operation) -> None:
    """Looks for an open operation in the background because somebody asks for it, unless that was done just now."""
    now_ms = relay.clock.now_ms()
    if operation.state not in PROBED or now_ms - operation.updated_at_ms < NUDGED_AFTER_MS:
        return
    now_s = relay.clock.boot_s()
    nudged_s = relay.nudged.get(operation.id)
    is_too_soon = nudged_s is not None and now_s - nudged_s < NUDGES_APART_S
    if is_too_soon or sum(relay.being_settled.values()) >= AT_ONCE_MAX:
        return
    relay.nudged.pop(operation.id, None)
    if len(relay.nudged) >= NUDGES_MAX:
        del relay.nudged[next(iter(relay.nudged))]
    relay.nudged[operation.id] = now_s
    relay.background.start(settle_one(relay, operation, is_nudged=True))


async def _settle(relay: Relay, operation: Operation, *, is_nudged: bool) -> None:
    account = relay.account_of(operation.account, operation.merchant)
    if account is None:
        relay.log.warning("settling_without_account", operation_id=operation.id, account=operation.account)
        await _without_account(relay, operation)
        return
    until_s = relay.clock.boot_s() + (0 if is_nudged else account.queue_s)
    case = await open_case(relay, account, operation, is_nudged=is_nudged, until_s=until_s)
    if is_looked_for(case.operation):
        await settle_case(case)


async def _come_again(relay: Relay, operation: Operation) -> None:
    """Gives an operation its turn again soon that is just being looked for because somebody asked."""
    with suppress(StoreError):
        await relay.settling.postpone(operation, relay.clock.now_ms() + NUDGED_AFTER_MS)


async def _without_account(relay: Relay, operation: Operation) -> None:
    """Waits for an account that isn't configured any more, and after a week gives the operation to a person."""
    now_ms = relay.clock.now_ms()
    if operation.state not in PROBED or now_ms - operation.updated_at_ms < GIVEN_UP_AFTER_MS:
        await relay.settling.postpone(operation, now_ms + UNCONFIGURED_MS)
        return
    await apply_settling(relay, operation, Report(event=Event.UNCLEAR, evidence=Evidence(seen=Seen.UNSEEN)))
