"""Alerts operators: each time that an operation, notification or checkout needs one, or an endpoint is stopped.

Also where the database is behind.

The alert is stored in the unit of work that makes the change. The service then gives it to each configured alert
channel, again and again until the channel accepts it or it is too old. A process that dies loses no alert; it may give
one twice. The newest anchor of the audit goes the same way, once a day where that is set.
"""

import asyncio
from collections.abc import Awaitable
from enum import StrEnum
from typing import Final

from payrelay.core.moments import rfc3339
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.errors import StoreError
from payrelay.flows.alerts.alert_messages import MESSAGES
from payrelay.flows.database.begin_recovery import BUDGETS_WAIT_MS
from payrelay.flows.relay import Relay
from payrelay.runtime.alert_channels import NotGivenError
from payrelay.store.alerts import BEHIND_ROW, Alert, Alerts, AlertSubject

AT_ONCE_MAX: Final = 8
"""Alerts that are given at the same time: each may start a process."""
LEASE_MS: Final = 90_000
"""How long a process leases an alert: longer than a command and an address may take, with the store's own waits. An
alert that a dead process had leased is due again after that."""
AGAIN_AFTER_MS: Final = (10_000, 60_000, 300_000, 1_800_000, HOUR_MS)
"""The pauses after the first attempt that failed, the second, …; from then on the last of them."""
GIVEN_UP_AFTER_MS: Final = 3 * DAY_MS
"""After this an alert is not tried any more; operators find what it is about in their lists."""


class AlertOutcome(StrEnum):
    """What became of an alert, for the metrics."""

    RAISED = "raised"
    """Something came to need an operator."""
    GIVEN = "given"
    """Every alert channel has accepted it."""
    FAILED = "failed"
    """An attempt failed at one channel at least; there will be another."""
    GIVEN_UP = "given_up"
    """It is too old to be tried again."""


async def tell_behind(relay: Relay) -> None:
    """Stores that the database is behind, for all processes, with an alert for its incarnation.

    Before that, all budgets of calls are blocked for BUDGETS_WAIT_MS: clients go on reading at the gateway, and nobody
    knows which permits were used in the lost window. Does nothing where the database isn't behind, that is stored, or
    this process has told of what nobody stores. May be repeated. Raises StoreError.
    """
    lost_commits = relay.database.lost_commits
    current = (await lost_commits.identity()).current
    is_stored = bool(current.behind) and not current.is_moved  # the tables themselves tell that they were made anew
    if lost_commits.behind is None or is_stored or lost_commits.told_of == current.number:
        return
    now_ms, merchants = relay.clock.now_ms(), {gateway.merchant for gateway in relay.accounts.values()}
    await relay.database.identities.block_budgets(now_ms, BUDGETS_WAIT_MS, merchants)
    # The alert comes first: a process that ends in between leaves the rest to the next one.
    await relay.journal.trail.report(f"{BEHIND_ROW}{current.number}", now_ms)
    await lost_commits.store_behind()
    lost_commits.told_of = current.number


async def begin_alerts(relay: Relay) -> int:
    """Begins to give the alerts that are due, in the background; returns how many there were.

    At most AT_ONCE_MAX are given at any time. Raises StoreError where the store can't be read.
    """
    return sum([await _begin(relay, alerts) for alerts in relay.alerting.alerts])


async def _begin(relay: Relay, alerts: Alerts) -> int:
    under_way = relay.alerting.under_way
    now_ms, room = relay.clock.now_ms(), AT_ONCE_MAX - len(under_way)
    due_ms = await alerts.next_due_ms() if room > 0 else None
    if due_ms is None or due_ms > now_ms:
        return 0
    leased = await alerts.lease_due(now_ms, leased_until_ms=now_ms + LEASE_MS, limit=room)
    for alert in leased:
        under_way.add((alert.subject_id, alert.version))
        relay.background.start(give_alert(relay, alerts, alert))
    return len(leased)


async def give_alert(relay: Relay, alerts: Alerts, alert: Alert) -> None:
    """Gives one alert to the channels that don't have it yet, and stores the result.

    Raises nothing but a cancellation.
    """
    try:
        await _give(relay, alerts, alert)
    except StoreError as error:  # the alert is due again when its lease ends
        relay.log.warning("alert_not_stored", about=alert.subject_id, reason=str(error))
    except Exception:  # our own fault in one alert must not keep the others from being given
        relay.log.exception("alert_failed", about=alert.subject_id)
    finally:
        relay.alerting.under_way.discard((alert.subject_id, alert.version))


async def _give(relay: Relay, alerts: Alerts, alert: Alert) -> None:
    message = await MESSAGES[alerts.about](relay, alert)
    if message is None:
        await alerts.end(alert, alert.given_to)
        return
    if alert.attempts == 0 and alerts.about is not AlertSubject.ANCHOR:
        relay.hooks.alerted(AlertOutcome.RAISED)
    channels = relay.alerting.channels
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
    members = {"about": alert.subject_id, "attempts": alert.attempts + 1, "failures": failed}
    if next_ms - alert.created_at_ms > GIVEN_UP_AFTER_MS:
        await alerts.end(alert, given_to)
        relay.log.error("alert_given_up", **members)
        relay.hooks.alerted(AlertOutcome.GIVEN_UP)
        return
    await alerts.put_off(alert, given_to, next_ms)
    relay.log.warning("alert_not_given", again_at=rfc3339(next_ms), **members)
    relay.hooks.alerted(AlertOutcome.FAILED)


async def _failure_of(giving: Awaitable[None]) -> str | None:
    try:
        await giving
    except NotGivenError as error:
        return str(error)
    return None
