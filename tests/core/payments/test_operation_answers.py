import json
from typing import Final

import msgspec
import pytest
from tests.core.payments.test_proof import CALL, OPERATION, PAYMENT

from payrelay.core.calls import CancelSubscription, Capture, Effect, Refund, RetrySubscription, Void
from payrelay.core.payments.operation import Kind
from payrelay.core.payments.operation_answers import (
    BY_DECISION,
    BY_PROOF,
    FAILED_SENTENCE,
    failed_answer,
    resolved_answer,
)

NOTED: Final = msgspec.structs.replace(CALL, custom_1="x", custom_2="y")
CAPTURE: Final = Capture(authorization_token="token", amount_minor=50_000, description="half")
CHARGED: Final = (
    b'{"order_id":"A-1","items":"Tea","currency":"LKR","amount":1000.00,"custom_1":"x","custom_2":"y",'
    b'"payment_id":320,"status_code":2,"status_message":null,"md5sig":null,"authorization_token":null}'
)
CAPTURED: Final = (
    b'{"status_code":2,"status_message":null,"payment_id":320,"currency":"LKR","amount":1000.00,'
    b'"captured_amount":500.00,"items":"Tea","order_id":"A-1","md5sig":null,"custom_1":"x","custom_2":"y"}'
)
WITHOUT_DATA: Final[tuple[Effect, ...]] = (
    Refund(payment_id="320", description="d"),
    Void(authorization_token="t", description="d"),
    RetrySubscription(subscription_id=42),
    CancelSubscription(subscription_id=42),
)


def test_a_charge_that_was_proved_has_every_member_of_the_interface() -> None:
    """From the request and the record; what nobody knows is null, and nothing is invented."""
    answer = resolved_answer(OPERATION, NOTED, payment=PAYMENT, msg=BY_PROOF)
    assert (answer.http_status, answer.code) == (200, None)
    assert answer.body == b'{"status":1,"msg":"Resolved by proof","data":' + CHARGED + b"}"


def test_a_capture_of_our_own_authorization_has_what_it_was_for() -> None:
    """The amount is that of the authorization; the captured amount is that of the request."""
    answer = resolved_answer(OPERATION, CAPTURE, payment=PAYMENT, msg=BY_PROOF, authorization=NOTED)
    assert answer.body == b'{"status":1,"msg":"Resolved by proof","data":' + CAPTURED + b"}"


def test_a_capture_of_an_authorization_that_was_made_elsewhere_leaves_open_what_it_was_for() -> None:
    """Null where it is not known; the members are there all the same."""
    data = json.loads(resolved_answer(OPERATION, CAPTURE, payment=None, msg=BY_DECISION).body)["data"]
    assert list(data) == list(json.loads(CAPTURED))
    unknown = {name for name, value in data.items() if value is None}
    assert unknown == {"status_message", "payment_id", "amount", "items", "md5sig", "custom_1", "custom_2"}


@pytest.mark.parametrize("call", WITHOUT_DATA, ids=lambda call: type(call).__name__)
def test_what_has_no_data_in_the_interface_has_none_here(call: Effect) -> None:
    """A refund's number is not known."""
    answer = resolved_answer(OPERATION, call, payment=None, msg=BY_DECISION)
    assert answer.body == b'{"status":1,"msg":"Resolved by decision","data":null}'


@pytest.mark.parametrize(("payment_id", "written"), [("000320", 320), ("0", 0), (None, None)])
def test_an_id_is_a_number(payment_id: str | None, written: int | None) -> None:
    """As in the gateway's own answers; JSON knows no leading zeros."""
    known = msgspec.structs.replace(OPERATION, payment_id=payment_id)
    body = resolved_answer(known, CALL, payment=None, msg=BY_DECISION).body
    assert json.loads(body)["data"]["payment_id"] == written


@pytest.mark.parametrize("kind", list(Kind))
def test_what_did_not_happen_is_answered_as_such(kind: Kind) -> None:
    """A customer who was not charged hears of a decline; what didn't go is a conflict; the operation is named."""
    takes_money = kind in {Kind.CHARGE, Kind.AUTHORIZATION, Kind.RETRY}
    answer = failed_answer(msgspec.structs.replace(OPERATION, kind=kind))
    error = {"code": "declined" if takes_money else "conflict", "retry": "never"}
    ids = {"request_id": "req_1", "operation_id": "op_1"}
    document = {"status": -1, "msg": FAILED_SENTENCE, "data": None, "error": error | ids}
    assert (answer.http_status, json.loads(answer.body)) == (402 if takes_money else 409, document)
