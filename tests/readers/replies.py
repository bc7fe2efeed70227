"""The readers of what the gateway sends back: replies as HTTP, what they say, and lists of payments as evidence."""

from collections.abc import Callable
from typing import Final

from tests import samples
from tests.readers.reader import Reader, Shape

from payrelay.clock import Clock
from payrelay.core.calls import CancelSubscription, Capture, Charge, Effect, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import SendingWindow, match_for_capture, match_for_charge, match_for_retry, with_plan
from payrelay.gateways.gateway import ExpectedReply
from payrelay.gateways.http.reply_reader import LINE_BYTES_MAX, UNREAD_BYTES_MAX, ReplyReader
from payrelay.gateways.payhere.connections import EFFECT_REPLY_BYTES_MAX, READ_REPLY_BYTES_MAX
from payrelay.gateways.payhere.wire.effect_replies import classify
from payrelay.gateways.payhere.wire.payment_records import payments_in, records_without
from payrelay.gateways.payhere.wire.read_replies import classify_read
from payrelay.gateways.payhere.wire.reply_shapes import members_of
from payrelay.gateways.payhere.wire.subscriptions import facts_in, plans_without, records_of
from payrelay.gateways.payhere.wire.token_replies import read_grant
from payrelay.recovery.rules.lost_effects import match_for_lost_charge, match_for_lost_retry
from payrelay.runtime.health.gateway_clocks import GatewayClocks
from payrelay_tools.sandbox_trial.payhere.shapes import described, differences, parsed

LIST_BYTES: Final = 128 * 1024
"""Of a list: a part of READ_REPLY_BYTES_MAX, which would take Callgrind minutes, and enough to see a square."""
TRIAL_BYTES: Final = EFFECT_REPLY_BYTES_MAX // 8
"""Of a reply in a trial, which people make by hand; all of the limit would take Callgrind minutes."""
PIECE_BYTES: Final = 16
"""Of a reply that comes drop by drop."""
ZONE: Final = "Asia/Colombo"
TOKEN: Final = "token-" * 100

OK: Final = b"HTTP/1.1 200 OK\r\n"
CHUNKED: Final = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHARGE: Final = Charge(
    authorize=False,
    order_id="A-1",
    items="Tea",
    currency="LKR",
    amount_minor=100_000,
    customer_token="0123456789ABCDEF" * 2,
)
CAPTURE: Final = Capture(description="Tea", authorization_token="a" * 36, amount_minor=100_000)
CANCEL: Final = CancelSubscription(subscription_id=1)
OF_ORDER: Final = PaymentsOfOrder(order_id="A-1")
WINDOW: Final = SendingWindow(began_ms=0, ended_ms=1)
MEMBERS: Final = {
    b"payment_id": b"1",
    b"subscription_id": b"1",
    b"order_id": b'"A-1"',
    b"date": b'"2026-01-01 10:00:00"',
    b"status": b'"RECEIVED"',
    b"currency": b'"LKR"',
    b"amount": b"10.5",
    b"description": b'"Tea"',
    b"recurring": b'"Charged every month for 1 year"',
}
"""Of a record, which is read as that of a payment or of a subscription."""


def _fed(text: bytes, piece_bytes: int) -> None:
    """Reads a reply in pieces, up to its end or its refusal."""
    reader = ReplyReader(EFFECT_REPLY_BYTES_MAX)
    for begin in range(0, len(text), piece_bytes):
        if reader.feed(text[begin : begin + piece_bytes]) is not None:
            return
    reader.end()


def _classified(call: Effect) -> Callable[[bytes], object]:
    return lambda text: classify(call, ExpectedReply(order_id="A-1", currency="LKR"), 200, text, TOKEN)


def _seen(text: bytes) -> tuple[tuple[Payment, ...], frozenset[str]]:
    """Reads a list of payments, and gives all of them as those that somebody else owns."""
    payments = payments_in(text, ZONE)
    return payments, frozenset(each.payment_id for each in payments)


def _judged(text: bytes) -> None:
    """Judges a list of payments as evidence of each kind of effect."""
    payments, owned = _seen(text)
    match_for_charge(CHARGE, samples.OPERATION, WINDOW, payments, owned, has_competing=False)
    match_for_retry(with_plan(Evidence(), payments), WINDOW, payments, owned, has_competing=False)
    match_for_capture(1, payments, owned, has_competing=False)


def _judged_as_lost(text: bytes) -> None:
    """Judges a list of payments as evidence of effects that were forgotten."""
    payments, owned = _seen(text)
    match_for_lost_retry(WINDOW, payments, attributed=owned, owned=owned)
    match_for_lost_charge(
        CHARGE, samples.OPERATION, WINDOW, payments, attributed=owned, owned=owned, may_be_anothers=False
    )


