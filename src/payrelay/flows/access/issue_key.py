"""Issues, lists and revokes keys. Only the result of issuing a key contains its text."""

import secrets
from typing import Final, NamedTuple

import msgspec

from payrelay.clock import Clock
from payrelay.core.access.allowance import PAYMENTS_MAX
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
from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.store.access.credentials import Credentials

PRINCIPAL_LENGTH_MAX: Final = 100
"""A name that people can read in a list."""
PAYMENTS_OF_ORDER_MAX: Final = PAYMENTS_MAX
"""The most payments of one order that a key may name, as a client token may."""


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a key.

    Attributes:
        principal: whom the key identifies; 1 to PRINCIPAL_LENGTH_MAX printable characters.
        environment: ``sandbox`` or ``live``; part of the key's text, so that a reader sees it.
        scopes: what it may do.
        accounts: the gateway accounts that it may use; None for all.
        amount_max_minor: the largest amount of one operation; None for no limit.
        rate: its own quota; None for no limit.
        payments_max: how many payments an order may have, 1 to PAYMENTS_OF_ORDER_MAX; None for no limit.
        life_s: seconds until it ends; None for never.
    """

    principal: str
    environment: str
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    accounts: frozenset[str] | None = None
    amount_max_minor: int | None = None
    rate: Rate | None = None
    payments_max: int | None = None
    life_s: int | None = None


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key: its text, which only its owner may see, and its stored credential."""

    key: str
    credential: Credential

    def __repr__(self) -> str:
        return f"Issued(credential={self.credential.id!r})"


async def issue_key(credentials: Credentials, clock: Clock, key_request: KeyRequest) -> IssuedKey:
    """Makes a key and stores its hash; raises StoreError where the hash can't be stored."""
    credential_id = _random_text(ID_LENGTH)
    key = compose_key(key_request.environment, credential_id, _random_text(SECRET_LENGTH))
    now_ms = clock.now_ms()
    credential = Credential(
        id=credential_id,
        principal=key_request.principal,
        key_hash=hash_of(key),
        scopes=key_request.scopes,
        accounts=key_request.accounts,
        amount_max_minor=key_request.amount_max_minor,
        rate=key_request.rate,
        created_at_ms=now_ms,
        expires_at_ms=None if key_request.life_s is None else now_ms + key_request.life_s * 1000,
        revoked_at_ms=None,
        payments_max=key_request.payments_max,
    )
    await credentials.add(credential)
    return IssuedKey(key=key, credential=credential)


async def list_keys(credentials: Credentials) -> list[Credential]:
    """Returns all credentials, also expired and revoked ones, without the keys' texts. Raises StoreError."""
    return await credentials.list()


class KeyRevocation(NamedTuple):
    """What a revocation found: whether the key could be revoked, and whether the list outside has it now."""

    is_new: bool
    is_listed: bool


async def revoke_key(credentials: Credentials, revocations: RevocationList, clock: Clock, key_id: str) -> KeyRevocation:
    """Revokes a key, and adds that to the list outside the database. Raises StoreError.

    May be repeated: a key that was revoked before is added to the list again, and isn't new.
    """
    now_ms = clock.now_ms()
    is_new = await credentials.revoke(key_id, now_ms)
    if not is_new and await credentials.get(key_id) is None:
        return KeyRevocation(is_new=False, is_listed=False)
    listed = Revocation(kind=RevocationKind.KEY, at_ms=now_ms, id=key_id)
    return KeyRevocation(is_new=is_new, is_listed=await revocations.add(listed))


def _random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
