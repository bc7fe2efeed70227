"""Takes in a gateway's token that the merchant holds already, and keeps it as a stored customer."""

from payrelay.core.answers import Answer
from payrelay.core.customers.customer import Approval, ExistingApproval, is_handle
from payrelay.errors import wrong_field
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.customers.show_customer import answer_of
from payrelay.flows.relay import Relay, Request


async def import_customer(relay: Relay, request: Request, given: ExistingApproval) -> Answer:
    """Answers with the customer, and never with the token; the same token again is the same customer.

    Nobody is asked whether the gateway knows the token: the first charge will tell.
    Raises Refusal (invalid_request) for a handle in place of a token.
    """
    if is_handle(given.token.reveal()):
        raise wrong_field("customer_token", "is the handle of a stored customer, and not a gateway's token")
    approval = Approval(
        account=request.account,
        merchant=relay.account(request.account).merchant,
        principal=request.principal,
        reference=given.reference,
        token=given.token,
        method=given.method,
        card_no_masked=given.card_no_masked,
        card_expiry=given.card_expiry,
        card_holder=given.card_holder,
        order_id=None,
        label=given.label,
    )
    return answer_of(await approve(relay, approval))
