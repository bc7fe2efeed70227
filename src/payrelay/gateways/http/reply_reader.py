"""Reads replies from bytes, by llhttp's parser, and refuses what leaves open where a reply ends. Pure.

Rules:

1. llhttp is as strict as it can be. It refuses two lengths, a length beside chunks, folded headers, a bare CR or LF,
   and control characters.
2. We refuse what llhttp lets pass: other protocols and versions, transfer codings other than ``chunked``, a body that
   is compressed although we asked for none, a switch to another protocol, and whatever is longer than a limit.
3. A reply that is refused counts as sent: the gateway may have done what was asked.
4. A connection carries another call only after a reply whose end is known, with nothing behind it.
"""

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from payrelay.gateways.http.exchange import Loss, LossCause, Reply

LINE_BYTES_MAX: Final = 8_190
"""Of the status line's reason, and of each header."""
HEADERS_MAX: Final = 128
"""Together with trailers, and with the headers of interim replies."""
HEAD_BYTES_MAX: Final = 65_536
"""Of all reasons and headers before the body, and of trailers."""
UNREAD_BYTES_MAX: Final = 2 * HEAD_BYTES_MAX
"""Of a head that doesn't end, and of what is around a body. The parser keeps a header until its line ends."""
UNENDED_BYTES_MAX: Final = 2 * LINE_BYTES_MAX
"""Of a line that doesn't end, which may have white space beside its header. With each piece that comes, the parser
copies all that it has."""
INTERIM_MAX: Final = 8
"""Replies with a status below 200, which come before the reply. A gateway has no reason to send one."""
CHUNK_FRAMING_MAX: Final = 64
"""Around each chunk, on the average: its size, an extension that nobody reads, and the ends of lines."""
CHUNKS_MAX: Final = 65_536
"""A long list in pieces of 256 bytes. Smaller ones would keep the event loop busy for nothing."""

_PROTOCOL: Final = b"HTTP/1."
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_STATUS_MIN: Final = 100
_SWITCHED: Final = 101
_FINAL: Final = 200
_STATUS_MAX: Final = 599
_BODILESS: Final = frozenset({204, 304})
_TELLING: Final = frozenset({b"content-length", b"transfer-encoding", b"content-encoding", b"date"})


class _Refused(Exception):
    """Breaks off the parser; never seen outside this module."""


