"""What differs between programs with and without an event loop: sending, sleeping, and calling what blocks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import httpx

from payrelay_client.wire import ANSWER_BYTES_MAX, RawReply, SendFailed, failure_of, fields_of

Result = TypeVar("Result")

HttpClient = httpx.Client
Credential = str | Callable[[], str]


def sleep(seconds: float) -> None:
    """Pauses this thread."""
    time.sleep(seconds)


def in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Calls what blocks, such as a store."""
    return function(*arguments)


def credential_of(credential: Credential) -> str:
    """Gives the credential, or calls the function that gives one."""
    return credential if isinstance(credential, str) else credential()


def exchange(http: HttpClient, request: httpx.Request, timeout_s: float) -> RawReply:
    """Sends a request and reads its whole answer; raises SendFailed, also where that takes longer than allowed.

    The time is looked at whenever something comes, and when nothing came for so long.
    """
    ends_s = time.monotonic() + timeout_s
    try:
        response = http.send(request, stream=True, follow_redirects=False)
        try:
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > ANSWER_BYTES_MAX:
                    raise SendFailed.too_long()
                if time.monotonic() > ends_s:
                    raise SendFailed.too_late()
        finally:
            response.close()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise failure_of(error) from error
    return RawReply(response.status_code, fields_of(response.headers), bytes(body))


@contextmanager
def streaming(http: HttpClient, request: httpx.Request) -> Iterator[tuple[RawReply, Iterator[str]]]:
    """Gives the head of an answer with its lines as they come; of another status than 200, all of it and no lines.

    Raises SendFailed, also while the lines come.
    """
    try:
        response = http.send(request, stream=True, follow_redirects=False)
        try:
            body = b"" if response.status_code == httpx.codes.OK else _refusal(response)
            yield RawReply(response.status_code, fields_of(response.headers), body), response.iter_lines()
        finally:
            response.close()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise failure_of(error) from error


def _refusal(response: httpx.Response) -> bytes:
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > ANSWER_BYTES_MAX:
            raise SendFailed.too_long()
    return bytes(body)
