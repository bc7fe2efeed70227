"""Clients in numbers: all at one moment, or one after the other for a while; each repeats what it may repeat."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from tests.matrix.deeds import Ask, charging
from tests.scenarios.http_client import encode

ANSWER_S_MAX: Final = 60.0
AGAIN_AFTER_S: Final = 0.2
"""A client's pause before it repeats what was answered 409 or 503, or not at all."""
REPEATS_MAX: Final = 200
ENOUGH: Final = frozenset({200, 202})
"""Answers after which a client doesn't repeat."""


@dataclass(frozen=True, kw_only=True)
class Heard:
    """One answer; a status of 0 is none, and ``error`` says what came instead."""

    ask: Ask
    status: int
    body: bytes = b""
    error: str = ""
    elapsed_s: float = 0.0


class Callers:
    """Callers of several services, each call on a connection of its own."""

    def __init__(self, web: aiohttp.ClientSession, ports: Sequence[int], key: str) -> None:
        self.ports = list(ports)
        self.under_way: Counter[int] = Counter()
        """How many requests each port has not answered yet."""
        self._web = web
        self._key = key

    async def send(self, ask: Ask, number: int) -> Heard:
        """Sends a request to the service whose turn it is."""
        began_s = time.monotonic()
        port = self.ports[number % len(self.ports)]
        address = f"http://127.0.0.1:{port}/gateway/api/{ask.path}"
        headers = {"Authorization": f"Bearer {self._key}", "Idempotency-Key": ask.key}
        headers["Content-Type"] = "application/json"
        self.under_way[port] += 1
        try:
            content = None if ask.body is None else encode(ask.body).encode()
            async with self._web.request(ask.method, address, data=content, headers=headers) as response:
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return Heard(ask=ask, status=0, error=f"{type(error).__name__}: {error}")
        finally:
            self.under_way[port] -= 1
        return Heard(ask=ask, status=status, body=body, elapsed_s=time.monotonic() - began_s)

    async def charge_until(self, stop: asyncio.Event, number: int, heard: list[Heard]) -> None:
        """Charges one order after the other until told to stop, and brings each to its end, wherever that may be."""
        while not stop.is_set():
            ask = charging()
            for turn in range(REPEATS_MAX):
                answer = await self.send(ask, number + turn)
                heard.append(answer)
                if answer.status in ENOUGH:
                    break
                await asyncio.sleep(AGAIN_AFTER_S)  # a client's pause


@asynccontextmanager
async def callers(ports: Sequence[int], key: str) -> AsyncIterator[Callers]:
    """Gives callers of the services."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_S_MAX)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=timeout) as web:
        yield Callers(web, ports, key)


async def send_all(asks: Sequence[Ask], ports: Sequence[int], key: str) -> list[Heard]:
    """Sends all of them at the same moment, to the services in turn."""
    async with callers(ports, key) as group:
        return await asyncio.gather(*(group.send(ask, number) for number, ask in enumerate(asks)))


@asynccontextmanager
async def charging_on(group: Callers, clients: int, heard: list[Heard]) -> AsyncIterator[None]:
    """Lets so many clients charge while the context is open, and then bring to an end what they have begun."""
    stop = asyncio.Event()
    tasks = [asyncio.ensure_future(group.charge_until(stop, number, heard)) for number in range(clients)]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
