"""Lists the caller's stored customers, newest first."""

import msgspec

from payrelay.core.answers import Answer, found
from payrelay.core.customers.customer import CustomerFilter
from payrelay.flows.customers.show_customer import view
from payrelay.flows.pagination import answer_page
from payrelay.flows.relay import Relay, Request


async def list_customers(
    relay: Relay, request: Request, customer_filter: CustomerFilter, *, before: str | None, limit: int
) -> Answer:
    """Answers a page of the caller's customers on this merchant account; a Link header leads to a next page.

    A bound credential sees its own customer only. ``before`` is the id of the last customer of the previous page;
    ``limit`` is 1 to ``find_operations.PAGE_SIZE_MAX``.
    """
    bound = request.credential.bound
    if bound is not None and bound.customer_id is None:
        return found([])
    narrowed = msgspec.structs.replace(
        customer_filter,
        merchant=request.gateway.merchant,
        principal=request.principal,
        account=None,
        id=None if bound is None else bound.customer_id,
    )
    customers = await relay.customers.list(narrowed, before=before, limit=limit + 1)
    query = msgspec.structs.asdict(customer_filter)
    return answer_page(request, "customers", customers, limit, show=view, id_of=lambda each: each.id, query=query)
