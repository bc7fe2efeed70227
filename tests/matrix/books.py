"""The books as they lie in the database: every operation, its history, and what the audit finds."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from payrelay.app import opened_relay, opened_resources
from payrelay.clock import Clock
from payrelay.core.database.schema_changes import ANY
from payrelay.core.notifications.notification import Notification, NotificationFilter
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import TRANSITIONS, JournalEntry, Operation, OperationFilter, State
from payrelay.flows.audit.audit import Audit
from payrelay.runtime.hooks import Hooks
from payrelay.settings import Settings, read_settings
from payrelay.store.payments.audit import Trail
from payrelay.store.statements.pagination import PAGE_MAX

BEGINNINGS = frozenset({State.ACCEPTED, State.SENDING, State.HELD})
"""States in which an operation is stored first."""
UNDER_WAY = frozenset({State.ACCEPTED, State.SENDING})
"""States that nothing is left in for long: whoever is in them is being worked on, or was and died."""


@dataclass(frozen=True, kw_only=True)
class Books:
    """What is written down.

    Attributes:
        operations: oldest first.
        histories: by the operation's id, oldest line first.
        findings: what the audit finds wrong.
        notifications: newest first.
    """

    operations: list[Operation]
    histories: dict[str, list[JournalEntry]]
    findings: list[str]
    notifications: list[Notification]

    def under(self, key: str) -> list[Operation]:
        """Gives the operations that were asked for with a key."""
        return [operation for operation in self.operations if operation.idempotency_key == key]

    def faults(self) -> Iterator[str]:
        """Tells what must never be, whatever was asked: steps that no table has, and rows that were tampered with."""
        yield from self.findings
        for operation in self.operations:
            history = self.histories[operation.id]
            for before, entry in zip([None, *history[:-1]], history, strict=True):
                if before is None:
                    is_right = entry.version == 1 and entry.state in BEGINNINGS
                else:
                    is_right = entry.version == before.version + 1 and entry.event is not None
                    is_right = is_right and TRANSITIONS.get((before.state, entry.event)) is entry.state  # type: ignore[arg-type]
                if not is_right:
                    yield f"{operation.id} went to {entry.state} by {entry.event} in line {entry.version}"
            if history[-1].state is not operation.state:
                yield f"{operation.id} is {operation.state}, and its history ends with {history[-1].state}"


def read_books(environment: dict[str, str], folder: Path) -> Books:
    """Reads everything, whether a service runs or not."""
    return asyncio.run(_read(read_settings(environment, folder)))


async def _read(settings: Settings) -> Books:
    clock, log = Clock(), structlog.get_logger()
    async with opened_resources(settings, clock, changes=ANY) as shared:
        async with opened_relay(settings, shared, clock=clock, log=log, hooks=Hooks()) as relay:
            operations: list[Operation] = []
            before: str | None = None
            while page := await relay.journal.list(OperationFilter(), before=before, limit=PAGE_MAX):
                operations += page
                before = page[-1].id
            notifications = await relay.inbox.list(NotificationFilter(), before=None, limit=PAGE_MAX)
            histories = {operation.id: await relay.journal.history(operation.id) for operation in operations}
        trail = Trail(shared.database, shared.seal, ChainKey(shared.chain.secret))
        audit = Audit(trail, shared.chain.since_ms, lambda *_: None, rows=shared.rows)
        findings = [finding.text async for finding in audit.findings()]
    return Books(operations=operations[::-1], histories=histories, findings=findings, notifications=notifications)
