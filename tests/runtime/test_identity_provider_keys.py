"""A provider's keys: fetched when they are needed, at a bounded pace, and kept while the provider is down."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import structlog
from joserfc.jwk import ECKey
from structlog.testing import LogCapture
from tests.flows.world import HandClock

from payrelay.errors import Code, Refusal
from payrelay.runtime.identity_provider_keys import (
    ANSWER_BYTES_MAX,
    ASKED_AGAIN_S,
    KEPT_S,
    LAST_GOOD_S,
    FetchError,
    IdentityProviderKeys,
    Jwks,
)


def jwks(*names: str) -> bytes:
    """Writes a set of keys with these ids."""
    keys = [ECKey.generate_key("P-256", {"kid": name}).as_dict(private=False) for name in names]
    return json.dumps({"keys": keys}).encode()


class Provider:
    """Answers as it is configured, and counts."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked = 0
        self.opened = asyncio.Event()
        self.opened.set()

    async def __call__(self) -> bytes:
        """Gives the answer, once it may."""
        self.asked += 1
        await self.opened.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Shelf:
    """Keys, the provider that they come from, the clock and the log."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.clock = HandClock()
        self.provider = Provider(answer)
        self.log = LogCapture()
        logger = structlog.wrap_logger(None, processors=[self.log])
        self.keys = IdentityProviderKeys(self.provider, self.clock, logger)

    def later(self, seconds: float) -> None:
        """Lets time pass."""
        self.clock.passed_ms += int(seconds * 1000)

    async def has(self, name: str) -> bool:
        """True where the key is there; whatever is fetched behind its back has come by then."""
        found = await self.keys.find(name) is not None
        for _ in range(3):
            await asyncio.sleep(0)
        return found


async def test_one_fetch_serves_all_who_wait() -> None:
    """A thousand apps that wake up together cause one fetch."""
    shelf = Shelf(jwks("a"))
    shelf.provider.opened.clear()
    waiting = [asyncio.ensure_future(shelf.keys.find("a")) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # one who goes away ends its own wait alone
    shelf.provider.opened.set()

    assert all([await each is not None for each in waiting[1:]])
    assert shelf.provider.asked == 1


async def test_unknown_keys_cause_fetches_at_a_limited_rate() -> None:
    """A provider's new key is found at once; made-up ones ask for it ten times a minute at most."""
    shelf = Shelf(jwks("a"))
    assert await shelf.has("a")
    shelf.provider.answer = jwks("a", "b")
    assert not await shelf.has("b")  # it has just been asked
    shelf.later(ASKED_AGAIN_S)

    assert await shelf.has("b")
    for number in range(50):
        assert not await shelf.has(f"made-up-{number}")
    assert shelf.provider.asked == 2


async def test_keys_are_fetched_again_while_the_cached_ones_serve() -> None:
    """Nobody waits for it; what the provider has withdrawn is gone from then on."""
    shelf = Shelf(jwks("a"))
    assert await shelf.has("a")
    shelf.provider.answer = jwks("b")
    shelf.later(KEPT_S)

    assert await shelf.has("a")
    assert shelf.provider.asked == 2
    assert not await shelf.has("a")
    assert await shelf.has("b")


@pytest.mark.parametrize(
    "failure",
    [
        FetchError("the address could not be reached"),
        b"<html>",
        b"{}",
        b'{"keys": []}',
        b'{"keys": 5}',
        pytest.param(b'{"keys":' + b"[" * 100_000, id="nested"),
    ],
)
async def test_the_last_good_keys_serve_while_the_provider_is_down(failure: bytes | Exception) -> None:
    """Nobody is shut out by somebody else's failure; but a day later nothing is known any more."""
    shelf = Shelf(jwks("a"))
    assert await shelf.has("a")
    shelf.provider.answer = failure
    shelf.later(LAST_GOOD_S - 1)
    assert await shelf.has("a")
    assert shelf.log.entries[-1]["event"] == "identity_provider_keys_not_fetched"
    shelf.later(ASKED_AGAIN_S)

    with pytest.raises(Refusal) as raised:
        await shelf.has("a")
    assert raised.value.code is Code.UNAVAILABLE


async def test_without_any_keys_no_token_is_called_invalid() -> None:
    """401 would tell an app to throw its token away, when it is we who can't tell; and we ask again soon."""
    shelf = Shelf(FetchError("the address could not be reached"))
    for _ in range(3):
        with pytest.raises(Refusal) as raised:
            await shelf.has("a")
        assert raised.value.code is Code.UNAVAILABLE
    assert shelf.provider.asked == 1
    shelf.provider.answer = jwks("a")
    shelf.later(ASKED_AGAIN_S)

    assert await shelf.has("a")


async def test_a_fetch_ends_with_the_program() -> None:
    """A stop waits for no provider."""
    shelf = Shelf(jwks("a"))
    shelf.provider.opened.clear()
    waiting = asyncio.ensure_future(shelf.keys.find("a"))
    await asyncio.sleep(0)
    await shelf.keys.close()

    with pytest.raises(Refusal):
        await waiting


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    """Serves one answer at an address of this machine."""

    class Conversation(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Conversation)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/jwks"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_an_answer_is_fetched_as_it_is() -> None:
    """Byte for byte; who reads it decides."""
    with serving(200, jwks("a")) as url:
        assert b'"kid": "a"' in await Jwks(url)()


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [(302, b"", "HTTP 302"), (500, b"", "HTTP 500"), (200, b"x" * (ANSWER_BYTES_MAX + 1), "bytes")],
)
async def test_another_answer_is_none(status: int, body: bytes, why: str) -> None:
    """No redirect is followed, and nobody fills our memory."""
    with serving(status, body) as url, pytest.raises(FetchError, match=why):
        await Jwks(url)()


async def test_an_unreachable_address_is_described_in_our_words() -> None:
    """An address may hold what isn't for the log."""
    with serving(200, b"") as url:
        pass
    with pytest.raises(FetchError, match="could not be reached"):
        await Jwks(url)()
