"""What a payment comes to, whatever the service answers or doesn't."""

from pathlib import Path

import pytest
from tests.clients.python.scripted import Answer, answer, client_of, lost, run_async

from payrelay_client import (
    AttemptOpen,
    Charge,
    Conflict,
    Declined,
    Done,
    FileStore,
    Forbidden,
    InvalidAmount,
    InvalidRequest,
    KeyReused,
    NameNeeded,
    Open,
    Payrelay,
    ServiceFault,
    StoreFailed,
)

pytestmark = pytest.mark.unit

PAID = {"order_id": "A-1", "amount": 345.67, "currency": "LKR", "payment_id": 320025021815, "status_code": 2}
OPERATION = {"id": "op_1", "state": "unknown", "is_final": False, "explanation": "nobody knows"}


def paid() -> Answer:
    """The answer to a charge that was made."""
    return answer(200, PAID, payrelay_operation="op_1")


def declined() -> Answer:
    """The answer to a charge that was declined."""
    return answer(402, code="declined")


def unknown() -> Answer:
    """The answer to a charge whose outcome is open."""
    return answer(202, code="outcome_unknown", retry="after", payrelay_operation="op_1")


def operation(state: str, finished: dict[str, object] | None = None) -> Answer:
    """An operation as it is read."""
    is_final = state not in {"unknown", "pending", "needs_attention", "held"}
    return answer(200, OPERATION | {"state": state, "is_final": is_final, "answer": finished})


def charge(client: Payrelay, *, again: bool = False, order_id: str = "A-1") -> Done[Charge] | Open[Charge]:
    """Charges the order of these tests."""
    return client.payments.charge(
        order_id=order_id, items="Taxi", currency="LKR", amount="345.67", customer_token="cus_1", again=again
    )


@pytest.fixture(name="store")
def make_store(tmp_path: Path) -> FileStore:
    """A store of files."""
    return FileStore(tmp_path / "keys")


class BrokenStore:
    """A store whose disk is full."""

    def get(self, name: str) -> None:
        """Has nothing."""

    def put(self, name: str, text: str) -> None:
        """Can't keep anything."""
        raise OSError(f"no space for {name}: {text}")


class ForgetfulStore(BrokenStore):
    """A store that takes everything and keeps nothing, as a private window's may."""

    def put(self, name: str, text: str) -> None:
        """Forgets."""


def test_a_payment_is_told_with_exact_amounts(store: FileStore) -> None:
    """Whoever reads an amount as a float pays out another one one day."""
    with client_of(paid(), store=store) as (client, service):
        outcome = charge(client)

    assert isinstance(outcome, Done)
    assert (str(outcome.data.amount), outcome.data.payment_id) == ("345.67", "320025021815")
    assert b'"amount":345.67' in service.requests[0].content


def test_a_lost_reply_is_asked_for_with_the_same_key(store: FileStore) -> None:
    """Another key would be another charge."""
    with client_of(lost(), answer(503, code="unavailable", retry="after"), paid(), store=store) as (client, service):
        assert charge(client).is_done

    assert service.keys == ["charge/gateway/A-1/1"] * 3
    assert len({each.content for each in service.requests}) == 1
    assert [each.reason for each in service.waits] == ["no_answer", "unavailable"]


def test_without_a_store_no_key_is_sent() -> None:
    """A fresh key after a lost process would hide the repeat from the service."""
    with client_of(lost(), paid()) as (client, service):
        assert charge(client).is_done

    assert service.keys == [None, None]


@pytest.mark.parametrize("broken", [BrokenStore(), ForgetfulStore()])
def test_nothing_is_sent_where_the_key_is_not_stored(broken: BrokenStore) -> None:
    """After a crash nobody would know the key, and the payment would be made again."""
    with client_of(store=broken) as (client, service), pytest.raises(StoreFailed):
        charge(client)

    assert service.requests == []


def test_the_key_is_stored_when_the_request_leaves(store: FileStore) -> None:
    """A process that dies right then finds it."""
    seen = []

    class Watched(Exception):
        """Raised in place of an answer, once the store was looked at."""

    def credential() -> str:
        seen.append(store.get("charge/gateway/A-1"))
        raise Watched

    with client_of(store=store, credential=credential) as (client, _), pytest.raises(Watched):
        charge(client)

    assert seen == ['{"v":1,"attempt":1,"key":"charge/gateway/A-1/1","state":"open"}']


def test_no_answer_at_all_is_open_and_not_failed(store: FileStore) -> None:
    """The money may have moved: whoever calls that a failure takes it again."""
    with client_of(*[lost() for _ in range(6)], store=store) as (client, _):
        outcome = charge(client)

    assert isinstance(outcome, Open)
    assert outcome.reason == "no_answer"


def test_an_open_payment_is_followed_by_its_own_call(store: FileStore) -> None:
    """An app has one thing to hold on to."""
    with client_of(*[lost() for _ in range(6)], paid(), store=store) as (client, service):
        outcome = charge(client)
        assert isinstance(outcome, Open)
        assert outcome.follow().is_done

    assert set(service.keys) == {"charge/gateway/A-1/1"}


