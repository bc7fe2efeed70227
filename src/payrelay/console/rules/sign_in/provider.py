"""Signing in by an OpenID Connect provider: where a browser is sent, and what the provider's answers must say.

Rules:

1. The provider says who somebody is, and never what they may do: a role is given in the console alone.
2. A person is known by issuer and subject. An e-mail address counts once, to find whom somebody invited, and only where
   the provider says that it is verified.
3. What binds an answer to one browser and one try is made from the browser's own cookie. The store has nothing of it.
"""

import base64
import hashlib
import hmac
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from payrelay.core.events.destinations import AllowedDestinations, DestinationError, require_destination
from payrelay.core.operators.operator import OperatorTextError, email_of
from payrelay.core.secret import Secret

LEEWAY_S: Final = 30
"""How far the provider's clock may be from the service's clock."""
AGE_MAX_S: Final = 600
"""How old an id token may be: it is made for the very sign-in, which may take so long."""
SHOWN_AGE_MAX_S: Final = 60
"""How long ago somebody may have signed in at the provider where its second factor counts. It is asked for anew then:
whoever finds an open browser has a session at the provider, too."""
SUBJECT_LENGTH_MAX: Final = 255
DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
SCOPE: Final = "openid email"


class ProviderAnswerError(ValueError):
    """An answer of the provider isn't what it must be; the message has nothing of the answer."""


class ProviderMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider publishes about itself, as OpenID Connect Discovery names it."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class ProviderRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say about the provider.

    Attributes:
        issuer: equal to ``iss``, character for character.
        client_id: what the provider calls the console; the audience of its tokens.
        email_claim, verified_claim: the claims that name the address, and say whether it is verified.
        requires: the claims that must be there, with their values, such as the domain of a company.
        second_factors: the values of ``amr`` or ``acr`` that say that the provider has asked for a second factor.
    """

    issuer: str
    client_id: str
    email_claim: str = "email"
    verified_claim: str = "email_verified"
    requires: tuple[tuple[str, str], ...] = ()
    second_factors: frozenset[str] = frozenset()


class ProviderPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the provider has signed in.

    Attributes:
        subject_hash: the hash of issuer and subject, which never changes for a person.
        email: verified, in small letters; None where the provider names none, or doesn't say that it is verified.
        has_second_factor: whether the provider says that it asked for a second factor that counts here.
    """

    subject_hash: str
    email: str | None
    has_second_factor: bool


def metadata_of(body: bytes, issuer: str) -> ProviderMetadata:
    """Reads what the provider publishes about itself; raises ProviderAnswerError."""
    try:
        metadata = msgspec.json.decode(body, type=ProviderMetadata)
    except (ValueError, RecursionError):
        raise ProviderAnswerError("its configuration can't be read") from None
    if metadata.issuer != issuer:
        raise ProviderAnswerError("its configuration names another issuer than the settings")
    endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
    if not all(_is_private(address, issuer) for address in endpoints):
        raise ProviderAnswerError("its configuration has an address that isn't https, or not ASCII")
    try:
        for address in (metadata.token_endpoint, metadata.jwks_uri):
            require_destination(address, callable_by(issuer))
    except DestinationError as error:
        raise ProviderAnswerError(f"its configuration leads to another host, whose address {error}") from None
    return metadata


def callable_by(issuer: str) -> AllowedDestinations:
    """Gives where the provider may have the service call: its own host, which the settings name, and public ones."""
    return AllowedDestinations(names=frozenset({urlsplit(issuer).hostname or ""}))


def authorization_address(metadata: ProviderMetadata, rules: ProviderRules, way_back: str, keys: "TryKeys") -> str:
    """Gives the address at the provider that the browser is led to."""
    asked = {
        "response_type": "code",
        "client_id": rules.client_id,
        "redirect_uri": way_back,
        "scope": SCOPE,
        "state": keys.state,
        "nonce": keys.nonce,
        "code_challenge": keys.code_challenge,
        "code_challenge_method": "S256",
    }
    if rules.second_factors:
        asked["max_age"] = str(SHOWN_AGE_MAX_S)
    joint = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
    return f"{metadata.authorization_endpoint}{joint}{urlencode(asked)}"


