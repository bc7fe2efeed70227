"""HAProxy in front of partitions: a request goes to one of them, once, and no answer says more than is known."""

import http.client
import re
import socketserver
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, create_connection, socket
from typing import Final

import pytest
from tests.deploy.haproxy import MAP, SAMPLE, SERVER_S, haproxy_command
from tests.deploy.test_proxies import certificate, nginx_command, posted
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import Program, account, free_port
from tests.scenarios.stories import assert_refused, charge_body, fresh
from tests.scenarios.waiting import until

from payrelay.api.http.incoming_request import BODY_BYTES_MAX
from payrelay.errors import MEANINGS, Code
from payrelay.settings.parse import partition_map

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PARTITION_OF: Final = {"shop": "east", "club": "west"}
NOTHING_SENT: Final = (503, Code.UNAVAILABLE)
NOT_KNOWN: Final = (500, Code.INTERNAL)
STOP_S: Final = 30.0

Answering = Callable[[socket], None]
Answered = Callable[[Answering], list[tuple[str, bytes]]]
"""What a process does with the requests that it takes, and those that it took."""


class Conversation(socketserver.StreamRequestHandler):
    """Says that it is ready; keeps any other request, and answers it as the test says."""

    server: "Process"

    def handle(self) -> None:
        """Reads one request, and ends the connection behind its answer."""
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        if head.startswith(b"GET /health/ready "):
            self.wfile.write(OK)
            self.server.is_checked.set()
        elif head:
            length = re.search(rb"^content-length: (\d+)", head, re.MULTILINE | re.IGNORECASE)
            self.server.taken.append((head.decode(), self.rfile.read(int(length[1]) if length else 0)))
            self.server.answer(self.request)


class Process(socketserver.ThreadingTCPServer):
    """Stands for a process of a partition."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.taken: list[tuple[str, bytes]] = []
        self.answer: Answering = writes(OK)
        self.is_checked = threading.Event()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])


@contextmanager
def proxied(
    folder: Path, partitions: Mapping[str, Sequence[int]], partition_of: Mapping[str, str], server_s: int = SERVER_S
) -> Iterator[int]:
    """Runs HAProxy before processes at these ports; gives its own."""
    port = free_port()
    with (folder / "haproxy.log").open("ab") as log:
        command = haproxy_command(folder, port, partitions, partition_of, server_s=server_s)
        proxy = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: is_up(port), "HAProxy answers")
        yield port
    finally:
        proxy.terminate()
        proxy.wait(STOP_S)


def is_up(port: int) -> bool:
    """True once HAProxy says of itself that it is ready."""
    try:
        return Client(port=port, key=None).send("GET", "/health/ready").json == {"status": "ready"}
    except OSError:
        return False


@contextmanager
def running() -> Iterator[Process]:
    """Runs a process."""
    with Process() as process:
        thread = threading.Thread(target=process.serve_forever)
        thread.start()
        try:
            yield process
        finally:
            process.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def two() -> Iterator[list[Process]]:
    """The two processes of the partition east."""
    with running() as one, running() as other:
        yield [one, other]


@pytest.fixture(scope="module")
def port(two: list[Process], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """HAProxy before ``east``, and before ``west``, at whose address nobody listens."""
    partitions = {"east": [process.port for process in two], "west": [free_port()]}
    with proxied(tmp_path_factory.mktemp("haproxy"), partitions, PARTITION_OF | {"lost": "nowhere"}, 1) as found:
        yield found


@pytest.fixture
def east(two: list[Process]) -> Answered:
    """Lets both processes answer so; gives the list of what they take from then on."""

    def answering(answer: Answering) -> list[tuple[str, bytes]]:
        taken: list[tuple[str, bytes]] = []
        for process in two:
            process.answer, process.taken = answer, taken
        return taken

    return answering


def writes(answer: bytes) -> Answering:
    """Answers with these bytes, and ends the connection."""
    return lambda to: to.sendall(answer)


def resets(to: socket) -> None:
    """Ends the connection as a process that is killed does."""
    to.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    to.close()


def is_silent(to: socket) -> None:
    """Says nothing until the other side has gone."""
    with suppress(ConnectionResetError):
        to.recv(1)


LOSSES: Final[Mapping[str, tuple[Answering, int]]] = {
    "nothing": (writes(b""), 20),
    "a reset": (resets, 200),
    "half a head": (writes(b"HTTP/1.1 200 OK\r\nContent-"), 20),
    "no HTTP": (writes(b"what?\r\n\r\n"), 20),
    "silence": (is_silent, 1),
}
"""What a process may do with a request that it took, and how often that is tried."""


@pytest.mark.parametrize("loss", LOSSES)
def test_a_request_whose_answer_is_lost_is_sent_to_nobody_again(port: int, east: Answered, loss: str) -> None:
    """The first process may be charging now. The client hears that this isn't known, and repeats it with its key."""
    answer, times = LOSSES[loss]
    for method in ("POST", "DELETE", "GET"):
        taken = east(answer)
        replies = [Client(port=port, key=None).send(method, "/shop/api/x", b"{}") for _ in range(times)]

        assert {(reply.status, reply.code) for reply in replies} == {NOT_KNOWN}
        assert len(taken) == times, method


