"""What a body may hold: every member of every request, wrong in every way, is refused by name and nothing is sent."""

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import Raw, Reply, encode
from tests.scenarios.stories import (
    Scene,
    assert_envelope,
    assert_refused,
    capture_body,
    charge_body,
    fresh,
    fresh_number,
    refund_body,
)

BODY_BYTES_MAX = 64 * 1024
NOT_TEXT: list[object] = [Raw(text="1"), True, False, [], {}, ["a"], Raw(text="1.5")]
NOT_AMOUNTS: list[object] = [
    *(
        Raw(text=text)
        for text in ("0", "0.00", "-1", "-0.01", "-0", "0.001", "345.678", "1e-3", "-1E2", "1e400", "1E+999999999")
    ),
    True,
    False,
    None,
    [],
    {},
    "",
    *("abc", "1", "1.5", "1,00", "1,000.00", "-1.00", "0.00", " 1.00", "+1.00", "1.000", "1e2", "\u0661.00"),
]
EDGE_AMOUNTS = ["0.01", "1", "1.0", "1.000", "345.670", "99999.99", "1E+2", "1.5e1", "34567E-2"]
SPELLINGS: list[object] = [*(Raw(text=text) for text in ("100", "100.00", "1E+2", "10000e-2")), "100.00"]
"""One amount, as JavaScript, Python, Java and PHP write it."""


def named(reply: Reply) -> set[str]:
    """The members that the answer names."""
    return {wrong["path"] for wrong in reply.error.get("fields", [])}


def assert_member_refused(scene: Scene, path: str, body: dict[str, object], member: str) -> None:
    """The body is 422, the member is named, and the gateway heard nothing."""
    before = len(scene.gateway.asked)
    reply = scene.client.post(path, body)
    assert_refused(reply, 422, "invalid_request")
    assert reply.error["retry"] == "never", str(reply)
    assert any(member in name for name in named(reply)), f"{member} of {body}: {reply}"
    sent = [asked.path for asked in scene.gateway.asked[before:]]
    assert not {payhere.CHARGE, payhere.CAPTURE, payhere.REFUND} & set(sent)


@pytest.mark.parametrize("member", ["type", "order_id", "items", "currency", "amount", "customer_token"])
@pytest.mark.parametrize("is_null", [True, False])
def test_a_charge_needs_its_members(scene: Scene, member: str, is_null: bool) -> None:  # noqa: FBT001 - pytest gives it
    """Without one of the six (or with null) there is no charge: a default would be a guess about money."""
    body = charge_body(**{member: None})
    if not is_null:
        del body[member]
    assert_member_refused(scene, "payments/charge", body, member)


@pytest.mark.parametrize(
    "member", ["type", "order_id", "items", "currency", "customer_token", "custom_1", "custom_2", "notify_url"]
)
@pytest.mark.parametrize("value", NOT_TEXT, ids=str)
def test_a_charge_refuses_what_is_not_text(scene: Scene, member: str, value: object) -> None:
    """Text is text: a number isn't silently turned into an order id."""
    assert_member_refused(scene, "payments/charge", charge_body(**{member: value}), member)


@pytest.mark.parametrize("member", ["type", "order_id", "items", "currency", "customer_token", "amount"])
def test_a_charge_refuses_empty_text(scene: Scene, member: str) -> None:
    """Text has one character at least: an empty order id is a client's fault, not an order."""
    assert_member_refused(scene, "payments/charge", charge_body(**{member: ""}), member)


@pytest.mark.parametrize(
    ("member", "length_max"),
    [("order_id", 255), ("items", 1000), ("customer_token", 255), ("custom_1", 255), ("custom_2", 255)],
)
def test_a_charge_takes_text_up_to_its_length(scene: Scene, member: str, length_max: int) -> None:
    """The longest text is taken whole and one more character is refused; characters count, not bytes."""
    for letter in "x" if member == "customer_token" else "xක":
        longest = (fresh("long") + letter * length_max)[:length_max]
        reply = scene.client.charge(charge_body(**{member: longest}))
        assert reply.status == 200, str(reply)
        assert [call.json[member] for call in scene.gateway.calls(payhere.CHARGE, longest)] == [longest]
        assert_member_refused(scene, "payments/charge", charge_body(**{member: longest + letter}), member)


