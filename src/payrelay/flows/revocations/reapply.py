"""Does again what was taken back, where the database has lost it: at each start, and when a recovery begins.

It only ever takes more back. A key, a client token and a customer are never given back once revoked, removed or
erased, so their lines count whenever the database lacks them. An account may have been resumed since, perhaps by a
process with another list. A pause therefore counts only where the list says nothing newer of the account, and a
recovery's lost window has the moment of the pause.
"""

from collections.abc import Sequence
from typing import Final

from payrelay.core.access.client_token import LIFE_MAX_S
from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.core.customers.customer import CustomerState
from payrelay.core.database.incarnations import Incarnation
from payrelay.core.gateways.pauses import Pause
from payrelay.errors import StoreError, StoreUnusable
from payrelay.flows.customers.erase_customer import erase, remove
from payrelay.flows.relay import Relay

PAUSE_REASON: Final = "the account was paused before commits were lost"
OPERATOR: Final = "payrelay"
"""In the name of whom an account is paused again: the list names no person."""
TOKENS_END_AFTER_MS: Final = LIFE_MAX_S * 1000


async def reapply_revocations(relay: Relay) -> int:
    """Does again what the list has and the database lacks; returns how many that were.

    Adds to the list the revoked keys that only the database has. May be repeated. Raises StoreError; StoreUnusable
    where the list can't be read: nobody would know what was taken back.
    """
    now_ms = relay.clock.now_ms()
    try:
        await relay.database.revocations.forget(now_ms)
        listed = await relay.database.revocations.read()
    except OSError as error:
        folder = relay.database.revocations.folder
        raise StoreUnusable(f"the list of revocations in {folder} can't be read: {error.strerror}") from error
    if listed.unreadable:
        relay.log.error(
            "revocations_unreadable", lines=listed.unreadable, folder=str(relay.database.revocations.folder)
        )
    count = (
        await _reapply_keys(relay, listed.revocations)
        + await _reapply_client_tokens(relay, listed.revocations, now_ms)
        + await _reapply_customers(relay, listed.revocations)
        + await _reapply_pauses(relay, listed.revocations)
    )
    if count:
        relay.log.warning("revocations_reapplied", count=count)
    return count


async def reapply_in_new_incarnation(relay: Relay) -> None:
    """Reapplies once for each incarnation that this process sees begin. Raises StoreError."""
    current = (await relay.database.lost_commits.identity()).current.number
    if relay.database.revocations.reapplied_in != current:
        await reapply_revocations(relay)
        relay.database.revocations.reapplied_in = current


async def begin_reapplying(relay: Relay) -> None:
    """Begins to reapply where this process has not done so in this incarnation, in the background.

    No other job delays a revocation, and a folder that hangs delays no other job. Raises StoreError.
    """
    current, revocations = (await relay.database.lost_commits.identity()).current.number, relay.database.revocations
    if revocations.reapplied_in != current and not revocations.is_reapplying:
        revocations.is_reapplying = True
        relay.background.start(_reapply_apart(relay))


async def _reapply_apart(relay: Relay) -> None:
    try:
        await reapply_in_new_incarnation(relay)
    except StoreError as error:  # the next round tries again
        relay.log.warning("job_failed", job="reapply_in_new_incarnation", reason=str(error))
        relay.hooks.job_failed("reapply_in_new_incarnation")
    finally:
        relay.database.revocations.is_reapplying = False


async def compare_revocations(relay: Relay) -> None:
    """Reapplies where another server took the writes, and says that the database is behind where it lacked any.

    Raises StoreError.
    """
    count = await reapply_revocations(relay)
    if count:
        number = await relay.database.lost_commits.incarnation()
        relay.database.lost_commits.fall_behind(number, f"it lacked {count} of the revocations that are listed outside")


async def _reapply_keys(relay: Relay, listed: Sequence[Revocation]) -> int:
    listed_at = {each.id: each.at_ms for each in listed if each.kind is RevocationKind.KEY}
    missing, count = [], 0
    for key in await relay.access.credentials.list():
        if key.revoked_at_ms is not None and key.id not in listed_at:
            missing.append(Revocation(kind=RevocationKind.KEY, at_ms=key.revoked_at_ms, id=key.id))
        elif key.revoked_at_ms is None and key.id in listed_at:
            count += await relay.access.credentials.revoke(key.id, listed_at[key.id])
    await relay.database.revocations.add(*missing)
    return count


async def _reapply_client_tokens(relay: Relay, listed: Sequence[Revocation], now_ms: int) -> int:
    count = 0
    for each in listed:
        if each.at_ms + TOKENS_END_AFTER_MS <= now_ms or each.principal is None:
            continue
        if each.kind is RevocationKind.CLIENT_TOKEN:
            count += await _reapply_client_token(relay, each.id or "", each.principal, each.account or "", each.at_ms)
        elif each.kind is RevocationKind.CLIENT_TOKENS:
            count += await relay.access.client_tokens.revoke_some(
                each.principal,
                each.at_ms,
                customer_id=each.customer_id,
                credential_id=each.credential_id,
                issued_until_ms=each.at_ms,
            )
    return count


async def _reapply_client_token(relay: Relay, token_id: str, principal: str, account: str, at_ms: int) -> int:
    parentage = await relay.access.client_tokens.parentage(token_id)
    if parentage is None or parentage.revoked_at_ms is not None:
        return 0
    return int(await relay.access.client_tokens.revoke(token_id, principal, account, at_ms))


async def _reapply_customers(relay: Relay, listed: Sequence[Revocation]) -> int:
    erased = {each.id for each in listed if each.kind is RevocationKind.CUSTOMER_ERASED}
    removed = {each.id for each in listed if each.kind is RevocationKind.CUSTOMER_REMOVED} - erased
    count = 0
    for ids, state, end in ((erased, CustomerState.ERASED, erase), (removed, CustomerState.REMOVED, remove)):
        for customer_id in sorted(each for each in ids if each is not None):
            customer = await relay.customers.left_of(customer_id)
            if customer is None or customer.state in {state, CustomerState.ERASED}:
                continue
            await end(relay, await relay.customers.get(customer_id) or customer)
            count += 1
    return count


async def _reapply_pauses(relay: Relay, listed: Sequence[Revocation]) -> int:
    kinds = {RevocationKind.PAUSE, RevocationKind.RESUME}
    newest = {each.account: each for each in listed if each.kind in kinds}
    incarnations = (await relay.database.lost_commits.identity()).incarnations
    count = 0
    for account, each in newest.items():
        if account is not None and each.kind is RevocationKind.PAUSE and _may_be_lost(each.at_ms, incarnations):
            pause = Pause(account=account, since_ms=each.at_ms, reason=PAUSE_REASON, operator=OPERATOR)
            count += await relay.pauses.add(pause)
    return count


def _may_be_lost(at_ms: int, incarnations: Sequence[Incarnation]) -> bool:
    lost = [each.lost for each in incarnations if each.lost is not None]
    return any(window.since_ms <= at_ms <= window.until_ms for window in lost)
