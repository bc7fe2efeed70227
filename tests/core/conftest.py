from collections.abc import Callable

import msgspec
import pytest

from payrelay.core.operations import Kind, Operation, State

OPERATION = Operation(
    id="op_1",
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    kind=Kind.CHARGE,
    state=State.SENDING,
    version=1,
    subject="order/A-1",
    guard="order/A-1",
    claim="key/k-1",
    claim_ends_at_ms=None,
    idempotency_key="k-1",
    fingerprint="f" * 64,
    request_id="req_1",
    order_id="A-1",
    payment_id=None,
    subscription_id=None,
    amount_minor=100_000,
    currency="LKR",
    result_ref=None,
    created_at_ms=1_000,
    updated_at_ms=1_000,
    send_by_ms=11_000,
)

MakeOperation = Callable[..., Operation]


@pytest.fixture(scope="session")
def make_operation() -> MakeOperation:
    """Gives a maker of operations: a charge under way, but for what is named."""

    def make(**members: object) -> Operation:
        return msgspec.structs.replace(OPERATION, **members)

    return make