@pytest.mark.parametrize("member", ["custom_1", "custom_2"])
def test_custom_members_may_be_null(scene: Scene, member: str) -> None:
    """The interface's own answers hold null there, and a client sends back what it got."""
    assert scene.client.charge(charge_body(**{member: None})).status == 200


@pytest.mark.parametrize("value", ["payment", "PAYMENTS", "REFUND", " PAYMENT"])
def test_a_charge_has_one_of_two_types(scene: Scene, value: str) -> None:
    """`PAYMENT` or `AUTHORIZE`, as printed."""
    assert_member_refused(scene, "payments/charge", charge_body(type=value), "type")


@pytest.mark.parametrize("value", ["lkr", "LK", "LKRR", "L1R", "LKR\n", "රුප"])
def test_a_currency_is_three_capitals(scene: Scene, value: str) -> None:
    """`[A-Z]{3}`, to the end of the text."""
    assert_member_refused(scene, "payments/charge", charge_body(currency=value), "currency")


@pytest.mark.parametrize("value", ["not a url", "/hire/notify", "javascript:alert(1)"])
def test_a_notify_url_is_a_url(scene: Scene, value: str) -> None:
    """The gateway is told an address or nothing."""
    assert_member_refused(scene, "payments/charge", charge_body(notify_url=value), "notify_url")


@pytest.mark.parametrize("value", NOT_AMOUNTS, ids=str)
@pytest.mark.parametrize("kind", ["charge", "capture"])
def test_an_amount_is_a_positive_number_or_two_decimals_of_text(scene: Scene, kind: str, value: object) -> None:
    """Zero, negative, a third decimal, any other text: none is an amount that somebody meant."""
    body = charge_body(amount=value) if kind == "charge" else capture_body(amount=value)
    assert_member_refused(scene, f"payments/{kind}", body, "amount")


@pytest.mark.parametrize("text", EDGE_AMOUNTS)
def test_an_amount_reaches_the_gateway_by_value(scene: Scene, text: str) -> None:
    """The smallest amount, trailing zeros and odd forms arrive as the same value: no float on the way."""
    body = charge_body(amount=Raw(text=text))
    reply = scene.client.charge(body)
    assert reply.status == 200, str(reply)
    (call,) = scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))
    assert call.json["amount"] == float(text)
    assert isinstance(call.json["amount"], int | float)


@pytest.mark.parametrize("kind", ["charge", "capture", "refund"])
def test_one_amount_is_one_request_however_it_is_spelled(scene: Scene, kind: str) -> None:
    """The gateway hears of it once, in its own form: a repeat by another library moves no money again."""
    subject = fresh_number()
    bodies = {
        "charge": lambda amount: charge_body(order_id=subject, amount=amount),
        "capture": lambda amount: capture_body(subject, amount=amount),
        "refund": lambda amount: refund_body(subject, amount=amount),
    }
    upstream = {"charge": payhere.CHARGE, "capture": payhere.CAPTURE, "refund": payhere.REFUND}[kind]
    first, *again = [scene.client.post(f"payments/{kind}", bodies[kind](amount)) for amount in SPELLINGS]

    assert first.status == 200, str(first)
    assert [each.header("idempotent-replayed") for each in again] == ["true"] * len(again)
    assert {each.body for each in again} == {first.body}
    (call,) = scene.gateway.calls(upstream, subject)
    assert call.json["amount"] == ("100.00" if kind == "refund" else 100)


def test_an_empty_address_or_label_is_the_request_without_it(scene: Scene) -> None:
    """Forms send what nobody filled in: the gateway isn't told an empty address, and nobody is charged twice."""
    body = charge_body()
    first = scene.client.charge(body | {"notify_url": "", "custom_1": ""})
    again = scene.client.charge(body)

    assert (first.status, again.header("idempotent-replayed")) == (200, "true")
    (call,) = scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))
    assert not call.json.get("notify_url")


@pytest.mark.parametrize("text", ["9007199254740993.01", "9" * 30, "9" * 400 + ".01", "1" + "0" * 18])
def test_a_huge_amount_is_never_rounded(scene: Scene, text: str) -> None:
    """Past what a float can hold an amount is refused or arrives to the last digit, nothing between."""
    body = charge_body(amount=Raw(text=text))
    reply = scene.client.charge(body)
    sent = scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))
    assert reply.status in {200, 422}, str(reply)
    assert all(f'"amount":{text}'.encode() in call.body.replace(b" ", b"") for call in sent)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "01", "+1", "1.", ".5", "0x10", "1_000"])
