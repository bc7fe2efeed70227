"""The router behind a socket: from its start to the signal that ends it."""

import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.partitions.partition_double import body_of, partition_at

from payrelay.api.http.request_log import json_log
from payrelay.clock import Clock
from payrelay.errors import SettingsError
from payrelay.partitions.route import route
from payrelay.settings import Settings


class Log(io.BytesIO):
    """Keeps lines, and tells when one with an event's name has come."""

    def __init__(self) -> None:
        super().__init__()
        self.grown = asyncio.Event()

    def flush(self) -> None:
        """Tells of new lines."""
        self.grown.set()

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Gives the lines of an event."""
        found = [json.loads(line) for line in self.getvalue().splitlines()]
        return [line for line in found if line["event"] == event]

    async def awaited(self, event: str) -> dict[str, Any]:
        """Waits for a line of an event."""
        async with asyncio.timeout(30):
            while not self.lines(event):
                self.grown.clear()
                await self.grown.wait()
        return self.lines(event)[0]


@asynccontextmanager
async def routed(**more: object) -> AsyncIterator[tuple[str, Log, asyncio.Task[None]]]:
    """Routes to one partition; gives the address, the log and the task, which ends with the context."""
    async with partition_at() as east:
        partitions = {"east": {"address": east.address, "accounts": "shop"}}
        log = Log()
        settings = Settings.model_validate({"partitions": partitions, **more})
        routing = asyncio.create_task(route(settings, "127.0.0.1", 0, json_log(log, Clock())))
        try:
            yield (await log.awaited("routing"))["address"], log, routing
        finally:
            if not routing.done():
                os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(30):
                await routing


async def asked(address: str, path: str) -> bytes:
    """Sends a GET over a connection of its own; gives the whole answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return answer


async def test_it_routes_until_a_signal_and_then_ends(unused_tcp_port: int) -> None:
    """The line of the start tells where it listens, and a stop is clean: nothing under way is cut."""
    metrics = ("127.0.0.1", unused_tcp_port)
    async with routed(metrics_address=f"{metrics[0]}:{metrics[1]}") as (address, log, routing):
        assert body_of(await asked(address, "/shop/api/x")) == {"is": "done  "}
        shown = (await asked(f":{unused_tcp_port}", "/metrics")).decode()
        assert 'payrelay_router_partition_ready{partition="east"} 1.0' in shown
        assert 'payrelay_router_requests_total{outcome="answered",partition="east"} 1.0' in shown
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await routing
        assert log.lines("routing")[0]["partitions"] == ["east"]
        assert [line["has_finished"] for line in log.lines("stopping")] == [True]


async def test_a_stop_is_announced_before_it_comes() -> None:
    """A balancer sees that it is not ready, and sends nobody any more, while those who come are still answered.

    A second signal is a person who doesn't want to wait.
    """
    async with routed(shutdown_delay=300) as (address, _, routing):
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            while b" 503 " not in await asked(address, "/health/ready"):
                pass
        assert body_of(await asked(address, "/shop/api/x")) == {"is": "done  "}
        assert not routing.done()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await routing


async def test_a_router_without_partitions_does_not_start() -> None:
    """It would answer 404 to everybody, which looks like an installation without accounts."""
    with pytest.raises(SettingsError, match="PAYRELAY_PARTITIONS__A__ADDRESS"):
        await route(Settings.model_validate({}), "127.0.0.1", 0, json_log(io.BytesIO(), Clock()))
