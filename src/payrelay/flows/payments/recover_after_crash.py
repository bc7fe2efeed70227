"""Takes up what a process left that died: rows that nobody is working on any more."""

from typing import Final

from payrelay.core.outcomes import Evidence
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, Operation
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import Outdated
from payrelay.flows.apply_change import apply
from payrelay.flows.relay import Relay

GRACE_MS: Final = 5_000
"""Beyond ``send_by`` and the account's time-out, so that a process that is only slow keeps its row."""


async def recover(relay: Relay, *, is_sole_owner: bool) -> int:
    """Says of every stranded row what may have happened, and gives how many there were.

    ``accepted`` was not sent; ``sending`` may have been, and is unknown from now on. The sole owner of the store, at
    its start, takes every row in these states; where other processes share it, only those whose time is over.
    Notifications that a process was about to work on are due at once for the sole owner, else when their time is over.
    May be repeated; a row that moves meanwhile is left alone.
    """
    now_ms = relay.clock.now_ms()
    if is_sole_owner:
        await relay.inbox.expire_leases(now_ms)
    timeouts_ms = {name: int(account.timeout_s * 1000) for name, account in relay.accounts.items()}
    before_ms = NEVER_MS if is_sole_owner else now_ms - min(timeouts_ms.values(), default=0) - GRACE_MS
    longest_ms = max(timeouts_ms.values(), default=0)
    recovered = 0
    while stranded := await relay.journal.stranded(before_ms=before_ms):  # the journal gives a limited number at once
        ended = [
            operation
            for operation in stranded
            if is_sole_owner
            or operation.send_by_ms + timeouts_ms.get(operation.account, longest_ms) + GRACE_MS < now_ms
        ]
        taken_up = [await _recover_one(relay, operation) for operation in ended]
        recovered += sum(taken_up)
        if len(ended) < len(stranded):
            break
        if not all(taken_up):
            break
    return recovered


async def _recover_one(relay: Relay, operation: Operation) -> bool:
    report = Report(event=Event.LOST, evidence=Evidence(cause="process_ended"))
    try:
        recovered = (await apply(relay, operation, report)).operation
    except Outdated:
        return False
    relay.log.warning("operation_recovered", operation_id=operation.id, kind=operation.kind, state=recovered.state)
    return True
