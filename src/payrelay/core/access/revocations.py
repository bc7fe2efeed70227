"""Revocations: what was taken back, as a list outside the database has it, one line each.

A restored backup or a promoted standby may lack a revocation. The list lets it be done again. Each line has a keyed
digest, so that only a process with the encryption key adds one that counts. A line has ids, and the names of accounts
and principals, and nothing else that tells of a person.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.keyed_digest import DigestKey

PURPOSE: Final = "revocation"
"""Of the digest key."""
_BETWEEN: Final = b" "


class RevocationKind(StrEnum):
    """What was taken back."""

    KEY = "key"
    """A key, by its id."""
    CLIENT_TOKEN = "client_token"  # noqa: S105, a word
    """One client token of a principal on an account."""
    CLIENT_TOKENS = "client_tokens"
    """A principal's client tokens that were issued until then: those of a customer or a key, where it names one."""
    PAUSE = "pause"
    """The leave to begin operations on an account."""
    RESUME = "resume"
    """Such a pause."""
    CUSTOMER_REMOVED = "customer_removed"
    """The leave to charge a stored customer."""
    CUSTOMER_ERASED = "customer_erased"
    """Everything that names a stored customer."""


class Revocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was taken back, and when (milliseconds since 1970, UTC).

    Attributes:
        id: of the key, the client token or the customer.
        account: the name of an account: the paused one, or that of a client token.
        principal: of client tokens.
        customer_id: of client tokens; None for any.
        credential_id: the key that issued them; None for any.
    """

    kind: RevocationKind
    at_ms: int
    id: str | None = None
    account: str | None = None
    principal: str | None = None
    customer_id: str | None = None
    credential_id: str | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Revocation).decode


def line_of(revocation: Revocation, key: DigestKey) -> bytes:
    """Writes a revocation as a line, without the line's end."""
    text = _encode(revocation)
    return text + _BETWEEN + key.digest(text).encode()


def revocation_of(line: bytes, key: DigestKey) -> Revocation | None:
    """Reads a line; None where it was not written by ``line_of`` with this key, or not to its end."""
    text, _, digest = line.rpartition(_BETWEEN)
    if not key.fits(digest.decode("latin-1"), text):
        return None
    try:
        return _decode(text)
    except msgspec.MsgspecError:  # a later version knows more kinds
        return None
