"""The parts of the runtime that flows use."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from payrelay.runtime.alert_channels import AlertChannels
from payrelay.runtime.background import Background
from payrelay.runtime.database.parts import DatabaseParts
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.health.control_queries import ControlQueries
from payrelay.runtime.held_responses import HeldResponses
from payrelay.runtime.hooks import Hooks
from payrelay.runtime.ids import new_id
from payrelay.runtime.paused_accounts import PausedAccounts
from payrelay.runtime.read_cache import ReadCache


@dataclass(frozen=True, kw_only=True)
class RuntimeParts:
    """The parts of the runtime that a flow may use; they live as long as the process, and are made once at start.

    Attributes:
        paused: knows the accounts that take no new effects.
        database: tells whether the database is the one that it was.
        read_cache: shares and keeps the gateway's answers to reads.
        dispatch: publishes, delivers and follows events.
        alerting: the alert channels.
        new_id: makes an id from its prefix and the time in milliseconds.
        pause: waits a number of seconds; only for repeating an unstored outcome.
        hooks: called at crash points, and for what the metrics count.
        held_responses: requests whose answers are held until no outcome of their operations is awaited any more.
        background: work that outlives its request.
        control_queries: shares the control queries of a recovery.
    """

    paused: PausedAccounts
    database: DatabaseParts
    read_cache: ReadCache
    dispatch: Dispatch
    alerting: AlertChannels
    new_id: Callable[[str, int], str] = new_id
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    hooks: Hooks = field(default_factory=Hooks)
    held_responses: HeldResponses = field(default_factory=HeldResponses)
    background: Background = field(default_factory=Background)
    control_queries: ControlQueries = field(default_factory=ControlQueries)
