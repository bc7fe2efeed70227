"""Subscriptions: as the gateway has them, as they are known here, and what may be done to them."""

from typing import Final

from payrelay.api.requests.parameters import (
    GATEWAY_NUMBER,
    LIMIT,
    PAGE_SIZE_USUAL,
    Parameter,
    anything,
    matches,
    one_of,
)
from payrelay.api.requests.route import CHANGES_GATEWAY, READS_GATEWAY, EmptyBody, ParsedRequest, Route, refused
from payrelay.api.routes.policies import own_subscription
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
    # A wrong one is no such subscription: the route answers 404, and sends nothing.
    validator=anything,
    example="420075032251",
)
EXPAND: Final = Parameter(
    name="expand",
    sentence="`payments` adds the subscription's payments.",
    schema={"type": "string", "enum": ["payments"]},
    validator=one_of("payments"),
    example="payments",
)
SUBSCRIPTION_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this subscription; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{GATEWAY_NUMBER}$"},
    validator=matches(GATEWAY_NUMBER, "must be the id of a subscription"),
    example="420075032251",
)


def _number_of(asked: ParsedRequest) -> int:
    number = subscription_number(asked.id)
    if number is None:
        raise Refusal(Code.NOT_FOUND, "there is no such subscription: its id is 1 to 19 digits")
    return number


def _retry_of(asked: ParsedRequest) -> RetrySubscription:
    asked.require_empty()
    return RetrySubscription(subscription_id=_number_of(asked))


def _cancellation_of(asked: ParsedRequest) -> CancelSubscription:
    asked.require_empty()
    return CancelSubscription(subscription_id=_number_of(asked))


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="listSubscriptions",
        method="GET",
        path="/subscriptions",
        sentence="List all subscriptions",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, asked: list_subscriptions(relay, asked.request, AllSubscriptions()),
        answer="subscriptions",
        bound=refused,
        codes=READS_GATEWAY,
        is_read=True,
    ),
    Route(
        name="retrieveSubscription",
        method="GET",
        path="/subscriptions/{id}",
        sentence="Retrieve a subscription",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, asked: retrieve_subscription(
            relay,
            asked.request,
            OneSubscription(subscription_id=_number_of(asked)),
            with_payments="expand" in asked.query,
        ),
        answer="subscription",
        bound=own_subscription,
        segment=SUBSCRIPTION,
        query=(EXPAND,),
        codes=READS_GATEWAY,
        is_read=True,
    ),
    Route(
        name="listSubscriptionPayments",
        method="GET",
        path="/subscriptions/{id}/payments",
        sentence="List the payments of a subscription",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, asked: list_subscription_payments(
            relay, asked.request, PaymentsOfSubscription(subscription_id=_number_of(asked))
        ),
        answer="payments",
        bound=own_subscription,
        segment=SUBSCRIPTION,
        codes=READS_GATEWAY,
        is_read=True,
    ),
    Route(
        name="retrySubscription",
        method="POST",
        path="/subscriptions/{id}/retry",
        sentence="Charge the failed installment of a subscription",
        scope=Scope.SUBSCRIPTIONS_RETRY,
        handler=lambda relay, asked: retry_subscription(relay, asked.request, _retry_of(asked)),
        answer="nothing",
        bound=refused,
        body=EmptyBody,
        segment=SUBSCRIPTION,
        codes=CHANGES_GATEWAY,
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="cancelSubscription",
        method="DELETE",
        path="/subscriptions/{id}",
        sentence="Cancel a subscription",
        scope=Scope.SUBSCRIPTIONS_CANCEL,
        handler=lambda relay, asked: cancel_subscription(relay, asked.request, _cancellation_of(asked)),
        answer="nothing",
        bound=own_subscription,
        body=EmptyBody,
        segment=SUBSCRIPTION,
        codes=CHANGES_GATEWAY,
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="listSubscriptionStates",
        method="GET",
        path="/subscription-states",
        sentence="List the known states of subscriptions, without asking the gateway",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, asked: list_subscription_states(
            relay,
            asked.request,
            after=asked.query.get("cursor", ""),
            limit=int(asked.query.get("limit", PAGE_SIZE_USUAL)),
        ),
        answer="subscription states",
        bound=refused,
        query=(SUBSCRIPTION_CURSOR, LIMIT),
    ),
    Route(
        name="showSubscriptionState",
        method="GET",
        path="/subscription-states/{id}",
        sentence="Show the known state of a subscription, without asking the gateway",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=lambda relay, asked: show_subscription_state(relay, asked.request, str(_number_of(asked))),
        answer="subscription state",
        bound=own_subscription,
        segment=SUBSCRIPTION,
    ),
)