def test_a_lost_reply_makes_a_later_refusal_no_verdict(store: FileStore) -> None:
    """That a credential has ended says nothing of the payment that it made before."""
    with client_of(lost(), answer(403, code="forbidden"), store=store) as (client, _):
        outcome = charge(client)

    assert isinstance(outcome, Open)
    assert outcome.reason == "forbidden"


def test_a_refusal_without_doubt_is_an_error() -> None:
    """Nothing was sent before: the payment certainly took no effect."""
    with client_of(answer(403, code="forbidden")) as (client, _), pytest.raises(Forbidden):
        charge(client)


def test_a_record_of_another_process_leaves_doubt(store: FileStore) -> None:
    """It may have sent the payment, and died."""
    store.put("charge/gateway/A-1", '{"v":1,"attempt":1,"key":"charge/gateway/A-1/1","state":"open"}')
    with client_of(answer(403, code="forbidden"), store=store) as (client, _):
        assert not charge(client).is_done


def test_what_says_that_it_did_nothing_is_an_error_beyond_the_limits() -> None:
    """A service that can't reach the gateway has charged nobody, and says so."""
    refused = [answer(502, code="gateway_refused_us", retry="same_key") for _ in range(6)]
    with client_of(*refused) as (client, _), pytest.raises(ServiceFault):
        charge(client)


def test_a_wait_that_is_too_long_ends_the_call() -> None:
    """A customer doesn't stand at the till for an hour."""
    busy = answer(409, code="in_progress", retry="after", retry_after="3600")
    with client_of(busy) as (client, service):
        outcome = charge(client)

    assert isinstance(outcome, Open)
    assert outcome.retry_after_s == 3600
    assert service.waits == []


def test_a_decline_stays_until_another_attempt_is_wanted(store: FileStore) -> None:
    """A repeat by a queue must not charge a card that was declined."""
    with client_of(declined(), declined(), paid(), store=store) as (client, service):
        for _ in range(2):
            with pytest.raises(Declined):
                charge(client)
        assert charge(client, again=True).is_done

    assert service.keys == ["charge/gateway/A-1/1", "charge/gateway/A-1/1", "charge/gateway/A-1/2"]


def test_another_attempt_of_a_paid_order_gives_the_payment(store: FileStore) -> None:
    """Whoever presses *Pay* again has paid."""
    with client_of(paid(), paid(), store=store) as (client, service):
        charge(client)
        assert charge(client, again=True).is_done

    assert set(service.keys) == {"charge/gateway/A-1/1"}


@pytest.mark.parametrize("state", ["unknown", "pending", "needs_attention", "held", "not_sent", "sending"])
def test_another_attempt_needs_an_end_that_took_nothing(store: FileStore, state: str) -> None:
    """Two attempts that both may charge are two charges."""
    with client_of(*[lost() for _ in range(6)], operation(state), store=store) as (client, service):
        charge(client)
        with pytest.raises(AttemptOpen):
            charge(client, again=True)

    assert service.paths[-1] == "GET /operations/by-key/charge%2Fgateway%2FA-1%2F1"


@pytest.mark.parametrize("state", ["declined", "refused", "failed"])
def test_another_attempt_follows_an_end_that_took_nothing(store: FileStore, state: str) -> None:
    """The service has proof that nothing was charged."""
    with client_of(*[lost() for _ in range(6)], operation(state), paid(), store=store) as (client, service):
        charge(client)
        assert charge(client, again=True).is_done

    assert service.keys[-1] == "charge/gateway/A-1/2"


def test_another_attempt_follows_a_refused_request_that_became_no_operation(store: FileStore) -> None:
    """Its body was wrong, and the corrected one may go."""
    missing = answer(404, code="not_found")
    with client_of(answer(422, code="invalid_request"), missing, paid(), store=store) as (client, service):
        with pytest.raises(InvalidRequest):
            charge(client)
        assert charge(client, again=True).is_done

    assert service.keys[-1] == "charge/gateway/A-1/2"


def test_an_unknown_attempt_is_not_given_up_because_the_service_does_not_know_it(store: FileStore) -> None:
    """It may still be on its way."""
    with client_of(*[lost() for _ in range(6)], answer(404, code="not_found"), store=store) as (client, _):
        charge(client)
        with pytest.raises(AttemptOpen):
            charge(client, again=True)


def test_a_202_is_followed_by_its_operation_and_not_by_another_send(store: FileStore) -> None:
    """Without a key another send of what turns out declined would charge anew."""
    finished = {"http_status": 200, "body": {"status": 1, "msg": "OK", "data": PAID}}
    answers = [unknown(), operation("unknown"), operation("succeeded", finished)]
    with client_of(*answers, store=store) as (client, service):
        outcome = charge(client)

    assert isinstance(outcome, Done)
    assert outcome.data.payment_id == "320025021815"
    assert service.paths == ["POST /payments/charge", *["GET /operations/op_1"] * 2]


