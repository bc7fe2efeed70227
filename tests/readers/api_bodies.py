"""The readers of bodies that the API is sent, and of the addresses in them: by shops, by apps, and by the gateway.

A body has at most BODY_BYTES_MAX. Where one is refused, the answer is written too, because it repeats what was wrong.
"""

from typing import Final

from tests.gateways.still_gateway import StillGateway
from tests.readers.reader import Reader, Shape, finished

from payrelay.api.http.incoming_request import BODY_BYTES_MAX, BodyTimeout, Headers, Message, read_body
from payrelay.api.http.json_text import parse_object
from payrelay.api.requests.body import Body, parse_body
from payrelay.api.requests.payment_bodies import ChargeBody
from payrelay.api.requests.route import EmptyBody, ParsedRequest
from payrelay.api.routes.checkouts import CheckoutBody
from payrelay.api.routes.table import ROUTES
from payrelay.clock import Clock
from payrelay.core.access.credential import credential_for
from payrelay.core.answers import Answer, of_refusal, without_signatures
from payrelay.core.checkouts.return_links import LINK_LENGTH_MAX, is_allowed, parse_rule
from payrelay.core.events.delivery import URL_LENGTH_MAX
from payrelay.core.events.destinations import allowed_of, require_destination
from payrelay.core.secret import Secret
from payrelay.errors import Refusal
from payrelay.flows.relay import Request
from payrelay.gateways.payhere.wire.checkout_forms import Merchant
from payrelay.gateways.payhere.wire.notifications import BODY_BYTES_MAX as NOTIFICATION_BYTES_MAX
from payrelay.gateways.payhere.wire.notifications import received

_ANSWER_BYTES: Final = 65_536
"""A gateway's reply may have 16 MiB; what it takes is seen with less."""
_NESTED_BYTES: Final = 1_600
"""Of an answer of arrays alone, as deep as its reader goes into one."""
_PIECE: Final = b"0123456789abcdef"
_KINDS: Final = tuple(dict.fromkeys(route.body for route in ROUTES if route.body not in {None, EmptyBody}))
_REQUEST: Final = Request(
    gateway=StillGateway(Clock()), credential=credential_for("shop", created_at_ms=0), request_id="req_1"
)
_MERCHANT: Final = Merchant(base_url="https://gateway.example", merchant_id="1", merchant_secret=Secret("secret"))
_RULES: Final = (parse_rule("myshop://"), parse_rule("https://shop.example/*"))
_NEAR: Final = allowed_of(("hooks.internal", "10.0.0.0/8"))
_SIGNED: Final = b"merchant_id=1&order_id=a&payhere_amount=1.00&payhere_currency=LKR&status_code=2&md5sig=0"


def _answered(body: bytes, kind: type[Body]) -> object:
    """Reads a body of a kind, and makes a call of it or an answer that says what is wrong."""
    try:
        parsed = parse_body(body, kind)
        call = getattr(parsed, "call", None)
        return parsed if call is None else call()
    except Refusal as refusal:
        return of_refusal(refusal, "req_1")


def _required_empty(body: bytes) -> object:
    try:
        ParsedRequest(request=_REQUEST, body=body).require_empty()
    except Refusal as refusal:
        return of_refusal(refusal, "req_1")
    return None


