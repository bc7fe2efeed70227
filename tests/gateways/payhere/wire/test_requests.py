import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import (
    AllSubscriptions,
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Item,
    OneSubscription,
    PaymentsOfOrder,
    PaymentsOfSubscription,
    Read,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.money import AMOUNT_MINOR_MAX
from payrelay.gateways.payhere.wire.requests import WireRequest, basic_authorization, build, token_request

CHARGE = Charge(
    authorize=False,
    order_id="Order12345",
    items="Taxi Hire 123",
    currency="LKR",
    amount_minor=34567,
    customer_token="59AFEE022CC69CA39D325E1B59130862",
)
AMOUNTS = st.integers(1, AMOUNT_MINOR_MAX)


def body_of(request: WireRequest) -> str:
    """Gives the body as text."""
    assert request.body is not None
    return request.body.decode()


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (CHARGE, "POST", "/merchant/v1/payment/charge"),
        (Capture(authorization_token="a", amount_minor=1, description="d"), "POST", "/merchant/v1/payment/capture"),
        (Refund(payment_id="1", description="d"), "POST", "/merchant/v1/payment/refund"),
        (Void(authorization_token="a", description="d"), "POST", "/merchant/v1/payment/refund"),
        (RetrySubscription(subscription_id=1), "POST", "/merchant/v1/subscription/retry"),
        (CancelSubscription(subscription_id=1), "POST", "/merchant/v1/subscription/cancel"),
        (PaymentsOfOrder(order_id="A-1"), "GET", "/merchant/v1/payment/search?order_id=A-1"),
        (AllSubscriptions(), "GET", "/merchant/v1/subscription"),
        (OneSubscription(subscription_id=420075032251), "GET", "/merchant/v1/subscription/420075032251"),
        (PaymentsOfSubscription(subscription_id=42), "GET", "/merchant/v1/subscription/42/payments"),
    ],
)
def test_every_call_goes_to_its_own_address(call: Effect | Read, method: str, path: str) -> None:
    """The list path is singular and the cancelling is a POST: what the gateway has, not what one would guess."""
    request = build(call)
    assert (request.method, request.path) == (method, path)


def test_a_charge_carries_only_what_was_given() -> None:
    """Members that the client left out are left out, and the type is always named."""
    assert body_of(build(CHARGE)) == (
        '{"type":"PAYMENT","order_id":"Order12345","items":"Taxi Hire 123","currency":"LKR","amount":345.67,'
        '"customer_token":"59AFEE022CC69CA39D325E1B59130862"}'
    )


def test_a_charge_carries_everything_that_was_given() -> None:
    """Every optional member has the gateway's own spelling, itemList with its capital among them."""
    call = Charge(
        authorize=True,
        order_id="A",
        items="I",
        currency="USD",
        amount_minor=5,
        customer_token="T",
        custom_1="",
        custom_2="x",
        notify_url="https://shop.example/n",
        item_list=(Item(name="N", number="7", quantity=2, unit_amount_minor=1050),),
    )
    assert body_of(build(call, notify_url="https://ours.example/n")) == (
        '{"type":"AUTHORIZE","order_id":"A","items":"I","currency":"USD","amount":0.05,"customer_token":"T",'
        '"custom_1":"","custom_2":"x","notify_url":"https://shop.example/n",'
        '"itemList":[{"name":"N","number":"7","quantity":2,"unit_amount":10.50}]}'
    )


def test_our_notify_url_goes_in_where_the_client_gave_none() -> None:
    """So that the gateway's notification reaches us, and the client's own is never replaced."""
    assert json.loads(body_of(build(CHARGE, notify_url="https://ours.example/n")))["notify_url"] == (
        "https://ours.example/n"
    )


def test_a_capture_sends_the_description_as_deduction_details() -> None:
    """The gateway's field has another name than the interface's."""
    call = Capture(authorization_token="T", amount_minor=8000, description="Item1 is out of stock")
    assert body_of(build(call)) == (
        '{"authorization_token":"T","amount":80.00,"deduction_details":"Item1 is out of stock"}'
    )


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (Refund(payment_id="320027150501", description="d"), '{"payment_id":"320027150501","description":"d"}'),
        (
            Refund(payment_id="320027150501", description="d", amount_minor=10050),
            '{"payment_id":"320027150501","description":"d","amount":"100.50"}',
        ),
        (Void(authorization_token="T", description="d"), '{"authorization_token":"T","description":"d"}'),
        (
            Void(authorization_token="T", description="d", amount_minor=1),
            '{"authorization_token":"T","description":"d","amount":"0.01"}',
        ),
    ],
)
def test_a_refund_names_one_thing_and_its_amount_as_text(call: Effect, body: str) -> None:
    """A whole refund must not carry an amount, and both ids at once are nowhere documented."""
    assert body_of(build(call)) == body


@pytest.mark.parametrize("call", [RetrySubscription(subscription_id=4200), CancelSubscription(subscription_id=4200)])
def test_a_subscription_is_named_by_a_number(call: Effect) -> None:
    """The documents have a JSON number there."""
    assert body_of(build(call)) == '{"subscription_id":4200}'


@given(amount_minor=AMOUNTS)
def test_amounts_are_written_digit_for_digit(amount_minor: int) -> None:
    """No amount passes through a float: the last hundredth of the largest one is still there."""
    digits = f"{amount_minor:03d}"
    capture = Capture(authorization_token="T", amount_minor=amount_minor, description="d")
    refund = Refund(payment_id="1", description="d", amount_minor=amount_minor)
    assert f'"amount":{digits[:-2]}.{digits[-2:]},' in body_of(build(capture))
    assert f'"amount":"{digits[:-2]}.{digits[-2:]}"' in body_of(build(refund))


@given(order_id=st.text(st.characters(codec="utf-8"), min_size=1, max_size=255))
def test_an_order_id_is_a_value_and_never_a_parameter(order_id: str) -> None:
    """Whatever stands in it, the gateway gets exactly that order id and nothing else: no second member, no fragment."""
    parts = urlsplit(build(PaymentsOfOrder(order_id=order_id)).path)
    assert parts.fragment == ""
    assert parse_qs(parts.query, keep_blank_values=True, strict_parsing=True) == {"order_id": [order_id]}


def test_every_reserved_character_of_an_order_id_is_encoded() -> None:
    """A slash or a plus sign left as it is means something else to some server on the way."""
    path = build(PaymentsOfOrder(order_id="a/b c+d&e=f#g?h%i")).path
    assert path.endswith("order_id=a%2Fb%20c%2Bd%26e%3Df%23g%3Fh%25i")


@given(text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=255))
def test_texts_reach_the_gateway_character_for_character(text: str) -> None:
    """Sinhala, quotes and line breaks arrive as they were given."""
    call = Refund(payment_id="1", description=text)
    assert json.loads(body_of(build(call)))["description"] == text


def test_the_token_request_is_a_form_with_a_basic_header() -> None:
    """The one call that isn't JSON; the pair is never in the body."""
    request = token_request()
    assert (request.method, request.path, request.body) == (
        "POST",
        "/merchant/v1/oauth/token",
        b"grant_type=client_credentials",
    )
    header = basic_authorization("app", "se:cret")
    assert base64.b64decode(header.removeprefix("Basic ")) == b"app:se:cret"