class TryKeys(msgspec.Struct, frozen=True):
    """What binds one try to sign in to one browser: the state of its address, and the browser's cookie."""

    state: str
    cookie: str

    def __repr__(self) -> str:
        return "TryKeys()"

    @property
    def nonce(self) -> str:
        """What the id token must repeat."""
        return self._made("nonce")

    @property
    def code_verifier(self) -> Secret:
        """What only this try can exchange the code with (RFC 7636)."""
        return Secret(self._made("code verifier"))

    @property
    def code_challenge(self) -> str:
        """Gives the hash of the verifier, which the provider is told first."""
        return _text_of(hashlib.sha256(self.code_verifier.reveal().encode()).digest())

    def _made(self, what: str) -> str:
        text = f"payrelay console {what}\0{self.state}"
        return _text_of(hmac.digest(self.cookie.encode(errors="replace"), text.encode(errors="replace"), "sha256"))


def person_of(claims: dict[str, object], rules: ProviderRules, nonce: str, now_ms: int) -> ProviderPerson:
    """Gives the person whom an id token with these claims names; its signature is verified.

    Raises ProviderAnswerError.
    """
    if claims.get("iss") != rules.issuer:
        raise ProviderAnswerError("the id token is of another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    authorized = claims.get("azp", rules.client_id if len(audiences) == 1 else None)
    if rules.client_id not in audiences or authorized != rules.client_id:
        raise ProviderAnswerError("the id token is for another client")
    now_s = now_ms / 1000
    issued_s, expires_s = _moment_s(claims.get("iat")), _moment_s(claims.get("exp"))
    if not now_s - AGE_MAX_S - LEEWAY_S <= issued_s <= now_s + LEEWAY_S or expires_s + LEEWAY_S <= now_s:
        raise ProviderAnswerError("the id token is of another time")
    if "nbf" in claims and _moment_s(claims["nbf"]) > now_s + LEEWAY_S:
        raise ProviderAnswerError("the id token doesn't count yet")
    told = claims.get("nonce")
    if not isinstance(told, str) or not hmac.compare_digest(told.encode(errors="replace"), nonce.encode()):
        raise ProviderAnswerError("the id token is for another try to sign in")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject) <= SUBJECT_LENGTH_MAX:
        raise ProviderAnswerError("the id token names no subject")
    if any(claims.get(name) != value for name, value in rules.requires):
        raise ProviderAnswerError("the id token lacks a claim that the settings require")
    return ProviderPerson(
        subject_hash=hashlib.sha256(f"{rules.issuer}\0{subject}".encode(errors="replace")).hexdigest(),
        email=_verified_email(claims, rules),
        has_second_factor=_has_second_factor(claims, rules, now_s),
    )


def _verified_email(claims: dict[str, object], rules: ProviderRules) -> str | None:
    email = claims.get(rules.email_claim)
    if claims.get(rules.verified_claim) is not True or not isinstance(email, str):
        return None
    try:
        return email_of(email)
    except OperatorTextError:
        return None


def _has_second_factor(claims: dict[str, object], rules: ProviderRules, now_s: float) -> bool:
    """Raises ProviderAnswerError where one counts of which it isn't known that it was shown now."""
    methods = claims.get("amr")
    told = [*(methods if isinstance(methods, list) else []), claims.get("acr")]
    if not any(isinstance(each, str) and each in rules.second_factors for each in told):
        return False
    if not now_s - SHOWN_AGE_MAX_S - LEEWAY_S <= _moment_s(claims.get("auth_time")) <= now_s + LEEWAY_S:
        raise ProviderAnswerError("the second factor was shown some time ago, though it was to be asked for now")
    return True


def _moment_s(value: object) -> float:
    # By type, because True is a number in Python.
    if type(value) not in {int, float} or not isinstance(value, int | float) or not 0 <= value < 2**40:
        raise ProviderAnswerError(
            "the id token lacks a time: iat, exp, or auth_time where its second factor counts; or its nbf is none"
        )
    return value


def _is_private(address: str, issuer: str) -> bool:
    """True for an https address in ASCII; where the issuer itself is on this machine, for http as well."""
    if not address.isascii():
        # Never part of an address, and it takes ``urlsplit`` a time that grows with the square of the host's length.
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    schemes = {"https"} if urlsplit(issuer).scheme == "https" else {"https", "http"}
    return parts.scheme in schemes and bool(parts.hostname) and not parts.fragment and address.isprintable()


def _text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
