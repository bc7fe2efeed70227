"""A scripted PayHere: it speaks the documented REST protocol, records what it was asked, and misbehaves when told."""

import base64
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from tests.draws import drawn_uuid
from tests.scenarios.waiting import DEADLINE_S, until

PREFIX = "/merchant/v1/"
TOKEN = "oauth/token"
CHARGE = "payment/charge"
CAPTURE = "payment/capture"
REFUND = "payment/refund"
SEARCH = "payment/search"
SUBSCRIPTIONS = "subscription"
RETRY = "subscription/retry"
CANCEL = "subscription/cancel"
COLOMBO = ZoneInfo("Asia/Colombo")
FLOOD_BYTES = 32 * 1024 * 1024  # more than any honest reply


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came in."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at_s: float

    @property
    def path(self) -> str:
        """The path after the protocol's prefix, without its query."""
        return urlsplit(self.target).path.removeprefix(PREFIX)

    @property
    def token(self) -> str:
        """The access token that was presented."""
        return dict(self.headers).get("authorization", "").removeprefix("Bearer ")

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object."""
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    def is_about(self, subject: str) -> bool:
        """Whether the subject stands in the address or in the body, however either is encoded."""
        return subject in unquote(self.target) or subject in self.body.decode() or subject in _values(self.body)


def _values(body: bytes) -> list[str]:
    try:
        value = json.loads(body)
    except ValueError:
        return []
    return [str(member) for member in value.values()] if isinstance(value, dict) else []


class Conversation(BaseHTTPRequestHandler):
    """One connection from the service."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    server: "_Listener"

    def handle_any(self) -> None:
        """Reads one request whole, records it and does what the script says."""
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        fields = tuple((name.lower(), value) for name, value in self.headers.items())
        asked = Asked(method=self.command, target=self.path, headers=fields, body=body, at_s=time.monotonic())
        self.server.double.behave(asked, self)

    do_GET = do_POST = do_DELETE = do_PUT = handle_any  # noqa: N815 - the names that http.server calls

    def handle(self) -> None:
        """Serves the connection; that the service hangs up is no fault here."""
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        """Says nothing: the calls are recorded."""

    def write(self, status: int, body: bytes, *, length: int | None = None, kind: str = "application/json") -> None:
        """Writes one reply, with a length that may be a lie."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def cut(self) -> None:
        """Ends the connection hard, as a crashed peer does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


Behaviour = Callable[[Asked, Conversation], None]


def says(body: object, status: int = 200, *, kind: str = "application/json") -> Behaviour:
    """Answers with this body: text and bytes as they are, everything else as JSON."""
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()

    def behave(_asked: Asked, to: Conversation) -> None:
        to.write(status, content, kind=kind)

    return behave


def refuses(msg: str, status: int = -1, http_status: int = 200) -> Behaviour:
    """Answers with the protocol's envelope of a refusal."""
    return says({"status": status, "msg": msg, "data": None}, http_status)


def denies_the_token(asked: Asked, to: Conversation) -> None:
    """Answers that the presented access token has expired."""
    description = f"Access token expired: {asked.token}"
    to.write(401, json.dumps({"error": "invalid_token", "error_description": description}).encode())


def cuts(_asked: Asked, to: Conversation) -> None:
    """Reads all and hangs up without a word."""
    to.cut()


def breaks_off(asked: Asked, to: Conversation) -> None:
    """Answers well but only by half, and hangs up."""
    content = succeeds(asked)
    to.write(200, content[: len(content) // 2], length=len(content))
    to.cut()


def floods(_asked: Asked, to: Conversation) -> None:
    """Answers with far more than anybody needs."""
    to.write(200, b'{"status":1,"msg":"' + b"x" * FLOOD_BYTES + b'","data":null}')


@dataclass(frozen=True)
class Held:
    """A call that waits at the gateway until the test lets it go."""

    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, asked: Asked, to: Conversation) -> None:
        """Holds the reply back, then answers well."""
        self.arrived.set()
        self.released.wait(DEADLINE_S * 2)
        to.write(200, succeeds(asked))

    def wait_for_arrival(self) -> None:
        """Returns once the call stands at the gateway."""
        assert self.arrived.wait(DEADLINE_S), "no call arrived at the gateway"


def charged(asked: Asked, **changes: object) -> bytes:
    """The documented success of a charge; the amount stands with the very digits of the request."""
    body = json.loads(asked.body, parse_float=_Digits, parse_int=_Digits)
    is_authorization = body.get("type") == "AUTHORIZE"
    data: dict[str, object] = {
        "order_id": body["order_id"],
        "items": body["items"],
        "currency": body["currency"],
        "amount": body["amount"],
        "custom_1": body.get("custom_1"),
        "custom_2": body.get("custom_2"),
        "payment_id": _Digits(str(320_000_000_000 + drawn_uuid().int % 10**11)),
        "status_code": 3 if is_authorization else 2,
        "status_message": "Successfully completed the test tokenized payment.",
        "md5sig": "A098FEBCC06293734641770555B4D569",
        "authorization_token": str(drawn_uuid()) if is_authorization else None,
    }
    return envelope("Automatic payment charged successfully", data | changes)


class _Digits(str):
    """A number's own digits."""

    __slots__ = ()


def _json(value: object) -> str:
    if isinstance(value, _Digits):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(member)}" for name, member in value.items()) + "}"
    return json.dumps(value)


