"""What a bound credential, an app's, may do on each route: the policies that the table of routes names.

Rules:

1. A route without a policy is closed to bound credentials; a test requires each route to name one.
2. A policy gets the request before the handler does. It narrows the request to what belongs to the credential, or
   refuses it.
3. What belongs to another caller is answered as if it didn't exist, and no gateway is asked for it.
"""

import msgspec

from payrelay.api.http.json_text import parse_object
from payrelay.api.requests.body import parse_body
from payrelay.api.requests.payment_bodies import ChargeBody
from payrelay.api.requests.route import ParsedRequest, Policy, require_open
from payrelay.core.access.bounds import has_order, key_of_bound, keys_of
from payrelay.core.access.credential import Bound
from payrelay.core.checkouts.checkout import CheckoutKind, is_within
from payrelay.core.payments.operation import Kind, OperationFilter
from payrelay.core.subscriptions.subscription import Subscription
from payrelay.errors import Code, Refusal
from payrelay.flows.access.app_requests import earlier_of, resolved
from payrelay.flows.relay import Relay


async def own_order(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Allows the payments of the bound order, or of an order on which the bound customer has an operation."""
    is_own = parsed.id == bound.order_id
    if bound.order_id is None and bound.customer_id is not None:
        is_own = await _has_operation_on(relay, parsed, bound)
    if not is_own:
        raise Refusal(Code.NOT_FOUND, "there is no such order")
    return parsed


async def own_charge(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Allows a charge of the bound order to the bound customer; ``customer_token`` may be left out.

    A repeat names the customer that it named, or meant, before: the person may have another card by now. The flow
    compares kind, amount and currency, after it has answered a repeat.
    """
    if bound.customer_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no customer to charge")
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no order to pay")
    _require_amount_named(bound)
    body, customer_id = parsed.body, bound.customer_id
    earlier = await earlier_of(relay, parsed.request) if keys_of(bound) != customer_id else None
    if earlier is not None and earlier.customer_id is not None:
        customer_id = earlier.customer_id
    if "customer_token" not in parse_object(body):
        body = _with_customer(body, customer_id)
    charge = parse_body(body, ChargeBody).call()
    if charge.customer_token not in {customer_id, bound.customer_id}:
        raise Refusal(Code.FORBIDDEN, "the token may charge its own customer only")
    if not has_order(bound, charge.order_id):
        raise Refusal(Code.FORBIDDEN, "the token may pay its own order only")
    if charge.notify_url is not None:
        raise Refusal(Code.FORBIDDEN, "the token may not say where notifications go (notify_url)")
    return msgspec.structs.replace(parsed, body=body)


async def own_checkout(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Allows a checkout for the bound order; the flow checks the other bounds.

    A token without an order could learn of any order whether it has a checkout, and could open one for it.
    """
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no order to pay")
    _require_amount_named(bound)
    return parsed


async def own_subscription(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Allows a subscription that, as far as Payrelay knows, was begun by a checkout of the credential's own."""
    account = parsed.request.gateway
    stored = await relay.subscriptions.summary(account.merchant, parsed.id)
    if stored is None or not await _began(relay, parsed, bound, stored.subscription):
        raise Refusal(Code.NOT_FOUND, "there is no such subscription")
    return parsed


async def own_cancellation(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:
    """Allows the end of an own subscription, and the repeat of such a request, whoever may have begun it by now."""
    earlier = await earlier_of(relay, parsed.request)
    if earlier is not None and earlier.kind is Kind.CANCEL and earlier.subscription_id == parsed.id:
        return parsed
    return await own_subscription(relay, parsed, bound)


async def own_key(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Allows the operation under an Idempotency-Key of the credential's own."""
    return msgspec.structs.replace(parsed, id=key_of_bound(bound, parsed.id))


async def narrowed(policy: Policy | None, relay: Relay, parsed: ParsedRequest) -> ParsedRequest:
    """Gives a request as its credential may make it: unchanged for a key, by the route's policy for a bound credential.

    Raises Refusal.
    """
    if parsed.request.credential.bound is None:
        return parsed
    policy = require_open(policy)
    request = await resolved(relay, parsed.request)
    bound, key = request.credential.bound or parsed.request.credential.bound, request.idempotency_key
    if key is not None:
        request = msgspec.structs.replace(request, idempotency_key=key_of_bound(bound, key))
    return await policy(relay, msgspec.structs.replace(parsed, request=request), bound)


async def _has_operation_on(relay: Relay, parsed: ParsedRequest, bound: Bound) -> bool:
    request = parsed.request
    operation_filter = OperationFilter(
        principal=request.principal, account=request.account, order_id=parsed.id, customer_id=bound.customer_id
    )
    return bool(await relay.journal.list(operation_filter, before=None, limit=1))


async def _began(relay: Relay, parsed: ParsedRequest, bound: Bound, subscription: Subscription) -> bool:
    """Tells whether checkouts of the credential's own alone may have begun a subscription.

    Two customers may have tried to pay one order. Where a checkout is known to have begun the subscription, it decides.
    """
    principal, order_id = parsed.request.principal, subscription.order_id
    if order_id is None or subscription.principal != principal:
        return False
    checkouts = await relay.checkouts.of_order(subscription.merchant, order_id)
    plans = [each for each in checkouts if each.kind is CheckoutKind.RECURRING]
    began = [each for each in plans if each.subscription_id == subscription.subscription_id]
    candidates = began or [each for each in plans if each.subscription_id is None]
    hash_of = relay.checkouts.reference_hash
    return bool(candidates) and all(
        each.principal == principal and is_within(each, bound, hash_of) for each in candidates
    )


def _require_amount_named(bound: Bound) -> None:
    if bound.allowance is None:
        raise Refusal(Code.FORBIDDEN, "the token names no amount to pay")


def _with_customer(body: bytes, customer_id: str) -> bytes:
    """Adds ``customer_token`` to the text of an object; the rest, with its amounts, stays byte for byte."""
    rest = body[body.index(b"{") + 1 :]
    comma = b"" if rest.lstrip().startswith(b"}") else b","
    return b'{"customer_token":"' + customer_id.encode() + b'"' + comma + rest
