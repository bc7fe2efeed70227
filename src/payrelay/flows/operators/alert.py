"""Calls a person: each time that an operation or a notification comes to need one, or an endpoint is stopped.

It is noted in the unit of work that makes the change. From there on it is given to each addressee that is configured,
again and again until it was taken or is too old. A process that dies loses none; it may give one twice.
"""

import asyncio
from collections.abc import Awaitable
from enum import StrEnum
from typing import Final

from payrelay.core.moments import rfc3339
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.errors import StoreError
from payrelay.flows.operators.alert_messages import MESSAGES
from payrelay.flows.relay import Relay
from payrelay.runtime.alert_channels import NotGivenError
from payrelay.store.alerts import Alert, Alerts

AT_ONCE_MAX: Final = 8
"""Alerts that are given at the same time: each may be a process of its own."""
LEASE_MS: Final = 90_000
"""How long a process keeps an alert that it took: longer than a command and an address may take, with the store's own
waits. What a dead process took comes back after that."""
AGAIN_AFTER_MS: Final = (10_000, 60_000, 300_000, 1_800_000, HOUR_MS)
"""After the first try that failed, the second, …; the last of them from then on."""
GIVEN_UP_AFTER_MS: Final = 3 * DAY_MS
"""Whoever could not be reached for that long looks at the list by himself."""


class AlertOutcome(StrEnum):
    """What became of an alert, for the metrics."""

    RAISED = "raised"
    """Something came to need a person."""
    GIVEN = "given"
    """Every addressee has it."""
    FAILED = "failed"
    """A try did not reach every addressee; there will be another."""
    GIVEN_UP = "given_up"
    """It is too old to be tried again."""


async def begin_alerts(relay: Relay) -> int:
    """Begins to give what is due, in the background; gives how many there were.

    At most AT_ONCE_MAX are given at any time. Raises StoreError where the store can't be asked.
    """
    return sum([await _begin(relay, alerts) for alerts in relay.alarm.alerts])


async def _begin(relay: Relay, alerts: Alerts) -> int:
    under_way = relay.alarm.under_way
    now_ms, room = relay.clock.now_ms(), AT_ONCE_MAX - len(under_way)
    due_ms = await alerts.next_due_ms() if room > 0 else None
    if due_ms is None or due_ms > now_ms:
        return 0
    taken = await alerts.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=room)
    for alert in taken:
        under_way.add((alert.subject_id, alert.version))
        relay.background.start(give_alert(relay, alerts, alert))
    return len(taken)


async def give_alert(relay: Relay, alerts: Alerts, alert: Alert) -> None:
    """Gives one alert to all who don't have it yet, and stores what came of it; raises nothing but a cancellation."""
    try:
        await _give(relay, alerts, alert)
    except StoreError as error:  # it comes back when its time with us is over
        relay.log.warning("alert_not_stored", about=alert.subject_id, reason=str(error))
    except Exception:  # our own mistake in one must not keep the others from being given
        relay.log.exception("alert_failed", about=alert.subject_id)
    finally:
        relay.alarm.under_way.discard((alert.subject_id, alert.version))


async def _give(relay: Relay, alerts: Alerts, alert: Alert) -> None:
    message = await MESSAGES[alerts.about](relay, alert)
    if message is None:
        await alerts.end(alert, alert.given_to)
        return
    if alert.attempts == 0:
        relay.hooks.alerted(AlertOutcome.RAISED)
    channels = relay.alarm.channels
    waiting = {name: channel for name, channel in channels.items() if name not in alert.given_to}
    failures = await asyncio.gather(*(_failure_of(channel(message)) for channel in waiting.values()))
    failed = {name: failure for name, failure in zip(waiting, failures, strict=True) if failure is not None}
    given_to = alert.given_to | (waiting.keys() - failed.keys())
    if not failed:
        await alerts.end(alert, given_to)
        if channels:
            relay.hooks.alerted(AlertOutcome.GIVEN)
        return
    await _try_again(relay, alerts, alert, given_to, failed)


async def _try_again(
    relay: Relay, alerts: Alerts, alert: Alert, given_to: frozenset[str], failed: dict[str, str]
) -> None:
    now_ms = relay.clock.now_ms()
    next_ms = now_ms + AGAIN_AFTER_MS[min(alert.attempts, len(AGAIN_AFTER_MS) - 1)]
    told = {"about": alert.subject_id, "attempts": alert.attempts + 1, "failures": failed}
    if next_ms - alert.created_at_ms > GIVEN_UP_AFTER_MS:
        await alerts.end(alert, given_to)
        relay.log.error("alert_given_up", **told)
        relay.hooks.alerted(AlertOutcome.GIVEN_UP)
        return
    await alerts.put_off(alert, given_to, next_ms)
    relay.log.warning("alert_not_given", again_at=rfc3339(next_ms), **told)
    relay.hooks.alerted(AlertOutcome.FAILED)


async def _failure_of(giving: Awaitable[None]) -> str | None:
    try:
        await giving
    except NotGivenError as error:
        return str(error)
    return None
