"""Reports of the gateway's payments: what is read, and what is refused with the line and the field."""

import contextlib
import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.money import AMOUNT_MINOR_MAX, decimal_text
from payrelay.core.payments.payment import PaymentStatus
from payrelay.recovery.rules.gateway_reports import (
    BYTES_MAX,
    COLUMNS,
    PAYMENTS_MAX,
    PROBLEMS_MAX,
    ReportUnreadableError,
    read_report,
)

PAYMENT: dict[str, object] = {
    "order_id": "A-1",
    "payment_id": "320025000001",
    "amount": "2510.00",
    "currency": "LKR",
    "status": "RECEIVED",
    "date": "2026-11-22T09:41:00Z",
}
AT_MS = 1_795_340_460_000


def csv_of(*rows: dict[str, object]) -> bytes:
    """Writes payments as CSV with a header."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def problems(content: bytes) -> tuple[str, ...]:
    """Gives what is wrong with a report."""
    with pytest.raises(ReportUnreadableError) as refused:
        read_report(content, "Asia/Colombo")
    return refused.value.problems


@pytest.mark.parametrize(
    "content", [csv_of(PAYMENT), json.dumps([PAYMENT | {"payment_id": 320025000001, "amount": 2510.0}]).encode()]
)
def test_csv_and_json_say_the_same(content: bytes) -> None:
    """A number of JSON is read as it is written, and not as a float."""
    [read] = read_report(content, "Asia/Colombo")
    payment = read.payment
    assert (payment.order_id, payment.payment_id, payment.amount_minor) == ("A-1", "320025000001", 251_000)
    assert (payment.currency, payment.status, payment.at_ms) == ("LKR", PaymentStatus.RECEIVED, AT_MS)
    assert not read.has_description


def test_a_date_without_a_zone_is_the_gateways() -> None:
    """The portal shows local time; five and a half hours would move a payment out of the lost time."""
    [read] = read_report(csv_of(PAYMENT | {"date": "2026-11-22 15:11:00"}), "Asia/Colombo")
    assert read.payment.at_ms == AT_MS


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"order_id": ""}, "line 2: order_id: is missing"),
        ({"order_id": "x" * 251}, "line 2: order_id: must be printable, with at most 250 characters"),
        ({"order_id": "A\x001"}, "line 2: order_id: must be printable, with at most 250 characters"),
        ({"payment_id": "x1"}, "line 2: payment_id: must have 1 to 19 digits"),
        ({"amount": "0.00"}, "line 2: amount: must be greater than 0"),
        *(
            ({"amount": text}, "line 2: amount: must be written like 1250, 1250.50 or 1,250.50")
            for text in ("25.101", "1.250", "2510,00", "-1", "NaN", "1_0", "1E+2", "\u0661\u0660", "1" * 19)
        ),
        ({"currency": "rs"}, "line 2: currency: must be three capital letters"),
        ({"status": "paid"}, "line 2: status: must be one of RECEIVED"),
        ({"status": "OTHER"}, "line 2: status: must be one of RECEIVED"),
        ({"date": "22/11/2026"}, "line 2: date: must be in ISO 8601"),
        ({"date": "0001-01-01"}, "line 2: date: must be in ISO 8601"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(changes: dict[str, object], problem: str) -> None:
    """Whoever exported ten thousand lines must find the one."""
    [told] = problems(csv_of(PAYMENT | changes))
    assert told.startswith(problem)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file has no payment"),
        (b"[]", "the file has no payment"),
        (b"order_id,amount\n", "line 1: the header lacks payment_id, currency, status, date"),
        (csv_of(PAYMENT) + b"A-2,7\n", "line 3: has 2 fields, and the header has 6"),
        (csv_of(PAYMENT) + b'"A-2', "line 3: is not CSV"),
        (csv_of(PAYMENT) + b"\xff", "line 3: is not UTF-8"),
        (csv_of(PAYMENT).replace(b"status", b"amount"), "line 1: the header lacks status"),
        (csv_of(PAYMENT | {"more": "x"}).replace(b"more", b"amount"), "line 1: the header has amount twice"),
        (b"[{]", "line 1: is not JSON"),
        (b"[" * 100_000, "is not JSON that can be read"),
        (b"{}", "line 1: must be a JSON array"),
        (b"[1]", "payment 1: must be an object"),
        (b'[{"amount": 1, "amount": 2}]', "is not JSON that can be read: an object has a name twice"),
        (json.dumps([PAYMENT | {"amount": True}]).encode(), "payment 1: amount: is missing, or no text or number"),
        (json.dumps([PAYMENT | {"description": ["x"]}]).encode(), "payment 1: description: must be text"),
        (csv_of(PAYMENT, PAYMENT | {"amount": "1"}), "line 3: payment_id: line 2 says something else of this payment"),
    ],
)
def test_a_file_that_is_no_report_says_why(content: bytes, problem: str) -> None:
    """A cut download, another export, or two answers about one payment are believed in nothing."""
    assert problems(content)[0].startswith(problem)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"x" * (BYTES_MAX + 1), f"the file has more than {BYTES_MAX} bytes: give it in parts"),
        (
            b"[" + b",".join([json.dumps(PAYMENT).encode()] * (PAYMENTS_MAX + 1)) + b"]",
            f"the file has more than {PAYMENTS_MAX} payments: give it in parts",
        ),
    ],
    ids=["bytes", "payments"],
)
def test_a_report_that_is_too_large_is_refused_whole(content: bytes, problem: str) -> None:
    """Half of it would be believed as if it were all; whoever exported it can give it in parts."""
    assert problems(content) == (problem,)


def test_an_equal_line_is_read_once() -> None:
    """Two exports that overlap, one behind the other."""
    assert len(read_report(csv_of(PAYMENT, PAYMENT), "UTC")) == 1


def test_many_problems_are_told_at_once_and_bounded() -> None:
    """A file in another form has one for each line."""
    told = problems(csv_of(*(PAYMENT | {"amount": "x"} for _ in range(100))))
    assert len(told) == PROBLEMS_MAX


@given(
    st.lists(
        st.tuples(st.integers(1, 10**18), st.integers(1, AMOUNT_MINOR_MAX), st.sampled_from(["A-1", 'B,"2', "ü"])),
        min_size=1,
        max_size=20,
        unique_by=lambda each: each[0],
    )
)
def test_what_is_written_is_read(drawn: list[tuple[int, int, str]]) -> None:
    """In both forms, whatever the order ids have in them."""
    rows: list[dict[str, object]] = [
        PAYMENT | {"payment_id": str(number), "amount": decimal_text(minor), "order_id": order_id}
        for number, minor, order_id in drawn
    ]
    for content in (csv_of(*rows), json.dumps(rows).encode()):
        read = [each.payment for each in read_report(content, "UTC")]
        assert [(int(each.payment_id), each.amount_minor, each.order_id) for each in read] == drawn


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    """Any file at all may be named."""
    for each in (content, ",".join(COLUMNS).encode() + b"\n" + content):
        with contextlib.suppress(ReportUnreadableError):
            assert read_report(each, "UTC")
