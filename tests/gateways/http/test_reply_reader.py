import http.client
import io
import itertools
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.http.reply_reader import (
    CHUNKS_MAX,
    HEAD_BYTES_MAX,
    HEADERS_MAX,
    INTERIM_MAX,
    LINE_BYTES_MAX,
    UNENDED_BYTES_MAX,
    UNREAD_BYTES_MAX,
    ReplyReader,
)

BYTES_MAX: Final = 1_000
OK: Final = b"HTTP/1.1 200 OK\r\n"
BODY: Final = b'{"status":1}'
WHOLE: Final = b"%bContent-Length: 12\r\n\r\n%b" % (OK, BODY)
CHUNKED: Final = b"%bTransfer-Encoding: chunked\r\n\r\n5\r\n%b\r\n7;a=b\r\n%b\r\n0\r\nX-Sum: 7\r\n\r\n" % (
    OK,
    BODY[:5],
    BODY[5:],
)
EARLY: Final = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
REPLY: Final = Reply(http_status=200, body=BODY)
NOT_HTTP: Final = Loss(is_sent=True, cause=LossCause.NOT_HTTP)
TOO_LARGE: Final = Loss(is_sent=True, cause=LossCause.TOO_LARGE)
LOST: Final = Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
HALF: Final = Loss(is_sent=True, cause=LossCause.HALF_REPLY)


def read(*parts: bytes, bytes_max: int = BYTES_MAX) -> tuple[Reply | Loss | None, bool]:
    """Reads parts, up to the first outcome; says whether the connection may be used again."""
    reader = ReplyReader(bytes_max)
    for part in parts:
        outcome = reader.feed(part)
        if outcome is not None:
            return outcome, reader.is_reusable
    return None, reader.is_reusable


def ended(raw: bytes) -> Reply | Loss:
    """Reads bytes behind which the connection ends."""
    reader = ReplyReader(BYTES_MAX)
    outcome = reader.feed(raw)
    return reader.end() if outcome is None else outcome


def split(raw: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Cuts bytes at these places."""
    at = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    return [raw[begin:end] for begin, end in itertools.pairwise(at)]


@pytest.mark.parametrize(
    "raw",
    [
        WHOLE,
        CHUNKED,
        EARLY + WHOLE,
        EARLY * INTERIM_MAX + CHUNKED,
        b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE,
        WHOLE.replace(b" OK", b""),
        WHOLE.replace(b"Content-Length", b"cONTENT-lENGTH"),
        b"%bContent-Encoding: identity\r\n%b" % (OK, WHOLE.removeprefix(OK)),
        b"%bX-Empty:\r\nX-Old: \xff\xfe\r\n%b" % (OK, WHOLE.removeprefix(OK)),
    ],
)
@given(cuts=st.lists(st.integers(min_value=0), max_size=9))
def test_a_reply_is_the_same_however_it_is_cut(raw: bytes, cuts: list[int]) -> None:
    """The network cuts where it likes: between the bytes of a length, of a line's end, of a chunk."""
    assert read(*split(raw, cuts)) == (REPLY, True)
    assert read(*(bytes([each]) for each in raw)) == (REPLY, True)


@pytest.mark.parametrize("raw", [WHOLE, CHUNKED, EARLY + WHOLE])
def test_no_part_of_a_reply_is_a_reply(raw: bytes) -> None:
    """A reply that is cut at any byte has no end: what was asked may have been done, and nobody knows."""
    for size in range(len(raw)):
        reader = ReplyReader(BYTES_MAX)
        assert reader.feed(raw[:size]) is None
        assert not reader.is_reusable
        assert reader.broken() in {LOST, HALF}
        assert reader.end() == reader.broken()


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 12\r\nContent-Length: 12\r\n",
        b"Content-Length: 12\r\nContent-Length: 13\r\n",
        b"Content-Length: 12\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 12\r\n",
        b"Content-Length: 12, 12\r\n",
        b"Content-Length: +12\r\n",
        b"Content-Length: -12\r\n",
        b"Content-Length: 1 2\r\n",
        b"Content-Length: 0x0c\r\n",
        b"Content-Length: \r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Content-Length : 12\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n",
        b"Content-Encoding: gzip\r\nContent-Length: 12\r\n",
        b"Content-Encoding: br\r\nContent-Length: 12\r\n",
        b"X-Folded: a\r\n b\r\nContent-Length: 12\r\n",
        b"X-Folded: a\r\n\tb\r\nContent-Length: 12\r\n",
        b" X: a\r\nContent-Length: 12\r\n",
        b"X: a\rContent-Length: 12\r\n",
        b"X: a\nContent-Length: 12\r\n",
        b"X: a\x00b\r\nContent-Length: 12\r\n",
        b": a\r\nContent-Length: 12\r\n",
        b"X\r\nContent-Length: 12\r\n",
    ],
)
def test_a_head_that_leaves_anything_open_is_refused(head: bytes) -> None:
    """Two readers would find two ends of such a reply; the next call would then read what is left of this one."""
    raw = OK + head + b"\r\n" + BODY
    assert read(raw) == (NOT_HTTP, False)
    assert [outcome for outcome in [read(*(bytes([each]) for each in raw))] if outcome != (NOT_HTTP, False)] == []


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/0.9 200 OK",
        b"HTTP/1.2 200 OK",
        b"HTTP/2.0 200 OK",
        b"http/1.1 200 OK",
        b"RTSP/1.0 200 OK",
        b"ICY 200 OK",
        b"220 mail.example ESMTP",
        b"\r\nHTTP/1.1 200 OK",
        b" HTTP/1.1 200 OK",
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 099 OK",
        b"HTTP/1.1 600 OK",
        b"HTTP/1.1 2x0 OK",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade",
        b"HTTP/1.1 101 Switching Protocols",
        b"HTTP/1.1 200 OK\rX: y",
    ],
)
def test_another_protocol_is_refused(line: bytes) -> None:
    """What isn't HTTP/1.0 or HTTP/1.1 has no end that we know."""
    assert read(line + b"\r\nContent-Length: 12\r\n\r\n" + BODY) == (NOT_HTTP, False)


