"""Takes a customer's name out of stored Idempotency-Keys, where an earlier version has written it.

Earlier versions kept the keys of an identity provider's persons under the persons' names. The key gets the name that it
would get now, and its operation is found as before, by an equal request too.
"""

from collections.abc import AsyncIterator
from typing import Final

from payrelay.core.access.person_names import earlier_keys_of
from payrelay.core.customers.customer import Customer
from payrelay.core.payments.operation import Operation, OperationFilter
from payrelay.errors import StoreUnavailable
from payrelay.flows.relay import Relay

ATTEMPTS_MAX: Final = 5
"""Attempts to rename one key; each further one means that the operation was changed between two statements."""
PAGE: Final = 100
"""Operations that are read at once; a customer may have any number of them."""
OTHER_VERSION_SENTENCE: Final = (
    "Idempotency-Keys from before have the customer's name, and processes of another version would take their"
    " operations for forged: repeat the erasure when those have ended"
)


async def rename_keys_of_customer(relay: Relay, customer: Customer) -> None:
    """Renames the keys of all operations that name the customer; raises as ``rename_keys``."""
    await rename_keys(relay, OperationFilter(customer_id=customer.id, principal=customer.principal), of_person="")


async def rename_keys_of_orders(relay: Relay, customer: Customer, order_ids: tuple[str, ...]) -> None:
    """Renames the keys of a person who had no card yet: cancellations of the plans of these orders.

    Raises as ``rename_keys``.
    """
    if customer.reference is None:
        return
    merchant, of_person = customer.merchant, f"{earlier_keys_of(customer.reference)}/"
    checkouts = [each for order_id in order_ids for each in await relay.checkouts.of_order(merchant, order_id)]
    for subscription_id in sorted({each.subscription_id for each in checkouts if each.subscription_id is not None}):
        wanted = OperationFilter(subscription_id=subscription_id, principal=customer.principal)
        await rename_keys(relay, wanted, of_person=of_person)


async def rename_keys(relay: Relay, wanted: OperationFilter, *, of_person: str) -> None:
    """Renames the keys with a person's name of the operations that are wanted; may be repeated.

    ``of_person`` is the beginning of the keys of one person; empty for any. Raises StoreError; StoreUnavailable also
    where there are such keys and processes of another version are running.
    """
    async for operation in _operations(relay, wanted):
        key = operation.idempotency_key
        renamed = None if key is None else relay.person_names.renamed(key)
        if key is None or renamed is None or not key.startswith(of_person):
            continue
        if await relay.clearing.has_other_versions():
            raise StoreUnavailable(OTHER_VERSION_SENTENCE)
        await _rename(relay, operation, renamed)


async def _rename(relay: Relay, operation: Operation, renamed: str) -> None:
    current: Operation | None = operation
    for _ in range(ATTEMPTS_MAX):
        # Another erasure may have been quicker.
        if current is None or current.idempotency_key != operation.idempotency_key:
            return
        if await relay.journal.rename_key(current, renamed):
            return
        current = await relay.journal.get(operation.id)
    raise StoreUnavailable(f"the operation {operation.id} was changed again and again")


async def _operations(relay: Relay, wanted: OperationFilter) -> AsyncIterator[Operation]:
    before = None
    while found := await relay.journal.list(wanted, before=before, limit=PAGE):
        for operation in found:
            yield operation
        before = found[-1].id