def test_a_process_that_takes_no_connection_costs_nobody_a_request(
    two: list[Process], east: Answered, tmp_path: Path
) -> None:
    """One that restarts refuses connections, and nothing was sent to it: its siblings serve meanwhile."""
    taken = east(writes(OK))
    with ExitStack() as stack:
        with running() as leaving:
            port = stack.enter_context(proxied(tmp_path, {"east": [leaving.port, two[0].port]}, PARTITION_OF))
            until(leaving.is_checked.is_set, "HAProxy knows that it is ready")
        statuses = [sent(port, "POST", "/shop/api/x", b"{}").status for _ in range(6)]

    assert (statuses, len(taken)) == ([200] * 6, 6)


@pytest.mark.parametrize("loss", ["nothing", "a reset"])
def test_no_client_is_told_to_send_again_by_itself(port: int, east: Answered, loss: str) -> None:
    """HAProxy hangs up on a kept connection where an answer is lost, and libraries take that for an idle connection.

    So none is kept, and HTTP/2, which always keeps it, is not spoken.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    statuses = []
    for answer in (writes(OK), LOSSES[loss][0], writes(OK)):
        taken = east(answer)
        connection.request("POST", "/shop/api/x", b"{}")
        reply = connection.getresponse()
        reply.read()
        statuses.append((reply.status, reply.getheader("Connection"), len(taken)))
    connection.close()
    assert statuses == [(200, "close", 1), (500, "close", 1), (200, "close", 1)]

    with create_connection(("127.0.0.1", port), timeout=10) as wire:
        wire.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        assert wire.recv(9) in {b"", b"HTTP/1.1 "}


def test_behind_a_proxy_that_speaks_tls(port: int, east: Answered, tmp_path: Path) -> None:
    """So it is installed: nginx says who calls, sends nothing twice either, and passes HAProxy's answers on."""
    chain, _ = certificate(tmp_path)
    tls, trusted = free_port(), ssl.create_default_context(cafile=str(chain))
    taken = east(writes(b""))
    with (tmp_path / "nginx.log").open("ab") as log:
        nginx = subprocess.Popen(nginx_command(tmp_path, tls, port), stdout=log, stderr=log)
    try:
        until(lambda: posted(tls, trusted, b"up?") is not None, "nginx answers")
        taken.clear()
        statuses = {posted(tls, trusted, b"charge %d" % number, "/shop/api/x") for number in range(6)}
    finally:
        nginx.terminate()
        nginx.wait(STOP_S)

    assert statuses == {NOT_KNOWN[0]}
    assert [body for _, body in taken] == [b"charge %d" % number for number in range(6)]
    assert all("\r\nx-forwarded-for: 127.0.0.1\r\nx-forwarded-proto: https\r\n" in head.lower() for head, _ in taken)


