"""The one table of routes: dispatch, authorization, ``/openapi.json`` and the tables in the docs are made from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from payrelay.api.http.queries import decoded
from payrelay.api.routes import (
    customer_handlers,
    customer_parameters,
    event_handlers,
    event_parameters,
    handlers,
    parameters,
    standing_handlers,
)
from payrelay.api.routes.bodies import Body, CaptureBody, ChargeBody, ClientTokenBody, EmptyBody, RefundBody
from payrelay.api.routes.checkout_bodies import CheckoutBody
from payrelay.api.routes.customer_bodies import CustomerBody, CustomerNamesBody
from payrelay.api.routes.event_bodies import ChangeEndpointBody, NewEndpointBody, ReplayBody
from payrelay.api.routes.handlers import Handler
from payrelay.api.routes.parameters import Parameter
from payrelay.api.routes.policies import (
    Policy,
    only_own,
    own_charge,
    own_checkout,
    own_key,
    own_order,
    own_subscription,
    refused,
)
from payrelay.core.access.credential import Scope
from payrelay.errors import Code

API_SEGMENT: Final = b"api"
"""What stands behind an account's name."""

ALWAYS: Final = (
    Code.MALFORMED_REQUEST,
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN,
    Code.NOT_FOUND,
    Code.METHOD_NOT_ALLOWED,
    Code.INVALID_REQUEST,
    Code.RATE_LIMITED,
    Code.INTERNAL,
    Code.UNAVAILABLE,
)
"""What any route may answer: all take an address, a credential and our store."""
_GATEWAY_READ: Final = (
    Code.GATEWAY_REFUSED_US,
    Code.GATEWAY_BAD_REPLY,
    Code.GATEWAY_BUSY,
    Code.GATEWAY_UNREACHABLE,
)
_BODY: Final = (Code.TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)
_EFFECT: Final = (
    Code.OUTCOME_UNKNOWN,
    Code.IN_PROGRESS,
    Code.CONFLICT,
    Code.IDEMPOTENCY_MISMATCH,
    Code.GATEWAY_REFUSED_US,
    Code.GATEWAY_BUSY,
    Code.GATEWAY_UNREACHABLE,
    *_BODY,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """One route.

    Attributes:
        name: what OpenAPI calls the operation.
        method: the HTTP method.
        path: behind ``/{account}/api``; one segment in braces may vary.
        sentence: what it does, for the docs.
        scope: what the credential must be allowed.
        handler: makes the call and runs the story.
        answer: names the schema of ``data``; see ``openapi``.
        body: the type of its body; None where it takes none.
        segment: the parameter in its path, None where it has none.
        query: the parameters that it takes in its query.
        codes: the error codes that it may answer beyond ALWAYS.
        is_effect: whether it changes something at the gateway, and so takes an Idempotency-Key.
        is_read: whether it reads something at the gateway, which may be kept for a while.
        takes_key: whether it takes an Idempotency-Key although it changes nothing at the gateway.
        can_wait: whether its answer is held where the client prefers to wait until an operation is settled.
        is_stream: whether it answers bit by bit, as server-sent events.
        bound: what a phone's credential may do here; None where nobody has said it, and it may do nothing.
    """

    name: str
    method: str
    path: str
    sentence: str
    scope: Scope
    handler: Handler
    answer: str
    body: type[Body] | None = None
    segment: Parameter | None = None
    query: tuple[Parameter, ...] = ()
    codes: tuple[Code, ...] = ()
    is_effect: bool = False
    is_read: bool = False
    takes_key: bool = False
    can_wait: bool = False
    is_stream: bool = False
    bound: Policy | None = None

    @property
    def template(self) -> str:
        """The whole path as logs and metrics name it."""
        return "/{account}/api" + self.path


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="retrievePayments",
        method="GET",
        path="/payments/{id}",
        sentence="Retrieve the successful payments of an order",
        scope=Scope.PAYMENTS_READ,
        handler=handlers.payments_of_order,
        answer="payments",
        bound=own_order,
        segment=parameters.ORDER,
        codes=_GATEWAY_READ,
        is_read=True,
    ),
    Route(
        name="chargePayment",
        method="POST",
        path="/payments/charge",
        sentence="Charge a pre-approved customer, or hold the money",
        scope=Scope.PAYMENTS_CHARGE,
        handler=handlers.charge_customer,
        answer="charge",
        bound=own_charge,
        body=ChargeBody,
        codes=(Code.PENDING, Code.DECLINED, *_EFFECT),
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="capturePayment",
        method="POST",
        path="/payments/capture",
        sentence="Capture a held payment, or a part of it",
        scope=Scope.PAYMENTS_CAPTURE,
        handler=handlers.capture_hold,
        answer="capture",
        bound=refused,
        body=CaptureBody,
        codes=(Code.DECLINED, *_EFFECT),
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="refundPayment",
        method="POST",
        path="/payments/refund",
        sentence="Refund a payment or a part of it, or let go of a hold",
        scope=Scope.PAYMENTS_REFUND,
        handler=handlers.refund_payment,
        answer="refund",
        bound=refused,
        body=RefundBody,
        codes=_EFFECT,
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="listSubscriptions",
        method="GET",
        path="/subscriptions",
        sentence="List all subscriptions",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=handlers.all_subscriptions,
        answer="subscriptions",
        bound=refused,
        codes=_GATEWAY_READ,
        is_read=True,
    ),
    Route(
        name="retrieveSubscription",
        method="GET",
        path="/subscriptions/{id}",
        sentence="Retrieve a subscription",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=handlers.one_subscription,
        answer="subscription",
        bound=own_subscription,
        segment=parameters.SUBSCRIPTION,
        query=(parameters.EXPAND,),
        codes=_GATEWAY_READ,
        is_read=True,
    ),
    Route(
        name="listSubscriptionPayments",
        method="GET",
        path="/subscriptions/{id}/payments",
        sentence="List the payments of a subscription",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=handlers.payments_of_subscription,
        answer="payments",
        bound=own_subscription,
        segment=parameters.SUBSCRIPTION,
        codes=_GATEWAY_READ,
        is_read=True,
    ),
    Route(
        name="retrySubscription",
        method="POST",
        path="/subscriptions/{id}/retry",
        sentence="Charge the failed installment of a subscription",
        scope=Scope.SUBSCRIPTIONS_RETRY,
        handler=handlers.retry,
        answer="nothing",
        bound=refused,
        body=EmptyBody,
        segment=parameters.SUBSCRIPTION,
        codes=_EFFECT,
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="cancelSubscription",
        method="DELETE",
        path="/subscriptions/{id}",
        sentence="Cancel a subscription",
        scope=Scope.SUBSCRIPTIONS_CANCEL,
        handler=handlers.cancel,
        answer="nothing",
        bound=own_subscription,
        body=EmptyBody,
        segment=parameters.SUBSCRIPTION,
        codes=_EFFECT,
        is_effect=True,
        can_wait=True,
    ),
    Route(
        name="listSubscriptionStates",
        method="GET",
        path="/subscription-states",
        sentence="List how subscriptions stand, as it is known here, without asking the gateway",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=standing_handlers.some_subscription_states,
        answer="subscription states",
        bound=refused,
        query=(parameters.SUBSCRIPTION_CURSOR, parameters.LIMIT),
    ),
    Route(
        name="showSubscriptionState",
        method="GET",
        path="/subscription-states/{id}",
        sentence="Show how a subscription stands, as it is known here, without asking the gateway",
        scope=Scope.SUBSCRIPTIONS_READ,
        handler=standing_handlers.one_subscription_state,
        answer="subscription state",
        bound=own_subscription,
        segment=parameters.SUBSCRIPTION,
    ),
    Route(
        name="openCheckout",
        method="POST",
        path="/checkouts",
        sentence="Ask a customer to pay, approve a card, subscribe or let money be held, on the gateway's page",
        scope=Scope.CHECKOUTS_CREATE,
        handler=handlers.new_checkout,
        bound=own_checkout,
        answer="opened checkout",
        body=CheckoutBody,
        codes=(Code.CONFLICT, Code.IDEMPOTENCY_MISMATCH, *_BODY),
        takes_key=True,
    ),
    Route(
        name="showCheckout",
        method="GET",
        path="/checkouts/{id}",
        sentence="Show a checkout, as we know it by now",
        scope=Scope.CHECKOUTS_READ,
        handler=handlers.one_checkout,
        answer="checkout",
        bound=only_own,
        segment=parameters.CHECKOUT,
    ),
    Route(
        name="listCustomers",
        method="GET",
        path="/customers",
        sentence="List stored customers, newest first",
        scope=Scope.CUSTOMERS_READ,
        handler=customer_handlers.some_customers,
        answer="customers",
        bound=only_own,
        query=(
            customer_parameters.REFERENCE,
            customer_parameters.CUSTOMER_STATE,
            customer_parameters.CUSTOMER_CURSOR,
            parameters.LIMIT,
        ),
    ),
    Route(
        name="importCustomer",
        method="POST",
        path="/customers",
        sentence="Hand over a gateway's token, to be kept as a stored customer",
        scope=Scope.CUSTOMERS_WRITE,
        handler=customer_handlers.new_customer,
        answer="customer",
        bound=refused,
        body=CustomerBody,
        codes=_BODY,
    ),
    Route(
        name="showCustomer",
        method="GET",
        path="/customers/{id}",
        sentence="Show a stored customer",
        scope=Scope.CUSTOMERS_READ,
        handler=customer_handlers.one_customer,
        answer="customer",
        bound=only_own,
        segment=customer_parameters.CUSTOMER,
    ),
    Route(
        name="changeCustomer",
        method="PATCH",
        path="/customers/{id}",
        sentence="Give a stored customer another reference or label",
        scope=Scope.CUSTOMERS_WRITE,
        handler=customer_handlers.renamed_customer,
        answer="customer",
        bound=refused,
        segment=customer_parameters.CUSTOMER,
        body=CustomerNamesBody,
        codes=(Code.CONFLICT, *_BODY),
    ),
    Route(
        name="removeCustomer",
        method="DELETE",
        path="/customers/{id}",
        sentence="Remove a stored customer: its token is destroyed",
        scope=Scope.CUSTOMERS_WRITE,
        handler=customer_handlers.removed_customer,
        answer="customer",
        bound=refused,
        segment=customer_parameters.CUSTOMER,
        body=EmptyBody,
        codes=_BODY,
    ),
    Route(
        name="eraseCustomer",
        method="POST",
        path="/customers/{id}/erase",
        sentence="Erase what is kept of a person, on request",
        scope=Scope.CUSTOMERS_WRITE,
        handler=customer_handlers.erased_customer,
        answer="customer",
        bound=refused,
        segment=customer_parameters.CUSTOMER,
        body=EmptyBody,
        codes=_BODY,
    ),
    Route(
        name="listOperations",
        method="GET",
        path="/operations",
        sentence="List operations, newest first",
        scope=Scope.OPERATIONS_READ,
        handler=handlers.some_operations,
        answer="operations",
        bound=only_own,
        query=(
            parameters.STATE,
            parameters.KIND,
            parameters.ORDER_ID,
            parameters.PAYMENT_ID,
            parameters.SUBSCRIPTION_ID,
            parameters.OF_CUSTOMER,
            parameters.CURSOR,
            parameters.LIMIT,
        ),
    ),
    Route(
        name="showOperation",
        method="GET",
        path="/operations/{id}",
        sentence="Show an operation with its history and evidence",
        scope=Scope.OPERATIONS_READ,
        handler=handlers.one_operation,
        answer="operation",
        bound=only_own,
        segment=parameters.OPERATION,
        can_wait=True,
    ),
    Route(
        name="showOperationByKey",
        method="GET",
        path="/operations/by-key/{idempotency_key}",
        sentence="Show the newest operation under an Idempotency-Key",
        scope=Scope.OPERATIONS_READ,
        handler=handlers.operation_by_key,
        answer="operation",
        bound=own_key,
        segment=parameters.IDEMPOTENCY_KEY,
    ),
    Route(
        name="issueClientToken",
        method="POST",
        path="/client-tokens",
        sentence="Issue a token for a phone",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=handlers.new_client_token,
        answer="client_token",
        bound=refused,
        body=ClientTokenBody,
        codes=_BODY,
    ),
    Route(
        name="listClientTokens",
        method="GET",
        path="/client-tokens",
        sentence="List the client tokens whose time is not over, newest first",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=handlers.some_client_tokens,
        answer="client_tokens",
        bound=refused,
        query=(parameters.OF_CUSTOMER, parameters.TOKEN_CURSOR, parameters.LIMIT),
    ),
    Route(
        name="revokeClientTokens",
        method="DELETE",
        path="/client-tokens",
        sentence="Revoke client tokens: of a customer, those that a key has issued, or all of yours",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=handlers.end_client_tokens,
        answer="revoked",
        bound=refused,
        query=(parameters.OF_CUSTOMER, parameters.OF_CREDENTIAL),
    ),
    Route(
        name="revokeClientToken",
        method="DELETE",
        path="/client-tokens/{id}",
        sentence="Revoke a client token",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=handlers.end_client_token,
        answer="nothing",
        bound=refused,
        segment=parameters.CLIENT_TOKEN,
    ),
    Route(
        name="listEvents",
        method="GET",
        path="/events",
        sentence="Read the feed of events, oldest first",
        scope=Scope.EVENTS_READ,
        handler=event_handlers.some_events,
        answer="events",
        bound=refused,
        query=(event_parameters.AFTER, event_parameters.TYPE, event_parameters.SUBJECT, event_parameters.EVENT_LIMIT),
        can_wait=True,
    ),
    Route(
        name="followEvents",
        method="GET",
        path="/events/stream",
        sentence="Follow one operation or checkout by server-sent events",
        scope=Scope.EVENTS_READ,
        handler=event_handlers.event_stream,
        answer="event stream",
        bound=only_own,
        query=(event_parameters.FOLLOWED, event_parameters.AFTER),
        is_stream=True,
    ),
    Route(
        name="registerEndpoint",
        method="POST",
        path="/endpoints",
        sentence="Register an endpoint that events are sent to",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.new_endpoint,
        answer="issued endpoint",
        bound=refused,
        body=NewEndpointBody,
        codes=(Code.CONFLICT, *_BODY),
    ),
    Route(
        name="listEndpoints",
        method="GET",
        path="/endpoints",
        sentence="List the endpoints",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.some_endpoints,
        answer="endpoints",
        bound=refused,
    ),
    Route(
        name="showEndpoint",
        method="GET",
        path="/endpoints/{id}",
        sentence="Show an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.one_endpoint,
        answer="endpoint",
        bound=refused,
        segment=event_parameters.ENDPOINT,
    ),
    Route(
        name="changeEndpoint",
        method="PATCH",
        path="/endpoints/{id}",
        sentence="Change, pause, stop or start an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.changed_endpoint,
        answer="endpoint",
        bound=refused,
        segment=event_parameters.ENDPOINT,
        body=ChangeEndpointBody,
        codes=_BODY,
    ),
    Route(
        name="removeEndpoint",
        method="DELETE",
        path="/endpoints/{id}",
        sentence="Remove an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.removed_endpoint,
        answer="nothing",
        bound=refused,
        segment=event_parameters.ENDPOINT,
        body=EmptyBody,
        codes=_BODY,
    ),
    Route(
        name="rotateEndpoint",
        method="POST",
        path="/endpoints/{id}/rotate",
        sentence="Give an endpoint a new secret; the one before counts for a day",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.rotated_endpoint,
        answer="issued endpoint",
        bound=refused,
        segment=event_parameters.ENDPOINT,
        body=EmptyBody,
        codes=_BODY,
    ),
    Route(
        name="testEndpoint",
        method="POST",
        path="/endpoints/{id}/test",
        sentence="Send a test event to an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.tested_endpoint,
        answer="told event",
        bound=refused,
        segment=event_parameters.ENDPOINT,
        body=EmptyBody,
        codes=(Code.CONFLICT, *_BODY),
    ),
    Route(
        name="replayEvents",
        method="POST",
        path="/endpoints/{id}/replay",
        sentence="Send events to an endpoint again",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.replayed_endpoint,
        answer="replayed",
        bound=refused,
        segment=event_parameters.ENDPOINT,
        query=(event_parameters.AFTER,),
        body=ReplayBody,
        codes=(Code.CONFLICT, *_BODY),
    ),
    Route(
        name="listDeliveries",
        method="GET",
        path="/endpoints/{id}/deliveries",
        sentence="List what became of events for an endpoint, newest first",
        scope=Scope.ENDPOINTS_WRITE,
        handler=event_handlers.some_deliveries,
        answer="deliveries",
        bound=refused,
        segment=event_parameters.ENDPOINT,
        query=(event_parameters.DELIVERY_STATE, event_parameters.BEFORE, event_parameters.DELIVERY_LIMIT),
    ),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a path has: its routes by method, the value of Allow, and the segment that varies, decoded."""

    methods: Mapping[str, Route]
    allow: str
    segment: str


class Matcher:
    """Finds the routes of a path.

    A path that stands in the table literally also has the methods of the template that it fits: ``GET
    payments/charge`` reads the order called "charge".
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        paths: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            paths.setdefault(tuple(route.path.strip("/").split("/")), {})[route.method] = route
        self._templates: dict[int, list[_Template]] = {}
        for segments, methods in paths.items():
            if _variable(segments) is not None:
                self._templates.setdefault(len(segments), []).append(_Template(segments, methods))
        self._literal: dict[tuple[str, ...], Found] = {}
        for segments, methods in paths.items():
            if _variable(segments) is None:
                fitting = self._fitting(segments)
                inherited = {} if fitting is None else dict(fitting.methods)
                segment = "" if fitting is None else fitting.segment
                merged = {**inherited, **methods}
                self._literal[segments] = Found(merged, _allow(merged), segment)

    def find(self, raw_segments: list[bytes]) -> Found | None:
        """Gives what stands at these raw segments behind ``api``, or None for nothing.

        Raises Refusal (malformed_request) for a segment that can't be read.
        """
        segments = tuple(map(decoded, raw_segments))
        return self._literal.get(segments) or self._fitting(segments)

    def _fitting(self, segments: tuple[str, ...]) -> Found | None:
        for template in self._templates.get(len(segments), ()):
            if template.fits(segments):
                return Found(template.methods, template.allow, segments[template.position])
        return None


class _Template:
    """A path with one segment that varies."""

    __slots__ = ("_after", "_before", "allow", "methods", "position")

    def __init__(self, segments: tuple[str, ...], methods: dict[str, Route]) -> None:
        self.position = _variable(segments) or 0
        self._before, self._after = segments[: self.position], segments[self.position + 1 :]
        self.methods = methods
        self.allow = _allow(methods)

    def fits(self, segments: tuple[str, ...]) -> bool:
        """True where every other segment is equal, and the one that varies is not empty."""
        position = self.position
        return (
            segments[:position] == self._before and segments[position + 1 :] == self._after and segments[position] != ""
        )


def _variable(segments: tuple[str, ...]) -> int | None:
    return next((index for index, segment in enumerate(segments) if segment.startswith("{")), None)


def _allow(methods: Mapping[str, Route]) -> str:
    return ", ".join(sorted(methods))
