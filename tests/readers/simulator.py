"""The readers of what merchants and their pages send to the simulator, and of what their addresses answer."""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote_plus, urlencode

from tests.readers.peers import ANSWER_BYTES, FIELD_BYTES_MAX, HTTP
from tests.readers.reader import Reader, Shape
from tests.scripted_peer import scripted_peer

from payrelay_simulator import Simulator
from payrelay_simulator.notifications import Message
from payrelay_simulator.overview import Shown, overview_page
from payrelay_simulator.pages.cards import CARD_METHODS, Typed, means_of
from payrelay_simulator.pages.forms import REQUIRED, VALUE_LENGTH_MAX, read_form
from payrelay_simulator.server import REQUEST_LINE_BYTES_MAX, serve
from payrelay_simulator.switches import Switches
from payrelay_simulator.tokens import basic_authorization
from payrelay_simulator.wire import BODY_BYTES_MAX
from payrelay_simulator.world import Call

BODY_BYTES: Final = BODY_BYTES_MAX // 16
"""Of a body: a part of the limit, which would take Callgrind minutes, and enough to see a square."""
FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"
SIMULATOR: Final = Simulator(switches=Switches(rate_limit_calls=0))
MERCHANT: Final = SIMULATOR.merchant
ASKED: Final = Call(
    method="POST",
    path="/merchant/v1/oauth/token",
    authorization=basic_authorization(MERCHANT),
    content_type=FORM,
    body=b"grant_type=client_credentials",
)
BEARER: Final = f"Bearer {SIMULATOR.world.handle(ASKED).document['access_token']}"
FILLED: Final[Mapping[str, str]] = {
    **dict.fromkeys(REQUIRED, "a"),
    "merchant_id": MERCHANT.merchant_id,
    **dict.fromkeys(("return_url", "cancel_url", "notify_url"), "https://shop.example/"),
    "email": "a@shop.example",
    "phone": "0771234567",
    "currency": "LKR",
    "amount": "10.00",
    "recurrence": "1 Month",
    "duration": "1 Year",
}
MARKS: Final = quote_plus("\u0315\u0300").encode()


def _form(text: bytes) -> object:
    world = SIMULATOR.world
    return read_form(
        "checkout",
        text,
        content_type=FORM,
        referer="https://shop.example/",
        merchants=world.merchants,
        switches=world.switches,
        now=world.clock.now(),
    )


def _called(text: bytes, path: str) -> None:
    SIMULATOR.world.handle(
        Call(method="POST", path=f"/merchant/v1/{path}", authorization=BEARER, content_type=JSON, body=text)
    )


def _found(text: bytes) -> None:
    path, _, query = text.decode().partition("?")
    SIMULATOR.world.handle(Call(method="GET", path=f"/merchant/v1/{path}", query=query, authorization=BEARER))


def _token(text: bytes) -> None:
    call = Call(
        method="POST",
        path="/merchant/v1/oauth/token",
        authorization=basic_authorization(MERCHANT),
        content_type=FORM,
        body=text,
    )
    SIMULATOR.world.handle(call)


def _authorized(text: bytes) -> None:
    SIMULATOR.world.handle(Call(method="GET", path="/merchant/v1/subscription", authorization=text.decode()))


def _sent(text: bytes) -> None:
    """Sends bytes over a socket, and waits for the end of what is answered."""

    async def sent() -> None:
        async with serve(Simulator()) as running:
            reader, writer = await asyncio.open_connection(*running.listener.address)
            writer.write(text)
            assert await reader.read()
            writer.close()

    asyncio.run(sent())


def _ordered(text: bytes, path: str) -> None:
    head = b"POST /_sim/%b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    _sent(head % (path.encode(), len(text)) + text)


