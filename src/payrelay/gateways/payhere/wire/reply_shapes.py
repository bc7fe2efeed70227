"""Reads what all replies of PayHere's have in common: their shape, and whether the gateway rejected the call. Pure.

Rules:

1. HTTP status, shape and text of a reply decide *together*. -1 means "no payment" and "access denied"; -2 means
   "declined", "already captured" and "not authenticated". The number alone says nothing.
2. Only complete replies are read: valid UTF-8, complete JSON, no member of an object named twice.
3. ``msg`` and ``data`` stay byte for byte. They are copied, so that no reply keeps a buffer alive.
4. A reply that repeats our access token is not passed on, whatever else it says.
"""

import re
from decimal import Decimal
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.calls import Capture, Charge, Effect, Read, Void
from payrelay.core.money import AmountError, minor_units
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import plain_number
from payrelay.core.secret import STARS
from payrelay.errors import Code
from payrelay.gateways.gateway import EffectCause

BUSINESS_STATUSES: Final = frozenset({200, 400, 402, 404, 409, 422})
"""HTTP statuses with which an envelope is believed. The gateway documents none of them, and clients saw several."""
REJECTED_STATUSES: Final = BUSINESS_STATUSES | {401, 403}
"""HTTP statuses with which the gateway may reject our credentials."""
TOO_MANY_REQUESTS: Final = 429
SERVER_ERRORS_FROM: Final = 500
REDIRECTS: Final = range(300, 400)

GATEWAY_MSG_MAX: Final = 200
"""Characters of the gateway's text that are stored as evidence; its documented texts have at most 70."""

NO_AMOUNT: Final = -1
"""Less than every amount, so that it never equals the amount of a call."""

JSON_NULL: Final = b"null"


class Cause(StrEnum):
    """The causes of an outcome or a reading, as an operation's evidence has them."""

    RATE_LIMITED = "rate_limited"
    AUTHENTICATION_ERROR = "authentication_error"
    DOMAIN_DENIED = "domain_denied"
    INVALID_TOKEN = "invalid_token"  # noqa: S105, the word for what happened, not a token
    CREDENTIALS_REFUSED = "credentials_refused"
    REDIRECTED = "redirected"
    SERVER_ERROR = "server_error"
    UNEXPECTED_STATUS = "unexpected_status"
    OAUTH_ERROR = "oauth_error"
    REQUEST_NOT_UTF8 = "request_not_utf8"
    """Our own request could not be written, so that nothing was sent."""
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    DOUBLED_MEMBER = "doubled_member"
    OTHER_SHAPE = "other_shape"
    TOKEN_ECHOED = "token_echoed"  # noqa: S105, the word for what happened, not a token
    UNEXPECTED_REPLY = "unexpected_reply"
    """Complete and well-formed, but none of the replies whose meaning is known."""
    ALREADY_CAPTURED = EffectCause.ALREADY_CAPTURED
    ALREADY_VOIDED = EffectCause.ALREADY_VOIDED
    ALREADY_CANCELLED = EffectCause.ALREADY_CANCELLED
    NO_SUCH_AUTHORIZATION = EffectCause.NO_SUCH_AUTHORIZATION
    OTHER_ORDER = "other_order"
    OTHER_AMOUNT = "other_amount"
    OTHER_CURRENCY = "other_currency"
    OTHER_SUBSCRIPTION = "other_subscription"
    NO_PERMIT = "no_place"
    STORE_DOWN = "store_down"
    GATEWAY_FAILING = "gateway_failing"
    TOKEN_TIMEOUT = "token_timeout"  # noqa: S105, the word for what happened, not a token


class WrongShape(ValueError):
    """A value does not have the documented shape; ``cause`` says in which way."""

    def __init__(self, cause: Cause = Cause.OTHER_SHAPE) -> None:
        super().__init__(cause)
        self.cause = cause


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A business answer: its number, its text, and both members as the bytes that came."""

    status: int
    msg: str
    raw_msg: bytes
    raw_data: bytes

    @property
    def text(self) -> str:
        """The text as it is compared: in lower case, without white space at its ends and without its full stop."""
        return self.msg.strip().removesuffix(".").strip().casefold()

    @property
    def has_data(self) -> bool:
        """True when ``data`` is anything but null."""
        return self.raw_data != JSON_NULL


class OauthError(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of the gateway's OAuth layer instead of a business answer."""

    error: str
    description: str


class InvalidToken(msgspec.Struct, frozen=True, kw_only=True):
    """The very token that we presented is not valid any more; nothing was executed."""

    evidence: Evidence


