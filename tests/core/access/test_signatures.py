"""Who signed a token: client tokens with one algorithm and key, an identity provider's with three and its own keys."""

import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from tests.core.access.test_client_token import TOKEN

from payrelay.core.access.client_token import PREFIX, ClaimsError, claims_of
from payrelay.core.access.signatures import (
    IDENTITY_PROVIDER_ALGORITHMS,
    TYPE,
    BadSignature,
    SigningKey,
    identity_claims,
    identity_keys,
    is_client_token,
    is_identity_token,
    key_id_of,
    signed,
    verified,
)

KEY = SigningKey(id="k1", secret=b"s" * 32, made_at_ms=0)
TEXT = signed(TOKEN, KEY)
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
OKP = OKPKey.generate_key("Ed25519", {"kid": "okp"})
CLAIMS: dict[str, Any] = {"iss": "https://login.example", "sub": "user-1"}


class Anything(JWSRegistry):
    """Signs with any algorithm without a word of warning, as an attacker does."""

    def __init__(self) -> None:
        super().__init__(algorithms=[*self.algorithms], strict_check_header=False)

    def get_alg(self, name: str) -> JWSAlgModel:
        """Gives whatever is asked for."""
        return self.algorithms[name]


def encoded(value: object) -> str:
    """Writes a part of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forged(header: dict[str, Any], secret: bytes = KEY.secret, claims: dict[str, object] | None = None) -> str:
    """Signs a client token's claims under another header."""
    return PREFIX + jwt.encode(
        header, claims or claims_of(TOKEN), OctKey.import_key(secret), registry=Anything(), default_type=None
    )


def test_a_token_is_read_as_it_was_signed() -> None:
    """And it can be told from a key, and by which key it was signed."""
    assert verified(TEXT, KEY) == TOKEN
    assert is_client_token(TEXT)
    assert not is_identity_token(TEXT)
    assert key_id_of(TEXT) == "k1"


@pytest.mark.parametrize("claim", sorted(claims_of(TOKEN)))
def test_each_claim_is_under_the_signature(claim: str) -> None:
    """Whoever changes one holds a text that nobody has signed."""
    header, payload, signature = TEXT.removeprefix(PREFIX).split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims[claim] = claims[claim] + 1 if isinstance(claims[claim], int) else claims[claim] + "x"

    with pytest.raises(BadSignature):
        verified(f"{PREFIX}{header}.{encoded(claims)}.{signature}", KEY)


@given(st.integers(min_value=len(PREFIX), max_value=len(TEXT) - 1), st.characters(codec="ascii"))
def test_no_character_of_a_token_can_be_another(position: int, character: str) -> None:
    """There is one text of a token, and no other one that is taken for it."""
    changed = TEXT[:position] + character + TEXT[position + 1 :]
    if changed == TEXT:
        return
    if is_client_token(changed):
        with pytest.raises((BadSignature, ClaimsError)):
            verified(changed, KEY)


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ({"alg": "HS256", "kid": "k1", "typ": TYPE}, b"t" * 32),
        ({"alg": "HS512", "kid": "k1", "typ": TYPE}, KEY.secret),
        ({"alg": "HS384", "kid": "k1", "typ": TYPE}, KEY.secret),
        ({"alg": "HS256", "kid": "k1", "typ": "JWT"}, KEY.secret),
        ({"alg": "HS256", "kid": "k2", "typ": TYPE}, KEY.secret),
        ({"alg": "HS256", "kid": "k1"}, KEY.secret),
        ({"alg": "HS256", "kid": "k1", "typ": TYPE, "cty": "JWT"}, KEY.secret),
        ({"alg": "HS256", "kid": "k1", "typ": TYPE, "jku": "https://evil.example"}, KEY.secret),
    ],
)
def test_the_header_is_ours_to_the_letter(header: dict[str, Any], secret: bytes) -> None:
    """The algorithm is not for the bearer to choose, nor is what the token is for."""
    with pytest.raises((BadSignature, ClaimsError)):
        verified(forged(header, secret), KEY)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS1", "RS256", "ES256"])
def test_a_token_without_a_signature_is_none(algorithm: str) -> None:
    """The oldest trick: the header says that there is nothing to verify."""
    for signature in ("", "AA", TEXT.rsplit(".", 1)[1]):
        head = encoded({"alg": algorithm, "kid": "k1", "typ": TYPE})
        text = f"{PREFIX}{head}.{encoded(claims_of(TOKEN))}.{signature}"
        if is_client_token(text):
            with pytest.raises(BadSignature):
                verified(text, KEY)


def test_our_own_key_signs_nothing_else_into_a_token() -> None:
    """Claims that no token has are refused also where the signature is right."""
    with pytest.raises(ClaimsError):
        verified(forged({"alg": "HS256", "kid": "k1", "typ": TYPE}, claims={"sub": "shop"}), KEY)


