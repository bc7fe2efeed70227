"""The readers of what browsers send to the console beside cookies: addresses, headers, forms, searches and answers."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import structlog
from fido2.utils import websafe_encode
from fido2.webauthn import CollectedClientData
from structlog.testing import LogCapture
from tests.readers.reader import Reader, Shape

from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.api.http.incoming_request import BODY_BYTES_MAX
from payrelay.api.serving import HEADERS_BYTES_MAX
from payrelay.console.dispatch import Console
from payrelay.console.flows.parts import ConsoleParts
from payrelay.console.live import stream
from payrelay.console.pages.find import path_of, search_of
from payrelay.console.routes import NAVIGATION
from payrelay.console.rules.live import parts_of
from payrelay.console.rules.sign_in.passkeys import (
    ANSWER_LENGTH_MAX,
    RelyingParty,
    made_passkey,
    passkey_name_of,
    shown_passkey,
)
from payrelay.console.rules.sign_in.second_factor import step_of_code
from payrelay.console.web.asked import Asked, Site, fields_of
from payrelay.console.web.cookies import BrowserCookies, Cookies, form_token
from payrelay.core.operators.act_texts import text_of
from payrelay.core.operators.operator import (
    Operator,
    OperatorState,
    email_of,
    operator_name_of,
    require_password,
)
from payrelay.core.operators.roles import Act, Role
from payrelay.core.secret import Secret
from payrelay.core.text.csv_text import csv_text
from payrelay.core.text.operator_text import reason_of
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.cases import Queue, QueuedCase
from payrelay.flows.operators.acts.fields import fields_of as fields_of_act
from payrelay.flows.operators.acts.stale import line_of

T = TypeVar("T")

PAGE_BYTES: Final = 8_192
"""Of foreign text on one page: as much as 32 texts have that are as long as they may be."""

_NOTHING: Final = cast("Any", None)
"""In place of stores and gateways, none of which these requests come to."""
_PARTS: Final = ConsoleParts(
    operators=_NOTHING,
    acts=_NOTHING,
    confirmations=_NOTHING,
    tries=_NOTHING,
    challenges=_NOTHING,
    passwords=_NOTHING,
    clock=_NOTHING,
    takes_passwords=False,
)
_SITE: Final = Site(
    parts=_PARTS, cases=_NOTHING, relay=_NOTHING, cookies=Cookies(is_secure=False), origin=None, navigation=NAVIGATION
)
_CONSOLE: Final = Console(_SITE, structlog.wrap_logger(None, processors=[LogCapture()]))
_VISIT: Final = "v" * 43
_HEADERS: Final = {
    b"host": b"localhost",
    b"content-type": b"application/x-www-form-urlencoded",
    b"cookie": b"payrelay_console_visit=" + _VISIT.encode(),
}
_TOKEN: Final = b"token=%s&" % form_token(_VISIT).encode()
_TARGET: Final = ActTarget(
    noun="checkout",
    id="chk_1",
    title="Checkout",
    account="shop",
    principal="shop",
    state="open",
    seen="1",
    acts=(Act.CAPTURE,),
    amount_minor=100_000,
    currency="LKR",
)
_OPERATOR: Final = Operator(
    id="opr_1",
    email="ada@shop.example",
    name="Ada",
    role=Role.ADMIN,
    state=OperatorState.ACTIVE,
    password_hash=None,
    second_factor=None,
    totp_step=0,
    provider_subject=None,
    version=1,
    act=0,
    created_at_ms=0,
    changed_at_ms=0,
)
_PARTY: Final = RelyingParty("https://console.example", "console.example")
_CHALLENGE: Final = bytes(32)
_SECRET: Final = Secret("JBSWY3DPEHPK3PXP" * 2)


def _done(work: Coroutine[Any, Any, T]) -> T:
    """Runs what waits for nothing, without an event loop, whose own work would be counted too."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("it waits for something")


