"""The parts of a request before it is parsed: headers, the client's address, and the body."""

import asyncio
import ipaddress
import os
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from functools import lru_cache
from typing import Any, Final

from payrelay.errors import Code, Refusal

BODY_BYTES_MAX: Final = 65_536
"""A charge with a full item list has some 20 KiB."""
BODY_TIMEOUT_S: Final = 10.0
"""From the beginning of the read to the last byte; a phone on a bad connection sends 1 KiB in less."""
REQUEST_ID_LENGTH_MAX: Final = 128
"""Longer than any tracing id, short enough for a log line."""
HOPS_MAX: Final = 20
"""The most proxies through which a forwarded address is followed."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

CLOSE: Final = (("Connection", "close"),)
"""In the answer to a request whose body was not read to its end."""

_safe_request_id: Final = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,%d}" % REQUEST_ID_LENGTH_MAX).fullmatch
_json_type: Final = re.compile(rb'application/json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*;?', re.IGNORECASE).fullmatch
_has_port: Final = re.compile(r"([0-9.]+):[0-9]{1,5}|\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?").fullmatch
_PLAIN_JSON: Final = b"application/json"
_LENGTH_DIGITS_MAX: Final = 19
"""More than any body has; the server itself refuses a length that is no number."""
_ID_BYTES: Final = 12
_IDS_DRAWN: Final = 256
"""Ids whose random bytes are drawn at once: to ask the kernel for each took a hundredth of a replay."""
_ADDRESSES_CACHED: Final = 4096
"""Addresses whose lookup is cached; each lookup takes some 10 µs."""


class Headers:
    """The headers of a request; the server gives their names in lower case."""

    __slots__ = ("_pairs", "_values")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs
        self._values = dict(pairs)

    def get(self, name: bytes) -> bytes | None:
        """Gives the last header with this name, or None."""
        return self._values.get(name)

    def every(self, name: bytes) -> list[bytes]:
        """Gives all headers with this name, in their order."""
        if name not in self._values:
            return []
        if len(self._values) == len(self._pairs):
            return [self._values[name]]
        return [value for given, value in self._pairs if given == name]

    def texts(self) -> dict[str, str]:
        """Gives all headers as text; values of one name are joined by commas, as HTTP defines it."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in self._pairs:
            values.setdefault(name, []).append(value)
        return {name.decode("latin-1"): b", ".join(every).decode("latin-1") for name, every in values.items()}

    def is_doubled(self, name: bytes) -> bool:
        """True where the request has more than one header with this name."""
        return len(self._values) != len(self._pairs) and len(self.every(name)) > 1

    def has_body(self) -> bool:
        """True where the headers announce a body."""
        return self._values.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self._values

    def is_forwarded(self) -> bool:
        """True where a proxy says that it forwards for a client."""
        return b"x-forwarded-for" in self._values or b"forwarded" in self._values


def request_id_of(headers: Headers) -> str:
    """Gives the client's X-Request-Id where it is 1 to 128 allowed characters, else a new id."""
    given = headers.get(b"x-request-id")
    # Two of them count as none: the service can't know which one the client will search for.
    if given is not None and _safe_request_id(given) and not headers.is_doubled(b"x-request-id"):
        return given.decode()
    return _new_request_id()


def _new_request_ids() -> Iterator[str]:
    """Makes ids that nobody has, for one thread; nothing follows from one but that it finds lines of the log."""
    digits = 2 * _ID_BYTES
    while True:
        drawn = os.urandom(_ID_BYTES * _IDS_DRAWN).hex()
        for start in range(0, len(drawn), digits):
            yield f"req_{drawn[start : start + digits]}"


_new_request_id: Final = _new_request_ids().__next__


