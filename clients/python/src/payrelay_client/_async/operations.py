"""Operations: what was asked of the gateway, and what became of it. And the recovery after a loss of commits."""

from collections.abc import AsyncIterator

from payrelay_client import requests
from payrelay_client._async.following import By, Follower
from payrelay_client._async.sending import Sender
from payrelay_client.errors import Busy
from payrelay_client.models import Operation, OperationDetail, Recovery
from payrelay_client.replies import Reply, error_of


class AsyncOperations:
    """Operations of one's own."""

    def __init__(self, sender: Sender, follower: Follower) -> None:
        self._sender = sender
        self._follower = follower

    async def list(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        order_id: str | None = None,
        payment_id: str | None = None,
        subscription_id: str | None = None,
        customer_id: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Operation]:
        """Gives operations, newest first, page by page."""
        query = {
            "state": state,
            "kind": kind,
            "order_id": order_id,
            "payment_id": payment_id,
            "subscription_id": subscription_id,
            "customer_id": customer_id,
            "limit": limit,
        }
        async for each in self._sender.pages(requests.get("/operations", query)):
            yield Operation.of(each)

    async def show(self, operation_id: str) -> OperationDetail:
        """Gives an operation with its history."""
        reply = await self._sender.ask(requests.get(f"/operations/{requests.segment(operation_id)}"))
        return OperationDetail.of(reply.data)

    async def by_key(self, key: str) -> OperationDetail:
        """Gives the newest operation under an Idempotency-Key."""
        reply = await self._sender.ask(requests.get(f"/operations/by-key/{requests.segment(key)}"))
        return OperationDetail.of(reply.data)

    async def follow(self, operation_id: str, *, by: By = "wait") -> OperationDetail:
        """Gives the operation once it is final or a person must decide it.

        Raises Busy where neither comes within the limits, and PayrelayError where it can't be read.
        """
        end = await self._follower.follow(operation_id, self._sender.budget(), by)
        if isinstance(end, OperationDetail):
            return end
        if isinstance(end, Reply) and end.is_final and not end.error:
            raise Busy("the operation isn't final yet", code="in_progress", operation_id=operation_id)
        raise error_of(end)


class AsyncRecoveryCalls:
    """Whether the service lost commits of its database."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def show(self) -> Recovery:
        """Gives the newest state, and whether it is acknowledged."""
        return Recovery.of((await self._sender.ask(requests.get("/recovery"))).data)

    async def acknowledge(self, incarnation: int) -> Recovery:
        """Says that every request of the lost time that got no answer was repeated, or never will be."""
        request = requests.post("/recovery/acknowledgement", {"incarnation": incarnation})
        return Recovery.of((await self._sender.ask(request)).data)
