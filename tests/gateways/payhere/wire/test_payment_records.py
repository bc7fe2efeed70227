import json
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import (
    NoObservation,
    NothingShown,
    Observation,
    Payment,
    PaymentsSeen,
    PaymentStatus,
)
from payrelay.errors import Code
from payrelay.gateways.payhere.wire.payment_records import (
    observation_of,
    payment_ids_in,
    payments_in,
    records_without,
)
from payrelay.gateways.payhere.wire.read_replies import classify_read, lost
from payrelay.gateways.payhere.wire.reply_shapes import WrongShape

TOKEN: Final = "cb5c47fd-741c-489a-b69e-fd73155ca34e"
ZONE: Final = "Asia/Colombo"
ORDER: Final = PaymentsOfOrder(order_id="A-1")
SUBSCRIPTION: Final = PaymentsOfSubscription(subscription_id=420075032251)
RECORD: Final[dict[str, object]] = {
    "payment_id": 320025071278,
    "order_id": "A-1",
    "date": "2026-09-01 12:00:05",
    "description": "Tea",
    "status": "RECEIVED",
    "currency": "LKR",
    "amount": 1000.0,
    "customer": {"fist_name": "Saman"},
}
PAYMENT: Final = Payment(
    payment_id="320025071278",
    order_id="A-1",
    at_ms=int(datetime(2026, 9, 1, 6, 30, 5, tzinfo=UTC).timestamp() * 1000),
    description="Tea",
    status=PaymentStatus.RECEIVED,
    currency="LKR",
    amount_minor=100_000,
)


def read(*records: dict[str, object]) -> tuple[Payment, ...]:
    """Reads these records."""
    return payments_in(json.dumps(records).encode(), ZONE)


def seen(body: str, call: PaymentsOfOrder | PaymentsOfSubscription = ORDER, http_status: int = 200) -> Observation:
    """Tells what a reply showed."""
    reading = classify_read(call, http_status, body.encode(), TOKEN)
    assert isinstance(reading, Reading)
    return observation_of(call, reading, ZONE)


def test_a_record_is_read_as_it_was_meant() -> None:
    """The date in the gateway's zone, the amount to the last digit, and nothing about the customer."""
    assert read(RECORD) == (PAYMENT,)


@pytest.mark.parametrize("name", ["payment_id", "order_id", "status", "currency", "amount"])
@pytest.mark.parametrize("is_absent", [True, False])
def test_a_record_that_is_not_whole_proves_nothing(name: str, *, is_absent: bool) -> None:
    """Nor does the answer that holds it: a payment without an amount might be the one that is searched for."""
    broken: dict[str, object] = {key: value for key, value in RECORD.items() if key != name or not is_absent}
    if not is_absent:
        broken[name] = None
    with pytest.raises(WrongShape):
        read(RECORD, broken)


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b"[1]", b'[{"a":1,"a":2}]', b'["\xff"]', b"[" * 10_000])
def test_what_is_no_list_of_records_proves_nothing(raw: bytes) -> None:
    """It is said to be of the wrong shape, whatever it is, and nothing else is raised."""
    with pytest.raises(WrongShape):
        payments_in(raw, ZONE)


@pytest.mark.parametrize(
    "date", [None, "", "yesterday", "2026-09-01", "2026-13-01 00:00:00", "2026-09-01T12:00:05", "0000-01-01 00:00:00"]
)
def test_a_date_that_is_none_is_unknown(date: str | None) -> None:
    """The payment is there all the same; that it was made in time is not shown then."""
    assert read(RECORD | {"date": date})[0].at_ms is None


@pytest.mark.parametrize("form", ["{:04}-{:02}-{:02} {:02}:{:02}:{:02}", "{:04}-{}-{} {}:{}:{}"])
@given(moment=st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(9000, 1, 1)))  # noqa: DTZ001, theirs
def test_a_date_is_read_alike_with_and_without_leading_zeros(form: str, moment: datetime) -> None:
    """The usual form has a reader of its own, which must agree with the one that reads every other form."""
    date = form.format(*moment.timetuple()[:6])
    there = moment.replace(microsecond=0, tzinfo=ZoneInfo(ZONE))
    assert read(RECORD | {"date": date})[0].at_ms == int(there.timestamp() * 1000)


def test_a_payment_dates_by_the_zone_that_is_configured() -> None:
    """Read in another zone it would lie hours away from its sending."""
    raw = json.dumps([RECORD]).encode()
    there, here = payments_in(raw, ZONE)[0].at_ms, payments_in(raw, "UTC")[0].at_ms
    assert there is not None
    assert here is not None
    assert here - there == 19_800_000


@pytest.mark.parametrize(
    ("amount", "minor"), [(0, None), (-5, None), (10.001, None), ("1000.00", 100_000), (50, 5_000)]
)
def test_an_amount_that_is_none_of_ours_is_another_amount(amount: object, minor: int | None) -> None:
    """It can't be the amount that was asked, which is of whole hundredths and greater than 0."""
    assert read(RECORD | {"amount": amount})[0].amount_minor == minor


