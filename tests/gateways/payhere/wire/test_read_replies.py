import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.outcomes import Reading
from payrelay.errors import Code
from payrelay.gateways.payhere.wire.read_replies import classify_read, lost
from payrelay.gateways.payhere.wire.reply_shapes import InvalidToken

TOKEN: Final = "cb5c47fd-741c-489a-b69e-fd73155ca34e"
ORDER = PaymentsOfOrder(order_id="A-1")
LIST = AllSubscriptions()
ONE = OneSubscription(subscription_id=420075032251)
PAYMENTS = PaymentsOfSubscription(subscription_id=420075032251)
ALL: Final[tuple[Read, ...]] = (ORDER, LIST, ONE, PAYMENTS)


def envelope(status: int, msg: str, data: str = "null") -> str:
    """Writes an envelope."""
    return f'{{"status":{status},"msg":{json.dumps(msg)},"data":{data}}}'


def decide(call: Read, body: str | bytes, http_status: int = 200) -> Reading:
    """Decides what a reply means that isn't about our access token."""
    reading = classify_read(call, http_status, body.encode() if isinstance(body, str) else body, TOKEN)
    assert isinstance(reading, Reading)
    return reading


PAYMENT = '{"payment_id":320025071278,"order_id":"A-1","amount":1000.0}'
SUBSCRIPTION = '{"subscription_id":420075032251,"order_id":"S-1"}'
OTHER_SUBSCRIPTION = SUBSCRIPTION.replace("251", "252")

READINGS: Final = [
    (ORDER, 200, envelope(1, "Payments with order_id:A-1", f"[{PAYMENT}]"), None),
    (ORDER, 200, envelope(1, "Payments", f"[{PAYMENT},{PAYMENT}]"), None),
    (ORDER, 200, envelope(1, "Payments", f"[{PAYMENT},{PAYMENT.replace('A-1', 'A-2')}]"), Code.GATEWAY_BAD_REPLY),
    (ORDER, 200, envelope(1, "Payments", "[ ]"), Code.NOT_FOUND),
    (ORDER, 200, envelope(1, "Payments", PAYMENT), Code.GATEWAY_BAD_REPLY),
    (ORDER, 200, envelope(1, "Payments"), Code.GATEWAY_BAD_REPLY),
    (ORDER, 200, envelope(1, "Payments", '[{"payment_id":1}]'), Code.GATEWAY_BAD_REPLY),
    (ORDER, 200, envelope(-1, "No payments found"), Code.NOT_FOUND),
    (ORDER, 404, envelope(-1, "No payments found"), Code.NOT_FOUND),
    (ORDER, 422, envelope(-1, "Whatever else"), Code.NOT_FOUND),
    (ORDER, 200, envelope(-1, "No payments found", f"[{PAYMENT}]"), Code.GATEWAY_BAD_REPLY),
    (ORDER, 200, envelope(0, "Payment pending"), Code.NOT_FOUND),
    (ORDER, 200, envelope(-2, "Payment declined", f"[{PAYMENT}]"), Code.NOT_FOUND),
    (ORDER, 200, envelope(2, "Payments", f"[{PAYMENT}]"), Code.GATEWAY_BAD_REPLY),
    (LIST, 200, envelope(1, "Found 1 subscriptions", f"[{SUBSCRIPTION}]"), None),
    (LIST, 200, envelope(1, "Found 0 subscriptions", "[]"), None),
    (LIST, 200, envelope(1, "Found", SUBSCRIPTION), Code.GATEWAY_BAD_REPLY),
    (LIST, 200, envelope(1, "Found", "[{}]"), Code.GATEWAY_BAD_REPLY),
    (LIST, 200, envelope(-1, "No subscriptions"), Code.NOT_FOUND),
    (LIST, 200, envelope(0, "Pending"), Code.GATEWAY_BAD_REPLY),
    (ONE, 200, envelope(1, "Found subscription", SUBSCRIPTION), None),
    (ONE, 200, envelope(1, "Found subscription", OTHER_SUBSCRIPTION), Code.GATEWAY_BAD_REPLY),
    (ONE, 200, envelope(1, "Found subscription", f"[{SUBSCRIPTION}]"), Code.GATEWAY_BAD_REPLY),
    (ONE, 200, envelope(-1, "Unknown"), Code.NOT_FOUND),
    (ONE, 200, envelope(-2, "Unknown"), Code.GATEWAY_BAD_REPLY),
    (PAYMENTS, 200, envelope(1, "Found 2 payments", f"[{PAYMENT},{PAYMENT}]"), None),
    (PAYMENTS, 200, envelope(1, "Found 0 payments", "[]"), None),
    (PAYMENTS, 200, envelope(1, "Found", "[1]"), Code.GATEWAY_BAD_REPLY),
    (PAYMENTS, 200, envelope(-1, "Unknown"), Code.NOT_FOUND),
]