@pytest.mark.parametrize(
    "chunks",
    [
        b"zzz\r\n",
        b"0x5\r\n12345\r\n0\r\n\r\n",
        b"5 \r\n12345\r\n0\r\n\r\n",
        b"5\n12345\n0\n\n",
        b"5\r\n12345xx0\r\n\r\n",
        b"-1\r\n\r\n0\r\n\r\n",
        b"f" * 17 + b"\r\n",
        b"5\r\n12345\r\n0\r\nX: a\r\n b\r\n\r\n",
    ],
)
def test_broken_chunks_are_refused(chunks: bytes) -> None:
    """A chunk whose size can't be read has no end."""
    assert read(OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks) == (NOT_HTTP, False)


@pytest.mark.parametrize("behind", [b"H", WHOLE, b"}", b"\0", EARLY])
def test_what_stands_behind_a_reply_ends_the_connection(behind: bytes) -> None:
    """The reply is ours, and what follows it would be read as the next call's."""
    assert read(WHOLE + behind) == (REPLY, False)
    assert read(CHUNKED + behind) == (REPLY, False)


def test_replies_follow_each_other_on_one_connection() -> None:
    """Nothing of one reply is left in the next: neither its length nor its date."""
    reader = ReplyReader(BYTES_MAX)
    dated = OK + b"Date: Mon, 23 Nov 2026 03:00:00 GMT\r\n" + WHOLE.removeprefix(OK)

    assert (reader.feed(dated), reader.date) == (REPLY, b"Mon, 23 Nov 2026 03:00:00 GMT")
    reader.begin()
    assert (reader.feed(CHUNKED), reader.date) == (REPLY, None)
    reader.begin()
    assert reader.feed(b"HTTP/1.1 204 No Content\r\n\r\n") == Reply(http_status=204, body=b"")
    reader.begin()
    assert reader.feed(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n") == Reply(http_status=304, body=b"")
    reader.begin()
    assert (reader.feed(WHOLE), reader.is_reusable) == (REPLY, True)


@pytest.mark.parametrize(
    ("raw", "is_reusable"),
    [
        (OK + b"Connection: close\r\n" + WHOLE.removeprefix(OK), False),
        (WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"), False),
        (OK.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n" + WHOLE.removeprefix(OK), True),
    ],
)
def test_the_gateway_says_whether_a_connection_stays(raw: bytes, *, is_reusable: bool) -> None:
    """A connection that the gateway is about to close would lose the next effect."""
    assert read(raw) == (REPLY, is_reusable)


def test_a_reply_without_a_length_ends_with_the_connection() -> None:
    """HTTP allows it. Where such a body was cut can be told by its JSON alone, which whoever reads it does."""
    assert ended(OK + b"\r\n" + BODY) == REPLY
    assert ended(OK.replace(b"1.1", b"1.0") + b"\r\n" + BODY) == REPLY
    reader = ReplyReader(BYTES_MAX)
    assert reader.feed(OK + b"\r\n" + BODY) is None
    assert reader.broken() == HALF


def test_a_body_has_a_limit() -> None:
    """A length is believed before the body comes; what names none is counted."""
    exactly, more = b"x" * BYTES_MAX, b"x" * (BYTES_MAX + 1)
    assert read(OK + b"Content-Length: %d\r\n\r\n" % len(exactly) + exactly)[0] == Reply(http_status=200, body=exactly)
    assert read(OK + b"Content-Length: %d\r\n\r\n" % len(more)) == (TOO_LARGE, False)
    for head in (b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(more), b"\r\n"):
        assert read(OK + head + more) == (TOO_LARGE, False)


def test_the_number_of_chunks_has_a_limit() -> None:
    """Chunks of one byte cost a thousand times what they bring."""
    head = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    within = b"1\r\nx\r\n" * (CHUNKS_MAX - 1) + b"0\r\n\r\n"
    assert read(head + within, bytes_max=CHUNKS_MAX)[0] == Reply(http_status=200, body=b"x" * (CHUNKS_MAX - 1))
    assert read(head + b"1\r\nx\r\n" * (CHUNKS_MAX + 1), bytes_max=2 * CHUNKS_MAX) == (TOO_LARGE, False)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 %b\r\n" % (b"x" * (LINE_BYTES_MAX + 1)),
        OK + b"X: %b\r\n" % (b"x" * LINE_BYTES_MAX),
        OK + b"%b: x\r\n" % (b"x" * LINE_BYTES_MAX),
        OK + b"X: y\r\n" * (HEADERS_MAX + 1),
        OK + (b"X: %b\r\n" % (b"x" * 8_000)) * (HEAD_BYTES_MAX // 8_000 + 1),
        EARLY * (INTERIM_MAX + 1),
        (EARLY.replace(b"</a>", b"x" * 8_000)) * INTERIM_MAX + OK + (b"X: %b\r\n" % (b"x" * 8_000)),
    ],
)
def test_a_head_has_limits(head: bytes) -> None:
    """A head is kept in memory until it ends."""
    raw = head + WHOLE.removeprefix(OK)
    assert read(raw) == (NOT_HTTP, False)
    assert read(*split(raw, range(0, len(raw), 1_000))) == (NOT_HTTP, False)


@pytest.mark.parametrize("begin", [OK + b"X: ", OK + b"X", b"HTTP/1.1 200 "])
def test_a_line_without_end_is_refused(begin: bytes) -> None:
    """The parser keeps a header until its line ends, so that the bytes are counted before it has one."""
    parts = [begin, *[b"x" * 100] * (UNREAD_BYTES_MAX // 100 + 2)]
    assert read(*parts) == (NOT_HTTP, False)


@pytest.mark.parametrize("begin", [OK + b"X: ", OK + b"X", CHUNKED[:-12] + b"X: "])
def test_a_line_that_comes_drop_by_drop_is_refused_early(begin: bytes) -> None:
    """The parser copies what it has of a line with each piece that comes: a long line in drops costs its square."""
    drops = UNENDED_BYTES_MAX // 10
    assert read(begin, *[b"x" * 10] * drops) == (None, False)
    assert read(begin, *[b"x" * 10] * (drops + 3)) == (NOT_HTTP, False)


@pytest.mark.parametrize("begin", [OK + b"\r\n", b"%bContent-Length: 60000\r\n\r\n" % OK])
def test_a_body_without_lines_may_come_drop_by_drop(begin: bytes) -> None:
    """Most bodies are one line, and only what is around them must be short."""
    reader = ReplyReader(100_000)
    outcomes = [reader.feed(part) for part in (begin, *[b"x" * 10] * 5_999)]
    assert set(outcomes) == {None}
    assert UNENDED_BYTES_MAX < 59_990


@pytest.mark.parametrize("behind", [b"0\r\nX: ", b"2;"])
def test_what_is_around_a_body_ends(behind: bytes) -> None:
    """The parser copies a trailer anew for each part of it: one without an end would keep the service from all else."""
    begin = b"%bTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n%b" % (OK, behind)
    parts = [begin, *[b"x" * 1_000] * (UNREAD_BYTES_MAX // 1_000 + 2)]
    assert read(*parts) == (NOT_HTTP, False)


def test_chunks_of_one_byte_each_are_read() -> None:
    """A gateway may write as it likes: what is around many chunks is more than a trailer may have."""
    begin, piece = b"%bTransfer-Encoding: chunked\r\n\r\n" % OK, b"1;name=value\r\nx\r\n"
    count = 2 * UNREAD_BYTES_MAX // len(piece)
    outcome, _ = read(begin, *[piece] * count, b"0\r\n\r\n", bytes_max=count)
    assert outcome == Reply(http_status=200, body=b"x" * count)


def test_trailers_count_but_say_nothing() -> None:
    """A length behind the body changes nothing about the body."""
    late = CHUNKED.replace(b"X-Sum: 7", b"Date: x\r\nContent-Encoding: gzip")
    reader = ReplyReader(BYTES_MAX)
    assert (reader.feed(late), reader.date) == (REPLY, None)
    assert read(CHUNKED.replace(b"X-Sum: 7\r\n", b"X: y\r\n" * (HEADERS_MAX + 1))) == (NOT_HTTP, False)


@given(
    raw=st.one_of(
        st.binary(max_size=200),
        st.builds(lambda head, body: OK + head + b"\r\n\r\n" + body, st.binary(max_size=60), st.binary(max_size=60)),
    ),
    cuts=st.lists(st.integers(min_value=0), max_size=5),
)
@example(raw=b"", cuts=[])
def test_whatever_comes_the_reader_says_what_it_is(raw: bytes, cuts: list[int]) -> None:
    """Nothing raises, and every way to cut the bytes has one outcome; a loss always counts as sent."""
    outcome = read(raw) if raw else (None, False)
    parts = split(raw, cuts)
    in_parts = read(*parts)

    assert in_parts[0] == outcome[0]
    assert not isinstance(in_parts[0], Loss) or (in_parts[0].is_sent and not in_parts[1])


def changed(whole: bytes, what: str, at: int, other: int) -> bytes:
    """Changes one byte."""
    return {
        "drop": whole[:at] + whole[at + 1 :],
        "double": whole[: at + 1] + whole[at:],
        "flip": whole[:at] + bytes([other]) + whole[at + 1 :],
        "insert": whole[:at] + bytes([other]) + whole[at:],
    }[what]


class Recorded(io.BytesIO):
    """What the standard library's parser reads from, and closes, and what is left can still be read."""

    def makefile(self, _: str) -> "Recorded":
        """Gives itself."""
        return self

    def close(self) -> None:
        """Stays open."""


def read_by_another(raw: bytes) -> tuple[Reply, bytes]:
    """Reads a reply with the standard library's parser; gives what is left, too."""
    recorded = Recorded(raw)
    response = http.client.HTTPResponse(recorded, method="POST")  # type: ignore[arg-type]
    response.begin()
    return Reply(http_status=response.status, body=response.read()), recorded.read()


@given(
    whole=st.sampled_from([WHOLE, CHUNKED]),
    at=st.integers(min_value=0),
    what=st.sampled_from(["drop", "double", "flip", "insert"]),
    other=st.integers(min_value=0, max_value=255),
    cuts=st.lists(st.integers(min_value=0), max_size=3),
)
def test_one_wrong_byte_leaves_no_connection_that_is_out_of_step(
    whole: bytes, at: int, what: str, other: int, cuts: list[int]
) -> None:
    """Where a byte was lost, doubled or changed, a connection stays only if every byte belongs to the reply.

    Another parser, which shares no code with this one, then finds the same reply and the same end.
    """
    reader = ReplyReader(BYTES_MAX)
    fed, outcome = b"", None
    for part in split(changed(whole, what, at % len(whole), other), cuts):
        fed += part
        outcome = reader.feed(part)
        if outcome is not None:
            break

    if reader.is_reusable:
        reply, left = read_by_another(fed)
        assert (outcome, left.strip(b"\r\n")) == (reply, b"")
