import json
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import (
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.money import AMOUNT_MINOR_MAX, decimal_text
from payrelay.core.outcomes import Facts, Outcome, OutcomeKind
from payrelay.core.secret import STARS
from payrelay.errors import Code
from payrelay.gateways.gateway import ExpectedReply
from payrelay.gateways.payhere.wire.effect_replies import classify
from payrelay.gateways.payhere.wire.reply_shapes import InvalidToken

TOKEN: Final = "cb5c47fd-741c-489a-b69e-fd73155ca34e"
CUSTOMER: Final = "59AFEE022CC69CA39D325E1B59130862"
HOLD: Final = "e34f3059-7b7d-4b62-a57c-784beaa169f4"

CHARGE = Charge(
    authorize=False, order_id="Order12345", items="Taxi", currency="LKR", amount_minor=34567, customer_token=CUSTOMER
)
AUTHORIZE = msgspec.structs.replace(CHARGE, authorize=True)
CAPTURE = Capture(authorization_token=HOLD, amount_minor=8000, description="d")
REFUND = Refund(payment_id="320027150501", description="d")
VOID = Void(authorization_token=HOLD, description="d")
RETRY = RetrySubscription(subscription_id=420075032251)
CANCEL = CancelSubscription(subscription_id=420075032251)
ALL: Final[tuple[Effect, ...]] = (CHARGE, AUTHORIZE, CAPTURE, REFUND, VOID, RETRY, CANCEL)

CHARGED: Final = (
    '{"order_id":"Order12345","items":"Taxi","currency":"LKR","amount":345.67,"custom_1":null,"custom_2":null,'
    '"payment_id":320025021815,"status_code":%s,"status_message":"Completed the test payment.",'
    '"md5sig":"A098","authorization_token":%s}'
)
CAPTURED: Final = (
    '{"status_code":%s,"status_message":"Received","payment_id":320025527952,"currency":"LKR","amount":100.00,'
    '"captured_amount":%s,"items":"Toy Car","order_id":"Order12345","md5sig":"27EE","custom_1":"A","custom_2":null}'
)


def envelope(status: int, msg: str, data: str = "null") -> str:
    """Writes an envelope."""
    return f'{{"status":{status},"msg":{json.dumps(msg)},"data":{data}}}'


def oauth(description: str) -> str:
    """Writes an OAuth failure."""
    return json.dumps({"error": "invalid_token", "error_description": description})


def charged(status_code: object = 2, hold: str = "null", msg: str = "Automatic payment charged successfully") -> str:
    """Writes the positive envelope of a charge."""
    return envelope(1, msg, CHARGED % (status_code, hold))


def captured(status_code: object = 2, amount: str = "80.00") -> str:
    """Writes the positive envelope of a capture."""
    return envelope(1, "Successfully captured payment", CAPTURED % (status_code, amount))


def decide(call: Effect, body: str | bytes, http_status: int = 200, expected: ExpectedReply | None = None) -> Outcome:
    """Decides what a reply means that isn't about our access token."""
    raw = body.encode() if isinstance(body, str) else body
    outcome = classify(call, expected or ExpectedReply(), http_status, raw, TOKEN)
    assert isinstance(outcome, Outcome)
    return outcome


DENIED = envelope(-1, "Access denied for the domain")
NOT_AUTHENTICATED = envelope(-2, "Authentication error")
UNKNOWN = (OutcomeKind.UNKNOWN, Code.OUTCOME_UNKNOWN)
SUCCEEDED = (OutcomeKind.SUCCEEDED, None)
DECLINED = (OutcomeKind.DECLINED, Code.DECLINED)
WRONG_FIELD = (OutcomeKind.REFUSED, Code.INVALID_REQUEST)
CONFLICT = (OutcomeKind.REFUSED, Code.CONFLICT)
NOT_FOUND = (OutcomeKind.REFUSED, Code.NOT_FOUND)
PENDING = (OutcomeKind.PENDING, Code.PENDING)
DIFFERED = (OutcomeKind.DIFFERED, Code.NEEDS_ATTENTION)
BUSY = (OutcomeKind.NOT_EXECUTED, Code.GATEWAY_BUSY)
REFUSED_US = (OutcomeKind.NOT_EXECUTED, Code.GATEWAY_REFUSED_US)

REPLIES: Final = [
    # charge
    (CHARGE, 200, charged(), SUCCEEDED),
    (CHARGE, 200, charged(hold=f'"{HOLD}"'), SUCCEEDED),
    (CHARGE, 200, charged(3), UNKNOWN),
    (CHARGE, 200, charged(0), PENDING),
    (CHARGE, 200, charged(-1), DECLINED),
    (CHARGE, 200, charged(-2), DECLINED),
    (CHARGE, 422, charged(-2), DECLINED),
    (CHARGE, 200, charged(-3), UNKNOWN),
    (CHARGE, 200, charged(1), UNKNOWN),
    (CHARGE, 200, charged('"2"'), UNKNOWN),
    (CHARGE, 200, charged("2.0"), UNKNOWN),
    (CHARGE, 200, charged("true"), UNKNOWN),
    (CHARGE, 200, charged("null"), UNKNOWN),
    (CHARGE, 201, charged(), UNKNOWN),
    (CHARGE, 500, charged(), UNKNOWN),
    (CHARGE, 200, charged().replace('"status":1', '"status":"1"'), UNKNOWN),
    (CHARGE, 200, charged().replace('"status":1', '"status":1.0'), UNKNOWN),
    (CHARGE, 200, charged().replace('"status":1', '"status":true'), UNKNOWN),
    (CHARGE, 200, charged().replace('"status":1', '"status":2'), UNKNOWN),
    (CHARGE, 200, charged().replace("345.67", "345.68"), DIFFERED),
    (CHARGE, 200, charged().replace("345.67", "345.670"), SUCCEEDED),
    (CHARGE, 200, charged().replace("345.67", "3.4567E2"), SUCCEEDED),
    (CHARGE, 200, charged().replace("345.67", "345.6700000000000017"), DIFFERED),
    (CHARGE, 200, charged().replace("345.67", '"345.67"'), SUCCEEDED),
    (CHARGE, 200, charged().replace("345.67", '"345,67"'), UNKNOWN),
    (CHARGE, 200, charged().replace("345.67", "null"), UNKNOWN),
    (CHARGE, 200, charged().replace("Order12345", "Order12346"), DIFFERED),
    (CHARGE, 200, charged().replace('"Order12345"', "null"), UNKNOWN),
    (CHARGE, 200, charged().replace('"Order12345"', "12345"), UNKNOWN),
    (CHARGE, 200, charged().replace("LKR", "USD"), DIFFERED),
    (CHARGE, 200, charged().replace("320025021815", "null"), SUCCEEDED),
    (CHARGE, 200, charged().replace("320025021815", "{}"), UNKNOWN),
    (CHARGE, 200, charged(-2).replace("Order12345", "Order12346"), UNKNOWN),
    (CHARGE, 200, charged(0).replace("345.67", "1.00"), UNKNOWN),
    (CHARGE, 200, envelope(1, "Automatic payment charged successfully"), UNKNOWN),
    (CHARGE, 200, envelope(1, "ok", "[]"), UNKNOWN),
    (CHARGE, 200, envelope(-1, "Invalid token"), WRONG_FIELD),
    (CHARGE, 200, envelope(-1, " invalid TOKEN. "), WRONG_FIELD),
    (CHARGE, 422, envelope(-1, "Invalid currency"), WRONG_FIELD),
    (CHARGE, 400, envelope(-1, "Invalid amount"), WRONG_FIELD),
    (CHARGE, 402, envelope(-1, "Insufficient funds"), DECLINED),
    (CHARGE, 200, envelope(-1, ""), DECLINED),
    (CHARGE, 200, envelope(-1, "Declined", CHARGED % (-2, "null")), DECLINED),
    (CHARGE, 200, envelope(-1, "Declined", CHARGED % (2, "null")), UNKNOWN),
    (CHARGE, 200, envelope(-1, "Declined", "{}"), DECLINED),
    (CHARGE, 200, envelope(-1, "Declined", "[]"), UNKNOWN),
    (CHARGE, 200, envelope(-1, "Declined", "320025021815"), UNKNOWN),
    (CHARGE, 200, envelope(-2, "Payment failed"), UNKNOWN),
    (CHARGE, 200, envelope(0, "Pending"), UNKNOWN),
    (CHARGE, 401, envelope(-1, "Insufficient funds"), UNKNOWN),
    (CHARGE, 403, envelope(-1, "Insufficient funds"), UNKNOWN),
    (CHARGE, 500, envelope(-1, "Insufficient funds"), UNKNOWN),
    # authorize
    (AUTHORIZE, 200, charged(3, f'"{HOLD}"'), SUCCEEDED),
    (AUTHORIZE, 200, charged(2, f'"{HOLD}"'), SUCCEEDED),
    (AUTHORIZE, 200, charged(3), UNKNOWN),
    (AUTHORIZE, 200, charged(3, '""'), UNKNOWN),
    (AUTHORIZE, 200, charged(-2), DECLINED),
    # capture
    (CAPTURE, 200, captured(), SUCCEEDED),
    (CAPTURE, 200, captured(amount="79.99"), DIFFERED),
    (CAPTURE, 200, captured(amount="null"), UNKNOWN),
    (CAPTURE, 200, captured().replace('"Order12345"', "null"), UNKNOWN),
    (CAPTURE, 200, captured(0), UNKNOWN),
    (CAPTURE, 200, captured(-2), DECLINED),
    (CAPTURE, 200, captured(-1), UNKNOWN),
    (CAPTURE, 200, captured(3), UNKNOWN),
    (CAPTURE, 200, envelope(-1, "Invalid token"), WRONG_FIELD),
    (
        CAPTURE,
        200,
        envelope(-1, "Capture amount must be less than or equal to the authorized amount"),
        WRONG_FIELD,
    ),
    (CAPTURE, 200, envelope(-2, "Authorization is already CAPTURED"), CONFLICT),
    (CAPTURE, 409, envelope(-2, "Authorization is already REFUNDED"), CONFLICT),
    (CAPTURE, 200, envelope(-1, "Something else"), UNKNOWN),
    (CAPTURE, 200, envelope(-2, "Something else"), UNKNOWN),
    # refund and void
    (REFUND, 200, envelope(1, "Successfully processed the refund", "560034010257"), SUCCEEDED),
    (REFUND, 200, envelope(1, "Successfully processed the refund"), UNKNOWN),
    (REFUND, 200, envelope(1, "Successfully processed the refund", "{}"), UNKNOWN),
    (REFUND, 200, envelope(-1, "Error processing refund"), WRONG_FIELD),
    (REFUND, 200, envelope(-1, "Error processing refund", "560034010257"), UNKNOWN),
    (REFUND, 200, envelope(0, "Error initiating the refund"), UNKNOWN),
    (REFUND, 200, envelope(-2, "Something else"), UNKNOWN),
    (VOID, 200, envelope(1, "Successfully processed the authorization refund"), SUCCEEDED),
    (VOID, 200, envelope(1, "Successfully processed the authorization refund", "560034010257"), SUCCEEDED),
    (VOID, 200, envelope(1, "Successfully processed the authorization refund", "[]"), UNKNOWN),
    (VOID, 422, envelope(-1, "Error processing refund"), WRONG_FIELD),
    # retry and cancel
    (RETRY, 200, envelope(1, "Recurring payment charged successfully"), SUCCEEDED),
    (RETRY, 200, envelope(1, "Recurring payment charged successfully", '{"status_code":-2}'), UNKNOWN),
    (RETRY, 200, envelope(-1, "Subscription is not eligible for retrying"), CONFLICT),
    (RETRY, 200, envelope(-1, "Subscription not found"), NOT_FOUND),
    (RETRY, 404, envelope(-1, "Simulator: unknown subscription"), NOT_FOUND),
    (RETRY, 200, envelope(-1, "Payment failed"), UNKNOWN),
    (RETRY, 404, "<html>not found</html>", UNKNOWN),
    (CANCEL, 200, envelope(1, "Successfully cancelled the subscription"), SUCCEEDED),
    (CANCEL, 200, envelope(-1, "Subscription is already cancelled."), CONFLICT),
    (CANCEL, 200, envelope(-1, "Subscription is already canceled"), CONFLICT),
    (CANCEL, 200, envelope(-1, "Subscription is already completed."), CONFLICT),
    (CANCEL, 200, envelope(-1, "Invalid subscription_id"), NOT_FOUND),
    (CANCEL, 200, envelope(-1, "Something else"), UNKNOWN),
]

REPLIES_TO_ALL: Final = [
    (401, DENIED, REFUSED_US),
    (403, DENIED, REFUSED_US),
    (200, DENIED, REFUSED_US),
    (400, envelope(-1, "access denied for the domain."), REFUSED_US),
    (200, NOT_AUTHENTICATED, REFUSED_US),
    (401, NOT_AUTHENTICATED, REFUSED_US),
    (422, NOT_AUTHENTICATED, REFUSED_US),
    (500, DENIED, UNKNOWN),
    (200, envelope(1, "Authentication error", "{}"), UNKNOWN),
    (200, envelope(-2, "Authentication error", "{}"), UNKNOWN),
    (429, "", BUSY),
    (429, charged(), BUSY),
    (429, "<html>slow down</html>", BUSY),
    (401, "", UNKNOWN),
    (401, '{"error":"unauthorized","error_description":"Full authentication is required"}', UNKNOWN),
    (403, "<html>forbidden</html>", UNKNOWN),
    (301, "", UNKNOWN),
    (302, charged(), UNKNOWN),
    (204, "", UNKNOWN),
    (404, "<html>not found</html>", UNKNOWN),
    (405, envelope(-1, "Simulator: wrong method"), UNKNOWN),
    (502, "<html>bad gateway</html>", UNKNOWN),
    (503, NOT_AUTHENTICATED, UNKNOWN),
    (200, "", UNKNOWN),
    (200, "null", UNKNOWN),
    (200, "[]", UNKNOWN),
    (200, "{}", UNKNOWN),
    (200, '{"status":1,"msg":"ok"}', UNKNOWN),
    (200, '{"status":1,"data":null}', UNKNOWN),
    (200, '{"status":1,"msg":null,"data":null}', UNKNOWN),
    (200, '{"status":1,"msg":5,"data":null}', UNKNOWN),
    (200, '{"status":NaN,"msg":"","data":null}', UNKNOWN),
    (200, '{"status":-1,"msg":"Invalid token","data":null', UNKNOWN),
    (200, '{"status":-1,"msg":"Invalid token","data":null}}', UNKNOWN),
    (200, '{"status":-1,"status":-1,"msg":"Invalid token","data":null}', UNKNOWN),
    (200, '{"status":1,"error":"invalid_token","msg":"x","data":null}', UNKNOWN),
    (200, oauth("Invalid access token: 00000000-0000-0000-0000-000000000000"), UNKNOWN),
    (401, oauth(f"Access token expired: {TOKEN[:-1]}"), UNKNOWN),
    (401, oauth(f"Access token expired: x{TOKEN}"), UNKNOWN),
    (401, oauth(f"Access token expired: {TOKEN} "), UNKNOWN),
    (401, oauth(TOKEN), UNKNOWN),
    (401, oauth(f"Access token expired: {TOKEN}")[:-1], UNKNOWN),
    (500, oauth(f"Access token expired: {TOKEN}"), UNKNOWN),
    (200, json.dumps({"status": -1, "msg": f"Invalid token: {TOKEN}", "data": None}), UNKNOWN),
]


@pytest.mark.parametrize(("call", "http_status", "body", "expected"), REPLIES)
def test_table_of_replies(call: Effect, http_status: int, body: str, expected: tuple[OutcomeKind, Code | None]) -> None:
    """What is documented is understood, and whatever is not is unknown: a guess here is money twice or a false tale."""
    outcome = decide(call, body, http_status)
    assert (outcome.kind, outcome.code) == expected


@pytest.mark.parametrize("call", ALL, ids=lambda call: type(call).__name__)
@pytest.mark.parametrize(("http_status", "body", "expected"), REPLIES_TO_ALL)
def test_replies_that_mean_the_same_to_every_effect(
    call: Effect, http_status: int, body: str, expected: tuple[OutcomeKind, Code | None]
) -> None:
    """Not executed only where the gateway says so in its documented words; a broken reply is never an answer."""
    outcome = decide(call, body, http_status)
    assert (outcome.kind, outcome.code) == expected


@pytest.mark.parametrize("call", ALL, ids=lambda call: type(call).__name__)
@pytest.mark.parametrize("http_status", [200, 400, 401, 403])
@pytest.mark.parametrize("reason", ["Invalid access token: ", "Access token expired: "])
def test_our_own_token_turned_away(call: Effect, http_status: int, reason: str) -> None:
    """Only a reply that names the very token that we presented proves that our call was not executed."""
    answer = classify(call, ExpectedReply(), http_status, oauth(reason + TOKEN).encode(), TOKEN)
    assert isinstance(answer, InvalidToken)
    assert TOKEN not in repr(answer)


def test_a_success_is_passed_on_byte_for_byte() -> None:
    """1000.0 stays 1000.0, a 64-bit id keeps its last digit, and a member that we don't know stays where it was."""
    data = (
        '{ "order_id":"Order12345","currency":"LKR","amount":345.670 ,"payment_id":9007199254740993,"new":[1.0,null],'
    )
    body = '{"extra":1, "status": 1,"msg" :"Caf\\u00e9 \\/","data":' + data + '"status_code":2}}'
    outcome = decide(CHARGE, body)
    assert outcome.raw_data == (data + '"status_code":2}').encode()
    assert outcome.raw_msg == b'"Caf\\u00e9 \\/"'
    assert outcome.msg == "Café /"


def test_what_is_passed_on_does_not_hold_the_buffer() -> None:
    """A view into a reply would keep all of it in memory as long as the answer lives."""
    outcome = decide(CHARGE, charged())
    assert type(outcome.raw_data) is bytes
    assert type(outcome.raw_msg) is bytes


@pytest.mark.parametrize(
    ("call", "body", "facts"),
    [
        (
            CHARGE,
            charged(hold=f'"{HOLD}"'),
            Facts(order_id="Order12345", payment_id="320025021815", currency="LKR", amount_minor=34567),
        ),
        (
            AUTHORIZE,
            charged(3, f'"{HOLD}"'),
            Facts(
                order_id="Order12345",
                payment_id="320025021815",
                currency="LKR",
                amount_minor=34567,
                authorization_token=HOLD,
            ),
        ),
        (
            CAPTURE,
            captured(),
            Facts(order_id="Order12345", payment_id="320025527952", currency="LKR", amount_minor=8000),
        ),
        (REFUND, envelope(1, "ok", "560034010257"), Facts(refund_id="560034010257")),
        (VOID, envelope(1, "ok"), Facts()),
    ],
)
def test_facts_of_a_success(call: Effect, body: str, facts: Facts) -> None:
    """What later steps rely on: ids as text, money in hundredths, a token only from an authorization."""
    assert decide(call, body).facts == facts


@pytest.mark.parametrize(
    ("expected", "cause"),
    [
        (ExpectedReply(order_id="Order12345", currency="LKR", amount_minor=10000), None),
        (ExpectedReply(order_id="Order1"), "other_order"),
        (ExpectedReply(currency="USD"), "other_currency"),
        (ExpectedReply(amount_minor=9999), "other_amount"),
    ],
)
def test_a_capture_is_compared_with_its_authorization(expected: ExpectedReply, cause: str | None) -> None:
    """The call names only a token; the order, currency and amount behind it are known from the authorization."""
    outcome = decide(CAPTURE, captured(), expected=expected)
    assert outcome.evidence.cause == cause
    assert outcome.kind is (OutcomeKind.SUCCEEDED if cause is None else OutcomeKind.DIFFERED)


@pytest.mark.parametrize(
    ("body", "answered"),
    [
        (charged().replace("345.67", "500.00"), "500.00 LKR for order Order12345"),
        (charged().replace("345.67", "345.6700000000000017"), "LKR for order Order12345"),
        (charged().replace("Order12345", CUSTOMER), f"345.67 LKR for order {STARS}"),
    ],
)
def test_the_subject_of_a_different_success_is_evidence(body: str, answered: str) -> None:
    """An operator who decides needs to see how much was charged instead; but no token, should the gateway repeat it."""
    assert decide(CHARGE, body).evidence.answered == answered


def test_a_failed_capture_of_another_order_is_unknown() -> None:
    """It says nothing about ours, which may have been captured."""
    outcome = decide(CAPTURE, captured(-2), expected=ExpectedReply(order_id="Order1"))
    assert (outcome.kind, outcome.evidence.cause) == (OutcomeKind.UNKNOWN, "other_order")


@pytest.mark.parametrize(
    ("body", "msg", "raw_msg"),
    [
        (charged(-2, msg="Card expired"), "Card expired", b'"Card expired"'),
        (charged(-2), "Completed the test payment.", b'"Completed the test payment."'),
        (
            charged(-2).replace("Completed the test payment.", "Successfully completed"),
            "the gateway declined it",
            None,
        ),
        (charged(-2, msg="").replace('"Completed the test payment."', "null"), "the gateway declined it", None),
    ],
)
def test_a_decline_never_speaks_of_success(body: str, msg: str, raw_msg: bytes | None) -> None:
    """The heading of such a reply can be about the call; a shop shows it to the customer as it is."""
    outcome = decide(CHARGE, body)
    assert (outcome.kind, outcome.msg, outcome.raw_msg) == (OutcomeKind.DECLINED, msg, raw_msg)


@pytest.mark.parametrize(
    ("call", "msg", "field"),
    [
        (CHARGE, "Invalid token", "customer_token"),
        (CHARGE, "Invalid currency", "currency"),
        (CHARGE, "Invalid amount", "amount"),
        (CAPTURE, "Invalid token", "authorization_token"),
        (CAPTURE, "Capture amount must be less than or equal to the authorized amount", "amount"),
    ],
)
def test_a_wrong_field_is_named(call: Effect, msg: str, field: str) -> None:
    """The client gets the name that it sent, in the form in which our own checks name fields."""
    fields = decide(call, envelope(-1, msg)).fields
    assert [(each.path, each.msg) for each in fields] == [(field, msg)]


@pytest.mark.parametrize(("call", "token"), [(CHARGE, CUSTOMER), (CAPTURE, HOLD), (VOID, HOLD)])
def test_evidence_holds_no_token(call: Effect, token: str) -> None:
    """History is read by support; a token in it could be used."""
    outcome = decide(call, envelope(-1, f"No such token {token}"))
    assert token not in repr(outcome.evidence)
    assert token not in outcome.msg


def test_evidence_is_short() -> None:
    """A gateway that answers with a novel doesn't fill the history."""
    evidence = decide(REFUND, envelope(-1, "x" * 100_000)).evidence
    assert evidence.gateway_msg == "x" * 200


def test_evidence_says_what_was_seen() -> None:
    """Both numbers and the HTTP status, for the operator who clarifies it with the gateway's support."""
    evidence = decide(CHARGE, charged(7), 200).evidence
    assert (evidence.http_status, evidence.gateway_status, evidence.status_code) == (200, 1, 7)
    assert evidence.cause == "unexpected_reply"


@given(amount_minor=st.integers(1, AMOUNT_MINOR_MAX), off_by=st.integers(-3, 3))
def test_a_success_is_about_the_amount_that_was_asked(amount_minor: int, off_by: int) -> None:
    """To the last hundredth of the largest amount: a float would let neighbours pass for equal."""
    call = msgspec.structs.replace(CHARGE, amount_minor=amount_minor)
    body = charged().replace("345.67", decimal_text(max(amount_minor + off_by, 0)))
    is_same = max(amount_minor + off_by, 0) == amount_minor
    assert decide(call, body).kind is (OutcomeKind.SUCCEEDED if is_same else OutcomeKind.DIFFERED)


@given(
    call=st.sampled_from(ALL),
    http_status=st.integers(100, 599).filter(lambda status: status != 429),
    body=st.binary(max_size=300) | st.text(max_size=300).map(str.encode),
)
def test_noise_is_unknown(call: Effect, http_status: int, body: bytes) -> None:
    """Whatever bytes come back: nothing is raised, and nothing is claimed."""
    assert decide(call, body, http_status).kind is OutcomeKind.UNKNOWN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    call=st.sampled_from((CHARGE, AUTHORIZE, CAPTURE)), data=JSON, status=st.integers(-3, 3), msg=st.text(max_size=9)
)
def test_no_success_without_the_right_data(call: Effect, data: object, status: int, msg: str) -> None:
    """An envelope alone never makes a charge or a capture succeed, whatever its data is."""
    body = json.dumps({"status": status, "msg": msg, "data": data})
    assert decide(call, body).kind not in {OutcomeKind.SUCCEEDED, OutcomeKind.DIFFERED, OutcomeKind.PENDING}


@given(call=st.sampled_from(ALL), body=st.sampled_from([row[2] for row in REPLIES]), cut=st.integers(1, 60))
def test_half_a_reply_is_unknown(call: Effect, body: str, cut: int) -> None:
    """Every proper beginning of a reply may have lost the part that matters."""
    assert decide(call, body[:-cut]).kind is OutcomeKind.UNKNOWN
