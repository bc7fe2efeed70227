"""The readers of what the console's sign-in provider sends: its configuration, its keys, and what a token claims."""

import json
from typing import Final

import msgspec
from tests.readers.reader import Reader, Shape

from payrelay.console.rules.sign_in.provider import ProviderRules, metadata_of, person_of
from payrelay.core.access.signatures import IDENTITY_TOKEN_LENGTH_MAX, identity_keys
from payrelay.runtime.identity_provider_keys import ANSWER_BYTES_MAX

ISSUER: Final = "https://login.example"
NOW_S: Final = 1_800_000_000
RULES: Final = ProviderRules(issuer=ISSUER, client_id="console", second_factors=frozenset({"otp"}))
KEYS_BYTES: Final = ANSWER_BYTES_MAX // 8
"""Of a set of keys: a part of what may come, because Callgrind takes a minute for the whole of it."""

_CONFIGURATION: Final = {
    "issuer": ISSUER,
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "authorization_endpoint": "",
}
_AT_AN_ADDRESS: Final = json.dumps(_CONFIGURATION)[:-2].encode()
"""A configuration up to the beginning of the last address."""
_CLAIMS: Final = json.dumps(
    {
        "iss": ISSUER,
        "aud": "console",
        "sub": "u-1",
        "nonce": "n",
        "iat": NOW_S,
        "exp": NOW_S + 60,
        "email_verified": True,
    }
)[:-1].encode()


def _read_keys(text: bytes) -> object:
    return identity_keys(msgspec.json.decode(text, type=dict[str, object]))


def _key(members: str) -> Shape:
    """Gives a set of keys of one kind, each with a number of its own."""
    name = json.loads(members)["kty"]
    before, _, after = members.partition("NUMBER")
    return Shape(
        f"keys of the kind {name}",
        lambda number: f"{before}{number}{after},".encode(),
        before=b'{"keys":[',
        after=b"{}]}",
    )


READERS: Final = (
    Reader(
        name="provider's configuration",
        read=lambda text: metadata_of(text, ISSUER),
        longest=ANSWER_BYTES_MAX,
        shapes=(
            Shape(
                "marks on one letter",
                "\u0316".encode(),
                before=_AT_AN_ADDRESS + "https://a\u0301".encode(),
                after=b'"}',
            ),
            Shape(
                "marks in the wrong order", "\u0301\u0316".encode(), before=_AT_AN_ADDRESS + b"https://a", after=b'"}'
            ),
            Shape("a long name", b"a.", before=_AT_AN_ADDRESS + b"https://", after=b'"}'),
            Shape("names of users", b"@", before=_AT_AN_ADDRESS + b"https://", after=b'"}'),
            Shape("escapes", b"\\u0061", before=_AT_AN_ADDRESS + b"https://", after=b'"}'),
            Shape("a nest", b"[", before=b'{"x":'),
            Shape("digits", b"1", before=b'{"x":', after=b"}"),
        ),
    ),
    Reader(
        name="provider's keys",
        read=_read_keys,
        longest=KEYS_BYTES,
        refusals=(ValueError, RecursionError),
        shapes=(
            _key(json.dumps({"kty": "RSA", "kid": "NUMBER", "n": "_" * 342, "e": "AQAB"})),
            _key(json.dumps({"kty": "OKP", "kid": "NUMBER", "crv": "Ed25519", "x": "A" * 43})),
            _key(json.dumps({"kty": "other", "kid": "NUMBER"})),
            Shape("a long key", b"_", before=b'{"keys":[{"kty":"RSA","kid":"a","e":"AQAB","n":"', after=b'"}]}'),
            Shape(
                "a long point",
                b"_",
                before=b'{"keys":[{"kty":"EC","kid":"a","crv":"P-256","y":"A","x":"',
                after=b'"}]}',
            ),
            Shape("a nest", b"[", before=b'{"keys":'),
            Shape("long numbers", b'{"kty":' + b"1" * 1000 + b"},", before=b'{"keys":[', after=b"{}]}"),
        ),
    ),
    Reader(
        name="who a provider names",
        read=lambda text: person_of(json.loads(text), RULES, "n", NOW_S * 1000),
        longest=IDENTITY_TOKEN_LENGTH_MAX,
        shapes=(
            Shape("clients", b',"a"', before=_CLAIMS + b',"azp":"console","aud":["console"', after=b"]}"),
            Shape("ways to sign in", b'"a",', before=_CLAIMS + b',"amr":[', after=b'""]}'),
            Shape("an address", b"a", before=_CLAIMS + b',"email":"', after=b'"}'),
            Shape("a subject", b"a", before=_CLAIMS + b',"sub":"', after=b'"}'),
        ),
    ),
)
