"""What differs between programs with and without an event loop: sending, sleeping, and calling what blocks."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import TypeVar

import anyio
import anyio.to_thread
import httpx

from payrelay_client.wire import ANSWER_BYTES_MAX, RawReply, SendFailed, failure_of, fields_of

Result = TypeVar("Result")

HttpClient = httpx.AsyncClient
Credential = str | Callable[[], str | Awaitable[str]]


async def sleep(seconds: float) -> None:
    """Pauses this task."""
    await anyio.sleep(seconds)


async def in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Calls what blocks, such as a store, without stopping the event loop."""
    return await anyio.to_thread.run_sync(lambda: function(*arguments))


async def credential_of(credential: Credential) -> str:
    """Gives the credential, or calls the function that gives one."""
    if isinstance(credential, str):
        return credential
    given = credential()
    return await given if isawaitable(given) else given


async def exchange(http: HttpClient, request: httpx.Request, timeout_s: float) -> RawReply:
    """Sends a request and reads its whole answer; raises SendFailed, also where that takes longer than allowed."""
    try:
        with anyio.fail_after(timeout_s):
            response = await http.send(request, stream=True, follow_redirects=False)
            try:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > ANSWER_BYTES_MAX:
                        raise SendFailed.too_long()
            finally:
                await response.aclose()
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise failure_of(error) from error
    return RawReply(response.status_code, fields_of(response.headers), bytes(body))


@asynccontextmanager
async def streaming(http: HttpClient, request: httpx.Request) -> AsyncIterator[tuple[RawReply, AsyncIterator[str]]]:
    """Gives the head of an answer with its lines as they come; of another status than 200, all of it and no lines.

    Raises SendFailed, also while the lines come.
    """
    try:
        response = await http.send(request, stream=True, follow_redirects=False)
        try:
            body = b"" if response.status_code == httpx.codes.OK else await _refusal(response)
            yield RawReply(response.status_code, fields_of(response.headers), body), response.aiter_lines()
        finally:
            await response.aclose()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise failure_of(error) from error


async def _refusal(response: httpx.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > ANSWER_BYTES_MAX:
            raise SendFailed.too_long()
    return bytes(body)