def _answered(
    method: str = "GET",
    path: bytes = b"/console/sign-in",
    query: bytes = b"",
    body: bytes = b"",
    headers: dict[bytes, bytes] | None = None,
) -> ConsoleAnswer:
    request = ConsoleRequest(
        method=method,
        path=path,
        query=query,
        headers=_HEADERS | (headers or {}),
        body=body,
        client="127.0.0.1",
        request_id="req_1",
    )
    answer = _done(_CONSOLE(request))
    if answer.status >= 500:
        raise AssertionError("a request makes the console fail")
    return answer


def _asked(form: dict[str, str]) -> Asked:
    request = ConsoleRequest(
        method="GET", path=b"/console/queue", query=b"", headers={}, body=b"", client="", request_id=""
    )
    return Asked(site=_SITE, request=request, names=(), form=form, sent=BrowserCookies(), cookie=_VISIT, visitor=None)


def _act_fields(act: Act, **given: bytes) -> dict[str, str]:
    return _done(fields_of_act(_NOTHING, act, _TARGET, {name: text.decode() for name, text in given.items()}))


def _live_parts(text: str) -> dict[str, str]:
    """Shows a queue in which a client has chosen an order's id, and finds the page's live parts."""
    case = QueuedCase(
        noun="operation",
        id="op_1",
        why=text,
        since_ms=0,
        account="shop",
        principal=text,
        order_id=text,
        amount_minor=100,
        currency="LKR",
        kind="charge",
        assigned_to=text,
    )
    queue = Queue(attention=[case], held=[], notifications=[], paid_again=[], proposed=[], has_more=frozenset())
    page = _asked({}).page("queue.html", live="/console/queue", tells=True, queue=queue, text_of=text_of)
    return parts_of(page.body)


@dataclass(frozen=True)
class _MadeAnswer(Shape):
    """A browser's answer about a new passkey, with this as what the device has written."""

    def of(self, length: int) -> bytes:
        return _made(_client("webauthn.create"), super().of(_decoded(length - 400)))


@dataclass(frozen=True)
class _ClientAnswer(Shape):
    """A browser's answer about a new passkey, with this as what the browser itself has written."""

    def of(self, length: int) -> bytes:
        return _made(super().of(_decoded(length - 200)), b"\xa1\x68authData\x40")


@dataclass(frozen=True)
class _ShownAnswer(Shape):
    """A browser's answer about a passkey that was shown, with this as what the device has written."""

    def of(self, length: int) -> bytes:
        texts = (_base64(_client("webauthn.get")), _base64(super().of(_decoded(length - 400))))
        return _answer(b'"clientDataJSON":"%s","authenticatorData":"%s","signature":"AA"' % texts)


def _decoded(length: int) -> int:
    """Gives how many bytes so many characters of base64 have."""
    return max(length, 0) * 3 // 4


def _base64(written: bytes) -> bytes:
    return websafe_encode(written).encode()


def _client(kind: str) -> bytes:
    return CollectedClientData.create(kind, _CHALLENGE, _PARTY.origin)


def _made(client: bytes, attestation: bytes) -> bytes:
    texts = (_base64(client), _base64(attestation))
    return _answer(b'"clientDataJSON":"%s","attestationObject":"%s"' % texts)


def _answer(response: bytes) -> bytes:
    return b'{"id":"AA","rawId":"AA","type":"public-key","response":{%s}}' % response


def _entry(number: int) -> bytes:
    """Gives an entry of a table in CBOR, each of another name."""
    return b"\x1a%s\0" % number.to_bytes(4, "big")


_LIST: Final = b"\x9b" + b"\xff" * 8
_TABLE: Final = b"\xbb" + b"\xff" * 8
"""The beginnings of a list and a table in CBOR that never end."""
_SHOWN: Final = bytes(32) + b"\x85" + bytes(4)
"""What a device writes before what it adds to a signature: the host, what was done, and the count."""
_MADE: Final = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59\xff\xff" + bytes(32) + b"\x45" + bytes(22) + b"AA"
"""An attestation up to where a new key begins."""

