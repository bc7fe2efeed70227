"""What a request brings along before anybody looks into it: its headers, its address, its body."""

import asyncio
import ipaddress
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, Final

import msgspec

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

_safe_request_id: Final = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}").fullmatch
_json_type: Final = re.compile(rb'application/json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*;?', re.IGNORECASE).fullmatch
_ADDRESSES_KEPT: Final = 4096
"""Addresses whose networks are remembered; each is a lookup of some 10 µs otherwise."""


class Headers(msgspec.Struct, gc=False):
    """The headers that we read; a list where a second one of the name matters."""

    authorization: bytes | None = None
    is_authorization_doubled: bool = False
    idempotency_keys: tuple[str, ...] = ()
    content_type: bytes | None = None
    content_encoding: bytes | None = None
    content_length: bytes | None = None
    is_chunked: bool = False
    request_id: bytes | None = None
    forwarded: tuple[bytes, ...] = ()
    is_forwarded: bool = False


def read_headers(pairs: list[tuple[bytes, bytes]]) -> Headers:
    """Gathers what we need in one pass; the server has written the names in small letters."""
    headers = Headers()
    for name, value in pairs:
        reader = _READERS.get(name)
        if reader is not None:
            reader(headers, value)
    return headers


def _authorization(headers: Headers, value: bytes) -> None:
    headers.is_authorization_doubled = headers.authorization is not None
    headers.authorization = value


def _idempotency_key(headers: Headers, value: bytes) -> None:
    headers.idempotency_keys = (*headers.idempotency_keys, value.decode("latin-1"))


def _content_type(headers: Headers, value: bytes) -> None:
    headers.content_type = value if headers.content_type is None else headers.content_type + b", " + value


def _content_encoding(headers: Headers, value: bytes) -> None:
    headers.content_encoding = value


def _content_length(headers: Headers, value: bytes) -> None:
    headers.content_length = value


def _transfer_encoding(headers: Headers, _: bytes) -> None:
    headers.is_chunked = True


def _request_id(headers: Headers, value: bytes) -> None:
    # Two of them are none: there is no telling which one the caller will look for.
    headers.request_id = value if headers.request_id is None else b""


def _forwarded_for(headers: Headers, value: bytes) -> None:
    headers.forwarded = (*headers.forwarded, value)
    headers.is_forwarded = True


def _forwarded(headers: Headers, _: bytes) -> None:
    headers.is_forwarded = True


_READERS: Final[dict[bytes, Callable[[Headers, bytes], None]]] = {
    b"authorization": _authorization,
    b"idempotency-key": _idempotency_key,
    b"content-type": _content_type,
    b"content-encoding": _content_encoding,
    b"content-length": _content_length,
    b"transfer-encoding": _transfer_encoding,
    b"x-request-id": _request_id,
    b"x-forwarded-for": _forwarded_for,
    b"forwarded": _forwarded,
}


def request_id_of(headers: Headers) -> str:
    """Gives the caller's X-Request-Id where it is 1 to 128 harmless characters, else a fresh one."""
    given = headers.request_id
    if given and _safe_request_id(given):
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
    if not headers.forwarded or not trusted or not trusted.has(peer):
        return peer
    client = peer
    hops = b",".join(headers.forwarded).decode("latin-1").split(",")
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


def require_json(headers: Headers) -> None:
    """Raises Refusal (unsupported_media_type) unless the body says that it is plain JSON in UTF-8."""
    if headers.content_type is None or _json_type(headers.content_type.strip()) is None:
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json")
    encoding = headers.content_encoding
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")


async def read_body(receive: Receive, headers: Headers, timeout_s: float) -> bytes:
    """Reads the body to its end.

    Raises Refusal: too_large over BODY_BYTES_MAX, by what Content-Length says and by what comes; malformed_request
    where it doesn't come in time or whole. The answer then closes the connection.
    """
    length = None if headers.content_length is None else _length(headers.content_length)
    if length == 0 and not headers.is_chunked:
        return b""
    if length is not None and length > BODY_BYTES_MAX:
        raise _too_large()
    try:
        async with asyncio.timeout(timeout_s):
            return await _received(receive, length)
    except TimeoutError:
        raise Refusal(
            Code.MALFORMED_REQUEST, f"the body did not arrive within {timeout_s:g} s", headers=CLOSE
        ) from None


async def _received(receive: Receive, length: int | None) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if length == len(body):
        # One message is the rule; the one that only says that nothing follows need not be waited for.
        return body
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


def _length(value: bytes) -> int | None:
    is_number = value.isdigit() and len(value) <= len(str(2**63))
    return int(value) if is_number else None


def _too_large() -> Refusal:
    return Refusal(Code.TOO_LARGE, f"the body is over {BODY_BYTES_MAX} bytes", headers=CLOSE)
