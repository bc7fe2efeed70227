"""Client tokens as their issuer sees them."""

import msgspec

from payrelay.core.access.client_token import ClientToken
from payrelay.core.moments import rfc3339
from payrelay.core.money import amount_json


class ClientTokenView(msgspec.Struct, frozen=True, kw_only=True):
    """A client token without its text; times are RFC 3339 in UTC."""

    id: str
    customer_id: str | None
    order_id: str | None
    amount_max: msgspec.Raw
    currency: str | None
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
    return ClientTokenView(
        id=token.id,
        customer_id=token.customer_id,
        order_id=token.order_id,
        amount_max=amount_json(token.amount_max_minor),
        currency=token.currency,
        scopes=sorted(token.scopes),
        credential_id=token.credential_id,
        issued_at=rfc3339(token.issued_at_ms),
        expires_at=rfc3339(token.expires_at_ms),
        revoked_at=None if revoked_at_ms is None else rfc3339(revoked_at_ms),
    )


def issued_view(token: ClientToken, text: str) -> IssuedClientToken:
    """Returns a token as it is issued."""
    return IssuedClientToken(token=text, **msgspec.structs.asdict(view(token)))