READERS: Final = (
    Reader(
        name="console's forms",
        read=lambda text: _answered("POST", body=text),
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("escapes", b"%41", before=_TOKEN + b"email="),
            Shape("broken escapes", b"%zz", before=_TOKEN + b"email="),
            Shape("an address to go on to", b"/", before=_TOKEN + b"next=/console/"),
            Shape("many fields", b"a&"),
        ),
    ),
    Reader(
        name="console's paths",
        read=lambda text: _answered(path=text),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("slashes", b"/"),
            Shape("parts that are no UTF-8", b"/%e9"),
            Shape("the name of an operator", b"%41", before=b"/console/operators/"),
        ),
    ),
    Reader(
        name="console's queries",
        read=lambda text: _answered(path=b"/console/find", query=text),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("broken escapes", b"%zz", before=b"q="),
            Shape("many fields", b"a=&"),
            Shape("an address to come back to", b"a"),
        ),
    ),
    Reader(
        name="console's hosts",
        read=lambda text: _answered(headers={b"host": text}),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("brackets", b"["),
            Shape("a number in brackets", b":", before=b"[", after=b"]"),
            Shape("a zone", b"%", before=b"[::1", after=b"]"),
            Shape("numbers", b"1."),
            Shape("names of users", b"@"),
            Shape("signs with marks", b"\xa8\xb8"),
        ),
    ),
    Reader(
        name="console's origins",
        read=lambda text: _answered("POST", body=_TOKEN, headers={b"origin": text}),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("anything", b"h"),),
    ),
    Reader(
        name="names of browsers",
        read=lambda text: _answered("POST", body=_TOKEN, headers={b"user-agent": text}),
        longest=HEADERS_BYTES_MAX,
        shapes=(Shape("what can't be printed", b"\x85"), Shape("letters", b"a")),
    ),
    Reader(
        name="searches",
        read=lambda text: (search_of(form := fields_of(text) or {}, "Asia/Colombo"), path_of(form)),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("spaces", b"+", before=b"q=", after=b"a"),
            Shape("digits of an amount", b"9", before=b"amount="),
            Shape("commas of an amount", b",", before=b"amount=", after=b"1"),
            Shape("digits of a day", b"1", before=b"from="),
            Shape("a place in a list", b"%E2%80%83", before=b"before="),
        ),
    ),
    Reader(
        name="amounts of acts",
        read=lambda text: _act_fields(Act.CAPTURE, amount=text, description=b"a"),
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("digits", b"9"),
            Shape("zeros behind", b"0", before=b"1."),
            Shape("decimals", b"9", before=b"1."),
            Shape("a small number", b"0", before=b"0.", after=b"1"),
            Shape("a long power", b"9", before=b"1E"),
            Shape("a long negative power", b"9", before=b"1E-"),
            Shape("digits of another script", "\u0661".encode()),
            Shape("commas", b",", after=b"1"),
            Shape("groups of digits", b",000", before=b"1"),
            Shape("spaces around", b" ", after=b"1"),
        ),
    ),
    Reader(
        name="descriptions of acts",
        read=lambda text: _act_fields(Act.VOID, description=text),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("letters", b"a"), Shape("spaces", b" ", after=b"a")),
    ),
    Reader(
        name="events of acts",
        read=lambda text: _act_fields(Act.REPLAY_EVENT, event_ids=text),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("many", b"a "), Shape("one", b"a")),
    ),
    Reader(
        name="what a page showed",
        read=lambda text: line_of(text.decode()),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("digits", b"9"), Shape("points", b".")),
    ),
    Reader(
        name="operators' e-mail addresses",
        read=lambda text: email_of(text.decode()),
        longest=BODY_BYTES_MAX,
        shapes=(
            Shape("letters whose small form depends on what follows", "'\u03a3".encode()),
            Shape("letters that grow", "\u0130".encode()),
            Shape("at signs", b"a@"),
        ),
    ),
    Reader(
        name="names of operators",
        read=lambda text: operator_name_of(text.decode()),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("words", b"a "), Shape("marks on one letter", "\u0301\u0316".encode())),
    ),
    Reader(
        name="names of passkeys",
        read=lambda text: passkey_name_of(text.decode()),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("words", b"a "), Shape("marks on one letter", "\u0301\u0316".encode())),
    ),
    Reader(
        name="operators' reasons",
        read=lambda text: reason_of(text.decode()),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("words", b"a "), Shape("spaces", b" ", after=b"a")),
    ),
    Reader(
        name="new passwords",
        read=lambda text: require_password(text.decode(), _OPERATOR),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("letters that grow", "\ufb03".encode()), Shape("the own name", b"ada")),
    ),
    Reader(
        name="codes of a second factor",
        read=lambda text: step_of_code(_SECRET, text.decode(), 10**12, 0),
        longest=BODY_BYTES_MAX,
        shapes=(Shape("digits", b"1"), Shape("spaces", b" 1")),
    ),
    Reader(
        name="passkeys that were made",
        read=lambda text: made_passkey(text.decode(), _PARTY, _OPERATOR, _CHALLENGE),
        longest=ANSWER_LENGTH_MAX,
        shapes=(
            _MadeAnswer("a list", b"\0", before=_LIST),
            _MadeAnswer("a list of empty lists", b"\x80", before=_LIST),
            _MadeAnswer("a table", _entry, before=_TABLE),
            _MadeAnswer("a nest of lists", b"\x81"),
            _MadeAnswer("a list as the key", b"\0", before=_MADE + _LIST),
            _MadeAnswer("a table as the key", _entry, before=_MADE + _TABLE),
            _ClientAnswer("a nest of lists by the browser", b"["),
            _ClientAnswer("a nest of tables by the browser", b'{"a":'),
            _ClientAnswer("digits by the browser", b"1"),
            _ClientAnswer("numbers by the browser", b"1,", before=b"["),
            _ClientAnswer("escapes by the browser", b"\\u0041", before=b'"'),
            Shape("a nest beside it", b"[", before=b'{"x":'),
            Shape("what is no base64", b"!", before=b'{"id":"AA","rawId":"'),
        ),
    ),
    Reader(
        name="passkeys that were shown",
        read=lambda text: shown_passkey(text.decode(), _PARTY, _OPERATOR, [], _CHALLENGE),
        longest=ANSWER_LENGTH_MAX,
        shapes=(
            _ShownAnswer("a list", b"\0", before=_SHOWN + _LIST),
            _ShownAnswer("a table", _entry, before=_SHOWN + _TABLE),
            _ShownAnswer("a nest of lists", b"\x81", before=_SHOWN),
        ),
    ),
    Reader(
        name="addresses of live pages",
        read=lambda text: _done(stream(_asked({"page": text.decode()}))),
        longest=HEADERS_BYTES_MAX,
        shapes=(
            Shape("escapes", b"%41", before=b"/console/orders/shop/"),
            Shape("escapes of a query", b"%41", before=b"/console/queue?a="),
        ),
    ),
    Reader(
        name="texts on live pages",
        read=lambda text: _live_parts(text.decode()),
        longest=PAGE_BYTES,
        shapes=(
            Shape("the beginning of a part", b'<div class="live" id="live-queue">'),
            Shape("the end of a part", b"</div><!--live-queue-->"),
            Shape("what must be escaped", b"<"),
        ),
    ),
    Reader(
        name="texts in saved tables",
        read=lambda text: csv_text(["a"], [[text.decode()]]),
        longest=PAGE_BYTES,
        shapes=(Shape("spaces", b" ", after=b"="), Shape("quotes", b'"'), Shape("lines", b"\r\n")),
    ),
)
