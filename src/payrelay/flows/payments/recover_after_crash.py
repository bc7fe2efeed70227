"""Recovers operations whose process died."""

from typing import Final

from payrelay.core.outcomes import Evidence
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, Operation
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import OperationForged, Outdated
from payrelay.flows.apply_change import apply
from payrelay.flows.relay import Relay

GRACE_MS: Final = 5_000
"""Beyond ``send_by`` and the account's time-out, so that a slow process that still runs keeps its operation."""


async def recover(relay: Relay, *, is_sole_owner: bool) -> int:
    """Ends the sending of every stranded operation, and returns how many there were.

    An operation in ``accepted`` was not sent. One in ``sending`` may have been sent, and becomes unknown. The sole
    owner of the store, at its start, recovers all operations in these states. Where other processes share the store,
    only those are recovered whose time is over. An operation whose row or history was forged is left for a person.
    Leased notifications and searches are due at once for the sole owner, else when their lease ends. May be repeated;
    an operation that changes meanwhile is left alone. Raises StoreError.
    """
    now_ms = relay.clock.now_ms()
    if is_sole_owner:
        await relay.inbox.expire_leases(now_ms)
        await relay.money.order_searches.expire_leases(now_ms)
    timeouts_ms = {name: int(account.timeout_s * 1000) for name, account in relay.accounts.items()}
    before_ms = NEVER_MS if is_sole_owner else now_ms - min(timeouts_ms.values(), default=0) - GRACE_MS
    longest_ms = max(timeouts_ms.values(), default=0)
    recovered = 0
    while stranded := await relay.journal.stranded(before_ms=before_ms):  # the journal returns a limited number at once
        overdue = [
            operation
            for operation in stranded
            if is_sole_owner
            or operation.send_by_ms + timeouts_ms.get(operation.account, longest_ms) + GRACE_MS < now_ms
        ]
        results = [await _recover_one(relay, operation) for operation in overdue]
        recovered += sum(results)
        if len(overdue) < len(stranded) or not all(results):
            break
    return recovered


async def _recover_one(relay: Relay, operation: Operation) -> bool:
    report = Report(event=Event.LOST, evidence=Evidence(cause="process_ended"))
    try:
        recovered = (await apply(relay, operation, report)).operation
    except (Outdated, OperationForged):
        return False
    relay.log.warning("operation_recovered", operation_id=operation.id, kind=operation.kind, state=recovered.state)
    return True
