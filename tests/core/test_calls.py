import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import (
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Item,
    Refund,
    RetrySubscription,
    Void,
    subscription_number,
)

texts = st.text(min_size=1, max_size=20)
amounts = st.integers(1, 10**14)
optional_texts = st.none() | texts
items = st.builds(Item, name=texts, number=texts, quantity=st.integers(1, 99), unit_amount_minor=amounts)
charges = st.builds(
    Charge,
    authorize=st.booleans(),
    order_id=texts,
    items=texts,
    currency=texts,
    amount_minor=amounts,
    customer_token=texts,
    custom_1=optional_texts,
    custom_2=optional_texts,
    notify_url=optional_texts,
    item_list=st.none() | st.lists(items, max_size=3).map(tuple),
)
effects = st.one_of(
    charges,
    st.builds(Capture, authorization_token=texts, amount_minor=amounts, description=texts),
    st.builds(Refund, payment_id=texts, description=texts, amount_minor=st.none() | amounts),
    st.builds(Void, authorization_token=texts, description=texts, amount_minor=st.none() | amounts),
    st.builds(RetrySubscription, subscription_id=st.integers(0, 2**63 - 1)),
    st.builds(CancelSubscription, subscription_id=st.integers(0, 2**63 - 1)),
)


@given(effects)
def test_a_stored_call_reads_back_as_the_same_call(call: Effect) -> None:
    """Settling asks the gateway about exactly what was sent, in another process and years later."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(call), type=Effect) == call


@pytest.mark.parametrize(
    "call",
    [
        Charge(
            authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=100, customer_token="TOKEN-XYZ"
        ),
        Capture(authorization_token="TOKEN-XYZ", amount_minor=100, description="half"),
        Void(authorization_token="TOKEN-XYZ", description="not needed"),
    ],
)
def test_a_printed_call_does_not_show_its_token(call: Effect) -> None:
    """Tracebacks print what they find, and a customer's token is as good as the card."""
    shown = f"{call} {call!r} {[call]} {call.__rich_repr__()}"
    assert "TOKEN-XYZ" not in shown
    assert type(call).__name__ in shown


def test_a_printed_call_shows_the_rest() -> None:
    """What is no secret helps to find a mistake."""
    call = Refund(payment_id="320027150501", description="late")
    assert repr(call) == "Refund(payment_id='320027150501', description='late', amount_minor=None)"


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("420075032251", 420075032251), ("9" * 19, int("9" * 19))])
def test_a_subscription_id_is_1_to_19_digits(text: str, number: int) -> None:
    """That is what a 64-bit number can hold; the gateway takes it as a number."""
    assert subscription_number(text) == number


@pytest.mark.parametrize("text", ["", "1" * 20, "-1", "+1", "1.0", "1e3", " 1", "1 ", "x", "٣", "²", "1_0"])
def test_anything_else_is_not_a_subscription_id(text: str) -> None:
    """It is answered as unknown, and nothing is sent."""
    assert subscription_number(text) is None