def _notified(text: bytes) -> None:
    """Sends a notification to an address that answers with this text."""

    async def notified() -> None:
        simulator, done = Simulator(), asyncio.Event()
        world = simulator.world
        async with scripted_peer() as shop:
            shop.reply, shop.is_cut = text, True
            fields = {"merchant_id": MERCHANT.merchant_id, "order_id": "A", "payhere_amount": "1.00"}
            message = Message(
                flow="payment", notify_url=shop.address, fields=fields | {"payhere_currency": "LKR", "status_code": "2"}
            )
            (number,) = world.notifications.plan(world.clock.now(), message)
            simulator.stage.changed = lambda: done.set() if world.notifications.is_over(number) else None
            async with serve(simulator):
                await done.wait()

    asyncio.run(notified())


def _typed(text: bytes) -> None:
    typed = text.decode()
    means_of(
        Typed(holder_name=typed, number=typed, expiry=f"12/29{typed}", security_code=typed, method=typed), CARD_METHODS
    )


def _field(name: str, what: str, piece: bytes, before: bytes = b"") -> Shape:
    """Gives a form that is in order, but for one long value."""
    rest = urlencode({each: value for each, value in FILLED.items() if each != name})
    return Shape(what, piece, before=f"{rest}&{name}=".encode() + before)


def _request(what: str, piece: bytes, before: bytes, after: bytes = b"\r\n\r\n") -> Shape:
    return Shape(what, piece, before=before, after=after)


CHARGE: Final = b'{"type":"PAYMENT","order_id":"A","items":"a","currency":"LKR","customer_token":"a",'
HOST: Final = b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"

