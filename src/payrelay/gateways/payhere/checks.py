"""Says in plain words whether an account can be used, and what to do where it can't."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from payrelay.core.outcomes import Reading
from payrelay.errors import Code
from payrelay.gateways.gateway import CheckResult
from payrelay.gateways.http.exchange import LossCause
from payrelay.gateways.payhere.wire.reply_shapes import Cause, RejectedCall

_NOT_PAYHERE: Final = "The address answers, but not as PayHere does: is BASE_URL right?"

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        LossCause.NAME_NOT_FOUND: "The gateway's name was not found: is BASE_URL right, and does DNS work here?",
        LossCause.NO_CONNECTION: "No connection to the gateway: is BASE_URL right, and may this machine reach it?",
        LossCause.CONNECT_TIMEOUT: "The gateway did not take a connection in time: may this machine reach it?",
        LossCause.TLS_FAILED: "The gateway's certificate was not accepted: is BASE_URL right, and this machine's time?",
        LossCause.TIMEOUT: "The gateway took the request and did not answer in time.",
        LossCause.NOT_HTTP: "The address answers, but not in HTTP that the service reads: is BASE_URL right?",
        LossCause.TOO_LARGE: _NOT_PAYHERE,
        Cause.CREDENTIALS_REFUSED: "The gateway does not accept APP_ID and APP_SECRET: are they of this environment?",
        Cause.AUTHENTICATION_ERROR: (
            "The API key is not allowed to make this call: in the portal, under API Keys, tick its permissions and "
            "check its allowed domains."
        ),
        Cause.DOMAIN_DENIED: (
            "The gateway does not accept our domain or address: in the sandbox, allow the domain * in the API key; "
            "live, ask support@payhere.lk to allow this server's address."
        ),
        Cause.INVALID_TOKEN: "The gateway does not accept the access token that it gave us.",
        Cause.RATE_LIMITED: "The gateway takes no more calls for now: try again in a minute.",
        Cause.NO_PERMIT: "The budget of calls is used up for now: try again in a minute.",
        Cause.SERVER_ERROR: "The gateway is failing: try again later.",
        Cause.REDIRECTED: "The address sends us elsewhere: BASE_URL must be the address itself, live with its www.",
        Cause.UNEXPECTED_STATUS: _NOT_PAYHERE,
        Cause.NOT_JSON: _NOT_PAYHERE,
        Cause.NOT_UTF8: _NOT_PAYHERE,
        Cause.OTHER_SHAPE: _NOT_PAYHERE,
    }
)
"""By the cause in the evidence."""


def result_of_token(refusal: RejectedCall | None) -> CheckResult:
    """Gives the result of the request for an access token; ``refusal`` is None where a token came."""
    subject = "access token"
    if refusal is None:
        return CheckResult(subject=subject, is_right=True, text="The gateway accepts the App ID and secret.")
    return CheckResult(subject=subject, is_right=False, text=_advice(refusal.cause, refusal.msg))


def result_of_reading(reading: Reading) -> CheckResult:
    """Gives the result of a payment search. A search that finds nothing has passed."""
    subject = "payment search"
    if reading.code in {None, Code.NOT_FOUND}:
        return CheckResult(subject=subject, is_right=True, text="The gateway answers our calls.")
    return CheckResult(subject=subject, is_right=False, text=_advice(reading.evidence.cause, reading.msg))


def _advice(cause: str | None, msg: str) -> str:
    return ADVICE.get(cause or "", f"{msg[:1].upper()}{msg[1:]}.")
