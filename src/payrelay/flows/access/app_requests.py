"""What a request of an app's credential means: whose it is, and which operation it repeats."""

import msgspec

from payrelay.core.access.bounds import keys_of
from payrelay.core.customers.customer import CustomerFilter, CustomerState
from payrelay.core.payments.operation import Operation, claim_of_key
from payrelay.flows.operations.answer_repeat import find_earlier
from payrelay.flows.relay import Relay, Request


async def resolved(relay: Relay, request: Request) -> Request:
    """Gives a request whose credential names its customer and the client's reference for it, where both are known.

    Where several customers have one reference, the one that was approved last counts. Raises StoreUnavailable.
    """
    bound, customer = request.credential.bound, None
    if bound is None:
        return request
    if bound.customer_id is not None:
        customer = await relay.customers.get(bound.customer_id)
    elif bound.reference is not None:
        customer_filter = CustomerFilter(
            merchant=request.gateway.merchant,
            principal=request.principal,
            reference=bound.reference,
            state=CustomerState.ACTIVE,
        )
        customer = next(iter(await relay.customers.list(customer_filter, before=None, limit=1)), None)
    if customer is None or customer.principal != request.principal:
        return request
    named = msgspec.structs.replace(
        bound, customer_id=customer.id, reference=customer.reference, keys_of=keys_of(bound)
    )
    return msgspec.structs.replace(request, credential=msgspec.structs.replace(request.credential, bound=named))


async def earlier_of(relay: Relay, request: Request) -> Operation | None:
    """Finds the operation that has the key of an app's request, which is a repeat then, or used the key twice.

    Raises OperationForged, StoreUnavailable.
    """
    if request.idempotency_key is None:
        return None
    earlier = await find_earlier(relay, request, claim_of_key(request.idempotency_key))
    return None if earlier is None else earlier.operation
