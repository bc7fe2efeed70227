"""The router as an ASGI callable: what goes on, what comes back, and what is said where a partition fails."""

import asyncio
import io
import ipaddress
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from tests.partitions.partition_double import PartitionDouble, nobody, partition_at

from payrelay.api.connections.limits import ConnectionLimits
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.http.incoming_request import Message, Networks, Scope
from payrelay.api.http.request_log import json_log
from payrelay.clock import Clock
from payrelay.partitions.metrics import RouterMetrics
from payrelay.partitions.router import PartitionRouter
from payrelay.partitions.table import PartitionTable
from payrelay.partitions.upstream import Upstream
from payrelay.settings import Settings

PROXY, CUSTOMER = "10.0.0.1", "203.0.113.9"


@dataclass
class Routing:
    """A router in front of one partition, ``east``, that has the account ``shop``."""

    router: PartitionRouter
    metrics: RouterMetrics
    log: io.BytesIO
    is_stopping: asyncio.Event
    sent: list[Message] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(
        self, method: str, target: str, *pairs: tuple[str, str], body: bytes = b"", peer: str = CUSTOMER
    ) -> tuple[int, dict[str, str], bytes]:
        """Sends one request as a server would; gives status, headers and body of the answer."""
        path, _, query = target.partition("?")
        headers = [(name.lower().encode(), value.encode()) for name, value in pairs]
        if body:
            headers.append((b"content-length", b"%d" % len(body)))
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "client": (peer, 50_000),
        }
        pieces: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if pieces:
                return pieces.pop()
            await self.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        self.sent.clear()
        await self.router(scope, receive, send)
        if not self.sent:
            return 0, {}, b""
        given = {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}
        return self.sent[0]["status"], given, b"".join(each["body"] for each in self.sent[1:])

    async def counted(self, name: str) -> list[str]:
        """Gives the samples of a metric that aren't zero."""
        lines = (await self.metrics.text()).decode().splitlines()
        return [
            line for line in lines if line.startswith(name) and not line.endswith(" 0.0") and "_created" not in line
        ]

    def lines(self) -> list[dict[str, Any]]:
        """Gives the lines of the log."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@asynccontextmanager
async def routing(*addresses: str) -> AsyncIterator[Routing]:
    """Makes a router in front of a partition with these addresses."""
    settings = Settings.model_validate({"partitions": {"east": {"address": ",".join(addresses), "accounts": "shop"}}})
    stream, stopping, metrics = io.BytesIO(), asyncio.Event(), RouterMetrics()
    upstream = Upstream(silence_s=5)
    router = PartitionRouter(
        PartitionTable(settings.partitions),
        upstream,
        metrics,
        OpenConnections(ConnectionLimits(), Clock(), lambda _: False),
        json_log(stream, Clock()),
        trusted=Networks((ipaddress.ip_network("10.0.0.0/8"),)),
        is_stopping=stopping.is_set,
    )
    try:
        yield Routing(router=router, metrics=metrics, log=stream, is_stopping=stopping)
    finally:
        await upstream.close()


@pytest.fixture
async def east() -> AsyncIterator[PartitionDouble]:
    """A partition that answers 200."""
    async with partition_at() as double:
        yield double


@pytest.fixture
async def through(east: PartitionDouble) -> AsyncIterator[Routing]:
    """A router in front of ``east``."""
    async with routing(east.address) as made:
        yield made


async def test_a_request_goes_on_as_it_came(through: Routing, east: PartitionDouble) -> None:
    """An encoded slash, the query and each byte of the body are the client's: a key is bound to them."""
    body = b'{"amount": 1.00}'
    status, headers, answer = await through.ask(
        "POST", "/shop/api/payments/charge?a=%2Fb&c", ("Idempotency-Key", "k1"), ("Authorization", "B"), body=body
    )

    [(head, came)] = east.requests
    assert east.heads() == ["POST /shop/api/payments/charge?a=%2Fb&c HTTP/1.1"]
    assert ("idempotency-key: k1" in head.lower(), "authorization: b\r\n" in head.lower(), came) == (True, True, body)
    assert (status, headers["content-type"], json.loads(answer)) == (200, "application/json", {"is": "done  "})
    assert await through.counted("payrelay_router_requests_total") == [
        'payrelay_router_requests_total{outcome="answered",partition="east"} 1.0'
    ]
    assert await through.counted("payrelay_router_request_seconds_count") != []