def _without_plans(text: bytes) -> None:
    """Leaves out every subscription of a list, as of one whose subscriptions are all of others."""
    plans_without(text, frozenset(str(number) for number in range(text.count(b"{"))))


def _trial(text: bytes) -> None:
    described(parsed(text))
    list(differences({"msg": "amount", "data": ["any"]}, parsed(text)))


def _record(number: int) -> bytes:
    return b"{%b}," % _members({b"payment_id": b"%d" % number, b"subscription_id": b"%d" % number})


def _members(changed: dict[bytes, bytes]) -> bytes:
    return b",".join(b'"%b":%b' % member for member in (MEMBERS | changed).items())


def _one(member: bytes, name: str, piece: bytes, before: bytes = b'"', after: bytes = b'"') -> Shape:
    """Gives a list of one record, in which one member is long."""
    head, _, rest = _members({member: b"#"}).partition(b"#")
    return Shape(name, piece, before=b"[{" + head + before, after=after + rest + b"}]")


RECORDS: Final = Shape("many records", _record, before=b"[", after=b"{%b}]" % _members({}))
OBJECTS: Final = (
    Shape("many members", lambda number: b'"%d":1 ,' % number, before=b"{", after=b'"":0}'),
    Shape("a long name", b"a", before=b'{ "', after=b'":1}'),
    Shape("a name of escapes", b"\\n", before=b'{ "', after=b'":1}'),
    Shape("white space before a name", b" ", before=b"{", after=b'"a":1}'),
    Shape("white space behind a name", b" ", before=b'{"a"', after=b":1}"),
    Shape("white space at the end", b" ", before=b'{"a":1', after=b"}"),
    Shape("one name again and again", b'"a":1,', before=b"{ ", after=b'"a":1}'),
    Shape("a value that begins like the last one", b"1", before=b'{"a":', after=b',"a":1}'),
    Shape("nested", b'{"a":', after=b"1"),
)


def _refused(piece: bytes, name: str, after: bytes = b"") -> Shape:
    return Shape(name, piece, before=b'{"status":-1,"msg":"', after=after + b'","data":null}')


LONG_RECORDS: Final = (
    _one(b"status", "words of a status", b"R "),
    _one(b"description", "a long description", b"\\u00e9"),
    _one(b"amount", "digits of an amount", b"1", b"", b""),
    _one(b"amount", "decimals of an amount as a text", b"0", b'"1.'),
    _one(b"date", "white space in a date", b" ", b'"2026-01-01'),
    _one(b"date", "digits of a date", b"1"),
    _one(b"payment_id", "digits of an id", b"1", b"", b""),
    _one(b"recurring", "digits of a schedule", b"1", b'"Charged every '),
    _one(b"recurring", "words of a schedule", b"for 1 year "),
)