def test_a_number_that_json_does_not_know_is_malformed(scene: Scene, word: str) -> None:
    """Lenient number parsing differs between programs; we know JSON's numbers only."""
    reply = scene.client.charge(charge_body(amount=Raw(text=word)))
    assert_refused(reply, 400, "malformed_request")


@pytest.mark.parametrize(
    ("kind", "body"), [("charge", charge_body()), ("capture", capture_body()), ("refund", refund_body())]
)
@pytest.mark.parametrize("member", ["ammount", "Amount", "status", "", "amount ", "__proto__"])
def test_an_unknown_member_is_refused_by_name(scene: Scene, kind: str, body: dict[str, object], member: str) -> None:
    """A mistyped `amount` in a part of a refund must not become a whole refund."""
    assert_member_refused(scene, f"payments/{kind}", body | {member: "1.00"}, member)


@pytest.mark.parametrize(
    "entry",
    [
        {"name": 1},
        {"number": 1},
        {"quantity": "1"},
        {"quantity": Raw(text="1.5")},
        {"quantity": True},
        {"unit_amount": "1.0"},
        {"unit_amount": True},
        {"colour": "red"},
    ],
    ids=str,
)
def test_an_item_is_checked_like_the_rest(scene: Scene, entry: dict[str, object]) -> None:
    """The members of an item have their types too, and the answer says which one is wrong."""
    good = {"name": "Taxi", "number": "Car-1", "quantity": 1, "unit_amount": Raw(text="300.00")}
    assert_member_refused(scene, "payments/charge", charge_body(itemList=[good, good | entry]), next(iter(entry)))


@pytest.mark.parametrize("value", ["a", Raw(text="1"), {}, [Raw(text="1")], ["a"], [None]], ids=str)
def test_the_items_are_an_array_of_objects(scene: Scene, value: object) -> None:
    """`itemList` is an array of entries or it is refused."""
    assert_member_refused(scene, "payments/charge", charge_body(itemList=value), "itemList")


def test_all_members_of_a_charge_reach_the_gateway(scene: Scene) -> None:
    """Nothing is dropped or renamed on the way up, `itemList` and `notify_url` included."""
    items = [{"name": "Taxi", "number": "Car-1", "quantity": 2, "unit_amount": Raw(text="172.83")}]
    body = charge_body(custom_1="a", custom_2="b", notify_url="https://shop.example/notify?x=1", itemList=items)
    assert scene.client.charge(body).status == 200
    (call,) = scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))
    assert {name: call.json[name] for name in ("custom_1", "custom_2", "notify_url")} == {
        "custom_1": "a",
        "custom_2": "b",
        "notify_url": "https://shop.example/notify?x=1",
    }
    assert call.json["itemList"] == [{"name": "Taxi", "number": "Car-1", "quantity": 2, "unit_amount": 172.83}]


@pytest.mark.parametrize("member", ["authorization_token", "amount"])
def test_a_capture_needs_its_members(scene: Scene, member: str) -> None:
    """A token and an amount: a capture of "the whole" is not in the interface."""
    body = capture_body()
    del body[member]
    assert_member_refused(scene, "payments/capture", body, member)


def test_a_capture_needs_its_reason(scene: Scene) -> None:
    """One of `description` and `deduction_details` must be there; the interface has both names."""
    body = capture_body()
    del body["deduction_details"]
    assert_refused(scene.client.post("payments/capture", body), 422, "invalid_request")


@pytest.mark.parametrize("member", ["authorization_token", "deduction_details", "description"])
@pytest.mark.parametrize("value", [*NOT_TEXT, "x" * 256], ids=str)
def test_a_capture_refuses_what_is_not_text(scene: Scene, member: str, value: object) -> None:
    """Each text of a capture has at most 255 characters."""
    assert_member_refused(scene, "payments/capture", capture_body(**{member: value}), member)