def envelope(msg: str, data: object, status: int = 1) -> bytes:
    """The protocol's envelope."""
    return _json({"status": status, "msg": msg, "data": data}).encode()


def captured(asked: Asked, **changes: object) -> bytes:
    """The documented success of a capture of a hold of 1,000."""
    body = json.loads(asked.body, parse_float=_Digits, parse_int=_Digits)
    data: dict[str, object] = {
        "status_code": 2,
        "status_message": "Successfully received the VISA payment",
        "payment_id": 320025527952,
        "currency": "LKR",
        "amount": _Digits("1000.0"),
        "captured_amount": body["amount"],
        "items": "Toy Car",
        "order_id": "Order12345",
        "md5sig": "27EE69A66E761D20429984A0CB0AFC27",
        "custom_1": "ABCD",
        "custom_2": None,
    }
    return envelope("Successfully captured payment", data | changes)


def succeeds_with(**changes: object) -> Behaviour:
    """A charge that succeeds, with other data than documented."""

    def behave(asked: Asked, to: Conversation) -> None:
        to.write(200, charged(asked, **changes))

    return behave


def captures_with(**changes: object) -> Behaviour:
    """A capture that succeeds, with other data than documented."""

    def behave(asked: Asked, to: Conversation) -> None:
        to.write(200, captured(asked, **changes))

    return behave


def succeeds_as_documented(asked: Asked, to: Conversation) -> None:
    """Answers as the protocol's page shows it."""
    to.write(200, succeeds(asked))


def payment(order_id: str, **changes: object) -> dict[str, object]:
    """A payment record as the protocol's page shows it."""
    return {
        "payment_id": 320025071278,
        "order_id": order_id,
        "date": "2020-01-16 16:21:02",
        "description": "Taxi Hire 123",
        "status": "RECEIVED",
        "currency": "LKR",
        "amount": _Digits("50"),
        "customer": {
            "fist_name": "Saman",
            "last_name": "Perera",
            "email": "saman@example.com",
            "phone": "+94771234567",
            "delivery_details": {"address": "N0.1, Galle Road", "city": "Colombo", "country": ""},
        },
        "amount_detail": {
            "currency": "LKR",
            "gross": _Digits("500"),
            "fee": _Digits("14.50"),
            "net": _Digits("485.50"),
            "exchange_rate": _Digits("1.0"),
            "exchange_from": "LKR",
            "exchange_to": "LKR",
        },
        "payment_method": {"method": "VISA", "card_customer_name": "S Perera", "card_no": "************1234"},
        "items": None,
    } | changes


def payment_now(order_id: str, amount: str) -> dict[str, object]:
    """The record of a payment that was taken at this moment, dated as the gateway dates: Colombo's clock, no zone."""
    date = datetime.now(tz=COLOMBO).strftime("%Y-%m-%d %H:%M:%S")
    return payment(order_id, payment_id=320_000_000_000 + drawn_uuid().int % 10**11, date=date, amount=_Digits(amount))


def found(*records: dict[str, object], msg: str = "Found payments") -> bytes:
    """The envelope of a list."""
    members = ",".join(_json(record) for record in records)
    return f'{{"status":1,"msg":{json.dumps(msg)},"data":[{members}]}}'.encode()