class Networks:
    """A set of networks; the lookup of an address is cached."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.has = lru_cache(maxsize=_ADDRESSES_CACHED)(self._has)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def _has(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return any((mapped or address) in network for network in self._networks)


def client_address(peer: str, headers: Headers, trusted: Networks) -> str:
    """Gives the client's address: the peer's, or the one that a chain of trusted proxies forwards for.

    X-Forwarded-For is read from its end, as long as each next address is a trusted proxy. The client could have written
    anything that stands before.
    """
    if not trusted or not headers.is_forwarded() or not trusted.has(peer):
        return peer
    client = peer
    hops = b",".join(headers.every(b"x-forwarded-for")).decode("latin-1").split(",")
    for hop in reversed(hops[-HOPS_MAX:]):
        host = _without_port(hop.strip())
        if not _is_address(host):
            break
        client = host
        if not trusted.has(host):
            break
    return client


def _without_port(hop: str) -> str:
    """Some proxies forward the port as well: 192.0.2.1:5000, or [2001:db8::1]:5000."""
    found = _has_port(hop)
    return hop if found is None else found[1] or found[2]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def peer_of(scope: Scope) -> str:
    """Gives the address at the other end of the connection; an empty text where there is none."""
    client = scope.get("client")
    return client[0] if client else ""


async def disconnected(receive: Receive) -> None:
    """Returns when the client has disconnected; anything that it still sends is discarded."""
    while (await receive())["type"] != "http.disconnect":
        pass


def require_json(headers: Headers) -> None:
    """Raises Refusal (unsupported_media_type) unless the headers announce plain JSON in UTF-8, not compressed."""
    content_type = headers.get(b"content-type")
    is_plain = content_type == _PLAIN_JSON or (
        content_type is not None and _json_type(content_type.strip()) and not headers.is_doubled(b"content-type")
    )
    if not is_plain:
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json")
    _require_uncompressed(headers)


def require_type(headers: Headers, media_type: str) -> None:
    """Raises Refusal (unsupported_media_type) unless the headers announce a body of this type, not compressed."""
    content_type = headers.get(b"content-type")
    given = (content_type or b"").partition(b";")[0].strip().lower().decode("latin-1")
    if given != media_type or headers.is_doubled(b"content-type"):
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, f"the Content-Type must be {media_type}")
    _require_uncompressed(headers)


def _require_uncompressed(headers: Headers) -> None:
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")


class BodyTimeout:
    """The time limit for bodies; it cancels tasks that read one for too long.

    One timer serves all reads, because each may last equally long. To arm and cancel one for each body took a
    twentieth of a replay.
    """

    __slots__ = ("_loop", "_reads", "_timer", "timeout_s")

    def __init__(self, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        self._reads: dict[_Read, None] = {}
        """Those under way, the first to end first."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> "_Read":
        """Notes that the current task begins to read a body; the caller ends with ``end``."""
        loop = asyncio.get_running_loop()
        read = _Read(asyncio.current_task(loop), loop.time() + self.timeout_s)
        if self._timer is None or self._loop is not loop:
            self._loop, self._timer = loop, loop.call_later(self.timeout_s, self._strike)
        self._reads[read] = None
        return read

    def end(self, read: "_Read") -> None:
        """Notes that a body is read, or won't be."""
        self._reads.pop(read, None)

    def _strike(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        self._timer = None
        while self._reads:
            read = next(iter(self._reads))
            if read.ends_s > now_s:
                self._timer = loop.call_at(read.ends_s, self._strike)
                return
            del self._reads[read]
            read.strike()


class _Read:
    """The read of a body by a task, until a point of the event loop's time."""

    __slots__ = ("_is_over", "_task", "ends_s")

    def __init__(self, task: "asyncio.Task[object] | None", ends_s: float) -> None:
        self.ends_s = ends_s
        self._task = task
        self._is_over = False

    def strike(self) -> None:
        """Cancels the task."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    def has_struck(self) -> bool:
        """True where this object cancelled the task, and nobody else did; the cancellation is then withdrawn."""
        return self._is_over and self._task is not None and self._task.uncancel() == 0


async def read_body(receive: Receive, headers: Headers, timeout: BodyTimeout) -> bytes:  # noqa: ASYNC109
    """Reads the body to its end.

    Raises Refusal: too_large for more than BODY_BYTES_MAX, announced or received; malformed_request where the body
    doesn't arrive in time or as a whole. Such an answer closes the connection.
    """
    length = _length(headers.get(b"content-length"))
    if length is not None and length > BODY_BYTES_MAX:
        raise _too_large()
    read = timeout.begin()
    try:
        message = await receive()
        body: bytes = message.get("body", b"")
        if len(body) == length:
            # A body usually comes in one message; the final empty one need not be awaited.
            return body
        return await _rest(receive, message, body)
    except asyncio.CancelledError:
        if not read.has_struck():
            raise
        msg = f"the body did not arrive within {timeout.timeout_s:g} s"
        raise Refusal(Code.MALFORMED_REQUEST, msg, headers=CLOSE) from None
    finally:
        timeout.end(read)


async def _rest(receive: Receive, message: Message, body: bytes) -> bytes:
    pieces, total = [body], len(body)
    while message.get("more_body", False):
        if total > BODY_BYTES_MAX:
            raise _too_large()
        message = await receive()
        pieces.append(message.get("body", b""))
        total += len(pieces[-1])
    if message["type"] == "http.disconnect":
        raise Refusal(Code.MALFORMED_REQUEST, "the client disconnected before the end of the body", headers=CLOSE)
    if total > BODY_BYTES_MAX:
        raise _too_large()
    return b"".join(pieces)


def _length(value: bytes | None) -> int | None:
    is_number = value is not None and value.isdigit() and len(value) <= _LENGTH_DIGITS_MAX
    return int(value) if is_number and value is not None else None


def _too_large() -> Refusal:
    return Refusal(Code.TOO_LARGE, f"the body is over {BODY_BYTES_MAX} bytes", headers=CLOSE)