READERS: Final = (
    Reader(
        name="a reply that comes drop by drop",
        read=lambda text: _fed(text, PIECE_BYTES),
        longest=UNREAD_BYTES_MAX,
        shapes=(
            Shape("a header without an end", b"a", before=OK + b"A: "),
            Shape("a name without an end", b"a", before=OK),
            Shape("a reason without an end", b"a", before=b"HTTP/1.1 200 "),
            Shape("white space without an end", b" ", before=OK + b"A:"),
            Shape("long headers", b"A: %b\r\n" % (b"a" * (LINE_BYTES_MAX // 32)), before=OK),
            Shape("a trailer without an end", b"a", before=CHUNKED + b"0\r\nA: "),
            Shape("an extension without an end", b"a", before=CHUNKED + b"1;"),
            Shape("a body without a length", b"a", before=OK + b"\r\n"),
            Shape("interim replies", b"HTTP/1.1 103 Early\r\n\r\n"),
        ),
    ),
    Reader(
        name="a reply in a few pieces",
        read=lambda text: _fed(text, 65_536),
        longest=EFFECT_REPLY_BYTES_MAX,
        shapes=(
            Shape("chunks of a byte", b"1\r\na\r\n", before=CHUNKED),
            Shape("digits of a chunk's length", b"0", before=CHUNKED),
        ),
    ),
    Reader(
        name="the date of a reply",
        read=lambda text: GatewayClocks(Clock()).note("gateway", text.decode("latin-1")),
        longest=LINE_BYTES_MAX,
        shapes=(
            Shape("many words", b"1 "),
            Shape("many commas", b",", after=b" Jan 2026 10:00:00 GMT"),
            Shape("many colons", b":", before=b"1 Jan 2026 "),
            Shape("digits of a zone", b"9", before=b"1 Jan 2026 10:00:00 +"),
            Shape("digits of a year", b"9", before=b"1 Jan ", after=b" 10:00:00 GMT"),
        ),
    ),
    Reader(name="an object of the gateway's", read=members_of, longest=EFFECT_REPLY_BYTES_MAX, shapes=OBJECTS),
    Reader(
        name="the reply to a charge",
        read=_classified(CHARGE),
        longest=EFFECT_REPLY_BYTES_MAX,
        shapes=(
            Shape("our own token, nearly", TOKEN[:-1].encode(), before=b'{"status":1,"data":null,"msg":"', after=b'"}'),
            Shape(
                "a token of ours, nearly",
                CHARGE.customer_token[:-1].encode(),
                b'{"status":1,"data":null,"msg":"',
                b'"}',
            ),
            _refused(b" ", "white space around a text", after=b"."),
            _refused(b"\\u0390", "letters that grow in lower case"),
        ),
    ),
    Reader(
        name="the reply to a capture",
        read=_classified(CAPTURE),
        longest=EFFECT_REPLY_BYTES_MAX,
        shapes=(
            _refused(b" already captured", "the words, and more", after=b" not"),
            _refused(b"must be less tha", "the words, nearly"),
        ),
    ),
    Reader(
        name="the reply to the end of a subscription",
        read=_classified(CANCEL),
        longest=EFFECT_REPLY_BYTES_MAX,
        shapes=(
            _refused(b"not eligibl already cancele already complete ", "the words, nearly"),
            _refused(b"a", "a long word"),
            _refused(b"a: ", "words with colons"),
            _refused(b"\\n", "many lines"),
            _refused(b"subscription ", "the subject again and again"),
        ),
    ),
    Reader(
        name="the reply to a token request",
        read=lambda text: read_grant(200, text),
        longest=EFFECT_REPLY_BYTES_MAX,
        shapes=(
            Shape("a long token", b"a", before=b'{"access_token":"', after=b'"}'),
            Shape("digits of its life", b"9", before=b'{"access_token":"aaaaaaaa","expires_in":', after=b"}"),
            Shape("a long type", b"b", before=b'{"access_token":"aaaaaaaa","token_type":"', after=b'"}'),
        ),
    ),
    Reader(
        name="the reply to a read",
        read=lambda text: classify_read(OF_ORDER, 200, b'{"status":1,"msg":"","data":%b}' % text, TOKEN),
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(RECORDS, Shape("empty, but for white space", b" ", before=b"[", after=b"]")),
    ),
    Reader(
        name="the payments of a subscription",
        read=lambda text: classify_read(
            PaymentsOfSubscription(subscription_id=1), 200, b'{"status":1,"msg":"","data":%b}' % text, TOKEN
        ),
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(
            RECORDS,
            Shape("digits of a number", b"1", before=b'[{"payment_id":', after=b"}]"),
            Shape("decimals of a number", b"1", before=b'[{"payment_id":1.', after=b"}]"),
        ),
    ),
    Reader(
        name="a list as evidence",
        read=_judged,
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(RECORDS, *LONG_RECORDS),
    ),
    Reader(
        name="a list as evidence of what was forgotten",
        read=_judged_as_lost,
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(RECORDS,),
    ),
    Reader(
        name="a list without the payments of others",
        read=lambda text: records_without(text, frozenset(map(str, range(1_000)))),
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(RECORDS,),
    ),
    Reader(
        name="a list of subscriptions",
        read=lambda text: (facts_in(text, ZONE, seen_at_ms=0), records_of("A-1", text)),
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(RECORDS, *LONG_RECORDS),
    ),
    Reader(
        name="a list without the subscriptions of others",
        read=_without_plans,
        longest=min(LIST_BYTES, READ_REPLY_BYTES_MAX),
        shapes=(RECORDS,),
    ),
    Reader(
        name="a reply in a trial",
        read=_trial,
        longest=TRIAL_BYTES,
        shapes=(
            Shape("a long word", b"g", before=b'{"msg":"', after=b'"}'),
            Shape("many addresses", b"a@b ", before=b'{"msg":"', after=b'"}'),
            Shape("ids, nearly", b"0000000-", before=b'{"msg":"', after=b'"}'),
            Shape("many members", lambda number: b'"a%d":1,' % number, before=b"{", after=b'"b":1}'),
            Shape("a text in place of a list", b"g1", before=b'{"data":"', after=b'"}'),
        ),
    ),
)
