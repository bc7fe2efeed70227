import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.openapi.examples import REQUESTS
from payrelay.api.routes.bodies import Body, CaptureBody, ChargeBody, EmptyBody, RefundBody, parse_body
from payrelay.api.routes.table import ROUTES
from payrelay.core.calls import Capture, Charge, Item, Refund, Release
from payrelay.core.money import decimal_text
from payrelay.errors import Code, Refusal

CHARGE: dict[str, Any] = {
    "type": "PAYMENT",
    "order_id": "Order12345",
    "items": "Taxi Hire 123",
    "currency": "LKR",
    "amount": 345.67,
    "customer_token": "59AFEE022CC69CA39D325E1B59130862",
}
CAPTURE: dict[str, Any] = {"authorization_token": "e34f3059", "amount": 80, "description": "out of stock"}
REFUND: dict[str, Any] = {"payment_id": "320027150501", "description": "Item is out of stock"}
LEFT_OUT = object()


def written(members: dict[str, Any], **changes: object) -> bytes:
    """Writes a body with some members changed or left out."""
    merged = {name: value for name, value in {**members, **changes}.items() if value is not LEFT_OUT}
    return json.dumps(merged).encode()


def wrong(body: bytes, kind: type[Body]) -> dict[str, str]:
    """Gives what is wrong with a body, by field."""
    with pytest.raises(Refusal) as raised:
        parse_body(body, kind)
    assert raised.value.code is Code.INVALID_REQUEST
    return {error.path: error.msg for error in raised.value.fields}


def test_a_charge_becomes_a_call() -> None:
    """Every field arrives under our names, money in hundredths."""
    body = written(
        CHARGE,
        custom_1="ABCD",
        custom_2=None,
        notify_url="http://www.abc.com/hire/notify",
        itemList=[{"name": "Fare", "number": "001", "quantity": 1, "unit_amount": 300}],
    )
    assert parse_body(body, ChargeBody).call() == Charge(
        authorize=False,
        order_id="Order12345",
        items="Taxi Hire 123",
        currency="LKR",
        amount_minor=34567,
        customer_token="59AFEE022CC69CA39D325E1B59130862",
        custom_1="ABCD",
        notify_url="http://www.abc.com/hire/notify",
        item_list=(Item(name="Fare", number="001", quantity=1, unit_amount_minor=30000),),
    )


def test_an_authorization_is_a_charge_that_holds() -> None:
    """The type decides between taking and holding, and is never guessed."""
    assert parse_body(written(CHARGE, type="AUTHORIZE"), ChargeBody).call().authorize
    assert wrong(written(CHARGE, type="authorize"), ChargeBody) == {"type": "must be PAYMENT or AUTHORIZE"}
    assert wrong(written(CHARGE, type=LEFT_OUT), ChargeBody) == {"type": "is required"}


@given(st.integers(1, 99_999_999_999_999), st.integers(0, 9))
def test_an_amount_arrives_to_the_last_digit(amount_minor: int, zeros: int) -> None:
    """Whatever the amount and however many zeros it carries, not a cent is lost or made."""
    text = decimal_text(amount_minor) + "0" * zeros
    body = written(CHARGE, amount=0).replace(b'"amount": 0', b'"amount": ' + text.encode())
    assert parse_body(body, ChargeBody).call().amount_minor == amount_minor


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0", "must be greater than 0"),
        ("0.00", "must be greater than 0"),
        ("-1", "must be greater than 0"),
        ("-0", "must be greater than 0"),
        ("0.001", "must have at most 2 decimals"),
        ("1.005", "must have at most 2 decimals"),
        ("0." + "0" * 30_000 + "1", "must have at most 2 decimals"),
        ("1e2", "must be written without an exponent"),
        ("100E-2", "must be written without an exponent"),
        ("1000000000000", "must be at most 999999999999.99"),
        ("9" * 5000, "must be at most 999999999999.99"),
        ('"345.67"', "must be a number"),
        ("true", "must be a number"),
        ("null", "must be a number"),
        ("[1]", "must be a number"),
        ("{}", "must be a number"),
    ],
)
@pytest.mark.parametrize(("members", "kind"), [(CHARGE, ChargeBody), (CAPTURE, CaptureBody)])
def test_a_wrong_amount_is_refused_in_words(text: str, words: str, members: dict[str, Any], kind: type[Body]) -> None:
    """Only a plain number with at most two decimals is money; everything else is told apart."""
    body = written(members, amount=0).replace(b'"amount": 0', b'"amount": ' + text.encode())
    assert wrong(body, kind) == {"amount": words}


def test_one_wrong_field_is_the_message() -> None:
    """A person reads the envelope's msg first; with one mistake it says it all."""
    with pytest.raises(Refusal, match=r"^amount must be greater than 0$"):
        parse_body(written(CHARGE, amount=0), ChargeBody)


