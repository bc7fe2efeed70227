"""Holds a response until the outcome of an operation is known, for a client that prefers to wait (``Prefer: wait``).

Rules:

1. Waiting sends no effect, and does not change what becomes of the operation. It only begins a status inquiry sooner.
2. The answer after the wait is byte for byte the answer that a repeat would get at that moment.
3. A client that disconnects, the end of the client's time and a stop of the program end only the wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import msgspec

from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer, Trace, failed
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.operation_answers import stored_answer
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code, StillRunning, StoreError
from payrelay.flows.payments.find_operations import show_operation
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.resolve import inquire_now
from payrelay.runtime.held_responses import HELD_STATES, HeldResponse

WAIT_S_MAX: Final = 60
"""The longest that a response is held. Proxies on the way may close a connection that is silent for longer."""


class WaitPreference(msgspec.Struct, frozen=True, kw_only=True):
    """How long a client prefers to wait.

    Attributes:
        wait_s: the seconds that the client asked for, at most WAIT_S_MAX.
        arrived_ms: when the request came in.
        until_s: when the client's time is over, by ``clock.boot_s``.
        gone: returns when the client has disconnected.
    """

    wait_s: int
    arrived_ms: int
    until_s: float
    gone: Callable[[], Awaitable[object]]

    @property
    def header(self) -> tuple[str, str]:
        """The header that tells the client that its preference was applied."""
        return "Preference-Applied", f"wait={self.wait_s}"


async def answer_when_known(
    relay: Relay, request: Request, wait_preference: WaitPreference, run_flow: Callable[[], Awaitable[Answer]]
) -> Answer:
    """Runs a flow once, and holds its answer while the outcome is open, or the first request of a repeat is under way.

    Raises Refusal as the flow does; StillRunning when the first request outlasts the client's time.
    """
    try:
        answer = await run_flow()
    except StillRunning as running:
        if not await _wait(relay, running.running_id, wait_preference):
            raise
        later = await _current_answer(relay, request, running.running_id)
        if later is None:
            running.headers = (*running.headers, wait_preference.header)
            raise
        return _applied(later, wait_preference)
    operation_id = dict(answer.headers).get(OPERATION_HEADER)
    if answer.http_status != HTTPStatus.ACCEPTED or operation_id is None:
        return _applied(answer, wait_preference)
    if not await _wait(relay, operation_id, wait_preference):
        return answer
    later = await _current_answer(relay, request, operation_id, since_ms=wait_preference.arrived_ms)
    return _applied(later or answer, wait_preference)


async def show_when_final(relay: Relay, request: Request, operation_id: str, wait_preference: WaitPreference) -> Answer:
    """Answers with one operation once it is final or needs an operator, at the latest when the client's time is over.

    Raises Refusal (not_found) at once for an operation that the caller may not see.
    """
    answer = await show_operation(relay, request, operation_id)
    if not await _wait(relay, operation_id, wait_preference):
        return answer
    return _applied(await show_operation(relay, request, operation_id), wait_preference)


async def _wait(relay: Relay, operation_id: str, wait_preference: WaitPreference) -> bool:
    """Waits for the outcome, the end of the client's time or its disconnection; False where no slot is free."""
    left_s = wait_preference.until_s - relay.clock.boot_s()
    with relay.held_responses.slot(operation_id) as held_response:
        if held_response is None:
            return False
        if left_s <= 0:
            return True
        disconnect = asyncio.ensure_future(wait_preference.gone())
        tasks = {asyncio.create_task(_poll(relay, operation_id, held_response)), disconnect}
        try:
            await asyncio.wait(tasks, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return True


async def _poll(relay: Relay, operation_id: str, held_response: HeldResponse) -> None:
    """Reads the operation again and again for changes by other processes, until the wait is over.

    The first poll inquires at the gateway out of turn. Later inquiries keep to the schedule, so that many waiting
    clients don't use up the gateway's budget of calls.
    """
    is_first = True
    try:
        while not held_response.is_over:
            operation = None
            if held_response.takes_turn():
                with suppress(StoreError):
                    operation = await relay.journal.get(operation_id)
            if operation is not None and operation.state not in HELD_STATES:
                held_response.end()
            elif operation is not None and is_first:
                is_first = False
                inquire_now(relay, operation)
            await held_response.pause()
    except Exception:  # our own mistake ends the wait; the answer is true all the same
        relay.log.exception("waiting_failed", operation_id=operation_id)


async def _current_answer(
    relay: Relay, request: Request, operation_id: str, *, since_ms: int | None = None
) -> Answer | None:
    """Returns the answer to an operation's request now; None while it is under way, or where the store fails.

    The answer is marked as a replay unless this request began the operation: the operation has this request's id, and
    was not created before ``since_ms``, because a repeat may have the same id. ``since_ms`` is None for a repeat.
    """
    try:
        operation = await relay.journal.get(operation_id)
        answer = await relay.journal.answer_of(operation_id)
    except StoreError:
        return None
    if operation is None or operation.state in {State.ACCEPTED, State.SENDING}:
        return None
    if operation.state is State.NOT_SENT:
        return _not_sent(operation, request)
    current = stored_answer(operation, answer, operation.fingerprint, request.request_id)
    if since_ms is not None and operation.request_id == request.request_id and operation.created_at_ms >= since_ms:
        first_headers = tuple(header for header in current.headers if header != REPLAYED)
        current = msgspec.structs.replace(current, headers=first_headers)
    return current


def _not_sent(operation: Operation, request: Request) -> Answer:
    """Answers that nothing was sent; the client decides about a second attempt, for Payrelay makes none by itself."""
    trace = Trace(request_id=request.request_id, operation_id=operation.id)
    answer = failed(Code.UNAVAILABLE, STATE_SENTENCES[State.NOT_SENT], trace)
    return msgspec.structs.replace(answer, headers=((OPERATION_HEADER, operation.id),))


def _applied(answer: Answer, wait_preference: WaitPreference) -> Answer:
    return msgspec.structs.replace(answer, headers=(*answer.headers, wait_preference.header))