def test_a_202_that_ends_declined_is_a_decline(store: FileStore) -> None:
    """What was followed is told as what came at once."""
    body = {"status": -1, "msg": "no funds", "data": None, "error": {"code": "declined", "retry": "never"}}
    finished = {"http_status": 402, "body": body}
    answers = [unknown(), operation("declined", finished)]
    with client_of(*answers, store=store) as (client, _), pytest.raises(Declined, match="no funds"):
        charge(client)

    assert '"state":"nothing"' in (store.get("charge/gateway/A-1") or "")


def test_what_was_not_sent_is_sent_again() -> None:
    """Nothing was done, and the customer still wants to pay."""
    with client_of(unknown(), operation("not_sent"), paid()) as (client, service):
        assert charge(client).is_done

    assert service.paths[-1] == "POST /payments/charge"


@pytest.mark.parametrize("state", ["needs_attention", "held"])
def test_a_payment_that_a_person_decides_is_open(state: str) -> None:
    """No program should wait for a day."""
    with client_of(unknown(), operation(state)) as (client, _):
        outcome = charge(client)

    assert isinstance(outcome, Open)
    assert outcome.is_with_person


def test_an_operation_that_may_not_be_read_leaves_the_payment_open() -> None:
    """A client token without the scope must not take a 403 for a failed payment."""
    with client_of(unknown(), answer(403, code="forbidden")) as (client, _):
        outcome = charge(client)

    assert isinstance(outcome, Open)
    assert (outcome.reason, outcome.operation_id) == ("outcome_unknown", "op_1")


def test_other_values_under_a_name_are_refused(store: FileStore) -> None:
    """The order was asked for with another amount before."""
    reused = answer(422, code="idempotency_mismatch")
    with client_of(reused, store=store) as (client, _), pytest.raises(KeyReused):
        charge(client)

    assert '"state":"open"' in (store.get("charge/gateway/A-1") or "")


def test_a_conflict_is_no_leave_for_another_attempt(store: FileStore) -> None:
    """The order may be paid already."""
    with client_of(answer(409, code="conflict"), operation("unknown"), store=store) as (client, _):
        with pytest.raises(Conflict):
            charge(client)
        with pytest.raises(AttemptOpen):
            charge(client, again=True)


def test_a_part_needs_a_name_of_its_own(store: FileStore) -> None:
    """Two returns of one payment must not be taken for one."""
    with client_of(answer(200, 7), store=store) as (client, service):
        with pytest.raises(NameNeeded):
            client.payments.refund(payment_id="320025021815", description="one cup", amount="10.00")
        outcome = client.payments.refund(payment_id="320025021815", description="cups", amount="10", name="return/17")

    assert isinstance(outcome, Done)
    assert outcome.data == "7"
    assert service.keys == ["refund/gateway/return%2F17/1"]


@pytest.mark.parametrize("amount", [345.67, True, "345,67", "1e3", "NaN", " 1", "٣"])
def test_an_amount_that_is_not_exact_is_refused_before_anything_is_stored(store: FileStore, amount: object) -> None:
    """A float of 345.67 isn't 345.67."""
    with client_of(store=store) as (client, service), pytest.raises(InvalidAmount):
        client.payments.charge(order_id="A-1", items="Taxi", currency="LKR", amount=amount)  # type: ignore[arg-type]

    assert service.requests == []
    assert store.get("charge/gateway/A-1") is None


def test_an_ended_credential_is_fetched_anew_once() -> None:
    """A token of an app lives for minutes, and a payment may take longer."""
    tokens = iter(["prt_old", "prt_new"])
    expired = answer(401, code="unauthenticated")
    with client_of(expired, paid(), credential=lambda: next(tokens)) as (client, service):
        assert charge(client).is_done

    assert [each.headers["authorization"] for each in service.requests] == ["Bearer prt_old", "Bearer prt_new"]


def test_a_proxys_page_is_no_answer() -> None:
    """Its 200 or 404 says nothing of the payment."""
    from httpx import Response  # noqa: PLC0415 - the one test that writes a page of its own

    pages: list[Answer] = [Response(200, text="<html>Welcome</html>"), Response(404, text="{}"), paid()]
    with client_of(*pages) as (client, service):
        assert charge(client).is_done

    assert [each.reason for each in service.waits] == ["unreadable_answer"] * 2


def test_a_client_for_event_loops_does_the_same(store: FileStore) -> None:
    """It is the source of the other one, and must not be the one that nobody tried."""
    service = run_async(
        [
            lost(),
            unknown(),
            operation("succeeded", {"http_status": 200, "body": {"status": 1, "msg": "", "data": PAID}}),
        ],
        lambda client: client.payments.charge(order_id="A-1", items="Taxi", currency="LKR", amount="345.67"),
        store,
    )

    assert service.keys == ["charge/gateway/A-1/1"] * 2
    assert '"state":"done"' in (store.get("charge/gateway/A-1") or "")