def test_a_header_that_is_nested_too_deep_names_no_key() -> None:
    """Anybody may send one; it is a token that isn't known, and no fault of the service."""
    nested = base64.urlsafe_b64encode(b"[" * 3_000).rstrip(b"=").decode()
    text = f"{nested}.e30.e30"
    assert is_identity_token(text)
    assert is_client_token(PREFIX + text)
    assert key_id_of(text) is None
    assert key_id_of(PREFIX + text) is None


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda some: some.decode("latin-1")))
def test_noise_is_no_token(text: str) -> None:
    """Whatever comes in, it is refused and nothing breaks."""
    assert key_id_of(text) is None or is_identity_token(text) or "." not in text
    for candidate in (text, PREFIX + text, f"{PREFIX}{text}.{text}.{text}"):
        with pytest.raises((BadSignature, ClaimsError)):
            verified(candidate, KEY)
        with pytest.raises(BadSignature):
            identity_claims(candidate, RSA)


def test_a_signing_key_is_not_printed() -> None:
    """It would sign tokens for everybody."""
    assert "sss" not in repr(KEY)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(RSA, "RS256"), (EC, "ES256"), (OKP, "EdDSA"), (OKP, "Ed25519")],
    ids=["RS256", "ES256", "EdDSA", "Ed25519"],
)
def test_a_providers_token_is_read_with_its_public_key(key: Key, algorithm: str) -> None:
    """Each algorithm of the list verifies with the key as published; and only the claims that were signed."""
    assert algorithm in IDENTITY_PROVIDER_ALGORITHMS
    text = jwt.encode({"alg": algorithm, "kid": key.kid}, CLAIMS, key, registry=Anything())
    public = identity_keys({"keys": [key.as_dict(private=False)]})[str(key.kid)]

    assert is_identity_token(text)
    assert identity_claims(text, public) == CLAIMS
    header, _, signature = text.split(".")
    with pytest.raises(BadSignature):
        identity_claims(f"{header}.{encoded(CLAIMS | {'sub': 'user-2'})}.{signature}", public)


@pytest.mark.parametrize("algorithm", sorted(set(JWSRegistry.algorithms) - set(IDENTITY_PROVIDER_ALGORITHMS)))
def test_no_other_algorithm_is_a_providers(algorithm: str) -> None:
    """Neither none, nor a shared secret, nor what nobody has looked at."""
    head = encoded({"alg": algorithm, "kid": "rsa"})
    for signature in ("", "AAAA"):
        with pytest.raises(BadSignature):
            identity_claims(f"{head}.{encoded(CLAIMS)}.{signature}", RSA)


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256"])
def test_a_public_key_is_no_shared_secret(algorithm: str) -> None:
    """HS256 with the identity provider's public key as the secret would let anybody sign."""
    public = identity_keys({"keys": [RSA.as_dict(private=False)]})["rsa"]
    signing_input = f"{encoded({'alg': algorithm, 'kid': 'rsa'})}.{encoded(CLAIMS)}"
    secrets = [RSA.as_pem(private=False), RSA.as_der(private=False), str(RSA.as_dict(private=False)["n"]).encode()]
    for secret in secrets:
        digest = hmac.digest(secret, signing_input.encode(), "sha256")
        signature = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        with pytest.raises(BadSignature):
            identity_claims(f"{signing_input}.{signature}", public)


def test_keys_that_are_of_no_use_are_passed_over() -> None:
    """A JWKS may have keys for encryption, weak ones and unknown kinds; the good ones still serve."""
    modulus = (2**1023 + 1).to_bytes(128, "big")
    weak = {"kty": "RSA", "kid": "weak", "e": "AQAB", "n": base64.urlsafe_b64encode(modulus).rstrip(b"=").decode()}
    other_curve = ECKey.generate_key("P-384", {"kid": "p384"}).as_dict(private=False)
    shared = {"kty": "oct", "kid": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0"}
    nameless = {name: value for name, value in EC.as_dict(private=False).items() if name != "kid"}
    found = identity_keys(
        {
            "keys": [
                weak,
                other_curve,
                shared,
                nameless,
                {**RSA.as_dict(private=False), "kid": "enc", "use": "enc"},
                {"kty": "AKP", "kid": "pq", "pub": "AAAA"},
                {"kty": "RSA", "kid": "broken", "n": "!!", "e": "AQAB"},
                {"kty": "RSA", "kid": "padded", "n": "A" * 342 + "E", "e": "AQAB"},
                {"kty": "EC", "kid": "no point", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
                {"kty": ["RSA"], "kid": "list"},
                "nothing",
                RSA.as_dict(private=False),
                OKP.as_dict(private=True),
            ]
        }
    )

    assert sorted(found) == ["okp", "rsa"]
    assert not any(key.is_private for key in found.values())


@pytest.mark.parametrize("answer", [{}, {"keys": None}, {"keys": {"a": 1}}, {"keys": "x"}])
def test_what_is_no_set_of_keys_is_refused(answer: dict[str, object]) -> None:
    """An error page must not replace the keys that are known."""
    with pytest.raises(ValueError, match="keys"):
        identity_keys(answer)
