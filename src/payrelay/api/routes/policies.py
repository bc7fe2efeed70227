"""What a bound credential, a phone's, may do on each route: the policies that the table of routes names.

Rules:

1. A route without a policy is closed to phones; a test wants each route to name one.
2. A policy sees the request before the handler, and gives it narrowed to what belongs to the credential, or refuses it.
3. What belongs to somebody else is answered as what doesn't exist, and nobody upstream is asked for it.
"""

import msgspec

from payrelay.api.http.json_text import parse_object
from payrelay.api.requests.body import parse_body
from payrelay.api.requests.route import ParsedRequest, Policy, require_open
from payrelay.api.routes.payment_bodies import ChargeBody
from payrelay.core.access.bounds import has_order, key_of_bound, keys_of
from payrelay.core.access.credential import Bound
from payrelay.core.checkouts.checkout import CheckoutKind, is_within
from payrelay.core.customers.customer import CustomerFilter, CustomerState
from payrelay.core.payments.operation import OperationFilter
from payrelay.core.subscriptions.subscription import Subscription
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request


async def own_order(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Opens the payments of one's own order: the bound one, or one on which something was done for the customer."""
    is_own = asked.id == bound.order_id
    if bound.order_id is None and bound.customer_id is not None:
        is_own = await _has_operation_on(relay, asked, bound)
    if not is_own:
        raise Refusal(Code.NOT_FOUND, "there is no such order")
    return asked


async def own_charge(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Opens paying one's own order with one's own card; ``customer_token`` may be left out."""
    if bound.customer_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no customer to charge")
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no order to pay")
    body = asked.body
    if "customer_token" not in parse_object(body):
        body = _with_customer(body, bound.customer_id)
    given = parse_body(body, ChargeBody)
    charge = given.call()
    if charge.customer_token != bound.customer_id:
        raise Refusal(Code.FORBIDDEN, "the token may charge its own customer only")
    if not has_order(bound, charge.order_id):
        raise Refusal(Code.FORBIDDEN, "the token may pay its own order only")
    if bound.currency is not None and charge.currency != bound.currency:
        raise Refusal(Code.FORBIDDEN, f"the token may pay in {bound.currency} only")
    if charge.notify_url is not None:
        raise Refusal(Code.FORBIDDEN, "the token may not say where notifications go (notify_url)")
    return msgspec.structs.replace(asked, body=body)


async def own_checkout(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Opens asking for one's own order on the gateway's page; the story holds the rest of it to the bounds.

    Without an order it would say of any order whether it is taken, and take it.
    """
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no order to pay")
    return asked


async def own_subscription(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Opens a subscription that was begun by a checkout of one's own, as far as we know."""
    account = relay.account(asked.request.account)
    standing = await relay.subscriptions.summary(account.merchant, asked.id)
    if standing is None or not await _began(relay, asked, bound, standing.subscription):
        raise Refusal(Code.NOT_FOUND, "there is no such subscription")
    return asked


async def own_key(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Opens what was done under one's own Idempotency-Key."""
    return msgspec.structs.replace(asked, id=key_of_bound(bound, asked.id))


async def resolved(relay: Relay, request: Request) -> Request:
    """Gives a request whose credential names its customer and the caller's own name for the person, where we know both.

    Of several cards of one person the customer is the one that was approved last. Raises StoreUnavailable.
    """
    bound, customer = request.credential.bound, None
    if bound is None:
        return request
    if bound.customer_id is not None:
        customer = await relay.customers.get(bound.customer_id)
    elif bound.reference is not None:
        wanted = CustomerFilter(
            merchant=relay.account(request.account).merchant,
            principal=request.principal,
            reference=bound.reference,
            state=CustomerState.ACTIVE,
        )
        customer = next(iter(await relay.customers.list(wanted, before=None, limit=1)), None)
    if customer is None or customer.principal != request.principal:
        return request
    named = msgspec.structs.replace(
        bound, customer_id=customer.id, reference=customer.reference, keys_of=keys_of(bound)
    )
    return msgspec.structs.replace(request, credential=msgspec.structs.replace(request.credential, bound=named))


async def narrowed(policy: Policy | None, relay: Relay, asked: ParsedRequest) -> ParsedRequest:
    """Gives a request as its credential may make it: unchanged for a key, by the route's policy for a phone.

    Raises Refusal.
    """
    if asked.request.credential.bound is None:
        return asked
    policy = require_open(policy)
    request = await resolved(relay, asked.request)
    bound, key = request.credential.bound or asked.request.credential.bound, request.idempotency_key
    if key is not None:
        request = msgspec.structs.replace(request, idempotency_key=key_of_bound(bound, key))
    return await policy(relay, msgspec.structs.replace(asked, request=request), bound)


async def _has_operation_on(relay: Relay, asked: ParsedRequest, bound: Bound) -> bool:
    request = asked.request
    wanted = OperationFilter(
        principal=request.principal, account=request.account, order_id=asked.id, customer_id=bound.customer_id
    )
    return bool(await relay.journal.list(wanted, before=None, limit=1))


async def _began(relay: Relay, asked: ParsedRequest, bound: Bound, subscription: Subscription) -> bool:
    """Tells whether a checkout of the credential's own began a subscription."""
    principal, order_id = asked.request.principal, subscription.order_id
    if order_id is None or subscription.principal != principal:
        return False
    checkouts = await relay.checkouts.of_order(subscription.merchant, order_id)
    return any(
        each.principal == principal
        and each.subscription_id in {None, subscription.subscription_id}
        and each.kind is CheckoutKind.RECURRING
        and is_within(each, bound)
        for each in checkouts
    )


def _with_customer(body: bytes, customer_id: str) -> bytes:
    """Adds the member to the text of an object; the rest stays byte for byte, amounts among it."""
    rest = body[body.index(b"{") + 1 :]
    comma = b"" if rest.lstrip().startswith(b"}") else b","
    return b'{"customer_token":"' + customer_id.encode() + b'"' + comma + rest
