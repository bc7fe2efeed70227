"""The step between a route and its story, for stored customers."""

from collections.abc import Awaitable

from payrelay.api.routes.bodies import parse_body
from payrelay.api.routes.customer_bodies import CustomerBody, CustomerNamesBody
from payrelay.api.routes.handlers import Asked, require_empty
from payrelay.api.routes.parameters import PAGE_SIZE_USUAL
from payrelay.core.answers import Answer
from payrelay.core.customers.customer import CustomerFilter, CustomerState
from payrelay.flows.customers.change_customer import change_customer
from payrelay.flows.customers.erase_customer import erase_customer
from payrelay.flows.customers.import_customer import import_customer
from payrelay.flows.customers.list_customers import list_customers
from payrelay.flows.customers.remove_customer import remove_customer
from payrelay.flows.customers.show_customer import show_customer
from payrelay.flows.relay import Relay


def some_customers(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Lists the caller's customers, newest first."""
    query = asked.query
    wanted = CustomerFilter(
        reference=query.get("reference"), state=CustomerState(query["state"]) if "state" in query else None
    )
    limit = int(query.get("limit", PAGE_SIZE_USUAL))
    return list_customers(relay, asked.request, wanted, before=query.get("cursor"), limit=limit)


def one_customer(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Shows one customer."""
    return show_customer(relay, asked.request, asked.id)


def new_customer(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Takes in a token that the caller holds already."""
    return import_customer(relay, asked.request, parse_body(asked.body, CustomerBody).given())


def renamed_customer(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Gives a customer other names."""
    return change_customer(relay, asked.request, asked.id, parse_body(asked.body, CustomerNamesBody).names())


def removed_customer(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Removes a customer."""
    require_empty(asked.body)
    return remove_customer(relay, asked.request, asked.id)


def erased_customer(relay: Relay, asked: Asked) -> Awaitable[Answer]:
    """Erases what is kept of a person."""
    require_empty(asked.body)
    return erase_customer(relay, asked.request, asked.id)
