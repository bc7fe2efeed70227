"""Lists the caller's stored customers, newest first."""

import msgspec

from payrelay.core.answers import Answer, found
from payrelay.core.customers import State
from payrelay.operations.pages import answer_page
from payrelay.operations.relay import Relay, Request
from payrelay.operations.show_customer import view
from payrelay.store.customers import Wanted


class CustomerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which of them: those that are equal in every field that is given."""

    reference: str | None = None
    state: State | None = None


async def list_customers(
    relay: Relay, request: Request, wanted: CustomerFilter, *, before: str | None, limit: int
) -> Answer:
    """Answers a page of the caller's own on this merchant account; a Link header leads to the next where there is one.

    A credential that is bound sees its own customer alone. ``before`` is the id of the last customer of the page
    before; ``limit`` is 1 to ``find_operations.PAGE_SIZE_MAX``.
    """
    bound = request.credential.bound
    if bound is not None and bound.customer_id is None:
        return found([])
    narrowed = Wanted(
        merchant=relay.account(request.account).merchant,
        principal=request.principal,
        id=None if bound is None else bound.customer_id,
        reference=wanted.reference,
        state=wanted.state,
    )
    customers = await relay.customers.list(narrowed, before=before, limit=limit + 1)
    asked = msgspec.structs.asdict(wanted)
    return answer_page(request, "customers", customers, limit, show=view, id_of=lambda each: each.id, query=asked)
