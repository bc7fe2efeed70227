"""Issues a client token: the only moment at which its text exists here."""

import msgspec

from payrelay.core.access.bounds import owns_customer
from payrelay.core.access.client_token import CLIENT_SCOPES, LIFE_USUAL_S, PAYING, USUAL_SCOPES, ClientToken
from payrelay.core.access.credential import Credential, Scope, require_amount
from payrelay.core.access.signatures import signed
from payrelay.core.answers import Answer, found
from payrelay.errors import Code, Refusal, wrong_field
from payrelay.flows.access.client_token_views import issued_view
from payrelay.flows.relay import Relay, Request


class ClientTokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client token is to be; see ``core.access.client_token.ClientToken``.

    Attributes:
        scopes: None for USUAL_SCOPES, as far as the issuing key has them.
        life_s: LIFE_MIN_S to LIFE_MAX_S.
    """

    customer_id: str | None = None
    order_id: str | None = None
    amount_max_minor: int | None = None
    currency: str | None = None
    scopes: tuple[Scope, ...] | None = None
    life_s: int = LIFE_USUAL_S


async def issue_client_token(relay: Relay, request: Request, wanted: ClientTokenRequest) -> Answer:
    """Answers with a new token, stored first: what nobody could revoke is not given away.

    It ends with the key that issues it, where that is sooner than asked. May be repeated: each answer is another token.
    Raises Refusal: forbidden for more than the issuing key may do and for one that is bound itself, invalid_request
    for what makes no sense together, not_found for a customer that isn't the caller's. Raises StoreError.
    """
    parent = request.credential
    if parent.bound is not None:
        raise Refusal(Code.FORBIDDEN, "a client token can't issue another one")
    scopes = _scopes(parent, wanted)
    _require_sense(wanted, scopes)
    await _require_customer(relay, request, wanted.customer_id)
    if wanted.amount_max_minor is not None:
        require_amount(parent, wanted.amount_max_minor)
    # Whole seconds, as the claims have them; an end is never later than that of the key.
    begins_s = relay.clock.now_ms() // 1000
    ends_s = begins_s + wanted.life_s
    if parent.expires_at_ms is not None:
        ends_s = min(ends_s, parent.expires_at_ms // 1000)
    if ends_s <= begins_s:
        raise Refusal(Code.FORBIDDEN, "the key expires within this second")
    token = ClientToken(
        id=relay.new_id("ct", relay.clock.now_ms()),
        principal=parent.principal,
        credential_id=parent.id,
        account=request.account,
        customer_id=wanted.customer_id,
        order_id=wanted.order_id,
        amount_max_minor=wanted.amount_max_minor,
        currency=wanted.currency,
        scopes=scopes,
        issued_at_ms=begins_s * 1000,
        expires_at_ms=ends_s * 1000,
    )
    key = await relay.signing_keys.newest()
    await relay.client_tokens.add(token)
    # A removal at this moment may have ended the customer's tokens just before this one was kept.
    await _require_customer(relay, request, wanted.customer_id)
    return found(issued_view(token, signed(token, key)))


def _scopes(parent: Credential, wanted: ClientTokenRequest) -> frozenset[Scope]:
    """Gives the scopes of the token; raises Refusal for one that the key lacks, or that no token may have."""
    if wanted.scopes is None:
        scopes = USUAL_SCOPES & parent.scopes
        if not scopes:
            raise Refusal(Code.FORBIDDEN, f"the credential lacks each of the scopes {', '.join(sorted(USUAL_SCOPES))}")
        return scopes
    for index, scope in enumerate(wanted.scopes):
        if scope not in CLIENT_SCOPES:
            raise wrong_field(f"scopes[{index}]", "is not for client tokens")
        if scope not in parent.scopes:
            raise Refusal(Code.FORBIDDEN, f"the credential lacks the scope {scope}")
    if not wanted.scopes:
        raise wrong_field("scopes", "must not be empty")
    return frozenset(wanted.scopes)


async def _require_customer(relay: Relay, request: Request, customer_id: str | None) -> None:
    """Raises Refusal (not_found) for a customer that isn't the caller's, or isn't there any more."""
    if customer_id is None:
        return
    customer = await relay.customers.get(customer_id)
    if customer is None or not owns_customer(request.credential, relay.account(request.account).merchant, customer):
        raise Refusal(Code.NOT_FOUND, "customer_id names no customer of yours on this account")
    if not customer.can_be_charged:
        raise Refusal(Code.NOT_FOUND, f"customer_id names a customer that was {customer.state}")


def _require_sense(wanted: ClientTokenRequest, scopes: frozenset[Scope]) -> None:
    if wanted.customer_id is None and wanted.order_id is None:
        raise wrong_field("customer_id", "is required, or order_id")
    if (wanted.amount_max_minor is None) != (wanted.currency is None):
        missing, other = ("currency", "amount_max") if wanted.currency is None else ("amount_max", "currency")
        raise wrong_field(missing, f"is required with {other}")
    if Scope.PAYMENTS_CHARGE in scopes and wanted.customer_id is None:
        raise wrong_field("customer_id", f"is required with the scope {Scope.PAYMENTS_CHARGE}")
    for scope in sorted(scopes & PAYING):
        if wanted.order_id is None:
            raise wrong_field("order_id", f"is required with the scope {scope}")