def _in_pieces(body: bytes) -> object:
    """Reads a body that comes in small pieces."""
    pieces = iter([body[start : start + len(_PIECE)] for start in range(0, len(body), len(_PIECE))])

    async def receive() -> Message:
        piece = next(pieces, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    return finished(read_body(receive, Headers([]), BodyTimeout()))


def _reader_of(kind: type[Body]) -> Reader:
    """Makes the reader that has each member of a kind read one and the same value."""
    before = [b'{"%b":' % name.encode() for name in kind.__struct_fields__]
    return Reader(
        name=f"each member of a {kind.__name__}",
        read=lambda value: [_answered(each + value + b"}", kind) for each in before],
        longest=BODY_BYTES_MAX - max(map(len, before)) - 1,
        shapes=(
            Shape("a number far below 0", b"9", b"-"),
            Shape("an exponent", b"9", b"1e"),
            Shape("spaces", b" ", b'"', b'"'),
            Shape("digits of a text", b"9", b'"', b'.00"'),
        ),
    )


def _nested(length: int) -> bytes:
    return b"[" * (length // 2) + b'"md5sig"' + b"]" * (length // 2)


READERS: Final = (
    Reader(
        name="body in pieces",
        read=_in_pieces,
        longest=BODY_BYTES_MAX,
        shapes=(Shape("small ones", _PIECE),),
    ),
    Reader(
        name="JSON",
        read=parse_object,
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("members of one name", b'"":0,', b"{", b'"":0}'),
            Shape("the last name is the first again", lambda number: b'"%d":0,' % number, b"{", b'"0":0}'),
            Shape("members with escapes", lambda number: b'"\\u0041%d":0,' % number, b"{", b'"":0}'),
            Shape("empty objects", b"{},", b'{"a":[', b"{}]}"),
            Shape("open arrays", b"[", b'{"a":'),
            Shape("open objects", b'{"a":'),
            Shape("arrays that are too deep", b"[" * 400 + b"]" * 400 + b",", b'{"a":[', b"0]}"),
            Shape("digits", b"9", b'{"a":', b"}"),
            Shape("digits of many numbers", b"9" * 4_000 + b",", b'{"a":[', b"0]}"),
            Shape("decimals", b"9", b'{"a":0.', b"}"),
            Shape("decimals of many numbers", b"0.1,", b'{"a":[', b"0]}"),
            Shape("digits of an exponent", b"9", b'{"a":1e', b"}"),
            Shape("zeros of an exponent", b"0", b'{"a":1e', b"1}"),
            Shape("digits before an exponent", b"9", b'{"a":', b"e1}"),
            Shape("exponents of many numbers", b"9e999,", b'{"a":[', b"0]}"),
            Shape("a byte order mark", b" ", b"\xef\xbb\xbf"),
            Shape("escapes", b'\\"', b'{"a":"', b'"}'),
            Shape("halves of pairs", b"\\ud800", b'{"a":"', b'"}'),
            Shape("an open text", b"\\n", b'{"a":"'),
            Shape("lines before a mistake", b"\n", b"{", b"!"),
            Shape("bytes that are not UTF-8", b"\xff", b'{"a":"', b'"}'),
        ),
    ),
    Reader(
        name="body",
        read=lambda body: _answered(body, ChargeBody),
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("many unknown members", lambda number: b'"%d":0,' % number, b"{", b'"":0}'),
            Shape("many unknown nulls", lambda number: b'"%d":null,' % number, b"{", b'"":0}'),
            Shape("many unknown empty texts", lambda number: b'"%d":"",' % number, b"{", b'"":0}'),
            Shape("many unknown texts of NUL", lambda number: b'"%d":"\\u0000",' % number, b"{", b'"":0}'),
            Shape("a long unknown name", b"\\ud800", b'{"', b'":0}'),
            Shape("long names in each other", b'{"' + b"\\ud800" * 64 + b'":', b'{"a":'),
            Shape("many items", b"{},", b'{"itemList":[', b"{}]}"),
            Shape("many nulls as items", b"null,", b'{"itemList":[', b"0]}"),
            Shape(
                "a hundred items and one with many members",
                lambda number: b'"%d":0,' % number,
                b'{"itemList":[' + b"{}," * 99 + b"{",
                b'"":0}]}',
            ),
            Shape("quantity far below 0", b"9", b'{"itemList":[{"quantity":-', b"}]}"),
            Shape("unit_amount with many decimals", b"9", b'{"itemList":[{"unit_amount":0.', b"}]}"),
            Shape("amount with many decimals", b"0", b'{"amount":1.', b"1}"),
            Shape("amount with many zeros", b"0", b'{"amount":1.', b"}"),
        ),
    ),
    Reader(
        name="texts under long names",
        read=lambda body: _answered(body, ChargeBody),
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape(
                "each can't be stored",
                b'"\\u0000",',
                b'{"' + b"\\ud800" * 64 + b'":[',
                b"0]}",
            ),
        ),
    ),
    Reader(
        name="body that must be empty",
        read=_required_empty,
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("spaces", b" ", b"{", b"}"),
            Shape("words", b"{} "),
            Shape("members", lambda number: b'"%d":0,' % number, b"{", b'"":0}'),
        ),
    ),
    *(_reader_of(kind) for kind in _KINDS),
    Reader(
        name="fee of a plan",
        read=lambda body: _answered(body, CheckoutBody),
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("a long amount", b"9", b'{"type":"recurring","startup_fee":-1.5,"amount":0.', b"}"),
            Shape("a long fee", b"9", b'{"type":"recurring","amount":1,"startup_fee":-0.', b"}"),
            Shape("a long recurrence", b"9", b'{"type":"recurring","duration":"1 Year","recurrence":"', b' Year"}'),
        ),
    ),
    Reader(
        name="address of a webhook endpoint",
        read=lambda url: require_destination(url.decode(), _NEAR),
        longest=URL_LENGTH_MAX,
        shapes=(
            Shape("labels", b"a.", b"https://", b"a/"),
            Shape("hyphens", b"-", b"https://a", b"/"),
            Shape("points", b".", b"https://a", b"/"),
            Shape("digits of a port", b"9", b"https://a:"),
            Shape("colons in brackets", b":", b"https://[", b"]/"),
            Shape("a zone", b"a", b"https://[fe80::1%", b"]/"),
            Shape("at signs", b"@", b"https://"),
            Shape("slashes", b"/", b"https://a"),
            Shape("hash signs", b"#", b"https://a/"),
        ),
    ),
    Reader(
        name="link to an app",
        read=lambda link: is_allowed(link.decode(), _RULES),
        longest=LINK_LENGTH_MAX,
        shapes=(
            Shape("a long scheme", b"a", after=b"://"),
            Shape("points in the path", b"/.a", b"https://shop.example"),
            Shape("escaped points in the path", b"/%2e%2", b"https://shop.example"),
            Shape("colons", b":", b"https://shop.example"),
            Shape("digits of a port", b"9", b"https://shop.example:"),
            Shape("a long query", b"?", b"myshop://"),
        ),
    ),
    Reader(
        name="notification",
        read=lambda body: received(body, _MERCHANT),
        longest=NOTIFICATION_BYTES_MAX,
        shapes=(
            Shape("nothing but ampersands", b"&"),
            Shape("many fields", lambda number: b"%d&" % number),
            Shape("one field again and again", b"name=a&"),
            Shape("a long unknown field", b"%41", _SIGNED + b"&x="),
            Shape("a long unknown name", b"%ff", _SIGNED + b"&"),
            Shape("percent signs", b"%", _SIGNED + b"&x="),
            Shape("a long signature", b"a", _SIGNED),
            Shape("a long order", b"+", b"merchant_id=1&order_id=", _SIGNED.removeprefix(b"merchant_id=1&order_id")),
            Shape("a long order that is not UTF-8", b"%ff", b"merchant_id=1&order_id="),
            Shape("a long card number", b"9", _SIGNED + b"&card_no="),
            Shape("a long customer token", b"a", _SIGNED + b"&customer_token="),
            Shape(
                "a long amount",
                b",000",
                b"merchant_id=1&order_id=a&payhere_currency=LKR&status_code=2&md5sig=0&payhere_amount=1",
            ),
        ),
    ),
    Reader(
        name="answer for an app",
        read=lambda body: without_signatures(Answer(http_status=200, body=body)),
        longest=_ANSWER_BYTES,
        shapes=(
            Shape("many members", lambda number: b'"%d":0,' % number, b"{", b'"md5sig":0}'),
            Shape("many objects", b"{},", b"[", b'"md5sig"]'),
        ),
    ),
    Reader(
        name="nested answer for an app",
        read=lambda text: without_signatures(Answer(http_status=200, body=_nested(len(text)))),
        longest=_NESTED_BYTES,
        shapes=(Shape("arrays", b" "),),
    ),
)
