"""One step between a route and its story: what the request says becomes a call.

A handler gets a request whose credential, scope, account and parameter names are checked already.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from payrelay.api.routes.bodies import CaptureBody, ChargeBody, ClientTokenBody, EmptyBody, RefundBody, parse_body
from payrelay.api.routes.checkout_bodies import CheckoutBody
from payrelay.api.routes.parameters import ORDER, PAGE_SIZE_USUAL
from payrelay.core.answers import Answer
from payrelay.core.calls import (
    AllSubscriptions,
    CancelSubscription,
    OneSubscription,
    PaymentsOfOrder,
    PaymentsOfSubscription,
    RetrySubscription,
    subscription_number,
)
from payrelay.core.payments.operation import Kind, OperationFilter, State
from payrelay.errors import Code, FieldError, Refusal, wrong_fields
from payrelay.flows.access.issue_client_token import issue_client_token
from payrelay.flows.access.list_client_tokens import list_client_tokens
from payrelay.flows.access.revoke_client_token import revoke_client_token, revoke_client_tokens
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.checkouts.show_checkout import show_checkout
from payrelay.flows.payments.await_outcome import Patience, show_when_settled
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.find_operations import list_operations, show_newest_by_key, show_operation
from payrelay.flows.payments.refund import refund
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.flows.relay import Relay, Request
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.list_subscription_payments import list_subscription_payments
from payrelay.flows.subscriptions.list_subscriptions import list_subscriptions
from payrelay.flows.subscriptions.retrieve_subscription import retrieve_subscription
from payrelay.flows.subscriptions.retry_subscription import retry_subscription

_EMPTY_BODIES: Final = (b"", b"{}")


class Asked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request as a handler sees it.

    Attributes:
        request: who asks, on which account.
        id: the variable segment of the path, decoded; empty where the route has none.
        query: the parameters, each known to the route and right by itself.
        body: as it came in, at most as long as allowed.
        patience: how long the client would rather wait than ask again; None where it wouldn't, or can't.
        last_event_id: of the last event that a browser saw before it came again; only for a stream.
    """

    request: Request
    id: str = ""
    query: dict[str, str] = {}
    body: bytes = b""
    patience: Patience | None = None
    last_event_id: str | None = None


Handler = Callable[[Relay, Asked], Awaitable[Answer]]


def payments_of_order(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Reads the payments of the order in the path."""
    words = ORDER.complaint(asked.id)
    if words is not None:
        raise wrong_fields([FieldError(ORDER.name, words)])
    return retrieve_payments(relay, asked.request, PaymentsOfOrder(order_id=asked.id))


def charge_customer(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Charges a customer who has approved it."""
    return charge(relay, asked.request, parse_body(asked.body, ChargeBody).call())


def capture_hold(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Takes money that is held."""
    return capture(relay, asked.request, parse_body(asked.body, CaptureBody).call())


def refund_payment(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Gives a payment back, or lets go of a hold."""
    return refund(relay, asked.request, parse_body(asked.body, RefundBody).call())


def all_subscriptions(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Reads all subscriptions."""
    return list_subscriptions(relay, asked.request, AllSubscriptions())


def one_subscription(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Reads one subscription, with its payments where they are asked for."""
    call = OneSubscription(subscription_id=_subscription_id(asked))
    return retrieve_subscription(relay, asked.request, call, with_payments="expand" in asked.query)


def payments_of_subscription(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Reads the payments of one subscription."""
    call = PaymentsOfSubscription(subscription_id=_subscription_id(asked))
    return list_subscription_payments(relay, asked.request, call)


def retry(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Charges the failed installment of a subscription."""
    require_empty(asked.body)
    return retry_subscription(relay, asked.request, RetrySubscription(subscription_id=_subscription_id(asked)))


def cancel(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Ends a subscription."""
    require_empty(asked.body)
    return cancel_subscription(relay, asked.request, CancelSubscription(subscription_id=_subscription_id(asked)))


def new_checkout(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Opens a checkout."""
    return open_checkout(relay, asked.request, parse_body(asked.body, CheckoutBody).call())


def one_checkout(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Shows one checkout."""
    return show_checkout(relay, asked.request, asked.id)


def some_operations(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Lists operations, newest first."""
    query = asked.query
    wanted = OperationFilter(
        state=State(query["state"]) if "state" in query else None,
        kind=Kind(query["kind"]) if "kind" in query else None,
        order_id=query.get("order_id"),
        payment_id=query.get("payment_id"),
        subscription_id=query.get("subscription_id"),
        customer_id=query.get("customer_id"),
    )
    limit = int(query.get("limit", PAGE_SIZE_USUAL))
    return list_operations(relay, asked.request, wanted, before=query.get("cursor"), limit=limit)


def one_operation(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Shows one operation, once it is settled where the client waits for that."""
    if asked.patience is not None:
        return show_when_settled(relay, asked.request, asked.id, asked.patience)
    return show_operation(relay, asked.request, asked.id)


def operation_by_key(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Shows the newest operation under an Idempotency-Key."""
    return show_newest_by_key(relay, asked.request, asked.id)


def new_client_token(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Issues a client token."""
    return issue_client_token(relay, asked.request, parse_body(asked.body, ClientTokenBody).wanted())


def some_client_tokens(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Lists client tokens, newest first."""
    query = asked.query
    limit = int(query.get("limit", PAGE_SIZE_USUAL))
    return list_client_tokens(
        relay, asked.request, customer_id=query.get("customer_id"), before=query.get("cursor"), limit=limit
    )


def end_client_token(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Ends one client token."""
    return revoke_client_token(relay, asked.request, asked.id)


def end_client_tokens(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Ends the client tokens of a customer, or those of a key."""
    query = asked.query
    return revoke_client_tokens(
        relay, asked.request, customer_id=query.get("customer_id"), credential_id=query.get("credential_id")
    )


def _subscription_id(asked: Asked) -> int:
    number = subscription_number(asked.id)
    if number is None:
        raise Refusal(Code.NOT_FOUND, "there is no such subscription: its id is 1 to 19 digits")
    return number


def require_empty(body: bytes) -> None:
    """Accepts no body or an empty object, in whatever white space; raises Refusal."""
    if body.strip() not in _EMPTY_BODIES:
        parse_body(body, EmptyBody)
