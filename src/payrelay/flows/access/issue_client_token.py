"""Issues a client token. The answer contains its text, which Payrelay never stores."""

import msgspec

from payrelay.core.access.allowance import Allowance, PaymentKind, PlanTerms
from payrelay.core.access.bounds import owns_customer
from payrelay.core.access.client_token import CLIENT_SCOPES, LIFE_USUAL_S, PAYING, USUAL_SCOPES, ClientToken
from payrelay.core.access.credential import Credential, Scope, require_amount
from payrelay.core.access.signatures import signed
from payrelay.core.answers import Answer, found
from payrelay.errors import Code, Refusal, wrong_field
from payrelay.flows.access.client_token_views import issued_view
from payrelay.flows.relay import Relay, Request


class ClientTokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a client token; see ``core.access.client_token.ClientToken`` and ``core.access.allowance``.

    Attributes:
        kind: what the customer is asked for; None for a payment, where the token may pay.
        amount_minor, is_open: the exact amount, or whether the app chooses it.
        amount_max_minor: the largest amount that the app may choose.
        payments_max: how many payments the order may have; None for one.
        recurrence, duration, startup_fee_minor: the plan of a subscription.
        scopes: None for USUAL_SCOPES, as far as the issuing key has them.
        life_s: LIFE_MIN_S to LIFE_MAX_S.
    """

    customer_id: str | None = None
    order_id: str | None = None
    kind: PaymentKind | None = None
    amount_minor: int | None = None
    is_open: bool = False
    amount_max_minor: int | None = None
    currency: str | None = None
    payments_max: int | None = None
    recurrence: str | None = None
    duration: str | None = None
    startup_fee_minor: int | None = None
    scopes: tuple[Scope, ...] | None = None
    life_s: int = LIFE_USUAL_S


async def issue_client_token(relay: Relay, request: Request, token_request: ClientTokenRequest) -> Answer:
    """Answers with a new token, which is stored first, so that it can be revoked.

    It expires no later than the key that issues it. May be repeated: each answer is another token.
    Raises StoreError, and Refusal: forbidden for more than the issuing key may do, and for a key that is bound itself;
    invalid_request for members that contradict each other; not_found for a customer that isn't the caller's.
    """
    parent = request.credential
    if parent.bound is not None:
        raise Refusal(Code.FORBIDDEN, "a client token can't issue another one")
    scopes = _scopes(parent, token_request)
    _require_consistent(token_request, scopes)
    allowance = _allowance(token_request, scopes)
    _require_payable(relay, request, allowance, scopes)
    await _require_customer(relay, request, token_request.customer_id)
    _require_affordable(parent, allowance)
    # The claims have whole seconds; rounding down, a token never outlives its key.
    begins_s = relay.clock.now_ms() // 1000
    ends_s = begins_s + token_request.life_s
    if parent.expires_at_ms is not None:
        ends_s = min(ends_s, parent.expires_at_ms // 1000)
    if ends_s <= begins_s:
        raise Refusal(Code.FORBIDDEN, "the key expires within this second")
    token = ClientToken(
        id=relay.new_id("ct", relay.clock.now_ms()),
        principal=parent.principal,
        credential_id=parent.id,
        account=request.account,
        customer_id=token_request.customer_id,
        order_id=token_request.order_id,
        allowance=allowance,
        scopes=scopes,
        issued_at_ms=begins_s * 1000,
        expires_at_ms=ends_s * 1000,
    )
    key = await relay.access.signing_keys.newest()
    await relay.access.client_tokens.add(token)
    # The customer may have been removed just before this token was stored, and its tokens revoked without this one.
    await _require_customer(relay, request, token_request.customer_id)
    return found(issued_view(token, signed(token, key)))


def _scopes(parent: Credential, token_request: ClientTokenRequest) -> frozenset[Scope]:
    """Returns the scopes of the token; raises Refusal for a scope that the key lacks, or that no token may have."""
    if token_request.scopes is None:
        scopes = USUAL_SCOPES & parent.scopes
        if not scopes:
            raise Refusal(Code.FORBIDDEN, f"the credential lacks each of the scopes {', '.join(sorted(USUAL_SCOPES))}")
        return scopes
    for index, scope in enumerate(token_request.scopes):
        if scope not in CLIENT_SCOPES:
            raise wrong_field(f"scopes[{index}]", "is not for client tokens")
        if scope not in parent.scopes:
            raise Refusal(Code.FORBIDDEN, f"the credential lacks the scope {scope}")
    if not token_request.scopes:
        raise wrong_field("scopes", "must not be empty")
    return frozenset(token_request.scopes)


async def _require_customer(relay: Relay, request: Request, customer_id: str | None) -> None:
    """Raises Refusal (not_found) for a customer that isn't the caller's, or that was removed or erased."""
    if customer_id is None:
        return
    customer = await relay.customers.get(customer_id)
    if customer is None or not owns_customer(request.credential, relay.account(request.account).merchant, customer):
        await relay.database.lost_commits.require_known(customer_id, "customer")
        raise Refusal(Code.NOT_FOUND, "customer_id names no customer of yours on this account")
    if not customer.can_be_charged:
        raise Refusal(Code.NOT_FOUND, f"customer_id names a customer that was {customer.state}")


def _require_consistent(token_request: ClientTokenRequest, scopes: frozenset[Scope]) -> None:
    if token_request.customer_id is None and token_request.order_id is None:
        raise wrong_field("customer_id", "is required, or order_id")
    if Scope.PAYMENTS_CHARGE in scopes and token_request.customer_id is None:
        raise wrong_field("customer_id", f"is required with the scope {Scope.PAYMENTS_CHARGE}")
    for scope in sorted(scopes & PAYING):
        if token_request.order_id is None:
            raise wrong_field("order_id", f"is required with the scope {scope}")


def _allowance(asked: ClientTokenRequest, scopes: frozenset[Scope]) -> Allowance | None:
    """Returns what the token may pay; None where it has no scope to pay.

    Raises Refusal (invalid_request), naming the member, where something is missing or contradicts the rest.
    """
    paying = min(scopes & PAYING, default=None)
    if paying is None:
        for name, value in _paying_members(asked).items():
            if value is not None:
                raise wrong_field(name, f"needs a scope to pay: {' or '.join(sorted(PAYING))}")
        return None
    kind = asked.kind or "payment"
    if kind in {"preapproval", "recurring"} and Scope.CHECKOUTS_CREATE not in scopes:
        raise wrong_field("type", f"needs the scope {Scope.CHECKOUTS_CREATE} for a {kind}")
    if asked.currency is None:
        raise wrong_field("currency", f"is required with the scope {paying}")
    has_amount = asked.amount_minor is not None or asked.is_open
    if not has_amount and (kind != "preapproval" or asked.amount_max_minor is not None):
        raise wrong_field("amount", f'is required with the scope {paying}: the exact amount, or "open"')
    if asked.amount_max_minor is not None and not asked.is_open:
        raise wrong_field("amount_max", 'needs "amount": "open", because an exact amount is its own maximum')
    return Allowance(
        kind=kind,
        amount_minor=asked.amount_minor,
        is_open=asked.is_open,
        amount_max_minor=asked.amount_max_minor,
        currency=asked.currency,
        payments_max=asked.payments_max or 1,
        plan=_plan(asked, kind),
    )


def _paying_members(asked: ClientTokenRequest) -> dict[str, object]:
    return {
        "type": asked.kind,
        "amount": asked.amount_minor or (asked.is_open or None),
        "amount_max": asked.amount_max_minor,
        "currency": asked.currency,
        "payments": asked.payments_max,
        **_plan_members(asked),
    }


def _plan_members(asked: ClientTokenRequest) -> dict[str, object]:
    return {"recurrence": asked.recurrence, "duration": asked.duration, "startup_fee": asked.startup_fee_minor}


def _plan(asked: ClientTokenRequest, kind: PaymentKind) -> PlanTerms | None:
    """Returns the plan that the app may ask for, exactly; None where it is for no plan, or for any."""
    if kind != "recurring" or asked.amount_minor is None:
        for name, value in _plan_members(asked).items():
            if value is not None:
                raise wrong_field(name, "belongs to a recurring payment of an exact amount")
        return None
    if asked.recurrence is None:
        raise wrong_field("recurrence", "is required of a recurring payment")
    if asked.duration is None:
        raise wrong_field("duration", "is required of a recurring payment")
    if asked.amount_minor + (asked.startup_fee_minor or 0) <= 0:
        raise wrong_field("startup_fee", "must leave something to be paid first")
    return PlanTerms(recurrence=asked.recurrence, duration=asked.duration, startup_fee_minor=asked.startup_fee_minor)


def _require_payable(relay: Relay, request: Request, allowance: Allowance | None, scopes: frozenset[Scope]) -> None:
    """Raises Refusal (invalid_request) for a currency in which the token could pay nothing.

    That is one that the gateway's page doesn't take, where the token pays by pages alone: by its scopes or its type.
    """
    if allowance is None:
        return
    may_charge = Scope.PAYMENTS_CHARGE in scopes and allowance.kind in {"payment", "authorization"}
    words = relay.account(request.account).capabilities.page_currency_error(allowance.currency)
    if words is not None and not may_charge:
        raise wrong_field("currency", words)


def _require_affordable(parent: Credential, allowance: Allowance | None) -> None:
    """Raises Refusal (forbidden) where the token names more than its key may move at once."""
    if allowance is None:
        return
    if allowance.amount_minor is not None:
        fee_minor = 0 if allowance.plan is None else allowance.plan.startup_fee_minor or 0
        require_amount(parent, max(allowance.amount_minor, allowance.amount_minor + fee_minor))
    elif allowance.amount_max_minor is not None:
        require_amount(parent, allowance.amount_max_minor)
