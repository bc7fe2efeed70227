"""Operations: the changes that clients asked for at the gateway, and their outcomes."""

from collections.abc import Awaitable
from typing import Final

from payrelay.api.requests.parameters import (
    LIMIT,
    OF_CUSTOMER,
    Parameter,
    anything,
    choice,
    gateway_number,
    own_cursor,
    own_id,
    page_of,
    text,
)
from payrelay.api.requests.route import ParsedRequest, Route, only_own
from payrelay.api.routes.policies import own_key
from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer
from payrelay.core.payments.idempotency import KEY_LENGTH_MAX
from payrelay.core.payments.operation import Kind, OperationFilter, State
from payrelay.flows.payments.await_outcome import show_when_final
from payrelay.flows.payments.find_operations import list_operations, show_operation, show_operation_by_key
from payrelay.flows.relay import Relay

OPERATION: Final = own_id("op", "operation")
IDEMPOTENCY_KEY: Final = Parameter(
    name="idempotency_key",
    sentence="The Idempotency-Key of the request, unquoted.",
    schema={"type": "string", "pattern": rf"^[!-~]{{1,{KEY_LENGTH_MAX}}}$"},
    validator=anything,
    example="order-12345-attempt-1",
)
STATE: Final = choice("state", "Only operations in this state.", State, State.UNKNOWN)
KIND: Final = choice("kind", "Only operations of this kind.", Kind, Kind.CHARGE)
ORDER_ID: Final = text("order_id", "Only operations on this order.", "Order12345")
PAYMENT_ID: Final = gateway_number("payment_id", "Only operations on this payment.", "320025000009")
SUBSCRIPTION_ID: Final = gateway_number("subscription_id", "Only operations on this subscription.", "420075000001")
CURSOR: Final = own_cursor("op", "an operation")


def _show_operation(relay: Relay, parsed: ParsedRequest) -> Awaitable[Answer]:
    """Shows one operation; where the client prefers to wait, once the operation is final or the wait is over."""
    if parsed.wait_preference is not None:
        return show_when_final(relay, parsed.request, parsed.id, parsed.wait_preference)
    return show_operation(relay, parsed.request, parsed.id)


def _filter_of(query: dict[str, str]) -> OperationFilter:
    return OperationFilter(
        state=State(query["state"]) if "state" in query else None,
        kind=Kind(query["kind"]) if "kind" in query else None,
        order_id=query.get("order_id"),
        payment_id=query.get("payment_id"),
        subscription_id=query.get("subscription_id"),
        customer_id=query.get("customer_id"),
    )


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="listOperations",
        path="/operations",
        sentence="List operations, newest first",
        scope=Scope.OPERATIONS_READ,
        handler=lambda relay, parsed: list_operations(
            relay, parsed.request, _filter_of(parsed.query), **page_of(parsed.query)
        ),
        answer="operations",
        bound=only_own,
        query=(STATE, KIND, ORDER_ID, PAYMENT_ID, SUBSCRIPTION_ID, OF_CUSTOMER, CURSOR, LIMIT),
    ),
    Route(
        name="showOperation",
        path="/operations/{id}",
        sentence="Show an operation with its history and evidence",
        scope=Scope.OPERATIONS_READ,
        handler=_show_operation,
        answer="operation",
        bound=only_own,
        segment=OPERATION,
        can_wait=True,
    ),
    Route(
        name="showOperationByKey",
        path="/operations/by-key/{idempotency_key}",
        sentence="Show the newest operation under an Idempotency-Key",
        scope=Scope.OPERATIONS_READ,
        handler=lambda relay, parsed: show_operation_by_key(relay, parsed.request, parsed.id),
        answer="operation",
        bound=own_key,
        segment=IDEMPOTENCY_KEY,
    ),
)
