"""The step between a route and its story, for what is known here of subscriptions."""

from payrelay.api.routes.handlers import Asked
from payrelay.api.routes.parameters import PAGE_SIZE_USUAL
from payrelay.core.answers import Answer
from payrelay.core.calls import subscription_number
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.flows.subscriptions.show_subscription_states import list_subscription_states, show_subscription_state


async def some_subscription_states(relay: Relay, asked: Asked) -> Answer:
    """Lists subscriptions as they are known here."""
    limit = int(asked.query.get("limit", PAGE_SIZE_USUAL))
    return await list_subscription_states(relay, asked.request, after=asked.query.get("cursor", ""), limit=limit)


async def one_subscription_state(relay: Relay, asked: Asked) -> Answer:
    """Shows one subscription as it is known here."""
    number = subscription_number(asked.id)
    if number is None:
        raise Refusal(Code.NOT_FOUND, "there is no such subscription: its id is 1 to 19 digits")
    return await show_subscription_state(relay, asked.request, str(number))