async def test_a_read_has_no_length_and_an_empty_effect_has_one(through: Routing, east: PartitionDouble) -> None:
    """A server may wait for the body of a POST without a length for as long as it likes."""
    await through.ask("GET", "/shop/api/subscriptions")
    await through.ask("POST", "/shop/api/subscriptions/sub_1/cancel")

    [(read, _), (effect, _)] = east.requests
    assert ("content-length" in read.lower(), "content-length: 0\r\n" in effect.lower()) == (False, True)


async def test_the_partition_hears_the_clients_address_and_not_a_forged_one(
    through: Routing, east: PartitionDouble
) -> None:
    """The partition limits guessing by it, and trusts this router: what a client writes there must not get through."""
    forged = (("X-Forwarded-For", "192.0.2.66"), ("X-Forwarded-Proto", "https"))
    await through.ask("GET", "/shop/a", *forged, peer=CUSTOMER)
    await through.ask("GET", "/shop/a", ("X-Forwarded-For", f"192.0.2.66, {CUSTOMER}"), forged[1], peer=PROXY)

    [(direct, _), (proxied, _)] = east.requests
    assert f"x-forwarded-for: {CUSTOMER}\r\n" in direct.lower()
    assert f"x-forwarded-for: {CUSTOMER}\r\n" in proxied.lower()
    assert ("x-forwarded-proto" in direct.lower(), "x-forwarded-proto: https" in proxied.lower()) == (False, True)
    assert "192.0.2.66" not in direct + proxied


async def test_a_request_has_one_id_on_both_sides(through: Routing, east: PartitionDouble) -> None:
    """The lines of router and partition are found by one search; two ids, of which one is forged, would part them."""
    await through.ask("GET", "/shop/a", ("X-Request-Id", "req-of-client"))
    await through.ask("GET", "/shop/a", ("X-Request-Id", "not allowed\t"))

    [(given, _), (made, _)] = east.requests
    assert given.lower().count("x-request-id: req-of-client\r\n") == 1
    assert (made.lower().count("x-request-id: req_"), "not allowed" in made) == (1, False)


async def test_headers_of_one_connection_stay_on_it(through: Routing, east: PartitionDouble) -> None:
    """A client must not end the router's connection, and a partition must not end the client's."""
    east.reply = b"HTTP/1.1 201 Created\r\nConnection: X-Own\r\nX-Own: 1\r\nX-Kept: 2\r\nContent-Length: 0\r\n\r\n"
    status, headers, _ = await through.ask("GET", "/shop/a", ("Connection", "close, X-Mine"), ("X-Mine", "1"))

    assert (status, headers.get("x-kept"), "x-own" in headers, "connection" in headers) == (201, "2", False, False)
    assert "x-mine" not in east.requests[0][0].lower()


async def test_an_account_of_no_partition_is_not_found(through: Routing, east: PartitionDouble) -> None:
    """Nothing is sent to a partition that might make something of it."""
    status, headers, answer = await through.ask("POST", "/club/api/payments/charge", body=b"{}")

    assert (status, json.loads(answer)["error"]["code"], east.requests) == (404, "not_found", [])
    assert headers["x-request-id"] == json.loads(answer)["error"]["request_id"]
    assert await through.counted("payrelay_router_unknown_accounts_total") == [
        "payrelay_router_unknown_accounts_total 1.0"
    ]