def succeeds(asked: Asked) -> bytes:
    """The documented success of the call that was asked; a search finds nothing."""
    if asked.path == CHARGE:
        return charged(asked)
    if asked.path == CAPTURE:
        return captured(asked)
    if asked.path == REFUND:
        released = "authorization_token" in asked.json
        msg = "Successfully processed the authorization refund" if released else "Successfully processed the refund"
        return envelope(msg, None if released else 560034010257)
    if asked.path == SEARCH:
        return envelope("No payments found", None, -1)
    if asked.path == RETRY:
        return envelope("Recurring payment charged successfully", None)
    if asked.path == CANCEL:
        return envelope("Successfully cancelled the subscription", None)
    if asked.path == SUBSCRIPTIONS:
        return found(msg="Found 0 subscriptions")
    if asked.path.endswith("/payments"):
        return found(payment("Order0003"), msg="Found 1 payments")
    return envelope("Found subscription", {"subscription_id": _Digits(asked.path.rpartition("/")[2])})


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    double: "GatewayDouble"

    def handle_error(self, *_: object) -> None:
        """A connection that the service broke is no fault here."""


class GatewayDouble:
    """The gateway's address, its scripts and its record of calls."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.tokens: list[str] = []
        self._scripts: list[tuple[str, str, Behaviour]] = []
        self._habits: list[tuple[str, str, Behaviour]] = []
        self._lock = threading.Lock()
        self._listener: _Listener | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()

    def listen(self) -> None:
        """Takes calls, on the same port as before where there was one."""
        self._listener = _Listener(("127.0.0.1", self.port), Conversation)
        self._listener.double = self
        self.port = self._listener.server_address[1]
        threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def leave(self) -> None:
        """Takes no calls any more: a connection is refused."""
        if self._listener is not None:
            self._listener.shutdown()
            self._listener.server_close()
            self._listener = None

    @property
    def base_url(self) -> str:
        """What BASE_URL must be."""
        return f"http://127.0.0.1:{self.port}"

    def script(self, path: str, subject: str, *behaviours: Behaviour) -> None:
        """The next calls to the path about the subject are answered so, each once; afterwards as documented."""
        with self._lock:
            self._scripts += [(path, subject, behaviour) for behaviour in behaviours]

    def always(self, path: str, subject: str, behaviour: Behaviour) -> None:
        """Every call to the path about the subject is answered so, once the scripts are played."""
        with self._lock:
            self._habits.insert(0, (path, subject, behaviour))

    def hold(self, path: str, subject: str) -> Held:
        """The next call to the path about the subject waits."""
        held = Held()
        self.script(path, subject, held)
        return held

    def calls(self, path: str, subject: str) -> list[Asked]:
        """What was asked at the path about the subject."""
        with self._lock:
            return [asked for asked in self.asked if asked.path == path and asked.is_about(subject)]

    def count(self, path: str, subject: str) -> int:
        """How often the path was asked about the subject."""
        return len(self.calls(path, subject))

    def wait_for(self, path: str, subject: str, times: int = 1) -> None:
        """Returns once the path was asked so often about the subject."""
        until(lambda: self.count(path, subject) >= times, f"{times} calls of {path} about {subject}")

    def behave(self, asked: Asked, to: Conversation) -> None:
        """Records the call and plays the first script that fits it."""
        with self._lock:
            self.asked.append(asked)
            behaviour = self._take_script(asked)
        if behaviour is not None:
            behaviour(asked, to)
        elif asked.path == TOKEN:
            self._give_token(asked, to)
        else:
            to.write(200, succeeds(asked))

    def _take_script(self, asked: Asked) -> Behaviour | None:
        for entry in self._scripts + self._habits:
            path, subject, behaviour = entry
            if asked.path == path and (asked.is_about(subject) or subject == app_id(asked)):
                if entry in self._scripts:
                    self._scripts.remove(entry)
                return behaviour
        return None

    def _give_token(self, asked: Asked, to: Conversation) -> None:
        token = str(drawn_uuid())
        with self._lock:
            self.tokens.append(token)
        reply = {"access_token": token, "token_type": "bearer", "expires_in": 599, "scope": "SANDBOX"}
        if not dict(asked.headers).get("authorization", "").startswith("Basic "):
            to.write(401, b'{"error":"unauthorized","error_description":"Full authentication is required"}')
            return
        to.write(200, json.dumps(reply).encode())


def app_id(asked: Asked) -> str:
    """The application that asks for a token; empty for every other call."""
    field_value = dict(asked.headers).get("authorization", "")
    if not field_value.startswith("Basic "):
        return ""
    return base64.b64decode(field_value.removeprefix("Basic ")).decode().partition(":")[0]
