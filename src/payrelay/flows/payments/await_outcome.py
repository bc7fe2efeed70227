"""Holds an answer back until what became of an operation is known, for a client that would rather wait than ask again.

Rules:

1. Waiting changes nothing: the operation goes its way whether anybody waits or not, and nothing is sent by it.
2. What is told after the wait is what a repeat would be told at that moment, byte for byte.
3. A client that goes away, the end of its patience and a stop of the program end the wait, and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import msgspec

from payrelay.core.answers import OPERATION_HEADER, REPLAYED, Answer, Trace, failed
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code, StillRunning, StoreError
from payrelay.flows.payments.answer_repeat import repeated
from payrelay.flows.payments.find_operations import show_operation
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.resolve import inquire_now
from payrelay.runtime.held_responses import AWAITED, HeldResponse
from payrelay.store.payments.journal import ClaimedOperation

WAIT_S_MAX: Final = 60
"""The longest that an answer is held: as long as proxies on the way leave a silent connection alone."""


class WaitPreference(msgspec.Struct, frozen=True, kw_only=True):
    """How long a client waits.

    Attributes:
        wait_s: what it asked for, at most WAIT_S_MAX.
        arrived_ms: when its request came in.
        until_s: when its patience is over, by ``clock.boot_s``.
        gone: returns when it has gone away.
    """

    wait_s: int
    arrived_ms: int
    until_s: float
    gone: Callable[[], Awaitable[object]]

    @property
    def header(self) -> tuple[str, str]:
        """What tells the client that its wish was granted."""
        return "Preference-Applied", f"wait={self.wait_s}"


async def answer_when_known(
    relay: Relay, request: Request, wait_preference: WaitPreference, ask: Callable[[], Awaitable[Answer]]
) -> Answer:
    """Tells a story once, and holds its answer while what became of it is open or the same request is under way.

    Raises Refusal as the story does; StillRunning when the first request outlasts the client's patience.
    """
    try:
        answer = await ask()
    except StillRunning as running:
        if not await _wait(relay, running.running_id, wait_preference):
            raise
        later = await _present(relay, request, running.running_id)
        if later is None:
            running.headers = (*running.headers, wait_preference.header)
            raise
        return _applied(later, wait_preference)
    operation_id = dict(answer.headers).get(OPERATION_HEADER)
    if answer.http_status != HTTPStatus.ACCEPTED or operation_id is None:
        return _applied(answer, wait_preference)
    if not await _wait(relay, operation_id, wait_preference):
        return answer
    return _applied(
        await _present(relay, request, operation_id, since_ms=wait_preference.arrived_ms) or answer, wait_preference
    )


async def show_when_final(relay: Relay, request: Request, operation_id: str, wait_preference: WaitPreference) -> Answer:
    """Answers with one operation once it is settled, or as it stands when the client's patience is over.

    Raises Refusal (not_found) at once for one that the caller may not see.
    """
    answer = await show_operation(relay, request, operation_id)
    if not await _wait(relay, operation_id, wait_preference):
        return answer
    return _applied(await show_operation(relay, request, operation_id), wait_preference)


async def _wait(relay: Relay, operation_id: str, wait_preference: WaitPreference) -> bool:
    """Returns when nothing more is awaited of the operation, or nobody waits; False where there is no room to."""
    left_s = wait_preference.until_s - relay.clock.boot_s()
    with relay.held_responses.slot(operation_id) as vigil:
        if vigil is None:
            return False
        if left_s <= 0:
            return True
        leaving = asyncio.ensure_future(wait_preference.gone())
        tasks = {asyncio.create_task(_hooks(relay, operation_id, vigil)), leaving}
        try:
            await asyncio.wait(tasks, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return True


async def _hooks(relay: Relay, operation_id: str, vigil: HeldResponse) -> None:
    """Looks for changes by other processes, until the vigil is over.

    At first the gateway is looked at too, out of turn, because somebody asks; after that only by schedule, so that many
    who wait don't take the gateway's budget from those who pay.
    """
    is_first = True
    try:
        while not vigil.is_over:
            operation = await _read(relay, operation_id) if vigil.takes_turn() else None
            if operation is not None and operation.state not in AWAITED:
                vigil.end()
            elif operation is not None and is_first:
                is_first = False
                inquire_now(relay, operation)
            await vigil.pause()
    except Exception:  # our own mistake ends the wait; what is told then is as true as without it
        relay.log.exception("waiting_failed", operation_id=operation_id)


async def _present(relay: Relay, request: Request, operation_id: str, *, since_ms: int | None = None) -> Answer | None:
    """Gives what is to be told of an operation now; None where it is under way, or the store can't say.

    It is marked as a replay unless this very request began the operation: under its own id, and not before
    ``since_ms``, because a repeat may come with the same id. None is for a request that is known to be a repeat.
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
    told = repeated(ClaimedOperation(operation, answer), request, operation.fingerprint)
    if since_ms is not None and operation.request_id == request.request_id and operation.created_at_ms >= since_ms:
        told = msgspec.structs.replace(told, headers=tuple(header for header in told.headers if header != REPLAYED))
    return told


def _not_sent(operation: Operation, request: Request) -> Answer:
    """Says that nothing was done; whether to try anew is for the client, who was promised no second attempt."""
    trace = Trace(request_id=request.request_id, operation_id=operation.id)
    answer = failed(Code.UNAVAILABLE, STATE_SENTENCES[State.NOT_SENT], trace)
    return msgspec.structs.replace(answer, headers=((OPERATION_HEADER, operation.id),))


async def _read(relay: Relay, operation_id: str) -> Operation | None:
    try:
        return await relay.journal.get(operation_id)
    except StoreError:
        return None


def _applied(answer: Answer, wait_preference: WaitPreference) -> Answer:
    return msgspec.structs.replace(answer, headers=(*answer.headers, wait_preference.header))
