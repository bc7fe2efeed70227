import asyncio
import ipaddress

import pytest

from payrelay.api.http.incoming_request import (
    BODY_BYTES_MAX,
    BodyTimeout,
    Headers,
    Message,
    Networks,
    client_address,
    read_body,
    request_id_of,
    require_json,
)
from payrelay.errors import Code, Refusal

PROXIES = Networks((ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")))


def headers(**values: str) -> Headers:
    """Makes headers; an underscore stands for a hyphen."""
    return Headers([(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in values.items()])


def pieces(*bodies: bytes, ending: str = "http.request") -> list[Message]:
    """Makes the messages in which a body arrives."""
    more = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    return [*more, {"type": ending, "body": b"", "more_body": False}]


async def read(messages: list[Message], given: Headers | None = None) -> bytes:
    """Reads a body that arrives in these messages."""

    async def receive() -> Message:
        return messages.pop(0)

    return await read_body(receive, given or Headers([]), BodyTimeout(5))


@pytest.mark.parametrize("given", ["a", "4bf92f35-77b3", "x" * 128, "a/b:c+d=e@f~g._-"])
def test_a_valid_request_id_is_used(given: str) -> None:
    """The caller finds its own id again in our log."""
    assert request_id_of(headers(x_request_id=given)) == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", 'a"b', "a\\b", "<script>", "é", "a\tb"])
def test_any_other_request_id_is_replaced(given: str) -> None:
    """What goes into a log line and a header must not be able to forge one."""
    assert request_id_of(headers(x_request_id=given)).startswith("req_")


def test_request_ids_are_fresh_and_two_are_none() -> None:
    """Two requests never share an id of ours; of two given ones there is no telling which is meant."""
    assert len({request_id_of(Headers([])) for _ in range(1_000)}) == 1_000
    assert request_id_of(Headers([(b"x-request-id", b"a"), (b"x-request-id", b"b")])).startswith("req_")


def test_headers_of_one_name_are_joined() -> None:
    """A gateway may sign what it sends in several headers; each name keeps its values, in their order."""
    given = Headers([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"\xe9")])
    assert given.texts() == {"a": "1, 3", "b": "2", "c": "é"}


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "6.6.6.6, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.1", "198.51.100.1:5000, 10.0.0.2:443", "198.51.100.1"),
        ("10.0.0.1", "[2001:db8::1]:5000", "2001:db8::1"),
        ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
        ("10.0.0.1", "2001:db8::1:5000", "2001:db8::1:5000"),
        ("10.0.0.1", "198.51.100.1, 6.6.6.6:port", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("unix", "198.51.100.1", "unix"),
    ],
)
def test_only_trusted_proxies_speak_for_others(peer: str, forwarded: str, client: str) -> None:
    """Anybody can write X-Forwarded-For; the nearest address that isn't a proxy of ours is the caller."""
    given = headers(x_forwarded_for=forwarded) if forwarded else Headers([])
    assert client_address(peer, given, PROXIES) == client


def test_no_proxy_is_trusted_unless_set() -> None:
    """Without the setting the header means nothing."""
    assert client_address("10.0.0.1", headers(x_forwarded_for="198.51.100.1"), Networks(())) == "10.0.0.1"


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"'],
)
def test_json_in_utf8_is_read(content_type: str) -> None:
    """The ways in which clients write the one type that we read."""
    require_json(headers(content_type=content_type))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"content_type": ""},
        {"content_type": "text/plain"},
        {"content_type": "application/jsonp"},
        {"content_type": "application/json; charset=latin-1"},
        {"content_type": "application/x-www-form-urlencoded"},
        {"content_type": "application/json", "content_encoding": "gzip"},
    ],
)
def test_any_other_type_is_not_read(given: dict[str, str]) -> None:
    """A form from a foreign web page, a compressed bomb and a guess at an encoding all stay outside."""
    with pytest.raises(Refusal) as raised:
        require_json(headers(**given))
    assert raised.value.code is Code.UNSUPPORTED_MEDIA_TYPE


