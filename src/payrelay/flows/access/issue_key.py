"""Keys for clients: issued, which is the only moment at which a key's text exists; listed; and revoked."""

import secrets
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.access.credential import (
    ALPHABET,
    DEFAULT_SCOPES,
    ID_LENGTH,
    SECRET_LENGTH,
    Credential,
    Rate,
    Scope,
    compose_key,
    hash_of,
)
from payrelay.store.access.credentials import Credentials

PRINCIPAL_LENGTH_MAX: Final = 100
"""A name that people can read in a list."""


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a key is to be.

    Attributes:
        principal: who it is for; 1 to PRINCIPAL_LENGTH_MAX printable characters.
        environment: ``sandbox`` or ``live``; stands in the key for people to see.
        scopes: what it may do.
        accounts: the gateway accounts that it may use; None for all.
        amount_max_minor: the largest amount of one operation; None for no limit.
        rate: its own quota; None for no limit.
        life_s: seconds until it ends; None for never.
    """

    principal: str
    environment: str
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    accounts: frozenset[str] | None = None
    amount_max_minor: int | None = None
    rate: Rate | None = None
    life_s: int | None = None


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key: its text, for its owner alone, and what the store knows of it."""

    key: str
    credential: Credential

    def __repr__(self) -> str:
        return f"Issued(credential={self.credential.id!r})"


async def issue_key(credentials: Credentials, clock: Clock, wanted: KeyRequest) -> IssuedKey:
    """Makes a key and stores its hash; raises StoreError where that can't be done."""
    credential_id = _random_text(ID_LENGTH)
    key = compose_key(wanted.environment, credential_id, _random_text(SECRET_LENGTH))
    now_ms = clock.now_ms()
    credential = Credential(
        id=credential_id,
        principal=wanted.principal,
        key_hash=hash_of(key),
        scopes=wanted.scopes,
        accounts=wanted.accounts,
        amount_max_minor=wanted.amount_max_minor,
        rate=wanted.rate,
        created_at_ms=now_ms,
        expires_at_ms=None if wanted.life_s is None else now_ms + wanted.life_s * 1000,
        revoked_at_ms=None,
    )
    await credentials.add(credential)
    return IssuedKey(key=key, credential=credential)


async def list_keys(credentials: Credentials) -> list[Credential]:
    """Gives all keys that there are or were, without their texts, which nobody knows. Raises StoreError."""
    return await credentials.list()


async def revoke_key(credentials: Credentials, clock: Clock, key_id: str) -> bool:
    """Ends a key; False where there is none of that id that could be ended. Raises StoreError."""
    return await credentials.revoke(key_id, clock.now_ms())


def _random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