def test_words_and_numbers_are_compared_in_one_form() -> None:
    """Ids may come with leading zeros or as text, and the status in another case."""
    odd = RECORD | {"payment_id": "00320025071278", "status": " refund  Requested ", "description": None}
    (payment,) = read(odd)
    assert (payment.payment_id, payment.status, payment.description) == ("320025071278", "REFUND REQUESTED", "")
    assert read(RECORD | {"payment_id": 0})[0].payment_id == "0"


def test_payments_that_are_shown_are_seen() -> None:
    """Of an order and of a subscription alike."""
    body = json.dumps({"status": 1, "msg": "Payments with order_id:A-1", "data": [RECORD]})
    observation = seen(body)
    assert isinstance(observation, PaymentsSeen)
    assert observation.payments == (PAYMENT,)
    assert isinstance(seen(body, SUBSCRIPTION), PaymentsSeen)


def test_no_payments_found_is_the_one_answer_that_shows_nothing() -> None:
    """Of a subscription its empty list says the same."""
    assert isinstance(seen('{"status":-1,"msg":"No payments found","data":null}'), NothingShown)
    assert isinstance(seen('{"status":1,"msg":"Found 0 payments","data":[]}', SUBSCRIPTION), NothingShown)


@pytest.mark.parametrize(
    ("http_status", "body"),
    [
        (200, '{"status":-1,"msg":"No records","data":null}'),
        (200, '{"status":-1,"msg":"No payments found for this user","data":null}'),
        (200, '{"status":-1,"msg":"No payments found","data":[]}'),
        (200, '{"status":-1,"msg":"No payments found"}'),
        (200, '{"status":0,"msg":"No payments found","data":null}'),
        (200, '{"status":-2,"msg":"No payments found","data":null}'),
        (200, '{"status":1,"msg":"Payments with order_id:A-1","data":[]}'),
        (200, '{"status":1,"msg":"Payments","data":[{"payment_id":1,"order_id":"A-1"}]}'),
        (200, '{"status":-2,"msg":"Authentication error","data":null}'),
        (401, '{"status":-1,"msg":"Access denied for the domain","data":null}'),
        (429, "Too many requests"),
        (502, "<html>502</html>"),
        (500, '{"status":-1,"msg":"No payments found","data":null}'),
    ],
)
def test_everything_else_is_no_observation(http_status: int, body: str) -> None:
    """What might mean something else than that there is none proves nothing."""
    assert isinstance(seen(body, http_status=http_status), NoObservation)


def test_a_lost_reply_is_no_observation() -> None:
    """Its cause is kept."""
    observation = observation_of(ORDER, lost("timeout", is_sent=True), ZONE)
    assert isinstance(observation, NoObservation)
    assert (observation.code, observation.evidence.cause) == (Code.GATEWAY_BAD_REPLY, "timeout")


@given(raw=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: f'[{{"a":"{text}"}}]'.encode())))
def test_no_bytes_bring_the_reader_down(raw: bytes) -> None:
    """Whatever the gateway sends, the worst is that it proves nothing."""
    observation = observation_of(ORDER, Reading(code=None, msg="", raw_data=raw), ZONE)
    assert isinstance(observation, PaymentsSeen | NoObservation)


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        (b'[{"payment_id":1,"amount":1.50}, {"payment_id":2}]', b'[{"payment_id":1,"amount":1.50}]'),
        (b'[{"payment_id":"2"},{"payment_id":3}]', b'[{"payment_id":3}]'),
        (b'[{"payment_id":002},{"payment_id":2}]', None),
        (b'[{"payment_id":2}]', None),
        (b'[{"payment_id":null},{"other":1},5,{"payment_id":{}}]', None),
        (b"[]", None),
        (b"{}", None),
        (b"[" * 5_000, None),
    ],
)
def test_payments_of_others_are_left_out_and_what_nobody_can_read(raw: bytes, left: bytes | None) -> None:
    """The rest stays byte for byte; a record whose number can't be told may be anybody's."""
    assert records_without(raw, frozenset({"2"})) == left


@pytest.mark.parametrize(
    ("raw", "ids"),
    [
        (b"[]", frozenset()),
        (b'[{"payment_id":320025000001},{"payment_id":"0320025000002"}]', frozenset({"320025000001", "320025000002"})),
        (b'[{"payment_id":320025000001},{"payment_id":"none"}]', None),
        (b'[{"payment_id":320025000001},{}]', None),
        (b'[{"payment_id":320025000001},7]', None),
        (b'{"payment_id":320025000001}', None),
        (b"\xff", None),
    ],
)
def test_the_numbers_of_a_list_are_read_all_or_not_at_all(raw: bytes, ids: frozenset[str] | None) -> None:
    """The record whose number can't be read may be that of a payment which would be called missing."""
    assert payment_ids_in(raw) == ids