def test_everything_wrong_is_told_at_once() -> None:
    """Whoever builds a client mends ten mistakes in one go, not in ten."""
    item = {"name": "", "number": 7, "quantity": 0, "unit_amount": -1, "colour": "red"}
    body = written(CHARGE, order_id="", currency="lkr", items=LEFT_OUT, amuont=1, itemList=[item, 5])
    assert wrong(body, ChargeBody) == {
        "order_id": "must not be empty",
        "items": "is required",
        "currency": "must be three capital letters",
        "amuont": "is not a known field",
        "itemList[0].name": "must not be empty",
        "itemList[0].number": "must be a string",
        "itemList[0].quantity": "must be 1 to 999999999",
        "itemList[0].unit_amount": "must be 0 or greater",
        "itemList[0].colour": "is not a known field",
        "itemList[1]": "must be an object",
    }


@pytest.mark.parametrize(
    ("field", "length_max"), [("order_id", 255), ("items", 1000), ("customer_token", 255), ("custom_1", 255)]
)
def test_texts_have_a_longest_length(field: str, length_max: int) -> None:
    """The longest text passes and one more character doesn't; characters count, not bytes."""
    text = "ශ" * length_max
    assert getattr(parse_body(written(CHARGE, **{field: text}), ChargeBody), field) == text
    body = written(CHARGE, **{field: "x" * (length_max + 1)})
    assert wrong(body, ChargeBody) == {field: f"must have at most {length_max} characters"}


@pytest.mark.parametrize("currency", ["LK", "LKRR", "lkr", "LK1", "LKR\n", "", 7, None])
def test_a_currency_is_three_capital_letters(currency: object) -> None:
    """A code that is nearly right must not reach the gateway as another one."""
    assert set(wrong(written(CHARGE, currency=currency), ChargeBody)) == {"currency"}


@pytest.mark.parametrize(
    "address",
    [
        "http://a.lk",
        "https://www.abc.com:8443/n?x=1#y",
        "HTTPS://A.LK/",
        "http://[::1]:80/x",
        "http://a.lk/n?a[]=1|2",
        "http://localhost",
    ],
)
def test_a_web_address_is_passed_on(address: str) -> None:
    """The client's own notification address goes out as it came in."""
    assert parse_body(written(CHARGE, notify_url=address), ChargeBody).call().notify_url == address


@pytest.mark.parametrize(
    "address",
    ["", "a.lk", "/notify", "ftp://a.lk", "http://", "http:///x", "http://a b", "http://[7584]/x", "http://u:p@a.lk", "http://a\n",
     "javascript:alert(1)", "http://a/" + "x" * 255, None, 7],
)  # fmt: skip
def test_what_is_no_web_address_is_refused(address: object) -> None:
    """The gateway would call it with news of money; it must be whole and absolute."""
    assert set(wrong(written(CHARGE, notify_url=address), ChargeBody)) == {"notify_url"}


def test_texts_that_can_not_be_kept_name_their_field() -> None:
    """NUL would fail in PostgreSQL after the money moved; it is refused at the door, also in an unknown name."""
    body = written(CHARGE, order_id="a\0b", custom_1="\ud800", amount=0)
    assert set(wrong(body, ChargeBody)) == {"order_id", "custom_1", "amount"}
    assert set(wrong(written(CHARGE, **{"x\0": 1}), ChargeBody)) == {"x\\x00"}


@pytest.mark.parametrize("quantity", ["0", "-1", "1.5", "true", '"1"', "1e3", "1000000000", "null"])
def test_a_quantity_is_a_whole_number(quantity: str) -> None:
    """Half an item and none of an item are mistakes."""
    item = f'"name":"a","number":"1","unit_amount":0,"quantity":{quantity}'
    body = written(CHARGE)[:-1] + b',"itemList":[{' + item.encode() + b"}]}"
    assert set(wrong(body, ChargeBody)) == {"itemList[0].quantity"}


def test_an_item_list_has_an_end_and_may_be_empty() -> None:
    """A popular plug-in sends an empty list; more than a hundred lines are refused as one mistake."""
    item = {"name": "a", "number": "1", "quantity": 2, "unit_amount": 0}
    assert parse_body(written(CHARGE, itemList=[]), ChargeBody).call().item_list == ()
    assert len(parse_body(written(CHARGE, itemList=[item] * 100), ChargeBody).call().item_list or ()) == 100
    assert wrong(written(CHARGE, itemList=[{}] * 101), ChargeBody) == {"itemList": "must have at most 100 entries"}


def test_not_more_than_fifty_mistakes_are_listed() -> None:
    """An answer must not be a multiple of what was sent."""
    body = json.dumps({f"x{number}": 1 for number in range(500)}).encode()
    assert len(wrong(body, ChargeBody)) == 50


def test_a_capture_takes_either_name_for_its_details() -> None:
    """Both names are part of the interface; deduction_details wins, and one is needed."""
    both = written(CAPTURE, deduction_details="wins")
    expected = Capture(authorization_token="e34f3059", amount_minor=8000, description="wins")
    assert parse_body(both, CaptureBody).call() == expected
    assert parse_body(written(CAPTURE), CaptureBody).call().description == "out of stock"
    assert wrong(written(CAPTURE, description=LEFT_OUT, amount=0), CaptureBody) == {
        "description": "is required, or deduction_details",
        "amount": "must be greater than 0",
    }


