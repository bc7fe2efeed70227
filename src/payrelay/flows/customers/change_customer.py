"""Changes a stored customer; decides anew where the row was changed meanwhile."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from payrelay.core.answers import Answer
from payrelay.core.customers.customer import Customer, CustomerEvent, CustomerState, Names, renamed
from payrelay.errors import Code, Outdated, Refusal, StoreUnavailable
from payrelay.flows.customers.approve_customer import ATTEMPTS_MAX
from payrelay.flows.customers.show_customer import answer_of, visible_customer
from payrelay.flows.relay import Relay, Request
from payrelay.runtime.hooks import FlowPoint


class NewNames(msgspec.Struct, frozen=True, kw_only=True):
    """The merchant's new names for a customer: UNSET keeps the old name, None removes it."""

    reference: str | UnsetType | None = UNSET
    label: str | UnsetType | None = UNSET


async def change_customer(relay: Relay, request: Request, customer_id: str, names: NewNames) -> Answer:
    """Answers with the customer under its new names; may be repeated.

    Raises Refusal: not_found for a customer that the caller may not see, conflict for one that was erased.
    """
    customer = await visible_customer(relay, request, customer_id)
    return answer_of(
        await changed_by(relay, customer, CustomerEvent.CHANGED, lambda known: _renamed(relay, known, names))
    )


def _renamed(relay: Relay, customer: Customer, names: NewNames) -> Customer:
    if customer.state is CustomerState.ERASED:
        raise Refusal(Code.CONFLICT, "this customer was erased, and takes no names any more")
    reference = customer.reference if isinstance(names.reference, UnsetType) else names.reference
    label = customer.label if isinstance(names.label, UnsetType) else names.label
    return renamed(customer, Names(reference=reference, label=label), at_ms=relay.clock.now_ms())


async def changed_by(
    relay: Relay, customer: Customer, event: CustomerEvent, change: Callable[[Customer], Customer]
) -> Customer:
    """Stores a customer as a pure function changes it, with its event; stores nothing where nothing changes.

    Decides anew where the row was changed meanwhile. Raises StoreUnavailable, and whatever ``change`` raises.
    """
    customers = relay.customers
    for _ in range(ATTEMPTS_MAX):
        changed = change(customer)
        if changed is customer:
            return customer
        try:
            with relay.hooks.passing(FlowPoint.STORING, FlowPoint.STORED, changed.id):
                await customers.change(changed, event)
        except Outdated:
            customer = await customers.get(customer.id) or customer
        else:
            return changed
    raise StoreUnavailable(f"the customer {customer.id!r} was changed by others again and again")
