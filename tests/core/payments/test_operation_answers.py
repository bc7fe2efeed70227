import json
from typing import Final

import msgspec
import pytest
from tests.core.payments.test_proof import CALL, OPERATION, PAYMENT

from payrelay.core.answers import Answer
from payrelay.core.calls import CancelSubscription, Capture, Effect, Refund, RetrySubscription, Void
from payrelay.core.payments.operation import CLEARABLE, FROZEN, INQUIRED, Kind, State
from payrelay.core.payments.operation_answers import (
    BY_DECISION,
    BY_PROOF,
    FAILED_SENTENCE,
    RETRY_AFTER_S,
    RETRY_AFTER_S_MAX,
    failed_answer,
    resolved_answer,
    retry_after_s,
    seconds_until,
    stored_answer,
)
from payrelay.errors import Code, Refusal, StillRunning

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


STORED: Final = Answer(http_status=200, body=b"{}")
UNDER_WAY: Final = frozenset({State.ACCEPTED, State.SENDING})


def _told(state: State, stored: Answer | None, fingerprint: str = OPERATION.fingerprint) -> str:
    """Tells how a repeat of an operation in a state is answered."""
    operation = msgspec.structs.replace(OPERATION, state=state)
    try:
        answer = stored_answer(operation, stored, fingerprint, "req_2")
    except StillRunning:
        return "is still running"
    except Refusal as refusal:
        return f"refused: {refusal.code}"
    assert dict(answer.headers)["Payrelay-Operation"] == OPERATION.id
    if answer.http_status == 202:
        assert dict(answer.headers)["Location"].endswith(f"/operations/{OPERATION.id}")
        return "what is known"
    return "replayed" if answer.body == STORED.body else "another answer"


@pytest.mark.parametrize("state", State, ids=str)
def test_a_repeat_gets_what_is_stored_or_what_is_known(state: State) -> None:
    """Whatever became of the first request, the repeat of it is never done again, and never told another's answer."""
    known = "is still running" if state in UNDER_WAY else "what is known"
    assert _told(state, STORED) == ("replayed" if state in FROZEN else known)
    assert _told(state, None) == (f"refused: {Code.CONFLICT}" if state in CLEARABLE else known)
    assert _told(state, STORED, "another") == f"refused: {Code.IDEMPOTENCY_MISMATCH}"


@pytest.mark.parametrize("state", State, ids=str)
def test_who_is_blocked_comes_again_after_the_next_look(state: State) -> None:
    """To come earlier is of no use. Without a look that is due, it is as long as the state usually lasts."""
    operation = msgspec.structs.replace(OPERATION, state=state, inquire_at_ms=90_001)
    assert retry_after_s(operation, 0) == (91 if state in INQUIRED else RETRY_AFTER_S.get(state))
    assert retry_after_s(msgspec.structs.replace(operation, inquire_at_ms=None), 0) == RETRY_AFTER_S.get(state)


@pytest.mark.parametrize(("at_ms", "seconds"), [(-5, 1), (0, 1), (1_000, 1), (1_001, 2), (10**9, RETRY_AFTER_S_MAX)])
def test_a_wait_is_of_whole_seconds_and_has_bounds(at_ms: int, seconds: int) -> None:
    """Rounded up, for the look comes no earlier; a notification or a person may be earlier than a late one."""
    assert seconds_until(at_ms, 0) == seconds
