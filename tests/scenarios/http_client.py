"""A plain HTTP caller that changes nothing on the way: the path, the headers and the body go out as they were given."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

CALL_TIMEOUT_S = 30.0  # longer than every time-out of the service in these stories

JsonObject = dict[str, Any]
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Raw:
    """A JSON value exactly as it shall be written (an amount with its zeros, an exponent)."""

    text: str


def encode(value: object) -> str:
    """The JSON text of a value, where a Raw stands as it is."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{encode(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(encode(entry) for entry in value) + "]"
    return json.dumps(value)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back, to the byte."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: str) -> str | None:
        """The header field's only value, or None."""
        values = [value for field, value in self.headers if field.lower() == name.lower()]
        assert len(values) <= 1, f"{name} came more than once: {values}"
        return values[0] if values else None

    @property
    def json(self) -> JsonObject:
        """The body, which must be a JSON object."""
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> JsonObject:
        """The member `error`; empty where there is none."""
        member = self.json.get("error", {})
        assert isinstance(member, dict)
        return member

    @property
    def code(self) -> str | None:
        """The error's code, or None for a success."""
        return self.error.get("code")

    def __str__(self) -> str:
        return f"{self.status} {self.body[:600]!r}"


@dataclass(frozen=True, kw_only=True)
class Client:
    """One caller of one account, with one credential."""

    port: int
    key: str | None
    account: str = "gateway"

    def at(self, account: str) -> "Client":
        """The same caller at another account."""
        return replace(self, account=account)

    def holding(self, key: str | None) -> "Client":
        """Another caller at the same account."""
        return replace(self, key=key)

    def get(self, path: str, headers: Headers = ()) -> Reply:
        """GET under the account's prefix."""
        return self.send("GET", f"/{self.account}/api/{path}", headers=headers)

    def post(self, path: str, body: object = None, *, key: str | None = None, headers: Headers = ()) -> Reply:
        """POST under the account's prefix, with an Idempotency-Key where one is given."""
        return self._change("POST", path, body, key=key, headers=headers)

    def delete(self, path: str, body: object = None, *, key: str | None = None, headers: Headers = ()) -> Reply:
        """DELETE under the account's prefix, with an Idempotency-Key where one is given."""
        return self._change("DELETE", path, body, key=key, headers=headers)

    def change(self, path: str, body: object) -> Reply:
        """PATCH under the account's prefix."""
        return self._change("PATCH", path, body, key=None, headers=())

    def charge(self, body: object, *, key: str | None = None) -> Reply:
        """The call that moves money."""
        return self.post("payments/charge", body, key=key)

    def chunked(self, path: str, chunks: bytes) -> Reply:
        """POST of a body without a length, whose chunks are given as they go over the wire."""
        fields = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
        return self.send("POST", f"/{self.account}/api/{path}", chunks, fields)

    def _change(self, method: str, path: str, body: object, *, key: str | None, headers: Headers) -> Reply:
        content = None if body is None else body if isinstance(body, bytes) else encode(body).encode()
        fields = list(headers)
        if key is not None:
            fields.append(("Idempotency-Key", key))
        if content is not None and not any(name.lower() == "content-type" for name, _ in fields):
            fields.append(("Content-Type", "application/json"))
        return self.send(method, f"/{self.account}/api/{path}", content, fields)

    def send(self, method: str, target: str, body: bytes | None = None, headers: Headers = ()) -> Reply:
        """Any request, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_TIMEOUT_S)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            if self.key is not None:
                connection.putheader("Authorization", f"Bearer {self.key}")
            for name, value in headers:
                connection.putheader(name, value)
            if method != "GET" and ("Transfer-Encoding", "chunked") not in headers:
                connection.putheader("Content-Length", str(len(body or b"")))
            with contextlib.suppress(BrokenPipeError):  # an answer may come before a body that is too long has gone
                connection.endheaders(body)
            response = connection.getresponse()
            return Reply(status=response.status, headers=response.getheaders(), body=response.read())
        finally:
            connection.close()

    @contextlib.contextmanager
    def leaving(self, path: str, body: object, key: str) -> Iterator[None]:
        """Sends a POST and hangs up, without reading, at the end of the block."""
        content = encode(body).encode()
        with self.connected() as wire:
            wire.sendall(self.request("POST", path, content, [("Idempotency-Key", key)]))
            yield

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A bare connection to the service."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=CALL_TIMEOUT_S) as wire:
            yield wire

    def request(self, method: str, path: str, content: bytes = b"", headers: Headers = ()) -> bytes:
        """A whole request as bytes."""
        fields = [("Host", "127.0.0.1"), ("Authorization", f"Bearer {self.key}"), *headers]
        if method != "GET":
            fields += [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
        lines = [f"{method} /{self.account}/api/{path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + content