def test_a_refund_is_of_a_payment_or_of_a_hold() -> None:
    """Exactly one of the two: with both, nobody knows which one was meant."""
    token = {"payment_id": LEFT_OUT, "authorization_token": "74d7"}
    assert parse_body(written(REFUND), RefundBody).call() == Refund(
        payment_id="320027150501", description="Item is out of stock"
    )
    assert parse_body(written(REFUND, **token), RefundBody).call() == Release(
        authorization_token="74d7", description="Item is out of stock"
    )
    assert set(wrong(written(REFUND, authorization_token="74d7"), RefundBody)) == {"authorization_token"}
    assert wrong(written(REFUND, payment_id=LEFT_OUT, description=LEFT_OUT), RefundBody) == {
        "payment_id": "is required, or authorization_token",
        "description": "is required",
    }


def test_a_mistyped_amount_is_no_whole_refund() -> None:
    """A part must never become the whole because a name was misspelt."""
    assert wrong(written(REFUND, amout="1.00"), RefundBody) == {"amout": "is not a known field"}


@pytest.mark.parametrize(
    ("payment_id", "text"), [(320027150501, "320027150501"), (7.0, "7"), ("0", "0"), ("9" * 19, "9" * 19)]
)
def test_a_payment_id_is_a_number_or_digits(payment_id: object, text: str) -> None:
    """Answers carry it as a number, the gateway's own examples as text: both name the same payment."""
    call = parse_body(written(REFUND, payment_id=payment_id), RefundBody).call()
    assert isinstance(call, Refund)
    assert call.payment_id == text


@pytest.mark.parametrize("payment_id", ["", "9" * 20, "-1", "3.2", "٣", "1\n", -1, 10**19, 3.5, True, None])
def test_what_is_no_payment_id_is_refused(payment_id: object) -> None:
    """It would reach the gateway as some other payment, or none."""
    assert set(wrong(written(REFUND, payment_id=payment_id), RefundBody)) == {"payment_id"}


@pytest.mark.parametrize(("amount", "minor"), [("100.50", 10050), (100.5, 10050), ("0.01", 1), (7, 700)])
def test_a_part_may_be_a_number_or_a_text(amount: object, minor: int) -> None:
    """The gateway wants a text with two decimals here and a number elsewhere."""
    assert parse_body(written(REFUND, amount=amount), RefundBody).call().amount_minor == minor


@pytest.mark.parametrize(
    "amount", ["100.5", "100", "0.00", " 1.00", "1,00", "-1.00", "1e2", "", "٣.00", 0, 1.005, None]
)
def test_what_is_no_part_is_refused(amount: object) -> None:
    """An amount that can be read in two ways is not money."""
    assert set(wrong(written(REFUND, amount=amount), RefundBody)) == {"amount"}


def test_an_empty_body_takes_nothing() -> None:
    """Where nothing is to be said, something said is a misunderstanding."""
    assert parse_body(b" {} ", EmptyBody) == EmptyBody()
    assert wrong(b'{"reason":"x"}', EmptyBody) == {"reason": "is not a known field"}


@pytest.mark.parametrize("name", REQUESTS)
def test_every_example_in_the_docs_is_accepted(name: str) -> None:
    """An example that fails is worse than none."""
    (kind,) = (route.body for route in ROUTES if route.name == name)
    assert kind is not None
    for _, example in REQUESTS[name].values():
        assert isinstance(parse_body(json.dumps(example).encode(), kind), kind)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals(allow_nan=False).map(str),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*CHARGE, "itemList", "custom_1", "notify_url", "x"]), JSON), st.booleans())
def test_no_body_is_our_fault(changes: dict[str, object], is_whole: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever comes in is a charge or a refusal that names at least one field; nothing else gets out."""
    body = json.dumps({**(CHARGE if is_whole else {}), **changes}).encode()
    refusal: Refusal | None = None
    try:
        parse_body(body, ChargeBody).call()
    except Refusal as raised:
        refusal = raised
    if refusal is not None:
        assert refusal.msg.encode()
        assert refusal.code is Code.MALFORMED_REQUEST or all(error.path for error in refusal.fields)


def test_an_amount_is_no_float_on_its_way() -> None:
    """0.1 + 0.2 is the classic; here a sum of cents that floats can't hold."""
    body = written(CHARGE, amount=0).replace(b'"amount": 0', b'"amount": 999999999999.99')
    assert parse_body(body, ChargeBody).call().amount_minor == int(Decimal("999999999999.99") * 100)


def test_a_body_prints_stars_in_place_of_its_token() -> None:
    """It is what every charge goes through, and the first thing that somebody prints who looks for a mistake."""
    body = RefundBody(description="late", authorization_token="hunter2")
    assert "hunter2" not in repr(body)