class RejectedCall(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway executed nothing: it rejected our credentials, or too many calls were made."""

    code: Code
    cause: str
    msg: str
    retry_after_s: int | None = None


class UnreadableReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that can't be relied on."""

    cause: Cause


BUSY: Final = RejectedCall(
    code=Code.GATEWAY_BUSY,
    cause=Cause.RATE_LIMITED,
    msg="the gateway takes no more calls for now; nothing was executed",
)
NOT_AUTHENTICATED: Final = RejectedCall(
    code=Code.GATEWAY_REFUSED_US,
    cause=Cause.AUTHENTICATION_ERROR,
    msg="the gateway does not accept our API key for this call; nothing was executed",
)
DOMAIN_DENIED: Final = RejectedCall(
    code=Code.GATEWAY_REFUSED_US,
    cause=Cause.DOMAIN_DENIED,
    msg="the gateway does not accept our domain or our server's address; nothing was executed",
)

_REJECTED_TEXTS: Final = {
    "authentication error": NOT_AUTHENTICATED,
    "access denied for the domain": DOMAIN_DENIED,
}
_REJECTED_NUMBERS: Final = frozenset({-1, -2})

_members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text_decoder = msgspec.json.Decoder(str)

# One member's name and what precedes its value; only used on text that is known to be well-formed. Possessive, because
# the pattern would otherwise keep a way back for each character, which takes some hundred times the name's memory.
_MEMBER: Final = re.compile(rb'[\s{,]*"((?:[^"\\]++|\\.)*+)"\s*:\s*')
# Two quotes, a colon, and the comma or brace behind it.
_AROUND_MEMBER: Final = 4
_END: Final = re.compile(rb"[\s{]*}\s*")
_WHOLE: Final = re.compile(rb"-?(?:0|[1-9][0-9]{0,18})")
# With exponents, because many programs write a double of ten millions or more as 1.0E7.
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,19})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")
_ID_TEXT: Final = re.compile(r"[0-9]{1,32}")
# Characters of a token: none of them may stand directly before a token in a text.
_TOKEN_CHARACTER: Final = re.compile(r"[0-9A-Za-z_.~+/=-]")


def understand(
    http_status: int, body: bytes, presented_token: str
) -> Envelope | InvalidToken | RejectedCall | UnreadableReply:
    """Reads a reply as far as all calls have it in common. Never raises."""
    if http_status == TOO_MANY_REQUESTS:
        return BUSY
    if http_status not in REJECTED_STATUSES:
        return UnreadableReply(cause=cause_of_status(http_status))
    shape = read_shape(body)
    if isinstance(shape, OauthError):
        if _is_about_token(shape, presented_token):
            return InvalidToken(evidence=Evidence(http_status=http_status, cause=Cause.INVALID_TOKEN))
        return UnreadableReply(cause=Cause.OAUTH_ERROR)
    if isinstance(shape, UnreadableReply):
        return shape
    if presented_token and presented_token.encode() in body:
        return UnreadableReply(cause=Cause.TOKEN_ECHOED)
    rejected = rejection_in(shape)
    if rejected is not None:
        return rejected
    return shape if http_status in BUSINESS_STATUSES else UnreadableReply(cause=Cause.UNEXPECTED_STATUS)


def rejection_in(envelope: Envelope) -> RejectedCall | None:
    """Gives the rejection in an envelope, where it has one of the two documented texts for it."""
    if envelope.status not in _REJECTED_NUMBERS or envelope.has_data:
        return None
    return _REJECTED_TEXTS.get(envelope.text)


def cause_of_status(http_status: int) -> Cause:
    """Names an HTTP status with which no body is believed."""
    if http_status >= SERVER_ERRORS_FROM:
        return Cause.SERVER_ERROR
    return Cause.REDIRECTED if http_status in REDIRECTS else Cause.UNEXPECTED_STATUS


def read_shape(body: bytes) -> Envelope | OauthError | UnreadableReply:
    """Reads a body as a business answer or an OAuth answer. Never raises."""
    try:
        members = members_of(body)
        return _oauth_error(members) if "error" in members else _envelope(members)
    except WrongShape as error:
        return UnreadableReply(cause=error.cause)


def _oauth_error(members: dict[str, bytes]) -> OauthError:
    if "status" in members:
        raise WrongShape
    return OauthError(error=_text(members["error"]), description=text_in(members, "error_description") or "")


def _envelope(members: dict[str, bytes]) -> Envelope:
    if not members.keys() >= {"status", "msg", "data"}:
        raise WrongShape
    raw_msg = members["msg"]
    return Envelope(status=_whole(members["status"]), msg=_text(raw_msg), raw_msg=raw_msg, raw_data=members["data"])


