"""Client tokens as their issuer sees them."""

from typing import Final

import msgspec

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.client_token import ClientToken
from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json

_OPEN: Final = msgspec.Raw(b'"open"')
_NOTHING: Final = Allowance(kind=None)


class ClientTokenView(msgspec.Struct, frozen=True, kw_only=True):
    """A client token without its text; times are RFC 3339 in UTC. What it may pay is null where it may pay nothing."""

    id: str
    customer_id: str | None
    order_id: str | None
    type: str | None
    amount: msgspec.Raw
    amount_max: msgspec.Raw
    currency: str | None
    payments: int | None
    recurrence: str | None
    duration: str | None
    startup_fee: msgspec.Raw
    scopes: list[str]
    credential_id: str
    issued_at: str
    expires_at: str
    revoked_at: str | None


class IssuedClientToken(ClientTokenView, frozen=True, kw_only=True):
    """A new client token with its text, which only the answer that issues it contains."""

    token: str


def view(token: ClientToken, revoked_at_ms: int | None = None) -> ClientTokenView:
    """Returns a token as it is listed."""
    allowance = token.allowance or _NOTHING
    plan = allowance.plan
    return ClientTokenView(
        id=token.id,
        customer_id=token.customer_id,
        order_id=token.order_id,
        type=allowance.kind,
        amount=_OPEN if allowance.is_open else amount_json(allowance.amount_minor),
        amount_max=amount_json(allowance.amount_max_minor),
        currency=allowance.currency,
        payments=None if token.allowance is None else allowance.payments_max,
        recurrence=None if plan is None else plan.recurrence,
        duration=None if plan is None else plan.duration,
        startup_fee=amount_json(None if plan is None else plan.startup_fee_minor),
        scopes=sorted(token.scopes),
        credential_id=token.credential_id,
        issued_at=rfc3339(token.issued_at_ms),
        expires_at=rfc3339(token.expires_at_ms),
        revoked_at=None if revoked_at_ms is None else rfc3339(revoked_at_ms),
    )


def issued_view(token: ClientToken, text: str) -> IssuedClientToken:
    """Returns a token as it is issued."""
    return IssuedClientToken(token=text, **msgspec.structs.asdict(view(token)))
