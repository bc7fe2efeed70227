"""Operations: what was asked of the gateway, and what became of it."""

from collections.abc import Awaitable
from typing import Final

from payrelay.api.requests.parameters import (
    GATEWAY_NUMBER,
    LIMIT,
    OF_CUSTOMER,
    PAGE_SIZE_USUAL,
    TEXT_LENGTH_MAX,
    TEXT_SCHEMA,
    Parameter,
    anything,
    at_most_long,
    matches,
    one_of,
)
from payrelay.api.requests.route import ParsedRequest, Route, only_own
from payrelay.api.routes.policies import own_key
from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer
from payrelay.core.payments.idempotency import KEY_LENGTH_MAX
from payrelay.core.payments.operation import Kind, OperationFilter, State
from payrelay.flows.payments.await_outcome import show_when_final
from payrelay.flows.payments.find_operations import list_operations, show_newest_by_key, show_operation
from payrelay.flows.relay import Relay

_OPERATION_ID: Final = r"op_[0-9a-f]{32}"

OPERATION: Final = Parameter(
    name="id",
    sentence="Identifier of the operation.",
    schema={"type": "string", "pattern": f"^{_OPERATION_ID}$"},
    validator=anything,
    example="op_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="idempotency_key",
    sentence="The Idempotency-Key of the request, unquoted.",
    schema={"type": "string", "pattern": rf"^[!-~]{{1,{KEY_LENGTH_MAX}}}$"},
    validator=anything,
    example="order-12345-attempt-1",
)
STATE: Final = Parameter(
    name="state",
    sentence="Only operations in this state.",
    schema={"type": "string", "enum": [*State]},
    validator=one_of(*State),
    example=State.UNKNOWN,
)
KIND: Final = Parameter(
    name="kind",
    sentence="Only operations of this kind.",
    schema={"type": "string", "enum": [*Kind]},
    validator=one_of(*Kind),
    example=Kind.CHARGE,
)
ORDER_ID: Final = Parameter(
    name="order_id",
    sentence="Only operations on this order.",
    schema=TEXT_SCHEMA,
    validator=at_most_long(TEXT_LENGTH_MAX),
    example="Order12345",
)
PAYMENT_ID: Final = Parameter(
    name="payment_id",
    sentence="Only operations on this payment.",
    schema={"type": "string", "pattern": f"^{GATEWAY_NUMBER}$"},
    validator=matches(GATEWAY_NUMBER, "must be 1 to 19 digits"),
    example="320025021815",
)
SUBSCRIPTION_ID: Final = Parameter(
    name="subscription_id",
    sentence="Only operations on this subscription.",
    schema={"type": "string", "pattern": f"^{GATEWAY_NUMBER}$"},
    validator=matches(GATEWAY_NUMBER, "must be 1 to 19 digits"),
    example="420075032251",
)
CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this operation; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_OPERATION_ID}$"},
    validator=matches(_OPERATION_ID, "must be the id of an operation"),
    example="op_019c8b2f5a7e4d10b6f3a92c7e08d154",
)


def one_operation(relay: Relay, asked: ParsedRequest) -> Awaitable[Answer]:
    """Shows one operation, once it is settled where the client waits for that."""
    if asked.wait_preference is not None:
        return show_when_final(relay, asked.request, asked.id, asked.wait_preference)
    return show_operation(relay, asked.request, asked.id)


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
        method="GET",
        path="/operations",
        sentence="List operations, newest first",
        scope=Scope.OPERATIONS_READ,
        handler=lambda relay, asked: list_operations(
            relay,
            asked.request,
            _filter_of(asked.query),
            before=asked.query.get("cursor"),
            limit=int(asked.query.get("limit", PAGE_SIZE_USUAL)),
        ),
        answer="operations",
        bound=only_own,
        query=(
            STATE,
            KIND,
            ORDER_ID,
            PAYMENT_ID,
            SUBSCRIPTION_ID,
            OF_CUSTOMER,
            CURSOR,
            LIMIT,
        ),
    ),
    Route(
        name="showOperation",
        method="GET",
        path="/operations/{id}",
        sentence="Show an operation with its history and evidence",
        scope=Scope.OPERATIONS_READ,
        handler=one_operation,
        answer="operation",
        bound=only_own,
        segment=OPERATION,
        can_wait=True,
    ),
    Route(
        name="showOperationByKey",
        method="GET",
        path="/operations/by-key/{idempotency_key}",
        sentence="Show the newest operation under an Idempotency-Key",
        scope=Scope.OPERATIONS_READ,
        handler=lambda relay, asked: show_newest_by_key(relay, asked.request, asked.id),
        answer="operation",
        bound=own_key,
        segment=IDEMPOTENCY_KEY,
    ),
)
