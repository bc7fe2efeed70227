"""Signatures of tokens: client tokens have one algorithm and a key by its id, an identity provider's tokens three.

Rules:

1. Payrelay chooses the algorithm, never the header: ``none`` is no algorithm, and a public key is no shared secret.
2. The header of a client token is exactly as Payrelay writes it.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.registry import Header

from payrelay.core.access.client_token import PREFIX, TEXT_LENGTH_MAX, ClaimsError, ClientToken, claims_of, token_of

SECRET_BYTES: Final = 32
"""As many as the hash has (RFC 7518, 3.2)."""
TYPE: Final = "payrelay-client+jwt"
"""The ``typ`` of the header, so that a token for another purpose is never accepted as one (RFC 8725, 3.11)."""
IDENTITY_PROVIDER_ALGORITHMS: Final = ("RS256", "ES256", "EdDSA", "Ed25519")
"""The algorithms of identity providers. EdDSA is the older name of Ed25519, and the usual one."""
IDENTITY_TOKEN_LENGTH_MAX: Final = 8192
"""Of an identity provider's token; with permissions and profiles in them, some have 3,000 characters."""
RSA_BITS_MIN: Final = 2048

_ALGORITHM: Final = "HS256"
_BITS_PER_CHARACTER: Final = 6
_PUBLIC_MEMBERS: Final = frozenset({"kty", "kid", "use", "alg", "n", "e", "crv", "x", "y"})
_jwt_match: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+").fullmatch


class BadSignature(ValueError):
    """The text is no token, or no known key has signed it."""


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that signs client tokens; the header names its ``id``, and ``made_at_ms`` is for people."""

    id: str
    secret: bytes
    made_at_ms: int

    def __repr__(self) -> str:
        return f"SigningKey(id={self.id!r})"


def signed(token: ClientToken, key: SigningKey) -> str:
    """Writes a client token: PREFIX and the JWT."""
    return PREFIX + jwt.encode(_header(key), claims_of(token), _oct(key), algorithms=[_ALGORITHM], default_type=None)


def is_client_token(text: str) -> bool:
    """True for a text in the form of a client token, whoever signed it."""
    return len(text) <= TEXT_LENGTH_MAX and text.startswith(PREFIX) and _jwt_match(text, len(PREFIX)) is not None


def is_identity_token(text: str) -> bool:
    """True for a text in the form of a JWT that is no client token."""
    has_prefix = text.startswith(PREFIX)
    return len(text) <= IDENTITY_TOKEN_LENGTH_MAX and not has_prefix and _jwt_match(text) is not None


def key_id_of(text: str) -> str | None:
    """Gives the key id in the header of a token that isn't verified yet; None where no key id can be read."""
    try:
        header = msgspec.json.decode(_decoded_segment(text.removeprefix(PREFIX).partition(".")[0]))
    except (ValueError, RecursionError):
        return None
    key_id = header.get("kid") if isinstance(header, dict) else None
    return key_id if isinstance(key_id, str) else None


def verified(text: str, key: SigningKey) -> ClientToken:
    """Reads a client token that this key has signed.

    Raises BadSignature where the key has not signed it, and ClaimsError where it signed something else.
    """
    try:
        token = jwt.decode(text.removeprefix(PREFIX), _oct(key), algorithms=[_ALGORITHM])
    except (JoseError, ValueError, RecursionError) as error:
        raise BadSignature("the signature is not this key's") from error
    if token.header != _header(key):
        raise ClaimsError("the header is not that of a client token")
    return token_of(token.claims)


def identity_keys(raw_keys: Mapping[str, object]) -> dict[str, Key]:
    """Gives the keys of a JWKS that can verify one of IDENTITY_PROVIDER_ALGORITHMS, by their ids.

    Keys that are unknown, too weak, for encryption or without an id are left out. Raises ValueError where
    ``raw_keys`` is no JWKS.
    """
    entries = raw_keys.get("keys")
    if not isinstance(entries, list):
        raise ValueError("there is no list of keys")  # noqa: TRY004 - what came is wrong, not the caller
    keys = (_identity_key(entry) for entry in entries if isinstance(entry, dict))
    return {key.kid: key for key in keys if key is not None and key.kid is not None}


def identity_claims(text: str, key: Key) -> dict[str, object]:
    """Gives the claims of an identity provider's token that this key has signed; raises BadSignature."""
    try:
        return jwt.decode(text, key, registry=_IdentityKeyRegistry()).claims
    except (JoseError, ValueError, RecursionError) as error:
        raise BadSignature("the signature is not the identity provider's") from error


class _IdentityKeyRegistry(JWSRegistry):
    """Has IDENTITY_PROVIDER_ALGORITHMS alone; the library's registry would warn of the name EdDSA at every token."""

    max_header_length = 4096

    def __init__(self) -> None:
        super().__init__(algorithms=IDENTITY_PROVIDER_ALGORITHMS, strict_check_header=False)

    def get_alg(self, name: str) -> JWSAlgModel:
        """Gives an algorithm of the list; raises ValueError for every other one."""
        if name not in IDENTITY_PROVIDER_ALGORITHMS:
            raise ValueError("the algorithm is not allowed")
        return self.algorithms[name]


def _identity_key(entry: dict[str, object]) -> Key | None:
    kinds: dict[str, type[RSAKey | ECKey | OKPKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    kind = kinds.get(str(entry.get("kty")))
    if kind is None or entry.get("use", "sig") != "sig" or not isinstance(entry.get("kid"), str):
        return None
    public = {name: value for name, value in entry.items() if name in _PUBLIC_MEMBERS and isinstance(value, str)}
    # Checked before the import, because the library would warn of a weak key each time that the keys are read.
    if kind is RSAKey and len(public.get("n", "")) * _BITS_PER_CHARACTER < RSA_BITS_MIN:
        return None
    try:
        key = kind.import_key(public)  # type: ignore[arg-type]  # texts by name
        is_weak = isinstance(key, RSAKey) and key.public_key.key_size < RSA_BITS_MIN
        is_other = isinstance(key, ECKey | OKPKey) and key.curve_name not in {"P-256", "Ed25519"}
    except (JoseError, ValueError, TypeError):
        return None
    return None if is_weak or is_other else key


def _oct(key: SigningKey) -> OctKey:
    return OctKey.import_key(key.secret)


def _header(key: SigningKey) -> Header:
    return {"alg": _ALGORITHM, "kid": key.id, "typ": TYPE}


def _decoded_segment(segment: str) -> bytes:
    return msgspec.convert(segment.replace("-", "+").replace("_", "/") + "=" * (-len(segment) % 4), bytes)