@pytest.mark.parametrize(
    ("members", "named_"),
    [({"authorization_token": ""}, "authorization_token"), ({"deduction_details": ""}, "description")],
)
def test_a_capture_needs_what_it_is_of_and_why(scene: Scene, members: dict[str, object], named_: str) -> None:
    """An empty token names nothing, and an empty reason is none."""
    assert_member_refused(scene, "payments/capture", capture_body(**members), named_)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"description": "one"}, "one"),
        ({"deduction_details": "two"}, "two"),
        ({"description": "one", "deduction_details": "two"}, "two"),
        ({"description": "one", "deduction_details": ""}, "one"),
    ],
)
def test_a_capture_sends_the_reason_under_the_gateways_name(scene: Scene, given: dict[str, str], sent: str) -> None:
    """Either name is taken, the second wins, and upstream it is always `deduction_details`."""
    body = capture_body()
    del body["deduction_details"]
    assert scene.client.post("payments/capture", body | given).status == 200
    (call,) = scene.gateway.calls(payhere.CAPTURE, str(body["authorization_token"]))
    assert (call.json["deduction_details"], "description" in call.json) == (sent, False)


@pytest.mark.parametrize("value", [*NOT_TEXT, "", "x" * 256], ids=str)
def test_a_refunds_description_is_text(scene: Scene, value: object) -> None:
    """A refund says why, in 1 to 255 characters."""
    assert_member_refused(scene, "payments/refund", refund_body(description=value), "description")


def test_a_refund_needs_its_description(scene: Scene) -> None:
    """The gateway's examples all hold it."""
    assert_member_refused(scene, "payments/refund", {"payment_id": fresh_number()}, "description")


@pytest.mark.parametrize("ids", [{}, {"payment_id": "320027150501", "authorization_token": "74d7f304"}], ids=str)
def test_a_refund_names_exactly_one_subject(scene: Scene, ids: dict[str, str]) -> None:
    """None is nothing to refund; both are two different wishes."""
    reply = scene.client.post("payments/refund", {"description": "Item is out of stock"} | ids)
    assert_refused(reply, 422, "invalid_request")


NOT_PARTS = [each for each in NOT_AMOUNTS if each is not None]
"""Null is as if the member weren't there, as in every optional member."""


@pytest.mark.parametrize("value", NOT_PARTS, ids=str)
def test_a_refunds_amount_is_a_number_or_two_decimals_of_text(scene: Scene, value: object) -> None:
    """A part is a number, or text with 2 decimals; anything else might be read as the whole."""
    assert_member_refused(scene, "payments/refund", refund_body(amount=value), "amount")


@pytest.mark.parametrize(
    ("given", "sent"),
    [("100.50", "100.50"), (Raw(text="100.5"), "100.50"), (Raw(text="100"), "100.00"), (Raw(text="0.01"), "0.01")],
    ids=str,
)
def test_a_refunds_amount_is_sent_as_text_with_two_decimals(scene: Scene, given: object, sent: str) -> None:
    """The gateway's form, whichever form the caller chose."""
    body = refund_body(amount=given)
    assert scene.client.post("payments/refund", body).status == 200
    (call,) = scene.gateway.calls(payhere.REFUND, str(body["payment_id"]))
    assert call.json["amount"] == sent


def test_a_whole_refund_sends_no_amount(scene: Scene) -> None:
    """No amount means all of it, in the gateway's words too; the id goes as text, as its pages show it."""
    number = fresh_number()
    assert scene.client.post("payments/refund", refund_body(Raw(text=number))).status == 200
    (call,) = scene.gateway.calls(payhere.REFUND, number)
    assert call.json == {"payment_id": number, "description": "Item is out of stock"}


def test_several_wrong_members_are_named_together(scene: Scene) -> None:
    """A person who mends a form sees all that is wrong with it, not one thing after the other."""
    reply = scene.client.charge(charge_body(currency="lkr", amount=Raw(text="0"), order_id=""))
    assert_refused(reply, 422, "invalid_request")
    assert len(named(reply)) >= 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"nothing",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b"true",
        b"{'type': 'PAYMENT'}",
        b'{"type": "PAYMENT",}',
        b'{"type": "PAYMENT"} {}',
        b'{"type": "PAYMENT"} // why',
        b"\xff\xfe{\x00}\x00",
        b'{"order_id": "\xff"}',
        b'{"order_id": "\xc3"}',
        b'{"order_id": "\xed\xa0\x80"}',
        b'{"order_id": "a\nb"}',
        b'{"order_id": "a\x00b"}',
        b'{"order_id": "\\x41"}',
    ],
)
@pytest.mark.parametrize("kind", ["charge", "capture", "refund"])
def test_what_is_not_a_json_object_is_malformed(scene: Scene, kind: str, content: bytes) -> None:
    """Not JSON, not UTF-8, not an object: 400, and never our fault."""
    assert_refused(scene.client.post(f"payments/{kind}", content), 400, "malformed_request")


