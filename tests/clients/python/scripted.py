"""A service of a few lines: it gives the answers that a test has written, and remembers what it was asked."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import httpx

from payrelay_client import AsyncPayrelay, Limits, Payrelay, Store, Waiting

ADDRESS = "https://pay.example.com/gateway/api"
FAST = Limits(pause_s=0, pause_max_s=0.001, wait_s=0)
Answer = httpx.Response | Exception


def answer(status: int, data: object = None, *, code: str = "", retry: str = "never", **headers: str) -> httpx.Response:
    """An envelope of the service's; an error where there is a code."""
    envelope: dict[str, object] = {"status": {200: 1, 202: 0}.get(status, -1), "msg": code or "OK", "data": data}
    if code:
        envelope["error"] = {"code": code, "retry": retry, "request_id": "req_1"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, text=json.dumps(envelope))


def lost() -> httpx.RemoteProtocolError:
    """A reply that never comes, although the service may have had the request."""
    return httpx.RemoteProtocolError("Server disconnected without sending a response.")


@dataclass
class Service:
    """What it answers, one after the other, and the requests that it got.

    Attributes:
        answers: what is given; a function is asked with the request.
        requests: all requests, in their order.
        waits: why the client waited.
    """

    answers: list[Answer]
    requests: list[httpx.Request] = field(default_factory=list)
    waits: list[Waiting] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Gives the next answer."""
        self.requests.append(request)
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    @property
    def paths(self) -> list[str]:
        """Method and path of each request."""
        return [f"{each.method} {each.url.raw_path.decode().removeprefix('/gateway/api')}" for each in self.requests]

    @property
    def keys(self) -> list[str | None]:
        """The Idempotency-Key of each POST and DELETE."""
        return [each.headers.get("idempotency-key") for each in self.requests if each.method != "GET"]


@contextmanager
def client_of(
    *answers: Answer,
    store: Store | None = None,
    limits: Limits = FAST,
    credential: str | Callable[[], str] = "prk_sandbox_1",
) -> Iterator[tuple[Payrelay, Service]]:
    """A client of such a service."""
    service = Service(list(answers))
    with httpx.Client(transport=httpx.MockTransport(service)) as http:
        yield (
            Payrelay(ADDRESS, credential, store=store, limits=limits, on_wait=service.waits.append, http=http),
            service,
        )


def run_async(
    answers: Sequence[Answer], call: Callable[[AsyncPayrelay], object], store: Store | None = None
) -> Service:
    """Makes a call by the client for event loops."""
    service = Service(list(answers))

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(service)) as http:
            made = call(AsyncPayrelay(ADDRESS, "prk_sandbox_1", store=store, limits=FAST, http=http))
            await made  # type: ignore[misc]

    anyio.run(main)
    return service
