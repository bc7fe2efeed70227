"""Revokes client tokens: one, all of a customer, or all that a key has issued."""

from typing import Final

from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.core.answers import Answer, found
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request

FORGOTTEN_MAX: Final = 1_000
"""Tokens that one round deletes, so that it never holds the store for long."""


async def revoke_client_token(relay: Relay, request: Request, token_id: str) -> Answer:
    """Revokes one token of the caller's on this account; every process knows within a second. May be repeated.

    Raises Refusal (not_found) for a token that the caller hasn't issued, or that expired and was deleted.
    """
    principal, account, now_ms = request.principal, request.account, relay.clock.now_ms()
    if not await relay.access.client_tokens.revoke(token_id, principal, account, now_ms):
        raise Refusal(Code.NOT_FOUND, "there is no such client token")
    await relay.database.revocations.add(
        Revocation(kind=RevocationKind.CLIENT_TOKEN, at_ms=now_ms, id=token_id, principal=principal, account=account)
    )
    return found(None)


async def revoke_client_tokens(
    relay: Relay, request: Request, *, customer_id: str | None, credential_id: str | None
) -> Answer:
    """Revokes the caller's tokens: those of a customer, those that one of the caller's keys has issued, or all.

    Answers with how many it revoked. May be repeated.
    """
    principal, now_ms = request.principal, relay.clock.now_ms()
    revoked = await relay.access.client_tokens.revoke_some(
        principal, now_ms, customer_id=customer_id, credential_id=credential_id
    )
    await relay.database.revocations.add(
        Revocation(
            kind=RevocationKind.CLIENT_TOKENS,
            at_ms=now_ms,
            principal=principal,
            customer_id=customer_id,
            credential_id=credential_id,
        )
    )
    return found({"revoked": revoked})


async def forget_client_tokens(relay: Relay) -> int:
    """Deletes at most FORGOTTEN_MAX expired tokens; returns how many. Raises StoreError."""
    return await relay.access.client_tokens.prune(relay.clock.now_ms(), FORGOTTEN_MAX)