class ReplyReader:
    """Reads the replies of one connection, one after the other. ``begin`` comes before each of them.

    Args:
        bytes_max: the longest body, without its framing.

    Attributes:
        is_reusable: whether the connection may carry another call; read it once there is a reply.
        date: the ``Date`` header of the reply; None where there was none.
    """

    __slots__ = (
        "_behind",
        "_bytes_max",
        "_chunks",
        "_head_bytes",
        "_headers",
        "_interim",
        "_is_chunked",
        "_is_complete",
        "_is_headed",
        "_length",
        "_parser",
        "_pieces",
        "_reason_bytes",
        "_refusal",
        "_seen",
        "_size",
        "_start",
        "_status",
        "_unended",
        "date",
        "is_reusable",
    )

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parser = HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Expects the next reply."""
        self._pieces: list[bytes] = []
        self._reason_bytes = 0
        self._seen = self._behind = self._size = self._headers = self._head_bytes = self._unended = 0
        self._interim = self._chunks = self._status = 0
        self._start = b""
        self._length: int | None = None
        self._refusal = LossCause.NOT_HTTP
        self._is_headed = self._is_complete = self._is_chunked = self.is_reusable = False
        self.date: bytes | None = None

    def feed(self, data: bytes) -> Reply | Loss | None:
        """Reads bytes, and gives the reply once it is complete; None where more must come. Never raises.

        After a reply or a loss, only ``begin`` may be called, and only where ``is_reusable``.
        """
        may_go_on = self._may_frame(data) if self._is_headed else self._may_go_on(data)
        if not (may_go_on and self._may_lengthen(data)):
            self.is_reusable = False
            return Loss(is_sent=True, cause=LossCause.NOT_HTTP)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.is_reusable = False
            if not self._is_complete:
                return Loss(is_sent=True, cause=self._refusal)
        return self._reply() if self._is_complete else None

    def end(self) -> Reply | Loss:
        """Says what came of the reply when the gateway has ended the connection in good order."""
        if not self._is_headed:
            return Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
        if self._is_chunked or self._length is not None:
            return Loss(is_sent=True, cause=LossCause.HALF_REPLY)
        return self._reply()

    def broken(self) -> Loss:
        """Says what came of the reply when the connection broke."""
        cause = LossCause.HALF_REPLY if self._is_headed else LossCause.CONNECTION_LOST
        return Loss(is_sent=True, cause=cause)

    def _reply(self) -> Reply:
        pieces = self._pieces
        return Reply(http_status=self._status, body=pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _may_go_on(self, data: bytes) -> bool:
        """Looks at the bytes of a head before the parser does: it would take other protocols, and hold any length."""
        if len(self._start) < len(_PROTOCOL):
            self._start += data[: len(_PROTOCOL)]
            if not self._start.startswith(_PROTOCOL[: len(self._start)]):
                return False
        # The bytes of earlier calls alone: the last ones may be the body's.
        may_go_on = self._seen <= UNREAD_BYTES_MAX
        self._seen += len(data)
        return may_go_on

    def _may_frame(self, data: bytes) -> bool:
        """Looks at what is around a body before the parser does: it keeps a trailer until its line ends."""
        framing = self._behind - self._size
        self._behind += len(data)
        return framing <= UNREAD_BYTES_MAX + CHUNK_FRAMING_MAX * self._chunks

    def _may_lengthen(self, data: bytes) -> bool:
        """Looks at the line that hasn't ended yet, of a head or around a body."""
        may_lengthen = self._unended <= UNENDED_BYTES_MAX
        line_end = data.rfind(b"\n")
        self._unended = len(data) - line_end - 1 + (self._unended if line_end < 0 else 0)
        return may_lengthen

    def _refuse(self, cause: LossCause) -> None:
        self._refusal = cause
        raise _Refused

    # The parser calls what follows.

    def on_message_begin(self) -> None:
        """Begins a reply, which may be an interim one. Nobody asked for one behind a complete reply."""
        if self._is_complete:
            self._refuse(LossCause.NOT_HTTP)
        self._reason_bytes, self._length, self._is_chunked, self.date = 0, None, False, None

    def on_status(self, reason: bytes) -> None:
        """Counts a part of the reason, of which nothing else is read."""
        self._reason_bytes += len(reason)
        self._head_bytes += len(reason)
        if self._reason_bytes > LINE_BYTES_MAX or self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(LossCause.NOT_HTTP)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Reads a header, or a trailer, of which nothing but its size counts."""
        size = len(name) + len(value)
        self._headers += 1
        self._head_bytes += size
        if size > LINE_BYTES_MAX or self._head_bytes > HEAD_BYTES_MAX or self._headers > HEADERS_MAX:
            self._refuse(LossCause.NOT_HTTP)
        name = name.lower()
        if name not in _TELLING or self._is_headed:
            return
        if name == b"date":
            self.date = value
        elif name == b"content-length":
            self._length = int(value)
        elif name == b"content-encoding":
            if value.lower() not in {b"identity", b""}:
                self._refuse(LossCause.NOT_HTTP)
        elif value.lower() != b"chunked" or self._is_chunked:
            self._refuse(LossCause.NOT_HTTP)
        else:
            self._is_chunked = True

    def on_headers_complete(self) -> None:
        """Decides whether the reply is one, and can be read."""
        status = self._parser.get_status_code()
        if not _STATUS_MIN <= status <= _STATUS_MAX or self._parser.get_http_version() not in _VERSIONS:
            self._refuse(LossCause.NOT_HTTP)
        if status < _FINAL:
            self._interim += 1
            if status == _SWITCHED or self._interim > INTERIM_MAX:
                self._refuse(LossCause.NOT_HTTP)
            return
        if status in _BODILESS:
            self._length, self._is_chunked = 0, False
        elif self._length is not None and self._length > self._bytes_max:
            self._refuse(LossCause.TOO_LARGE)
        self._status = status
        self._is_headed = True

    def on_chunk_header(self) -> None:
        """Counts a chunk."""
        self._chunks += 1
        if self._chunks > CHUNKS_MAX:
            self._refuse(LossCause.TOO_LARGE)

    def on_body(self, piece: bytes) -> None:
        """Keeps a piece of the body."""
        self._size += len(piece)
        self._unended = 0
        if self._size > self._bytes_max:
            self._refuse(LossCause.TOO_LARGE)
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Ends a reply; an interim one doesn't count."""
        if self._is_headed:
            self._is_complete = True
            self.is_reusable = self._parser.should_keep_alive()
