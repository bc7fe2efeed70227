import pytest
from tests.api.bodies import CAPTURE, CHARGE, LEFT_OUT, REFUND, written, wrong

from payrelay.api.requests.body import parse_body
from payrelay.api.requests.payment_bodies import CaptureBody, ChargeBody, RefundBody
from payrelay.api.requests.tokens import AuthorizationToken
from payrelay.core.calls import Capture, Charge, Item, Refund, Void


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


@pytest.mark.parametrize(
    ("field", "character", "length_max"),
    [("order_id", "ශ", 255), ("items", "ශ", 1000), ("customer_token", "x", 255), ("custom_1", "ශ", 255)],
)
def test_texts_have_a_longest_length(field: str, character: str, length_max: int) -> None:
    """The longest text passes and one more character doesn't; characters count, not bytes."""
    text = character * length_max
    assert getattr(parse_body(written(CHARGE, **{field: text}), ChargeBody), field) == text
    body = written(CHARGE, **{field: "x" * (length_max + 1)})
    assert wrong(body, ChargeBody) == {field: f"must have at most {length_max} characters"}


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
    ["a.lk", "/notify", "ftp://a.lk", "http://", "http:///x", "http://a b", "http://[7584]/x", "http://u:p@a.lk", "http://a\n",
     "javascript:alert(1)", "http://a/" + "x" * 255, 7],
)  # fmt: skip
def test_what_is_no_web_address_is_refused(address: object) -> None:
    """The gateway would send notifications there; it must be complete and absolute."""
    assert set(wrong(written(CHARGE, notify_url=address), ChargeBody)) == {"notify_url"}


def test_an_item_list_has_an_end_and_may_be_empty() -> None:
    """A popular plug-in sends an empty list; more than a hundred lines are refused as one mistake."""
    item = {"name": "a", "number": "1", "quantity": 2, "unit_amount": 0}
    assert parse_body(written(CHARGE, itemList=[]), ChargeBody).call().item_list == ()
    assert len(parse_body(written(CHARGE, itemList=[item] * 100), ChargeBody).call().item_list or ()) == 100
    assert wrong(written(CHARGE, itemList=[{}] * 101), ChargeBody) == {"itemList": "must have at most 100 entries"}


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
    assert parse_body(written(REFUND, **token), RefundBody).call() == Void(
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


def test_a_refund_whose_amount_is_null_is_one_of_the_whole_payment() -> None:
    """Typed clients write null for what nobody set: it is the same refund as one without an amount."""
    without, with_null = parse_body(written(REFUND), RefundBody), parse_body(written(REFUND, amount=None), RefundBody)
    assert without.call() == with_null.call()
    assert with_null.call().amount_minor is None


@pytest.mark.parametrize("amount", ["100.5", "100", "0.00", " 1.00", "1,00", "-1.00", "1e2", "", "٣.00", 0, 1.005])
def test_what_is_no_part_is_refused(amount: object) -> None:
    """An amount that can be read in two ways is not money."""
    assert set(wrong(written(REFUND, amount=amount), RefundBody)) == {"amount"}


def test_a_body_prints_stars_in_place_of_its_token() -> None:
    """It is what every charge goes through, and the first thing that somebody prints who looks for a mistake."""
    body = RefundBody(description="late", authorization_token=AuthorizationToken("hunter2"))
    assert "hunter2" not in repr(body)


def test_a_refused_amount_names_the_one_that_was_meant() -> None:
    """Most languages calculate 3.3 times 3 as 9.899999999999999; the developer is told where to round."""
    words = {"amount": "must have at most 2 decimals; probably 9.90 was meant"}
    assert wrong(written(CHARGE, amount=3.3 * 3), ChargeBody) == words
