"""OAuth access tokens: issued to an API key, good for ten minutes, forgotten when they are presented too late."""

import base64
import binascii
import hmac
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import parse_qs

import msgspec

from payrelay_simulator.draws import Draws
from payrelay_simulator.errors import RefusalError
from payrelay_simulator.records import Merchant
from payrelay_simulator.reply import Reply, failure, oauth_failure, protocol_failure
from payrelay_simulator.switches import Switches

TOKEN_LIFE_S = 600

# Tokens that were never presented after their end are forgotten oldest first beyond this number.
TOKENS_KEPT_MAX = 1_000


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token and its last moment."""

    value: str
    app_id: str
    expires_at: datetime


class Tokens:
    """The tokens of all API keys."""

    def __init__(self, merchants: tuple[Merchant, ...], draws: Draws) -> None:
        self._merchants: Mapping[str, Merchant] = {merchant.app_id: merchant for merchant in merchants}
        self._draws = draws
        self._tokens: dict[str, AccessToken] = {}
        self._newest: dict[str, str] = {}

    def issue(self, authorization: str | None, content_type: str, body: bytes, turn: "TokenTurn") -> Reply:
        """Answer a token request: the unexpired token again, with less time left, or a new one."""
        # Who is asking is decided before what is asked, so that a stranger learns nothing about the form.
        form_failure = _form_failure(content_type, body)
        merchant = self._client(authorization)
        if authorization is None:
            return oauth_failure(401, "unauthorized", "Full authentication is required to access this resource")
        if merchant is None:
            return BAD_CLIENT[turn.switches.bad_client]
        if form_failure is not None:
            return form_failure
        token = self._current(merchant.app_id, turn)
        # Whole seconds that are surely left: a fresh token says one less than its life, as documented.
        left_s = (token.expires_at - turn.now).total_seconds()
        document = {
            "access_token": token.value,
            "token_type": "bearer",
            "expires_in": max(0, math.ceil(left_s) - 1),
            "scope": "SANDBOX",
        }
        return Reply(http_status=200, document=document)

    def _client(self, authorization: str | None) -> Merchant | None:
        app_id, secret = _basic_pair(authorization)
        merchant = self._merchants.get(app_id)
        if merchant is None or not hmac.compare_digest(merchant.app_secret.encode(), secret.encode()):
            return None
        return merchant

    def _current(self, app_id: str, turn: "TokenTurn") -> AccessToken:
        token = self._tokens.get(self._newest.get(app_id, ""))
        if token is not None and token.expires_at > turn.now and turn.switches.access_tokens == "reused":
            return token
        expires_at = turn.now + timedelta(seconds=TOKEN_LIFE_S)
        token = AccessToken(value=self._draws.uuid("access token"), app_id=app_id, expires_at=expires_at)
        self._tokens[token.value] = token
        self._newest[app_id] = token.value
        if len(self._tokens) > TOKENS_KEPT_MAX:
            del self._tokens[next(iter(self._tokens))]
        return token

    def authenticate(self, authorization: str | None, turn: "TokenTurn") -> Merchant:
        """Return whose token is presented; a RefusalError answers a missing, unknown or expired one."""
        value = bearer_value(authorization)
        if value is None:
            description = "Full authentication is required to access this resource"
            raise RefusalError(oauth_failure(turn.switches.invalid_token_http, "unauthorized", description))
        token = self._tokens.get(value)
        if token is None:
            raise RefusalError(_invalid_token(f"Invalid access token: {value}", turn))
        if token.expires_at <= turn.now:
            # Forgotten as soon as it was told, so that the next time it is unknown.
            del self._tokens[value]
            raise RefusalError(_invalid_token(f"Access token expired: {value}", turn))
        return self._merchants[token.app_id]

    def expire(self, authorization: str | None, now: datetime) -> None:
        """End the presented token before its time."""
        token = self._tokens.get(bearer_value(authorization) or "")
        if token is not None:
            self._tokens[token.value] = msgspec.structs.replace(token, expires_at=now)

    def key_of(self, authorization: str | None) -> str:
        """Return the app id of whose call it seems to be, for counting; an empty text where nobody is recognised."""
        token = self._tokens.get(bearer_value(authorization) or "")
        app_id = token.app_id if token is not None else _basic_pair(authorization)[0]
        return app_id if app_id in self._merchants else ""


class TokenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What tokens depend on from outside: the time and the switches."""

    now: datetime
    switches: Switches


BAD_CLIENT: Mapping[str, Reply] = {
    "invalid_client": oauth_failure(401, "invalid_client", "Bad client credentials"),
    "unauthorized": oauth_failure(401, "unauthorized", "Bad credentials"),
    "envelope": msgspec.structs.replace(failure("Authentication error", status=-2), http_status=401),
}


def basic_authorization(merchant: Merchant) -> str:
    """Return the Authorization header with which a merchant asks for a token."""
    pair = f"{merchant.app_id}:{merchant.app_secret}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def bearer_value(authorization: str | None) -> str | None:
    """Return the token of an Authorization header, None where it holds none."""
    scheme, _, value = (authorization or "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" and value.strip() else None


def _basic_pair(authorization: str | None) -> tuple[str, str]:
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, secret


def _form_failure(content_type: str, body: bytes) -> Reply | None:
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return protocol_failure(415, "Content-Type must be application/x-www-form-urlencoded")
    grants = parse_qs(body.decode(errors="replace")).get("grant_type", [])
    if not grants:
        return oauth_failure(400, "invalid_request", "Missing grant type")
    if grants != ["client_credentials"]:
        return oauth_failure(400, "unsupported_grant_type", f"Unsupported grant type: {grants[0]}")
    return None


def _invalid_token(description: str, turn: TokenTurn) -> Reply:
    return oauth_failure(turn.switches.invalid_token_http, "invalid_token", description)
