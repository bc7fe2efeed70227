"""The acknowledgement of a principal: it has repeated whatever it sent in the lost window and got no answer to."""

import msgspec

from payrelay.clock import Clock
from payrelay.core.answers import Answer, found
from payrelay.core.database.incarnations import DatabaseIdentity, Incarnation
from payrelay.core.moments import rfc3339
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request
from payrelay.store.database.identity import IdentityStore


class RecoveryView(msgspec.Struct, frozen=True, kw_only=True):
    """The newest incarnation of the database as a principal sees it; times are RFC 3339 in UTC.

    ``lost_since`` and ``lost_until`` are null where no commits were lost.
    """

    incarnation: int
    is_recovering: bool
    lost_since: str | None
    lost_until: str | None
    acknowledged_at: str | None


async def show_recovery(relay: Relay, request: Request) -> Answer:
    """Answers with the newest incarnation, and whether the caller still has to acknowledge. Raises StoreError."""
    return found(_view((await relay.database.identities.read()).current, request.principal))


async def acknowledge_recovery(relay: Relay, request: Request, incarnation: int) -> Answer:
    """Acknowledges for the caller's principal; as ``acknowledge``."""
    current = await acknowledge(relay.database.identities, relay.clock, request.principal, incarnation)
    relay.log.warning("recovery_acknowledged", principal=request.principal, incarnation=incarnation)
    return found(_view(current, request.principal))


async def acknowledge(identities: IdentityStore, clock: Clock, principal: str, incarnation: int) -> Incarnation:
    """Stores that a principal acknowledges the recovery of an incarnation, which it gives back.

    From a second later on no request of the principal counts as a repeat of a lost one. May be repeated: the first
    time stays. Raises Refusal (conflict) where that incarnation isn't recovering, and StoreError.
    """

    def acknowledged(identity: DatabaseIdentity) -> DatabaseIdentity:
        current = identity.current
        if current.number != incarnation or not current.is_recovering:
            raise Refusal(Code.CONFLICT, f"no recovery of incarnation {incarnation} is under way")
        if principal in current.acknowledged:
            return identity
        times = {**current.acknowledged, principal: clock.now_ms()}
        return identity.with_current(msgspec.structs.replace(current, acknowledged=times))

    return (await identities.change(acknowledged)).current


def _view(current: Incarnation, principal: str) -> RecoveryView:
    acknowledged_ms = current.acknowledged.get(principal)
    return RecoveryView(
        incarnation=current.number,
        is_recovering=current.is_recovering,
        lost_since=None if current.lost is None else rfc3339(current.lost.since_ms),
        lost_until=None if current.lost is None else rfc3339(current.lost.until_ms),
        acknowledged_at=None if acknowledged_ms is None else rfc3339(acknowledged_ms),
    )