def test_an_answer_goes_out_as_it_came(port: int, east: Answered) -> None:
    """The partition's own 502 says that nothing was executed, and one that breaks off must not look whole."""
    east(writes(b"HTTP/1.1 502 Bad\r\nX-Request-Id: a\r\nContent-Length: 4\r\n\r\nbusy"))
    own = Client(port=port, key=None).send("POST", "/shop/api/x", b"{}")
    assert (own.status, own.header("X-Request-Id"), own.body) == (502, "a", b"busy")

    east(writes(OK.replace(b"2", b"9", 2)[:-1]))
    with pytest.raises(http.client.HTTPException):
        Client(port=port, key=None).send("GET", "/shop/api/x")


def test_an_account_may_have_the_name_of_a_page(tmp_path: Path) -> None:
    """Payrelay serves it. In another partition its requests would reach a database that knows none of its orders."""
    with running() as east, running() as west:
        partitions = {"east": [east.port], "west": [west.port]}
        with proxied(tmp_path, partitions, PARTITION_OF | {"docs": "west"}) as port:
            until(lambda: east.is_checked.is_set() and west.is_checked.is_set(), "HAProxy knows that both are ready")
            for path in ("/docs/api/x", "/openapi.json"):
                sent(port, "GET", path)

    came = {name: [head.split()[1] for head, _ in each.taken] for name, each in {"east": east, "west": west}.items()}
    assert came == {"east": ["/openapi.json"], "west": ["/docs/api/x"]}


def test_a_request_goes_on_as_it_came(port: int, east: Answered) -> None:
    """An encoded slash, the query and each byte of the body are the client's: a key is bound to them."""
    taken = east(writes(OK))
    body = b'{"amount": 1.00}'
    Client(port=port, key="held").send("POST", "/shop/api/a%2Fb?c=%2F&d", body, [("Idempotency-Key", "k1")])

    [(head, came)] = taken
    first, *lines = head.lower().split("\r\n")
    assert (first, came) == ("post /shop/api/a%2fb?c=%2f&d http/1.1", body)
    assert {"idempotency-key: k1", "authorization: bearer held"} <= set(lines)


@pytest.mark.parametrize(
    ("caller", "told"),
    [
        ("127.0.0.1", ["x-forwarded-for: 192.0.2.66", "x-forwarded-proto: https"]),
        ("127.0.0.2", ["x-forwarded-for: 127.0.0.2"]),
    ],
    ids=["the proxy", "anybody else"],
)
def test_only_the_proxy_says_who_calls(port: int, east: Answered, caller: str, told: list[str]) -> None:
    """The partition trusts HAProxy, and limits guessing by what it says."""
    taken = east(writes(OK))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=(caller, 0))
    headers = {"X-Forwarded-For": "192.0.2.66", "X-Forwarded-Proto": "https"}
    connection.request("GET", "/shop/api/x", headers=headers)
    connection.getresponse().read()
    connection.close()

    lines = taken[0][0].lower().split("\r\n")
    assert sorted(line for line in lines if line.startswith("x-forwarded")) == told


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        (["a-client's.own/id"], False),
        (["req-1.of~client"], True),
        (["a", "b"], False),
        (["a" * 129], False),
        ([], False),
    ],
)
def test_a_request_has_one_id_on_both_sides(port: int, east: Answered, given: list[str], *, is_kept: bool) -> None:
    """One search finds the lines of both; an id that the partition wouldn't take is replaced."""
    taken = east(writes(b""))
    headers = [("X-Request-Id", value) for value in given]
    reply = Client(port=port, key=None).send("POST", "/shop/api/x", b"{}", headers)

    [told] = re.findall(r"^x-request-id: (.+)\r$", taken[0][0], re.MULTILINE | re.IGNORECASE)
    assert told == reply.header("X-Request-Id") == reply.error["request_id"]
    assert (told == given[0]) if is_kept else re.fullmatch(r"req_[0-9a-f-]{36}", told)


