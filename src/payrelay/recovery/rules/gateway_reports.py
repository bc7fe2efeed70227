"""A report of the gateway's payments, as an operator exported it: believed only where every line of it can be read.

Rules:

1. A report shows that a payment is there. It never shows that one isn't: an export may be filtered, cut, or too early.
2. One wrong line, and nothing of the report counts: whoever exported it must look at it.
3. A report is a person's word. What follows from it is stored under that person's name.
"""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.money import AmountError, is_currency, typed_minor
from payrelay.core.payments.payment import Payment, PaymentStatus, payment_number
from payrelay.core.text.table_text import TableError, moment_in, rows_of

COLUMNS: Final = ("order_id", "payment_id", "amount", "currency", "status", "date")
"""What each payment of a report must have. A further column ``description`` is compared where it is there."""
DESCRIPTION: Final = "description"
PAYMENTS_MAX: Final = 100_000
"""Payments in one report; a longer one is given in parts."""
BYTES_MAX: Final = 50_000_000
"""Bytes of one report."""
PROBLEMS_MAX: Final = 20
"""Problems that are told of one report; whoever mends these finds the others."""
ORDER_ID_LENGTH_MAX: Final = 250


class ReportUnreadableError(ValueError):
    """The report can't be believed; ``problems`` names each wrong line and field, at most PROBLEMS_MAX."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class ReportedPayment(msgspec.Struct, frozen=True, kw_only=True):
    """One payment of a report.

    Attributes:
        place: where it is in the file, for people: ``line 7`` or ``payment 7``.
        payment: what the report says of it; its description is empty where the report has none.
        has_description: whether the report says what it was for.
    """

    place: str
    payment: Payment
    has_description: bool


class ReportVerdict(StrEnum):
    """What became of one payment of a report."""

    KNOWN = "known"
    """It is of something here, and agrees with it."""
    CONTRADICTS = "contradicts"
    """It is of something here that has another order, amount or currency."""
    ADOPTED = "adopted"
    """It is now the answer to the held charge that fits it exactly."""
    NOBODYS = "nobodys"
    """It was paid in the lost time, and is of nothing here."""
    GIVEN_BACK = "given_back"
    """It is of nothing here, and was refunded or charged back."""
    OUTSIDE = "outside"
    """It is of nothing here, and was not paid in the lost time."""


FOR_A_PERSON: Final = frozenset({ReportVerdict.CONTRADICTS, ReportVerdict.NOBODYS})
"""The verdicts that call an operator."""


def read_report(content: bytes, timezone: str) -> tuple[ReportedPayment, ...]:
    """Reads a report: CSV with a header, or a JSON array of objects, in UTF-8.

    A date without a zone is in ``timezone``, the gateway's. Raises ReportUnreadableError where anything is wrong.
    """
    if len(content) > BYTES_MAX:
        raise ReportUnreadableError((f"the file has more than {BYTES_MAX} bytes: give it in parts",))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ReportUnreadableError((f"line {line}: is not UTF-8",)) from None
    is_json = text.lstrip()[:1] in {"[", "{"}
    problems: list[str] = []
    payments: dict[str, ReportedPayment] = {}
    rows = _json_rows(text) if is_json else _csv_rows(text)
    for number, (place, members) in enumerate(rows):
        if number >= PAYMENTS_MAX:
            raise ReportUnreadableError((f"the file has more than {PAYMENTS_MAX} payments: give it in parts",))
        found = [*_problems_of(members, timezone)]
        if not found:
            each = _payment_of(place, members, timezone)
            earlier = payments.setdefault(each.payment.payment_id, each)
            if earlier.payment != each.payment:
                found.append(f"payment_id: {earlier.place} says something else of this payment")
        problems += [f"{place}: {problem}" for problem in found]
        if len(problems) >= PROBLEMS_MAX:
            break
    if problems:
        raise ReportUnreadableError(tuple(problems[:PROBLEMS_MAX]))
    if not payments:
        raise ReportUnreadableError(("the file has no payment",))
    return tuple(payments.values())


def _csv_rows(text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    names: list[str] | None = None
    try:
        for number, row in rows_of(f"{each}\n" for each in text.split("\n")):
            place = f"line {number}"
            if names is None:
                names = [each.lower() for each in row]
                _require_columns(place, names)
            elif len(row) != len(names):
                raise ReportUnreadableError((f"{place}: has {len(row)} fields, and the header has {len(names)}",))
            else:
                yield place, dict(zip(names, row, strict=True))
    except TableError as error:
        raise ReportUnreadableError((str(error),)) from None


def _require_columns(place: str, names: list[str]) -> None:
    missing = [each for each in COLUMNS if each not in names]
    if missing:
        raise ReportUnreadableError((f"{place}: the header lacks {', '.join(missing)}",))
    twice = sorted(each for each in (*COLUMNS, DESCRIPTION) if names.count(each) > 1)
    if twice:
        raise ReportUnreadableError((f"{place}: the header has {', '.join(twice)} twice",))


def _json_rows(text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    try:
        values = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ReportUnreadableError((f"line {error.lineno}: is not JSON: {error.msg}",)) from None
    except (ValueError, RecursionError) as error:
        raise ReportUnreadableError((f"is not JSON that can be read: {error}",)) from None
    if not isinstance(values, list):
        raise ReportUnreadableError(("line 1: must be a JSON array of payments",))
    for number, value in enumerate(values, start=1):
        place = f"payment {number}"
        if not isinstance(value, dict):
            raise ReportUnreadableError((f"{place}: must be an object",))
        yield place, value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a name twice")
    return members


def _problems_of(members: Mapping[str, object], timezone: str) -> Iterator[str]:
    """Names each wrong field of a payment, and what it must be."""
    for name in COLUMNS:
        if not isinstance(members.get(name), str) or not members[name]:
            yield f"{name}: is missing, or no text or number"
            return
    order_id, currency = str(members["order_id"]), str(members["currency"])
    if len(order_id) > ORDER_ID_LENGTH_MAX or not order_id.isprintable():
        yield f"order_id: must be printable, with at most {ORDER_ID_LENGTH_MAX} characters"
    if payment_number(str(members["payment_id"])) is None:
        yield "payment_id: must have 1 to 19 digits"
    try:
        typed_minor(str(members["amount"]))
    except AmountError as error:
        yield f"amount: {error}"
    if not is_currency(currency):
        yield "currency: must be three capital letters, such as LKR"
    if _status_of(members) is None:
        yield f"status: must be one of {', '.join(each for each in PaymentStatus if each is not PaymentStatus.OTHER)}"
    if _at_ms(members, timezone) is None:
        yield "date: must be in ISO 8601, such as 2026-11-22T09:41:00Z, or 2026-11-22 09:41:00 in the gateway's zone"
    if not isinstance(members.get(DESCRIPTION, ""), str | None):
        yield "description: must be text"


def _status_of(members: Mapping[str, object]) -> PaymentStatus | None:
    try:
        status = PaymentStatus(str(members["status"]).upper())
    except ValueError:
        return None
    return None if status is PaymentStatus.OTHER else status


def _at_ms(members: Mapping[str, object], timezone: str) -> int | None:
    return moment_in(str(members["date"]), timezone)


def _payment_of(place: str, members: Mapping[str, object], timezone: str) -> ReportedPayment:
    description = members.get(DESCRIPTION)
    return ReportedPayment(
        place=place,
        payment=Payment(
            payment_id=payment_number(str(members["payment_id"])) or "",
            order_id=str(members["order_id"]),
            at_ms=_at_ms(members, timezone),
            description="" if description is None else str(description),
            status=_status_of(members) or PaymentStatus.OTHER,
            currency=str(members["currency"]),
            amount_minor=typed_minor(str(members["amount"])),
        ),
        has_description=description is not None,
    )