READINGS_OF_ALL: Final = [
    (401, envelope(-1, "Access denied for the domain"), Code.GATEWAY_REFUSED_US),
    (403, envelope(-1, "Access denied for the domain"), Code.GATEWAY_REFUSED_US),
    (200, envelope(-2, "Authentication error"), Code.GATEWAY_REFUSED_US),
    (401, envelope(-1, "No payments found"), Code.GATEWAY_BAD_REPLY),
    (429, "", Code.GATEWAY_BUSY),
    (500, envelope(-1, "No payments found"), Code.GATEWAY_BAD_REPLY),
    (502, "<html>", Code.GATEWAY_BAD_REPLY),
    (301, "", Code.GATEWAY_BAD_REPLY),
    (404, "<html>", Code.GATEWAY_BAD_REPLY),
    (200, '{"status":1,"msg":"x","data":[', Code.GATEWAY_BAD_REPLY),
    (200, '{"status":1,"msg":"x","data":[],"data":[]}', Code.GATEWAY_BAD_REPLY),
    (401, '{"error":"invalid_token","error_description":"Access token expired: another"}', Code.GATEWAY_BAD_REPLY),
]


@pytest.mark.parametrize(("call", "http_status", "body", "code"), READINGS)
def test_table_of_readings(call: Read, http_status: int, body: str, code: Code | None) -> None:
    """Only what was asked for is passed on, and "none" only where the gateway says so."""
    assert decide(call, body, http_status).code == code


@pytest.mark.parametrize("call", ALL, ids=lambda call: type(call).__name__)
@pytest.mark.parametrize(("http_status", "body", "code"), READINGS_OF_ALL)
def test_readings_that_mean_the_same_to_every_read(call: Read, http_status: int, body: str, code: Code) -> None:
    """A gateway that doesn't let us in, or talks nonsense, is never told as "there are no payments"."""
    reading = decide(call, body, http_status)
    assert reading.code is code
    assert reading.raw_data is None


@pytest.mark.parametrize("call", ALL, ids=lambda call: type(call).__name__)
def test_our_own_token_turned_away(call: Read) -> None:
    """The caller renews the token and asks once more."""
    body = json.dumps({"error": "invalid_token", "error_description": f"Access token expired: {TOKEN}"})
    assert isinstance(classify_read(call, 401, body.encode(), TOKEN), InvalidToken)


def test_a_list_is_passed_on_byte_for_byte() -> None:
    """Numbers keep their digits and members their order."""
    data = '[ {"order_id":"A-1","amount":1000.0, "payment_id":320025071278,"request":{"custom1":null}} ]'
    reading = decide(ORDER, envelope(1, "Payments", data))
    assert reading.raw_data == data.encode()
    assert reading.raw_msg == b'"Payments"'


def test_a_missing_order_keeps_the_gateways_words() -> None:
    """Exactly "No payments found" is what resolution counts as an observation."""
    reading = decide(ORDER, envelope(-1, "No payments found"))
    assert (reading.msg, reading.evidence.gateway_msg, reading.evidence.gateway_status) == (
        "No payments found",
        "No payments found",
        -1,
    )


@pytest.mark.parametrize(("is_sent", "code"), [(False, Code.GATEWAY_UNREACHABLE), (True, Code.GATEWAY_BAD_REPLY)])
def test_a_read_without_a_reply(*, is_sent: bool, code: Code) -> None:
    """Only where nothing was sent is the gateway called unreachable."""
    reading = lost("timeout", is_sent=is_sent)
    assert (reading.code, reading.evidence.cause) == (code, "timeout")


@given(call=st.sampled_from(ALL), http_status=st.integers(100, 599), body=st.binary(max_size=200))
def test_noise_is_never_an_answer(call: Read, http_status: int, body: bytes) -> None:
    """Whatever bytes come back, nothing is raised and nothing is passed on."""
    assert decide(call, body, http_status).code in {Code.GATEWAY_BAD_REPLY, Code.GATEWAY_BUSY}
