"""Shows a stored customer to its principal: the card's mask and the caller's own names, never a token."""

import msgspec

from payrelay.core.access.bounds import owns_customer
from payrelay.core.answers import Answer, found
from payrelay.core.customers.customer import STATE_SENTENCES, Customer, CustomerState, month_and_year
from payrelay.core.views import view_of
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request


class CustomerView(msgspec.Struct, frozen=True, kw_only=True):
    """A stored customer as a client sees it; times are RFC 3339 in UTC."""

    id: str
    state: CustomerState
    explanation: str
    version: int
    account: str
    principal: str
    reference: str | None
    label: str | None
    method: str | None
    card_no_masked: str | None
    card_expiry: str | None
    has_holder: bool
    order_id: str | None
    payment_id: str | None
    created_at: str
    updated_at: str


class ErasedCustomerView(CustomerView, frozen=True, kw_only=True):
    """What is left of an erased customer, and whether the database's files are cleared of the keys of the rest."""

    files_cleared: bool


async def show_customer(relay: Relay, request: Request, customer_id: str) -> Answer:
    """Answers with one customer; raises Refusal (not_found) for a customer that the caller may not see."""
    return answer_of(await visible_customer(relay, request, customer_id))


async def visible_customer(relay: Relay, request: Request, customer_id: str) -> Customer:
    """Returns a customer of the caller's on this merchant account; raises Refusal (not_found) for any other one."""
    return await _require_own(relay, request, customer_id, await relay.customers.get(customer_id))


async def erasable_customer(relay: Relay, request: Request, customer_id: str) -> Customer:
    """Returns a customer as ``visible_customer`` does, and also one whose names can't be opened, without them."""
    known = await relay.customers.get(customer_id) or await relay.customers.left_of(customer_id)
    return await _require_own(relay, request, customer_id, known)


async def _require_own(relay: Relay, request: Request, customer_id: str, customer: Customer | None) -> Customer:
    if customer is None or not owns_customer(request.credential, relay.account(request.account).merchant, customer):
        await relay.database.lost_commits.require_known(customer_id, "customer")
        raise Refusal(Code.NOT_FOUND, "there is no such customer")
    return customer


def answer_of(customer: Customer) -> Answer:
    """Answers with a customer."""
    return found(view(customer))


def answer_of_erasure(customer: Customer, *, files_cleared: bool) -> Answer:
    """Answers with what is left of an erased customer."""
    left = msgspec.structs.asdict(view(customer))
    return found(ErasedCustomerView(**left, files_cleared=files_cleared))


def view(customer: Customer) -> CustomerView:
    """Returns a customer as a client sees it."""
    expiry = month_and_year(customer.card_expiry)
    return view_of(customer, CustomerView, explanation=STATE_SENTENCES[customer.state], card_expiry=expiry)