def sent(port: int, method: str, path: str, body: bytes = b"", *headers: tuple[str, str]) -> Reply:
    """Sends a request without a credential."""
    return Client(port=port, key=None).send(method, path, body, headers)


REFUSED: Final[Mapping[str, tuple[Callable[[int], Reply], tuple[int, Code]]]] = {
    "an account of no partition": (lambda port: sent(port, "POST", "/nobody/api/x"), (404, Code.NOT_FOUND)),
    "no account": (lambda port: sent(port, "GET", "//shop/api/x"), (404, Code.NOT_FOUND)),
    "metrics": (lambda port: sent(port, "GET", "/metrics"), (404, Code.NOT_FOUND)),
    "nobody listens": (lambda port: sent(port, "POST", "/club/api/x", b"{}"), NOTHING_SENT),
    "a partition that is not configured": (lambda port: sent(port, "POST", "/lost/api/x", b"{}"), NOTHING_SENT),
    "a large body": (
        lambda port: sent(port, "POST", "/shop/api/x", b" " * (BODY_BYTES_MAX + 1)),
        (413, Code.TOO_LARGE),
    ),
    "a large body without a length": (
        lambda port: Client(port=port, key=None, account="shop").chunked(
            "/x", b"10001\r\n%b\r\n0\r\n\r\n" % (b" " * (BODY_BYTES_MAX + 1))
        ),
        (413, Code.TOO_LARGE),
    ),
    "a body without its end": (
        lambda port: Client(port=port, key=None, account="shop").chunked(
            "/x", b"10000\r\n" + b" " * (BODY_BYTES_MAX - 1)
        ),
        (408, Code.MALFORMED_REQUEST),
    ),
}
"""Requests of which nothing reaches a partition, and their answers."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_reaches_no_partition_is_answered_as_the_service_would(port: int, east: Answered, name: str) -> None:
    """A client reads the same envelope, codes and advice whoever answers."""
    ask, expected = REFUSED[name]
    taken = east(writes(OK))
    reply = ask(port)

    assert taken == []
    assert_refused(reply, *expected)
    meaning = MEANINGS[expected[1]]
    assert reply.error["retry"] == meaning.retry
    assert reply.header("Retry-After") == (None if meaning.retry_after_s is None else str(meaning.retry_after_s))


def test_a_body_of_the_largest_size_passes(port: int, east: Answered) -> None:
    """What the service takes, HAProxy takes, beside headers of the largest size."""
    taken = east(writes(OK))
    body = b" " * BODY_BYTES_MAX
    assert sent(port, "POST", "/shop/api/x", body, ("A", "a" * 16_000)).status == http.HTTPStatus.OK
    assert [came for _, came in taken] == [body]


EVERY_KIND: Final = [
    ("GET", "/shop/api/subscriptions"),
    ("GET", "/club/api/events/stream?subject=operation:op_1"),
    ("POST", "/club/notifications"),
    ("GET", "/shop/checkouts/chk_1/secret"),
    ("GET", "/club/checkouts/chk_1/secret"),
    ("OPTIONS", "/club/api/payments/charge"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
]
"""Requests of each kind that the service serves at its address."""


@dataclass(frozen=True, kw_only=True)
class Divided:
    """Two installations behind HAProxy, and a caller of each through it."""

    gateway: GatewayDouble
    east: Program
    west: Program
    shop: Client
    club: Client

    def logged(self, request_id: str) -> list[str]:
        """The installations that have logged the request."""
        logs = {"east": self.east.log(), "west": self.west.log()}
        return [name for name, log in logs.items() if request_id in log]


@pytest.fixture
def divided(tmp_path: Path) -> Iterator[Divided]:
    """One file of settings for both, and the map that HAProxy reads: only the name of the partition differs."""
    with GatewayDouble() as gateway, ExitStack() as stack:
        settings = account("shop", gateway.base_url) | account("club", gateway.base_url)
        settings |= {"PAYRELAY_PARTITION_MAP": f"{tmp_path}/partitions.map", "PAYRELAY_TRUSTED_PROXIES": "127.0.0.1"}
        ports = {"east": free_port(), "west": free_port()}
        proxy = stack.enter_context(proxied(tmp_path, {name: [each] for name, each in ports.items()}, PARTITION_OF))
        programs, keys = {}, {}
        for name, each in ports.items():
            (tmp_path / name).mkdir()
            programs[name] = Program(tmp_path / name, settings | {"PAYRELAY_PARTITION": name})
            keys[name] = programs[name].new_key("caller")
            stack.callback(programs[name].start(each).kill)
        shop, club = (Client(port=proxy, key=keys[name], account=each) for each, name in PARTITION_OF.items())
        until(lambda: {shop.get("payments/x").status, club.get("payments/x").status}.isdisjoint({503}), "both are up")
        yield Divided(gateway=gateway, **programs, shop=shop, club=club)


def test_each_request_is_answered_by_the_installation_of_its_account(divided: Divided) -> None:
    """Two databases that both knew an order would both charge it."""
    order = fresh("order")
    callers = (divided.shop, divided.club)

    assert [caller.charge(charge_body(order)).status for caller in callers] == [200, 200]
    assert divided.gateway.count(payhere.CHARGE, order) == 2  # of two merchants
    assert [caller.charge(charge_body(order)).header("Idempotent-Replayed") for caller in callers] == ["true", "true"]
    assert [caller.get(f"orders/{order}").status for caller in callers] == [200, 200]
    found = {}
    for method, path in EVERY_KIND:
        request_id = fresh("req")
        divided.shop.send(method, path, b"", [("X-Request-Id", request_id)])
        until(lambda: divided.logged(request_id) != [], f"{path} is in a log")  # noqa: B023
        found[path] = divided.logged(request_id)
    assert found == {path: ["west" if path.startswith("/club/") else "east"] for _, path in EVERY_KIND}
    # The installation itself refuses an account of the other one, whoever sends it there.
    assert_refused(divided.east.client(divided.shop.key, "club").charge(charge_body()), 404, Code.NOT_FOUND)


def test_an_installation_that_is_away_takes_no_other_along(divided: Divided) -> None:
    """Its clients learn that nothing was sent, and everybody else pays."""
    order = fresh("order")
    divided.west.stop()

    assert_refused(divided.club.charge(charge_body(order)), *NOTHING_SENT)
    assert divided.gateway.count(payhere.CHARGE, order) == 0
    assert divided.shop.charge(charge_body()).status == 200


def test_an_installation_that_dies_in_a_charge_leaves_no_second_one(divided: Divided) -> None:
    """Nobody knows whether it was charged: the client hears so, repeats it, and the installation tells."""
    order, key = fresh("order"), fresh("key")
    held = divided.gateway.hold(payhere.CHARGE, order)
    with ThreadPoolExecutor(1) as pool:
        charging = pool.submit(divided.club.charge, charge_body(order), key=key)
        held.wait_for_arrival()
        divided.west.kill()
        reply = charging.result()

    assert_refused(reply, *NOT_KNOWN)
    divided.west.start(divided.west.port)
    until(lambda: divided.club.charge(charge_body(order), key=key).status != 503, "HAProxy sees it again")
    assert divided.gateway.count(payhere.CHARGE, order) == 1


def test_the_sample_has_a_backend_for_each_partition_of_its_map() -> None:
    """Both are copied together, and HAProxy itself does not compare them."""
    assert set(re.findall(r"^backend (.+)$", SAMPLE.read_text(), re.MULTILINE)) == set(partition_map(MAP).values())
