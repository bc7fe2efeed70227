import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.bodies import CHARGE, LEFT_OUT, written, wrong

from payrelay.api.openapi.examples import REQUESTS
from payrelay.api.requests.body import parse_body
from payrelay.api.requests.payment_bodies import ChargeBody
from payrelay.api.requests.route import EmptyBody
from payrelay.api.routes.checkouts import CheckoutBody
from payrelay.api.routes.table import ROUTES
from payrelay.errors import Code, Refusal


def test_one_wrong_field_is_the_message() -> None:
    """A developer reads the envelope's msg first; with one mistake it says everything."""
    with pytest.raises(Refusal, match=r"^amount must be greater than 0$"):
        parse_body(written(CHARGE, amount=0), ChargeBody)


def test_all_wrong_fields_are_named_at_once() -> None:
    """A developer corrects ten mistakes at once, not in ten rounds."""
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


def test_texts_that_can_not_be_stored_name_their_field() -> None:
    """NUL would fail in PostgreSQL after the money moved; the API refuses it, also in an unknown name."""
    body = written(CHARGE, order_id="a\0b", custom_1="\ud800", amount=0)
    assert set(wrong(body, ChargeBody)) == {"order_id", "custom_1", "amount"}
    assert set(wrong(written(CHARGE, **{"x\0": 1}), ChargeBody)) == {"x\\x00"}
    assert set(wrong(written(CHARGE, **{"x\ud800": 1}), ChargeBody)) == {"x\\ud800"}


def test_not_more_than_fifty_mistakes_are_listed() -> None:
    """An answer must not be a multiple of what was sent."""
    body = json.dumps({f"x{number}": 1 for number in range(500)}).encode()
    assert len(wrong(body, ChargeBody)) == 50


def test_an_empty_body_takes_nothing() -> None:
    """Where a body needs no members, any member is a misunderstanding."""
    assert parse_body(b" {} ", EmptyBody) == EmptyBody()
    assert wrong(b'{"reason":"x"}', EmptyBody) == {"reason": "is not a known field"}


@pytest.mark.parametrize("name", REQUESTS)
def test_null_says_the_same_as_nothing(name: str) -> None:
    """Typed clients write null for whatever isn't set; only a name of a customer or endpoint is removed by it."""
    (kind,) = (route.body for route in ROUTES if route.name == name)
    assert kind is not None
    kept = {("changeCustomer", "reference"), ("changeCustomer", "label"), ("changeEndpoint", "label")}
    for example in (shown["value"] for shown in REQUESTS[name].values()):
        unset = [
            field.encode_name
            for field in msgspec.structs.fields(kind)
            if not field.required and field.encode_name not in example and (name, field.encode_name) not in kept
        ]
        whole = {**example, **dict.fromkeys(unset)}
        assert parse_body(json.dumps(whole).encode(), kind) == parse_body(json.dumps(example).encode(), kind)


def test_null_says_the_same_as_nothing_in_parts_of_a_body() -> None:
    """An address whose city isn't set is an address without a city; a required member must have a value."""
    checkout: dict[str, Any] = dict(REQUESTS["openCheckout"]["payment"]["value"])
    bare = parse_body(json.dumps({**checkout, "delivery": {"city": "Kandy"}}).encode(), CheckoutBody)
    whole = {**checkout, "delivery": {"city": "Kandy", "address": None, "country": None}}
    assert parse_body(json.dumps(whole).encode(), CheckoutBody) == bare
    nameless = {**checkout, "itemList": [{"name": None, "number": "1", "quantity": 1, "unit_amount": 1}]}
    assert wrong(json.dumps(nameless).encode(), CheckoutBody).keys() == {"itemList[0].name"}
    assert wrong(written(CHARGE, order_id=None, amuont=None), ChargeBody).keys() == {"order_id", "amuont"}


def test_an_empty_custom_parameter_is_none() -> None:
    """Forms and older clients send both always; the gateway is told of none, and a repeat without them is equal."""
    empty = parse_body(written(CHARGE, custom_1="", custom_2=""), ChargeBody).call()
    assert empty == parse_body(written(CHARGE), ChargeBody).call()
    checkout: dict[str, Any] = dict(REQUESTS["openCheckout"]["payment"]["value"])
    opened = parse_body(json.dumps({**checkout, "custom_1": "", "custom_2": ""}).encode(), CheckoutBody).call()
    assert (opened.payment.custom_1, opened.payment.custom_2) == (None, None)
    assert wrong(json.dumps({**checkout, "custom_1": " "}).encode(), CheckoutBody) == {"custom_1": "must not be empty"}


@pytest.mark.parametrize("name", REQUESTS)
def test_every_example_in_the_docs_is_accepted(name: str) -> None:
    """An example that fails is worse than none."""
    (kind,) = (route.body for route in ROUTES if route.name == name)
    assert kind is not None
    for example in (shown["value"] for shown in REQUESTS[name].values()):
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
