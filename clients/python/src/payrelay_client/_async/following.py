"""Follows an operation to its end: by waiting, by asking again, or by the stream of its events."""

import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final, Literal

from payrelay_client import requests
from payrelay_client._async.sending import Sender
from payrelay_client.errors import PayrelayError
from payrelay_client.events import EventLines
from payrelay_client.limits import Budget
from payrelay_client.models import Event, OperationDetail
from payrelay_client.outcomes import WITH_PERSON
from payrelay_client.replies import NoReply, Reply
from payrelay_client.wire import SendFailed

By = Literal["wait", "poll", "stream"]

ENDS: Final = frozenset(
    {f"operation.{state}" for state in ("succeeded", "declined", "refused", "failed", "not_sent", "needs_attention")}
    | {"operation.held"}
)
"""Events after which there is nothing more to follow."""


def is_ended(operation: OperationDetail) -> bool:
    """Tells whether an operation is final, or must be decided by a person."""
    return operation.is_final or operation.state in WITH_PERSON


class Follower:
    """Follows operations of one account."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def follow(self, operation_id: str, budget: Budget, by: By = "wait") -> OperationDetail | Reply | NoReply:
        """Gives the operation at its end, or when a person must decide it.

        Else gives why it can't be followed: an answer that refuses it, the last one where too many in a row failed, or
        one of status 200 where the budget is used up.
        """
        if by == "stream":
            await self._await_end_event(operation_id, budget)
        reads = failures = 0
        while True:
            got = await self._sender.once(self._read(operation_id, budget, by), budget)
            reads += 1
            if isinstance(got, Reply) and got.http_status == HTTPStatus.OK:
                failures = 0
                operation = OperationDetail.of(got.data)
                if is_ended(operation):
                    return operation
            elif got.is_final:
                return got
            else:
                failures += 1
            # An answer that was held has waited already.
            was_held = isinstance(got, Reply) and "preference-applied" in got.headers
            count = 1 if was_held else reads
            if failures >= self._sender.limits.tries or not await self._sender.pause(got, budget, count, operation_id):
                return got

    async def events(self, subject: str, budget: Budget, after: int | None = None) -> AsyncIterator[Event]:
        """Gives the events of a subject as they come, and goes on where the stream breaks.

        Ends with the budget. Raises PayrelayError where the stream is refused for good.
        """
        position, failures = after, 0
        while budget.left_s(time.monotonic()) > 0:
            headers = {"Accept": "text/event-stream"} | ({} if position is None else {"Last-Event-ID": str(position)})
            request = requests.Request(method="GET", path="/events/stream", query={"subject": subject}, headers=headers)
            got: Reply | NoReply
            try:
                async with self._sender.stream(request) as lines:
                    parsed = EventLines()
                    async for line in lines:
                        event = parsed.line(line)
                        if event is not None:
                            position, failures = event.position, 0
                            yield event
                        if budget.left_s(time.monotonic()) <= 0:
                            return
                got = NoReply(reason="no_answer", message="the stream has ended")
            except SendFailed as error:
                got = error.no_reply()
            except PayrelayError as error:
                if error.retry_after_s is None:
                    raise
                got = NoReply(reason=str(error.code), message=error.message, retry_after_s=error.retry_after_s)
            failures += 1
            if failures > self._sender.limits.tries or not await self._sender.pause(got, budget, failures):
                return

    async def _await_end_event(self, operation_id: str, budget: Budget) -> None:
        """Returns with the event of the end. A stream that is refused or used up is no matter: reads follow."""
        try:
            async for event in self.events(f"operation:{operation_id}", budget):
                if event.type in ENDS:
                    return
        except PayrelayError:
            return

    def _read(self, operation_id: str, budget: Budget, by: By) -> requests.Request:
        wait_s = 0 if by == "poll" else int(min(self._sender.limits.wait_s, budget.left_s(time.monotonic())))
        headers = {"Prefer": f"wait={wait_s}"} if wait_s else {}
        path = f"/operations/{requests.segment(operation_id)}"
        return requests.Request(method="GET", path=path, headers=headers)
