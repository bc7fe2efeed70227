"""What a request brings along before anybody looks into it: its headers, its address, its body."""

import asyncio
import ipaddress
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, Final

from payrelay.errors import Code, Refusal

BODY_BYTES_MAX: Final = 65_536
"""A charge with a full item list has some 20 KiB."""
BODY_TIMEOUT_S: Final = 10.0
"""From the first look for the body to its last byte; a phone on a bad line sends 1 KiB in less."""
REQUEST_ID_LENGTH_MAX: Final = 128
"""Longer than any tracing id, short enough for a log line."""
HOPS_MAX: Final = 20
"""Proxies that a forwarded address is followed through."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

CLOSE: Final = (("Connection", "close"),)
"""With the answer to a body that wasn't read to its end."""

_safe_request_id: Final = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,%d}" % REQUEST_ID_LENGTH_MAX).fullmatch
_json_type: Final = re.compile(rb'application/json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*;?', re.IGNORECASE).fullmatch
_PLAIN_JSON: Final = b"application/json"
_LENGTH_DIGITS_MAX: Final = 19
"""More than any body; the server refuses what is no number at all."""
_ADDRESSES_KEPT: Final = 4096
"""Addresses whose networks are remembered; each is a lookup of some 10 µs otherwise."""


class Headers:
    """The headers of a request; the server has written their names in small letters."""

    __slots__ = ("_pairs", "_values")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs
        self._values = dict(pairs)

    def get(self, name: bytes) -> bytes | None:
        """Gives the header of that name; the last one where there are more, None where there is none."""
        return self._values.get(name)

    def every(self, name: bytes) -> list[bytes]:
        """Gives all the headers of that name, in the order in which they came."""
        if name not in self._values:
            return []
        return [value for given, value in self._pairs if given == name]

    def texts(self) -> dict[str, str]:
        """Gives all of them as text, the values of one name joined as HTTP has it."""
        return {name.decode("latin-1"): b", ".join(self.every(name)).decode("latin-1") for name in self._values}

    def is_doubled(self, name: bytes) -> bool:
        """True where there is more than one of that name."""
        return len(self._values) != len(self._pairs) and len(self.every(name)) > 1

    def has_body(self) -> bool:
        """True where the request says that a body follows."""
        return self._values.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self._values

    def is_forwarded(self) -> bool:
        """True where somebody in between says that it speaks for the client."""
        return b"x-forwarded-for" in self._values or b"forwarded" in self._values


def request_id_of(headers: Headers) -> str:
    """Gives the caller's X-Request-Id where it is 1 to 128 harmless characters, else a fresh one."""
    given = headers.get(b"x-request-id")
    # Two of them are none: there is no telling which one the caller will look for.
    if given is not None and _safe_request_id(given) and not headers.is_doubled(b"x-request-id"):
        return given.decode()
    return f"req_{os.urandom(12).hex()}"


class Networks:
    """A set of networks; an address is looked up once and then remembered."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.has = lru_cache(maxsize=_ADDRESSES_KEPT)(self._has)

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
    """Gives who is calling: the peer, or whom the trusted proxies in a row say that they speak for.

    X-Forwarded-For is read from its end, and only as far as each next speaker is trusted: what stands before that is
    whatever the client wrote.
    """
    if not trusted or not headers.is_forwarded() or not trusted.has(peer):
        return peer
    client = peer
    hops = b",".join(headers.every(b"x-forwarded-for")).decode("latin-1").split(",")
    for hop in reversed(hops[-HOPS_MAX:]):
        host = hop.strip()
        if not _is_address(host):
            break
        client = host
        if not trusted.has(host):
            break
    return client


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
    """Returns when the client has gone; whatever it still sends before that is not looked at."""
    while (await receive())["type"] != "http.disconnect":
        pass


def require_json(headers: Headers) -> None:
    """Raises Refusal (unsupported_media_type) unless the body says that it is plain JSON in UTF-8."""
    content_type = headers.get(b"content-type")
    is_plain = content_type == _PLAIN_JSON or (
        content_type is not None and _json_type(content_type.strip()) and not headers.is_doubled(b"content-type")
    )
    if not is_plain:
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json")
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")


def require_type(headers: Headers, media_type: str) -> None:
    """Raises Refusal (unsupported_media_type) unless the body says that it is of this type, and not compressed."""
    content_type = headers.get(b"content-type")
    given = (content_type or b"").partition(b";")[0].strip().lower().decode("latin-1")
    if given != media_type or headers.is_doubled(b"content-type"):
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, f"the Content-Type must be {media_type}")
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")


async def read_body(receive: Receive, headers: Headers, timeout_s: float) -> bytes:
    """Reads the body to its end.

    Raises Refusal: too_large over BODY_BYTES_MAX, by what Content-Length says and by what comes; malformed_request
    where it doesn't come in time or whole. The answer then closes the connection.
    """
    length = _length(headers.get(b"content-length"))
    if length is not None and length > BODY_BYTES_MAX:
        raise _too_large()
    expiry = _Expiry(timeout_s)
    try:
        message = await receive()
        body: bytes = message.get("body", b"")
        if len(body) == length:
            # One message is the rule; the one that only says that nothing follows need not be waited for.
            return body
        return await _rest(receive, message, body)
    except asyncio.CancelledError:
        if not expiry.has_struck():
            raise
        msg = f"the body did not arrive within {timeout_s:g} s"
        raise Refusal(Code.MALFORMED_REQUEST, msg, headers=CLOSE) from None
    finally:
        expiry.end()


class _Expiry:
    """Cancels the task after a while; what ``asyncio.timeout`` does, in a fifth of its time on every charge."""

    __slots__ = ("_is_over", "_task", "_timer")

    def __init__(self, timeout_s: float) -> None:
        self._is_over = False
        self._task = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._strike)

    def _strike(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    def has_struck(self) -> bool:
        """True where the cancellation is ours; it is then taken back, unless somebody else has cancelled as well."""
        return self._is_over and self._task is not None and self._task.uncancel() == 0

    def end(self) -> None:
        """Lets the task be."""
        self._timer.cancel()


async def _rest(receive: Receive, message: Message, body: bytes) -> bytes:
    pieces, total = [body], len(body)
    while message.get("more_body", False):
        if total > BODY_BYTES_MAX:
            raise _too_large()
        message = await receive()
        pieces.append(message.get("body", b""))
        total += len(pieces[-1])
    if message["type"] == "http.disconnect":
        raise Refusal(Code.MALFORMED_REQUEST, "the body ended before its end", headers=CLOSE)
    if total > BODY_BYTES_MAX:
        raise _too_large()
    return b"".join(pieces)


def _length(value: bytes | None) -> int | None:
    is_number = value is not None and value.isdigit() and len(value) <= _LENGTH_DIGITS_MAX
    return int(value) if is_number and value is not None else None


def _too_large() -> Refusal:
    return Refusal(Code.TOO_LARGE, f"the body is over {BODY_BYTES_MAX} bytes", headers=CLOSE)
