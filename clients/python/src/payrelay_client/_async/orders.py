"""Orders: what was paid, held, given back, charged back and left of each."""

from payrelay_client import requests
from payrelay_client._async.sending import Sender
from payrelay_client.models import Order


class AsyncOrders:
    """What Payrelay knows of the money of orders, without asking the gateway."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def show(self, order_id: str) -> Order:
        """Gives the balance of an order, with its payments, operations and pages.

        Look at ``is_certain`` before you decide by a figure; ``doubts`` says what isn't certain. Raises NotFound where
        nothing is known of the order, and PayrelayError.
        """
        reply = await self._sender.ask(requests.get(f"/orders/{requests.segment(order_id)}"))
        return Order.of(reply.data)
