"""Subscriptions: the gateway's records of them, the states that Payrelay knows, and the operations on them."""

from dataclasses import replace
from typing import Final

from payrelay.api.requests.parameters import GATEWAY_NUMBER, LIMIT, PAGE_SIZE_USUAL, Parameter, anything, choice, cursor
from payrelay.api.requests.route import (
    EmptyBody,
    ParsedRequest,
    Route,
    gateway_effect,
    gateway_read,
    refused,
)
from payrelay.api.routes.policies import own_cancellation, own_subscription
from payrelay.core.access.credential import Scope
from payrelay.core.calls import (
    AllSubscriptions,
    CancelSubscription,
    OneSubscription,
    PaymentsOfSubscription,
    RetrySubscription,
    subscription_number,
)
from payrelay.errors import Code, Refusal
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.read_subscriptions import (
    list_subscription_payments,
    list_subscriptions,
    retrieve_subscription,
)
from payrelay.flows.subscriptions.retry_subscription import retry_subscription
from payrelay.flows.subscriptions.show_subscription_states import list_subscription_states, show_subscription_state

SUBSCRIPTION: Final = Parameter(
    name="id",
    sentence="The gateway's subscription identifier.",
    schema={"type": "string", "pattern": f"^{GATEWAY_NUMBER}$"},
    # A malformed one is no known subscription: the route answers 404, and sends nothing.
    validator=anything,
    example="420075000001",
)
_FAILED_SUBSCRIPTION: Final = replace(SUBSCRIPTION, example="420075000002")
EXPAND: Final = choice("expand", "`payments` adds the subscription's payments.", ("payments",), "payments")
SUBSCRIPTION_CURSOR: Final = cursor("a subscription", GATEWAY_NUMBER, "420075000001")


def _number_of(parsed: ParsedRequest) -> int:
    number = subscription_number(parsed.id)
    if number is None:
        raise Refusal(Code.NOT_FOUND, "there is no such subscription: its id is 1 to 19 digits")
    return number


ROUTES: Final[tuple[Route, ...]] = (
    gateway_read(
        name="listSubscriptions",
        path="/subscriptions",
        sentence="List all subscriptions",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, parsed: list_subscriptions(relay, parsed.request, AllSubscriptions()),
        answer="subscriptions",
        bound=refused,
    ),
    gateway_read(
        name="retrieveSubscription",
        path="/subscriptions/{id}",
        sentence="Retrieve a subscription",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, parsed: retrieve_subscription(
            relay,
            parsed.request,
            OneSubscription(subscription_id=_number_of(parsed)),
            with_payments="expand" in parsed.query,
        ),
        answer="subscription",
        bound=own_subscription,
        segment=SUBSCRIPTION,
        query=(EXPAND,),
    ),
    gateway_read(
        name="listSubscriptionPayments",
        path="/subscriptions/{id}/payments",
        sentence="List the payments of a subscription",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, parsed: list_subscription_payments(
            relay, parsed.request, PaymentsOfSubscription(subscription_id=_number_of(parsed))
        ),
        answer="payments",
        bound=own_subscription,
        segment=SUBSCRIPTION,
    ),
    gateway_effect(
        name="retrySubscription",
        method="POST",
        path="/subscriptions/{id}/retry",
        sentence="Charge the failed installment of a subscription",
        scope=Scope.SUBSCRIPTIONS_RETRY,
        handler=lambda relay, parsed: retry_subscription(
            relay, parsed.request, RetrySubscription(subscription_id=_number_of(parsed))
        ),
        answer="nothing",
        bound=refused,
        body=EmptyBody,
        segment=_FAILED_SUBSCRIPTION,
    ),
    gateway_effect(
        name="cancelSubscription",
        method="DELETE",
        path="/subscriptions/{id}",
        sentence="Cancel a subscription",
        scope=Scope.SUBSCRIPTIONS_CANCEL,
        handler=lambda relay, parsed: cancel_subscription(
            relay, parsed.request, CancelSubscription(subscription_id=_number_of(parsed))
        ),
        answer="nothing",
        bound=own_cancellation,
        body=EmptyBody,
        segment=SUBSCRIPTION,
    ),
    Route(
        name="listSubscriptionStates",
        path="/subscription-states",
        sentence="List the known states of subscriptions, without asking the gateway",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, parsed: list_subscription_states(
            relay,
            parsed.request,
            after=parsed.query.get("cursor", ""),
            limit=int(parsed.query.get("limit", PAGE_SIZE_USUAL)),
        ),
        answer="subscription states",
        bound=refused,
        query=(SUBSCRIPTION_CURSOR, LIMIT),
    ),
    Route(
        name="showSubscriptionState",
        path="/subscription-states/{id}",
        sentence="Show the known state of a subscription, without asking the gateway",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, parsed: show_subscription_state(relay, parsed.request, str(_number_of(parsed))),
        answer="subscription state",
        bound=own_subscription,
        segment=SUBSCRIPTION,
    ),
)
