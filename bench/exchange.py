"""Measures the CPU that one exchange with a gateway costs the service, beside aiohttp's client in the same run.

The gateway is a process of its own that answers from memory, so that its work isn't counted. The clients take turns.
The third is a bare protocol that reads nothing, as the floor. A round's figure is the CPU time of this process, divided
by the exchanges, and the medians are told. On a machine that others use, only the ratios say something.

    python bench/exchange.py [--rounds 9] [--exchanges 5000] [--at-once 1 16]
"""

import argparse
import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Final, cast

import aiohttp
import uvloop

from payrelay.clock import Clock
from payrelay.gateways.http.exchange import Reply
from payrelay.gateways.payhere.connections import GatewayConnections
from payrelay.gateways.payhere.wire.requests import WireRequest, headers_of

ASKED: Final = (
    b'{"type":"PAYMENT","order_id":"Order12345","items":"Taxi Hire","currency":"LKR","amount":345.67,'
    b'"customer_token":"e34f3059-7b7d-4b62-a57c-784beaa169f4","notify_url":"https://example.com/notify"}'
)
CALL: Final = WireRequest(method="POST", path="/merchant/v1/payment/charge", body=ASKED)
BODY: Final = (
    b'{"status":1,"msg":"Automatic payment charged successfully","data":{"order_id":"Order12345","items":"Taxi Hire",'
    b'"currency":"LKR","amount":345.67,"custom_1":null,"custom_2":null,"payment_id":320025021815,"status_code":2,'
    b'"status_message":"Successfully completed","md5sig":"1B9A4C4B8E9D5C0A6F4B2D3E1F0A9B8C"}}'
)
REPLY: Final = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Mon, 23 Nov 2026 03:00:00 GMT\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nConnection: keep-alive\r\n\r\n%b" % (len(BODY), BODY)
)
HEADERS: Final = headers_of("Bearer cb6b0a6f-6b0e-4e5e-8a7e-0f4b6c1d2e3f")
TIMEOUT_S: Final = 30.0
CLIENTS: Final = ("payrelay", "aiohttp", "bare")

Exchange = Callable[[], Awaitable[None]]


class Gateway(asyncio.Protocol):
    """Answers each request, which always comes as one piece."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, _: bytes) -> None:
        """Answers."""
        self._transport.write(REPLY)


class Bare(asyncio.Protocol):
    """Takes whatever comes for the reply."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Gives the reply."""
        self._reply.set_result(data)

    async def exchange(self, request: bytes) -> bytes:
        """Sends a request."""
        self._reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._reply

    def close(self) -> None:
        """Ends the connection."""
        self._transport.abort()


def serve(told: Connection) -> None:
    """Serves until the process is ended, and tells the port first."""

    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(Gateway, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(forever())


async def cpu_us(exchange: Exchange, exchanges: int, at_once: int) -> float:
    """Gives the CPU time of one exchange in microseconds, with so many of them under way at each moment."""

    async def some() -> None:
        for _ in range(exchanges // at_once):
            await exchange()

    await exchange()
    began_s = time.process_time()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return (time.process_time() - began_s) / (exchanges // at_once * at_once) * 1e6


async def measured(url: str, rounds: int, exchanges: int, at_once: int) -> dict[str, float]:
    """Gives the median of each client."""
    connections = GatewayConnections(url, Clock(), timeout_s=TIMEOUT_S, date_seen=lambda _: None)
    dict_of_headers = dict(line.split(": ", 1) for line in HEADERS.lines.decode().splitlines())
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, connect=5.0), cookie_jar=aiohttp.DummyCookieJar()
    )
    clock = Clock()

    async def ours() -> None:
        reply = await connections.effects.exchange(CALL, HEADERS, send_by_s=clock.boot_s() + TIMEOUT_S)
        assert reply == Reply(http_status=200, body=BODY)

    async def theirs() -> None:
        async with session.post(url + CALL.path, data=ASKED, headers=dict_of_headers) as response:
            assert (response.status, await response.read()) == (200, BODY)

    port = int(url.rpartition(":")[2])
    made = [await asyncio.get_running_loop().create_connection(Bare, "127.0.0.1", port) for _ in range(at_once)]
    idle = [each for _, each in made]
    request = b"POST / HTTP/1.1\r\n%b\r\n%b" % (HEADERS.lines, ASKED)

    async def bare() -> None:
        protocol = idle.pop()
        assert await protocol.exchange(request) == REPLY
        idle.append(protocol)

    found: dict[str, list[float]] = {name: [] for name in CLIENTS}
    for _ in range(rounds):
        for name, exchange in zip(CLIENTS, (ours, theirs, bare), strict=True):
            found[name].append(await cpu_us(exchange, exchanges, at_once))
    await connections.close()
    await session.close()
    for protocol in idle:
        protocol.close()
    return {name: statistics.median(each) for name, each in found.items()}


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--exchanges", type=int, default=5_000)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 16])
    arguments = parser.parse_args()
    told, telling = multiprocessing.Pipe()
    gateway = multiprocessing.get_context("spawn").Process(target=serve, args=(telling,), daemon=True)
    gateway.start()
    url = f"http://127.0.0.1:{told.recv()}"
    print("at once  payrelay µs  aiohttp µs  bare µs  aiohttp/payrelay  payrelay/bare")
    for at_once in arguments.at_once:
        ours_us, aiohttp_us, bare_us = uvloop.run(
            measured(url, arguments.rounds, arguments.exchanges, at_once)
        ).values()
        print(
            f"{at_once:>7}  {ours_us:>11.1f}  {aiohttp_us:>10.1f}  {bare_us:>7.1f}  {aiohttp_us / ours_us:>16.2f}"
            f"  {ours_us / bare_us:>13.2f}"
        )
    gateway.terminate()


if __name__ == "__main__":
    main()
