"""Removes a stored customer: nothing is charged with it any more, and its token is destroyed."""

from payrelay.core.answers import Answer
from payrelay.flows.customers.erase_customer import remove
from payrelay.flows.customers.show_customer import answer_of, visible_customer
from payrelay.flows.relay import Relay, Request


async def remove_customer(relay: Relay, request: Request, customer_id: str) -> Answer:
    """Answers with what is left of the customer; may be repeated.

    A charge that was begun before goes on. Raises Refusal (not_found) for one that the caller may not see.
    """
    return answer_of(await remove(relay, await visible_customer(relay, request, customer_id)))