READERS: Final = (
    Reader(
        name="a form of a hosted page",
        read=_form,
        longest=BODY_BYTES,
        shapes=(
            _field("return_url", "marks of a letter, in the wrong order", MARKS, b"https://"),
            _field("return_url", "such marks in a path", MARKS, b"https://shop.example/"),
            _field("email", "points", b".a", b"a@a"),
            _field("email", "signs", b"@a"),
            _field("phone", "digits of a phone", b"1"),
            _field("custom_1", "ampersands", b"&"),
            Shape("items", lambda number: b"&amount_%d=%0150d" % (number + 1, 1), before=urlencode(FILLED).encode()),
        ),
    ),
    Reader(
        name="a short form of a hosted page",
        read=_form,
        longest=VALUE_LENGTH_MAX,
        shapes=(
            _field("return_url", "marks of a letter, in the wrong order", MARKS, b"https://"),
            _field("custom_1", "white space in a tag", b"+", b"%3C"),
            _field("custom_1", "white space behind its slash", b"+", b"%3C%2F"),
            _field("custom_1", "tags", b"<"),
            _field("amount", "digits of an amount", b"9"),
            _field("amount", "decimals of an amount", b"0", b"0."),
            _field("startup_fee", "digits of a fee", b"9", b"-"),
            _field("recurrence", "digits of a period", b"9"),
        ),
    ),
    Reader(
        name="a charge",
        read=lambda text: _called(text, "payment/charge"),
        longest=BODY_BYTES,
        shapes=(
            Shape("digits of an amount", b"9", CHARGE + b'"amount":1', b"}"),
            Shape("decimals of an amount", b"9", CHARGE + b'"amount":0.', b"}"),
            Shape("an amount as a long text", b"9", CHARGE + b'"amount":"', b'"}'),
            Shape("a long order", b"\\u0300", b'{"order_id":"', b'"}'),
            Shape("nested", b"[", b'{"order_id":'),
            Shape("many members", lambda number: b'"%d":0,' % number, CHARGE, b'"amount":1}'),
        ),
    ),
    Reader(
        name="a token request",
        read=_token,
        longest=BODY_BYTES,
        shapes=(
            Shape("many grants", b"grant_type=a&"),
            Shape("percent signs", b"%", before=b"grant_type="),
            Shape("ampersands", b"&"),
            Shape("semicolons", b";"),
        ),
    ),
    Reader(
        name="a path and a query",
        read=_found,
        longest=FIELD_BYTES_MAX,
        shapes=(
            Shape("slashes", b"/", before=b"subscription"),
            Shape("percent signs", b"%", before=b"subscription/"),
            Shape("orders", b"order_id=a&", before=b"payment/search?"),
            Shape("percent signs of an order", b"%cc", before=b"payment/search?order_id="),
        ),
    ),
    Reader(
        name="an authorization",
        read=_authorized,
        longest=FIELD_BYTES_MAX,
        shapes=(
            Shape("white space", b" ", before=b"Bearer", after=b"a"),
            Shape("a long token", b"a", before=b"Bearer "),
            Shape("a pair in base64", b"OjoA", before=b"Basic "),
        ),
    ),
    Reader(
        name="the line of a request over a socket",
        read=_sent,
        longest=REQUEST_LINE_BYTES_MAX,
        shapes=(
            _request("slashes", b"/", b"GET /pay", HOST + b"\r\n"),
            _request("percent signs", b"%2f", b"GET /pay/", HOST + b"\r\n"),
            _request("members of a query", b"a=&", b"GET /_sim/calls?", HOST + b"\r\n"),
        ),
    ),
    Reader(
        name="the headers of a request over a socket",
        read=_sent,
        longest=FIELD_BYTES_MAX,
        shapes=(
            _request("headers", b"a: %b\r\n" % (b"b" * 64), b"GET /_sim/calls" + HOST),
            _request("cookies", b'a="\\";', b"GET /_sim/calls" + HOST + b"Cookie: "),
            _request("what is accepted", b"text/", b"POST /_sim/press/x" + HOST + b"Accept: "),
        ),
    ),
    Reader(
        name="a body in chunks over a socket",
        read=_sent,
        longest=BODY_BYTES,
        shapes=(
            Shape(
                "chunks of a byte",
                b"1\r\na\r\n",
                before=b"POST /pay/checkout" + HOST + b"Transfer-Encoding: chunked\r\n\r\n",
                after=b"0\r\n\r\n",
            ),
        ),
    ),
    Reader(
        name="records to plant",
        read=lambda text: _ordered(text, "seed_data"),
        longest=BODY_BYTES,
        shapes=(
            Shape(
                "payments",
                b'{"order_id":"A","amount":1},',
                b'{"payments":[',
                b'{"order_id":"A","amount":1}]}',
            ),
            Shape("digits of an amount", b"9", b'{"payments":[{"order_id":"A","amount":0.', b"}]}"),
            Shape("an unknown member", b"`", b'{"', b'":1}'),
            Shape("nested", b"[", b'{"a":'),
        ),
    ),
    Reader(
        name="faults",
        read=lambda text: _ordered(text, "faults"),
        longest=BODY_BYTES,
        shapes=(
            Shape("rules", b'{"fault":"decline"},', b'{"script":[', b'{"fault":"decline"}]}'),
            Shape("rules that are none", b'{"fault":"a"},', b'{"notifications":[', b'{"fault":"a"}]}'),
        ),
    ),
    Reader(
        name="switches",
        read=lambda text: _ordered(text, "switches"),
        longest=BODY_BYTES,
        shapes=(
            Shape("unknown ones", lambda number: b'"a%d":1,' % number, b"{", b'"b":1}'),
            Shape("domains", b'"a",', b'{"allowed_domains":[', b'"b"]}'),
        ),
    ),
    Reader(name="the answer to a notification", read=_notified, longest=ANSWER_BYTES, shapes=HTTP),
    Reader(
        name="what a payer types",
        read=_typed,
        longest=BODY_BYTES,
        shapes=(
            Shape("digits", b"4"),
            Shape("white space", b" "),
            Shape("slashes", b"/"),
            Shape("dashes", b"4 -"),
        ),
    ),
    Reader(
        name="the order of an overview",
        read=lambda text: overview_page(SIMULATOR.world, Shown(order_id=text.decode())),
        longest=FIELD_BYTES_MAX,
        shapes=(Shape("brackets", b"<"), Shape("ampersands", b"&")),
    ),
)
