"""Client tokens as their issuer sees them."""

from typing import Final

import msgspec

from payrelay.core.access.client_token import ClientToken
from payrelay.core.money import amount_json
from payrelay.core.views import moment_or_none, view_of

_OPEN: Final = msgspec.Raw(b'"open"')


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
    allowance = token.allowance
    plan = allowance.plan if allowance else None
    return view_of(
        token,
        ClientTokenView,
        type=allowance.kind if allowance else None,
        amount=_OPEN if allowance and allowance.is_open else amount_json(allowance.amount_minor if allowance else None),
        amount_max=amount_json(allowance.amount_max_minor if allowance else None),
        currency=allowance.currency if allowance else None,
        payments=allowance.payments_max if allowance else None,
        recurrence=None if plan is None else plan.recurrence,
        duration=None if plan is None else plan.duration,
        startup_fee=amount_json(None if plan is None else plan.startup_fee_minor),
        scopes=sorted(token.scopes),
        revoked_at=moment_or_none(revoked_at_ms),
    )


def issued_view(token: ClientToken, text: str) -> IssuedClientToken:
    """Returns a token as it is issued."""
    return IssuedClientToken(token=text, **msgspec.structs.asdict(view(token)))