@pytest.mark.parametrize("member", ["amount", "order_id", "type"])
def test_a_doubled_member_is_malformed(scene: Scene, member: str) -> None:
    """Two amounts in one object: programs differ in which one they believe, so neither is."""
    body = charge_body()
    content = encode(body)[:-1] + f',"{member}":{encode(body[member])}}}'
    assert_refused(scene.client.charge(content.encode()), 400, "malformed_request")


def test_a_doubled_member_of_an_item_is_malformed(scene: Scene) -> None:
    """The same inside an item, and when one of the two is written with an escape."""
    item = Raw(text=r'{"name":"a","number":"b","quantity":1,"unit_amount":1,"quantit\u0079":2}')
    assert_refused(scene.client.charge(charge_body(itemList=[item])), 400, "malformed_request")


@pytest.mark.parametrize("text", [r"\ud800", r"a\u0000b", r"\udc00\ud800"])
def test_text_that_cannot_be_stored_is_refused(scene: Scene, text: str) -> None:
    """A lone surrogate is no text, and a NUL is taken whole or refused; neither is our fault."""
    reply = scene.client.charge(charge_body(order_id=Raw(text=f'"{text}{fresh("x")}"')))
    assert reply.status in {200, 400, 422} if "0000" in text else reply.status in {400, 422}, str(reply)
    assert_envelope(reply)


def test_a_byte_order_mark_is_named(scene: Scene) -> None:
    """JSON may not begin with one, and no editor shows it: the answer says what nobody sees."""
    reply = scene.client.charge(b"\xef\xbb\xbf" + encode(charge_body()).encode())
    assert_refused(reply, 400, "malformed_request")
    assert "byte order mark" in str(reply)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"]
)
def test_another_content_type_is_415(scene: Scene, kind: str) -> None:
    """JSON is said to be JSON: a browser's form can't be made to charge anybody."""
    body = charge_body()
    reply = scene.client.post("payments/charge", body, headers=[("Content-Type", kind)])
    assert_refused(reply, 415, "unsupported_media_type")
    assert not scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_is_taken_however_it_is_called(scene: Scene, kind: str) -> None:
    """Parameters and case of the content type don't matter."""
    assert scene.client.post("payments/charge", charge_body(), headers=[("Content-Type", kind)]).status == 200


def padded(length_bytes: int) -> bytes:
    """A good charge that is this long."""
    return encode(charge_body()).encode().ljust(length_bytes)


def test_a_body_over_64_kib_is_413(scene: Scene) -> None:
    """The largest body is taken and one more byte is not: nobody fills our memory."""
    assert scene.client.charge(padded(BODY_BYTES_MAX)).status == 200
    assert_refused(scene.client.charge(padded(BODY_BYTES_MAX + 1)), 413, "too_large")


def test_a_long_body_without_a_length_is_413(scene: Scene) -> None:
    """A chunked body is counted as it comes."""
    content = padded(BODY_BYTES_MAX * 2)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
    reply = scene.client.chunked("payments/charge", chunked)
    assert_refused(reply, 413, "too_large")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"itemList":['])
def test_absurd_nesting_is_malformed(scene: Scene, opening: bytes) -> None:
    """Thousands of brackets are refused like any other nonsense and kill nobody."""
    content = (opening * (BODY_BYTES_MAX // len(opening)))[: BODY_BYTES_MAX - 1]
    reply = scene.client.charge(content)
    assert_refused(reply, 400, "malformed_request")


def test_closed_absurd_nesting_is_refused(scene: Scene) -> None:
    """The same with every bracket closed again."""
    depth = 20_000
    reply = scene.client.charge(charge_body(itemList=Raw(text="[" * depth + "]" * depth)))
    assert reply.status in {400, 422}, str(reply)
    assert_envelope(reply)
