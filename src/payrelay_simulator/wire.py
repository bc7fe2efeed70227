"""The merchant API over HTTP: reads a request, asks the world, and carries the answer as far as a fault lets it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from payrelay_simulator.faults import How
from payrelay_simulator.hangs import Hangs
from payrelay_simulator.listener import reset
from payrelay_simulator.reply import Reply, protocol_failure
from payrelay_simulator.stage import Stage
from payrelay_simulator.world import Call, Outcome

# Far above any request of the protocol.
BODY_BYTES_MAX = 1024 * 1024

# How long the listening socket stays closed where a refusing fault does not say.
REFUSE_S_DEFAULT = 1.0


class Wire:
    """Handles every request to the imitated gateway."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._carriers: Mapping[How, Callable[[web.Request, Outcome], Awaitable[web.StreamResponse]]] = {
            "whole": _carry_whole,
            "hang": self._hang,
            "cut": _cut,
            "half": _carry_half,
            "drip": _drip,
            "refuse": self._refuse,
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, or leave it without an answer."""
        arrived_monotonic_s = time.monotonic()
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _response(protocol_failure(413, "the body is too large"))
        call = Call(
            method=request.method,
            path=request.rel_url.raw_path,
            query=request.rel_url.raw_query_string,
            authorization=_authorization(request),
            content_type=request.headers.get("Content-Type", ""),
            body=body,
            arrived_monotonic_s=arrived_monotonic_s,
        )
        # The effect is complete before anything is carried; a client that leaves from here on changes nothing.
        outcome = self._stage.world.handle(call)
        self._stage.changed()
        return await self._carriers[outcome.how](request, outcome)

    @property
    def _hangs(self) -> Hangs:
        return self._stage.hangs

    async def _hang(self, request: web.Request, outcome: Outcome) -> web.StreamResponse:
        await self._hangs.wait(outcome.args.wait_s)
        if outcome.reply is None or outcome.args.wait_s is None:
            return await _cut(request, outcome)
        return _response(outcome.reply)

    async def _refuse(self, request: web.Request, outcome: Outcome) -> web.StreamResponse:
        if self._stage.listener.is_open:
            self._stage.listener.close_for(outcome.args.wait_s or REFUSE_S_DEFAULT, keep=request.transport)
        return await _cut(request, outcome)


async def _carry_whole(_request: web.Request, outcome: Outcome) -> web.StreamResponse:
    if outcome.reply is None:
        raise RuntimeError("nothing to say is said by cutting")
    return _response(outcome.reply)


async def _cut(request: web.Request, outcome: Outcome) -> web.StreamResponse:
    """End the connection without a byte; what aiohttp would still write goes nowhere."""
    transport = request.transport
    if transport is not None and outcome.args.is_reset:
        reset(transport)
    elif transport is not None:
        transport.close()
    return web.Response()


async def _carry_half(request: web.Request, outcome: Outcome) -> web.StreamResponse:
    body, response = await _begun(request, outcome)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _drip(request: web.Request, outcome: Outcome) -> web.StreamResponse:
    body, response = await _begun(request, outcome)
    for position in range(len(body)):
        await response.write(body[position : position + 1])
        await asyncio.sleep(outcome.args.pause_s)
    return response


async def _begun(request: web.Request, outcome: Outcome) -> tuple[bytes, web.StreamResponse]:
    """Send the head of the answer and return its body, to be sent in pieces."""
    if outcome.reply is None:
        raise RuntimeError("there is no answer to begin")
    body = outcome.reply.encoded()
    response = web.StreamResponse(status=outcome.reply.http_status, headers=_headers(outcome.reply))
    response.content_length = len(body)
    await response.prepare(request)
    return body, response


def _authorization(request: web.Request) -> str | None:
    """Return the header with bytes that are no text replaced: a refusal echoes it, and must itself be text."""
    value = request.headers.get("Authorization")
    return None if value is None else value.encode(errors="replace").decode()


def _response(reply: Reply) -> web.Response:
    return web.Response(status=reply.http_status, body=reply.encoded(), headers=_headers(reply))


def _headers(reply: Reply) -> dict[str, str]:
    return {**reply.headers, "Content-Type": reply.media_type}
