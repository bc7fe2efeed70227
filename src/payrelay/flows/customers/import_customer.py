"""Imports a gateway's customer token that the merchant has already, as a stored customer."""

from payrelay.core.answers import Answer
from payrelay.core.customers.customer import Approval, ExistingApproval, is_handle
from payrelay.core.views import with_members_of
from payrelay.errors import wrong_field
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.customers.show_customer import answer_of
from payrelay.flows.relay import Relay, Request


async def import_customer(relay: Relay, request: Request, existing: ExistingApproval) -> Answer:
    """Answers with the customer, and never with the token; an equal token is the same customer.

    Payrelay doesn't ask the gateway whether it knows the token: the first charge shows that.
    Raises Refusal (invalid_request) for a handle in place of a token.
    """
    if is_handle(existing.token.reveal()):
        raise wrong_field("customer_token", "is the handle of a stored customer, and not a gateway's token")
    approval = with_members_of(
        existing,
        Approval,
        account=request.account,
        merchant=request.gateway.merchant,
        principal=request.principal,
        order_id=None,
    )
    return answer_of(await approve(relay, approval))
