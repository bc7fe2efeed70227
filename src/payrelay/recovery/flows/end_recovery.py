"""Ends a recovery: no request that comes from then on counts as a repeat of one that was lost."""

import msgspec

from payrelay.core.database.incarnations import DatabaseIdentity, Incarnation, repeats_end_at_ms
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay


async def end_recovery(relay: Relay) -> Incarnation:
    """Ends the recovery that is under way, at once or not at all, and returns its incarnation.

    Operations that are held stay held. Raises Refusal (conflict) where no recovery is under way; StoreError.
    """

    def ended(identity: DatabaseIdentity) -> DatabaseIdentity:
        if not identity.current.is_recovering:
            raise Refusal(Code.CONFLICT, "no recovery is under way")
        now_ms = relay.clock.now_ms()
        return identity.with_current(msgspec.structs.replace(identity.current, ended_recovery_at_ms=now_ms))

    return (await relay.database.identities.change(ended)).current


async def end_recovery_when_over(relay: Relay) -> bool:
    """Ends a recovery whose lost requests can't come again; returns whether it did.

    A client repeats a request with its Idempotency-Key for no longer than answers are kept. What every known principal
    acknowledges doesn't end it: a principal whose keys were all lost is unknown until it gets a new one. Raises
    StoreError.
    """
    current = (await relay.database.lost_commits.identity()).current
    if not current.is_recovering or relay.clock.now_ms() < repeats_end_at_ms(current, relay.settings.retention):
        return False
    try:
        await end_recovery(relay)
    except Refusal:  # another process was quicker
        return False
    return True