def members_of(raw: bytes) -> dict[str, bytes]:
    """Reads an object's members, each value as the bytes that are there. Raises WrongShape."""
    try:
        if not raw.isascii():
            raw.decode()  # the JSON decoder skips values without checking their encoding
        members = {name: bytes(value) for name, value in _members_decoder.decode(raw).items()}
    except UnicodeDecodeError as error:
        raise WrongShape(Cause.NOT_UTF8) from error
    except msgspec.ValidationError as error:
        raise WrongShape(Cause.OTHER_SHAPE) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise WrongShape(Cause.NOT_JSON) from error
    _require_single(raw, members)
    return members


def _require_single(raw: bytes, members: dict[str, bytes]) -> None:
    """Raises WrongShape where an object has a name twice.

    The decoder keeps the last value of such a name, and another reader might keep the first. An object that is exactly
    as long as its members need, without white space, has no room for another member. Every other object is walked over
    once. Behind each name must come the value that the decoder kept, and no name may come again. A first value that
    differs from the kept one doesn't fit, or ends the walk where no name begins.
    """
    if len(raw) == 1 + sum(map(len, members)) + sum(map(len, members.values())) + _AROUND_MEMBER * len(members):
        return
    position = 0
    left = set(members)
    while (match := _MEMBER.match(raw, position)) is not None:
        name = _text(b'"' + match[1] + b'"')
        if name not in left or not raw.startswith(members[name], match.end()):
            raise WrongShape(Cause.DOUBLED_MEMBER)
        left.discard(name)
        position = match.end() + len(members[name])
    if _END.fullmatch(raw, position) is None:
        raise WrongShape(Cause.DOUBLED_MEMBER)


def text_in(members: dict[str, bytes], name: str) -> str | None:
    """Gives a member that must be a string; None where it is null or absent. Raises WrongShape."""
    raw = members.get(name, JSON_NULL)
    return None if raw == JSON_NULL else _text(raw)


def whole_in(members: dict[str, bytes], name: str) -> int | None:
    """Gives a member that must be a whole JSON number; None where it is null or absent. Raises WrongShape."""
    raw = members.get(name, JSON_NULL)
    return None if raw == JSON_NULL else _whole(raw)


def id_in(members: dict[str, bytes], name: str) -> str | None:
    """Gives an id as text, whether it came as a number or as digits in a string. Raises WrongShape."""
    raw = members.get(name, JSON_NULL)
    return None if raw == JSON_NULL else id_text(raw)


def id_text(raw: bytes) -> str:
    """Gives the digits of an id without leading zeros, which would make another text of one id.

    Raises WrongShape.
    """
    text = _text(raw) if raw.startswith(b'"') else raw.decode()
    if _ID_TEXT.fullmatch(text) is None:
        raise WrongShape
    return plain_number(text)


def amount_in(members: dict[str, bytes], name: str) -> int | None:
    """Gives an amount in hundredths, from a number or from a number in a string; None where it is null or absent.

    NO_AMOUNT stands for a number that is no amount of whole hundredths greater than 0. Raises WrongShape for a value
    that is no number. A number in a string is accepted, because its value is compared exactly all the same.
    """
    raw = members.get(name, JSON_NULL)
    if raw == JSON_NULL:
        return None
    text = _text(raw) if raw.startswith(b'"') else raw.decode()
    if _DECIMAL.fullmatch(text) is None:
        raise WrongShape
    try:
        return minor_units(Decimal(text))
    except AmountError:
        return NO_AMOUNT


def evidence_of(http_status: int, envelope: Envelope, call: Effect | Read, *, cause: Cause | None = None) -> Evidence:
    """Gives the evidence of a readable reply, without the tokens of the call."""
    return Evidence(
        http_status=http_status,
        cause=cause,
        gateway_msg=redacted(envelope.msg, call)[:GATEWAY_MSG_MAX],
        gateway_status=envelope.status,
    )


def redacted(text: str, call: Effect | Read) -> str:
    """Replaces a token of the call by stars, in case the gateway repeats it."""
    token = _token_of(call)
    return text.replace(token, STARS) if token else text


def _token_of(call: Effect | Read) -> str | None:
    match call:
        case Charge():
            return call.customer_token
        case Capture() | Void():
            return call.authorization_token
        case _:
            return None


def _is_about_token(answer: OauthError, token: str) -> bool:
    """True where the answer names exactly the token that we presented, so that it can't be about another call's."""
    if answer.error != Cause.INVALID_TOKEN or not token or not answer.description.endswith(token):
        return False
    before = answer.description[: -len(token)]
    return before != "" and _TOKEN_CHARACTER.match(before[-1]) is None


def _text(raw: bytes) -> str:
    try:
        return _text_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongShape from error


def _whole(raw: bytes) -> int:
    if _WHOLE.fullmatch(raw) is None:
        raise WrongShape
    return int(raw)