async def test_a_body_arrives_in_any_number_of_pieces() -> None:
    """How the network cuts a body makes no difference; one that is complete is not waited for any longer."""
    assert await read(pieces(b"ab", b"", b"cd")) == b"abcd"
    assert await read(pieces(b"abcd")[:1], headers(content_length="4")) == b"abcd"
    assert await read([{"type": "http.request"}]) == b""


async def test_a_body_may_be_64_kib() -> None:
    """The longest body passes; one more byte doesn't, whether Content-Length says so or it just comes."""
    assert len(await read(pieces(b"x" * BODY_BYTES_MAX))) == BODY_BYTES_MAX
    cases: list[tuple[list[Message], Headers]] = [
        ([], headers(content_length=str(BODY_BYTES_MAX + 1))),
        (pieces(b"x" * BODY_BYTES_MAX, b"x"), Headers([])),
        ([{"type": "http.request", "body": b"x" * (BODY_BYTES_MAX + 1)}], Headers([])),
    ]
    for messages, given in cases:
        with pytest.raises(Refusal) as raised:
            await read(messages, given)
        assert raised.value.code is Code.TOO_LARGE
        assert raised.value.headers == (("Connection", "close"),)


async def test_an_endless_body_is_not_read_to_its_end() -> None:
    """Reading stops soon after the limit, however much more would come."""
    messages = pieces(*[b"x" * 10_000] * 50)
    with pytest.raises(Refusal):
        await read(messages)
    assert len(messages) > 40


async def test_a_body_that_is_cut_off_is_malformed() -> None:
    """Half a charge is no charge, even where the half is good JSON."""
    with pytest.raises(Refusal, match="before the end of the body"):
        await read(pieces(b"{}", ending="http.disconnect"))


async def test_a_slow_body_is_given_up() -> None:
    """A client that stops in the middle of a body doesn't hold its connection for ever."""
    never = asyncio.Event()

    async def receive() -> Message:
        await never.wait()
        return {"type": "http.request"}

    with pytest.raises(Refusal, match=r"did not arrive within 0\.01 s") as raised:
        await read_body(receive, Headers([]), BodyTimeout(0.01))
    assert raised.value.code is Code.MALFORMED_REQUEST
    assert raised.value.headers == (("Connection", "close"),)


async def test_a_cancellation_from_outside_is_no_slow_body() -> None:
    """When the server is stopped, the wait for a body ends as a cancellation, not as an answer."""
    waiting = asyncio.Event()

    async def receive() -> Message:
        waiting.set()
        await asyncio.Event().wait()
        return {"type": "http.request"}

    task = asyncio.create_task(read_body(receive, Headers([]), BodyTimeout(5)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_each_slow_body_is_given_up_at_its_own_time() -> None:
    """One timer serves all bodies: it ends those whose time is over, and goes on for those that came later."""
    timeout, given_up = BodyTimeout(0.05), list[str]()

    async def read_slowly(name: str, *, ends: bool = False) -> None:
        async def receive() -> Message:
            if not ends:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": b"{}", "more_body": False}

        try:
            await read_body(receive, Headers([]), timeout)
        except Refusal:
            given_up.append(name)

    began_s = asyncio.get_running_loop().time()
    first = asyncio.create_task(read_slowly("first"))
    whole = asyncio.create_task(read_slowly("whole", ends=True))
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.03, later.set)
    await later.wait()
    second = asyncio.create_task(read_slowly("second"))
    await asyncio.gather(first, whole, second)
    assert given_up == ["first", "second"]
    assert asyncio.get_running_loop().time() - began_s >= 0.078  # the loop's time is in whole milliseconds


async def test_a_time_limit_holds_in_every_event_loop() -> None:
    """A timer belongs to its event loop: one that is left of an earlier loop would end nothing here."""
    timeout = BodyTimeout(0.01)

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {"type": "http.request"}

    async def read_whole() -> bytes:
        async def receive_all() -> Message:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        return await read_body(receive_all, Headers([]), timeout)

    await asyncio.to_thread(asyncio.run, read_whole())
    with pytest.raises(Refusal, match="did not arrive"):
        await read_body(receive, Headers([]), timeout)
