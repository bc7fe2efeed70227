"""The clock has moved past every period of retention, and the clearing runs: what must be left is left."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

from tests.simulation.clients import Ask, Told
from tests.simulation.loop import wait_seconds

from payrelay.core.payments.operation import CLEARABLE
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.retention import DEFAULT_PERIODS
from payrelay.flows.audit.audit import anchor
from payrelay.flows.relay import Relay
from payrelay.flows.retention.clear import clear_all
from payrelay.store.statements.payments.operations import OPERATIONS

LATER_MS: Final = 500 * DAY_MS
QUIET_MS: Final = 600_000
"""More than the clearing takes."""
REPEATS_MAX: Final = 5
OPERATIONS_MAX: Final = 100_000
_CLAIM: Final = ("claim", "claim_ends_at_ms")
_COLUMNS: Final = ", ".join(name for name in OPERATIONS.columns if name not in _CLAIM)
_ROWS: Final = f"SELECT {_COLUMNS} FROM operations ORDER BY id"  # noqa: S608, columns that are named there
_CLAIMS: Final = f"SELECT {', '.join(_CLAIM)} FROM operations ORDER BY id"  # noqa: S608, columns named above
_DUE: Final = "SELECT 1 FROM operations WHERE probe_at_ms <= ?"
_HANGING: Final = (
    "SELECT id, state, sealed_call, sealed_answer, (SELECT count(*) FROM history WHERE operation_id = id)"
    " FROM operations ORDER BY id"
)
_KEPT_TABLES: Final = ("signed_texts", "accepted_tokens", "payments_seen", "installments", "chargebacks", "credentials")
_Call = Callable[[Ask, float], Awaitable[object]]


async def clear_everything_old(relay: Relay, auditor: sqlite3.Connection) -> list[str]:
    """Anchors and clears everything, and tells what of it should not have gone."""
    before, hanging, counts = _rows(auditor, _ROWS), _rows(auditor, _HANGING), _counts(auditor)
    claims = _rows(auditor, _CLAIMS)
    now_ms = relay.clock.now_ms() + LATER_MS
    while await anchor(relay.journal.trail, now_ms):
        pass
    relay.clearing.periods = DEFAULT_PERIODS
    identity = await relay.database.lost_commits.identity()
    if identity.current.is_recovering:
        return []
    cleared = await clear_all(relay.clearing, now_ms, current=identity.current, pause=wait_seconds)
    faults = []
    if _rows(auditor, _ROWS) != before:
        faults.append("the clearing changed rows of operations")
    # The worker goes on beside it, and takes the claims that have lapsed.
    if any(_is_taken_early(*pair, relay.clock.now_ms()) for pair in zip(claims, _rows(auditor, _CLAIMS), strict=True)):
        faults.append("the clearing took a claim that holds")
    if _counts(auditor) != counts:
        faults.append("the clearing removed rows of other tables")
    after = {row[0]: row for row in _rows(auditor, _HANGING)}
    faults += [
        f"the clearing took something of {row[0]}, which is {row[1]}"
        for row in hanging
        if row[1] not in CLEARABLE and after[row[0]] != row
    ]
    if not any(cleared.values()) and any(row[1] in CLEARABLE for row in hanging):
        faults.append("the clearing cleared nothing")
    return faults


async def wait_until_quiet(relay: Relay, auditor: sqlite3.Connection) -> None:
    """Waits until the worker has nothing to look for in the next minutes: what it finds would change rows meanwhile."""
    while (
        relay.under_way.being_resolved
        or auditor.execute(_DUE, (relay.clock.now_ms() + QUIET_MS,)).fetchone() is not None
    ):
        await wait_seconds(QUIET_MS / 1000)


async def repeat_all(told: Sequence[Told], call: _Call, auditor: sqlite3.Connection) -> list[str]:
    """Makes requests again that succeeded, and whose answers are gone: none may begin anything."""
    before = _counts(auditor, ("operations",))
    keyed = [
        each.ask for each in told if each.ask.key is not None and each.heard and each.heard.http_status == HTTPStatus.OK
    ]
    for ask in keyed[:REPEATS_MAX]:
        await call(ask, 12.0)
    return [] if _counts(auditor, ("operations",)) == before else ["a repeat after the clearing began an operation"]


def _is_taken_early(before: tuple[object, ...], after: tuple[object, ...], now_ms: int) -> bool:
    ends_at_ms = before[1]
    has_lapsed = isinstance(ends_at_ms, int) and ends_at_ms <= now_ms
    return after != before and not (has_lapsed and after == (None, None))


def _rows(auditor: sqlite3.Connection, text: str) -> list[tuple[object, ...]]:
    return auditor.execute(text).fetchall()


def _counts(auditor: sqlite3.Connection, tables: tuple[str, ...] = _KEPT_TABLES) -> list[object]:
    return [auditor.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]  # noqa: S608, named above