async def test_a_body_that_is_too_large_reaches_no_partition(through: Routing, east: PartitionDouble) -> None:
    """The router holds whole bodies: without the bound, one client fills its memory."""
    status, headers, answer = await through.ask("POST", "/shop/a", body=b"x" * 70_000)

    assert (status, json.loads(answer)["error"]["code"], east.requests) == (413, "too_large", [])
    assert headers["connection"] == "close"


async def test_health_is_the_routers_own(through: Routing, east: PartitionDouble) -> None:
    """A partition that is away must not take the router, and with it all other partitions, out of the balancer."""
    ready, live = await through.ask("GET", "/health/ready"), await through.ask("GET", "/health/live")
    through.is_stopping.set()
    stopping, still = await through.ask("GET", "/health/ready"), await through.ask("GET", "/health/live")

    assert [each[0] for each in (ready, live, stopping, still)] == [200, 200, 503, 200]
    assert (json.loads(ready[2])["status"], east.requests) == ("ready", [])


async def test_a_partition_that_is_away_was_sent_nothing() -> None:
    """The client may repeat at once, with any key, and has to be told so."""
    async with routing(nobody(), nobody()) as through:
        status, _, answer = await through.ask("POST", "/shop/api/payments/charge", body=b"{}")

        assert (status, json.loads(answer)["error"]["code"]) == (503, "unavailable")
        assert "nothing was sent" in json.loads(answer)["msg"]
        [line] = through.lines()
        assert (line["event"], line["partition"], line["method"]) == ("partition_unreachable", "east", "POST")
        assert await through.counted("payrelay_router_requests_total") == [
            'payrelay_router_requests_total{outcome="unreachable",partition="east"} 1.0'
        ]


@pytest.mark.parametrize(
    ("method", "refusal", "words"),
    [
        ("POST", (500, "internal"), "whether it did what was asked is not known"),
        ("DELETE", (500, "internal"), "repeat the same request with the same Idempotency-Key"),
        ("GET", (503, "unavailable"), "read again"),
    ],
)
async def test_a_lost_answer_is_told_as_what_it_is(
    through: Routing, east: PartitionDouble, method: str, refusal: tuple[int, str], words: str
) -> None:
    """The partition may have charged: that nothing was sent would be a lie, and so would be a promise."""
    east.reply = b""
    got, _, answer = await through.ask(method, "/shop/api/x")

    assert (got, json.loads(answer)["error"]["code"]) == refusal
    assert words in json.loads(answer)["msg"]
    assert [line["event"] for line in through.lines()] == ["answer_lost"]
    assert 'outcome="lost"' in (await through.counted("payrelay_router_requests_total"))[0]


async def test_an_answer_that_breaks_off_is_seen_to_break_off(through: Routing, east: PartitionDouble) -> None:
    """A half answer that looks whole could be taken for a refusal, or for a smaller amount."""
    east.reply, east.is_cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", True
    with pytest.raises(aiohttp.ClientError):
        await through.ask("GET", "/shop/a")

    assert (through.sent[0]["status"], through.sent[-1]["more_body"]) == (200, True)
    assert [line["event"] for line in through.lines()] == ["answer_cut"]
    assert 'outcome="cut"' in (await through.counted("payrelay_router_requests_total"))[0]


async def test_a_client_that_leaves_ends_its_connection_to_the_partition(
    through: Routing, east: PartitionDouble
) -> None:
    """Streams of customers who closed the page would otherwise fill the partition's places."""
    east.may_answer.clear()
    asking = asyncio.create_task(through.ask("GET", "/shop/api/events/stream"))
    await east.arrived.wait()
    through.left.set()

    assert (await asking)[0] == 0
    async with asyncio.timeout(20):
        await east.left.wait()
    assert 'outcome="left"' in (await through.counted("payrelay_router_requests_total"))[0]


async def test_only_http_is_spoken(through: Routing) -> None:
    """A server that offered anything else would find a router that answers nonsense."""
    async with AsyncExitStack() as never:
        with pytest.raises(NotImplementedError, match="websocket"):
            await through.router({"type": "websocket"}, never.aclose, never.aclose)  # type: ignore[arg-type]
