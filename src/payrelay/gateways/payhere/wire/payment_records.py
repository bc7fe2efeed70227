"""Reads the gateway's payment records where they are evidence. Pure.

This is stricter than passing a record on to a client: an incomplete record proves nothing, and neither does an answer
that contains one.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import (
    NoObservation,
    NothingShown,
    Observation,
    Payment,
    PaymentsSeen,
    PaymentStatus,
    payment_number,
)
from payrelay.errors import Code
from payrelay.gateways.payhere.wire.read_replies import NOT_THERE
from payrelay.gateways.payhere.wire.reply_shapes import (
    NO_AMOUNT,
    WrongShape,
    amount_in,
    id_in,
    members_of,
    text_in,
)

NO_PAYMENTS: Final = "no payments found"
"""The gateway's text, alone and exactly, where it shows no payment of an order."""
DATE_FORMAT: Final = "%Y-%m-%d %H:%M:%S"

STATUSES: Final[Mapping[str, PaymentStatus]] = MappingProxyType(
    {
        "RECEIVED": PaymentStatus.RECEIVED,
        "REFUND REQUESTED": PaymentStatus.REFUND_REQUESTED,
        "REFUND PROCESSING": PaymentStatus.REFUND_PROCESSING,
        "REFUNDED": PaymentStatus.REFUNDED,
        "CHARGEBACKED": PaymentStatus.CHARGED_BACK,
    }
)
"""The gateway's names of a payment's status, in capitals."""

_is_usual_date: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}").fullmatch
_records = msgspec.json.Decoder(list[msgspec.Raw])


class _NumberedRecord(msgspec.Struct, frozen=True):
    payment_id: int | str


_numbered_records = msgspec.json.Decoder(list[_NumberedRecord])


def observation_of(call: PaymentsOfOrder | PaymentsOfSubscription, reading: Reading, timezone: str) -> Observation:
    """Gives what a read showed: payments, no payments, or nothing that proves anything. Never raises."""
    if reading.code is Code.NOT_FOUND:
        text = reading.msg.strip().removesuffix(".").casefold()
        is_negative = reading.evidence.gateway_status == NOT_THERE  # neither "pending" nor "declined"
        is_nothing = is_negative and text == NO_PAYMENTS and reading.raw_data in {None, b"null"}
        return NothingShown(evidence=reading.evidence) if is_nothing else _nothing_observed(reading, Code.NOT_FOUND)
    if reading.code is not None:
        return _nothing_observed(reading, reading.code)
    try:
        payments = payments_in(reading.raw_data or b"", timezone)
    except WrongShape:
        return _nothing_observed(reading, Code.GATEWAY_BAD_REPLY)
    if not payments and isinstance(call, PaymentsOfSubscription):
        return NothingShown(evidence=reading.evidence)
    return PaymentsSeen(payments=payments, evidence=reading.evidence)


def records_without(raw_data: bytes, payment_ids: frozenset[str]) -> bytes | None:
    """Removes payments from a list of records, and leaves the others byte for byte; None where none is left.

    A record whose number can't be read is removed too, because its owner can't be found.
    """
    try:
        records = _records.decode(raw_data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    left = [bytes(record) for record in records if (id_ := _number(record)) is not None and id_ not in payment_ids]
    return b"[" + b",".join(left) + b"]" if left else None


def payment_ids_in(raw_data: bytes) -> frozenset[str] | None:
    """Gives the numbers of the payments in a list of records; None where it is none, or one can't be read."""
    try:
        records = _numbered_records.decode(raw_data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    numbers = frozenset(payment_number(str(record.payment_id)) or "" for record in records)
    return None if "" in numbers else numbers


def _number(record: msgspec.Raw) -> str | None:
    try:
        return id_in(members_of(bytes(record)), "payment_id")
    except WrongShape:
        return None


def _nothing_observed(reading: Reading, code: Code) -> NoObservation:
    return NoObservation(code=code, evidence=reading.evidence)


def payments_in(raw_data: bytes, timezone: str) -> tuple[Payment, ...]:
    """Reads a list of payment records. Raises WrongShape where it is none, or one of them is incomplete."""
    try:
        records = _records.decode(raw_data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongShape from error
    zone = ZoneInfo(timezone)
    return tuple(_payment(bytes(record), zone) for record in records)


def _payment(raw: bytes, zone: ZoneInfo) -> Payment:
    members = members_of(raw)
    payment_id = id_in(members, "payment_id")
    order_id = text_in(members, "order_id")
    status = text_in(members, "status")
    currency = text_in(members, "currency")
    amount_minor = amount_in(members, "amount")
    if payment_id is None or order_id is None or status is None or currency is None or amount_minor is None:
        raise WrongShape
    return Payment(
        payment_id=payment_id,
        order_id=order_id,
        at_ms=moment_in(text_in(members, "date"), zone),
        description=text_in(members, "description") or "",
        status=STATUSES.get(" ".join(status.upper().split()), PaymentStatus.OTHER),
        currency=currency,
        amount_minor=None if amount_minor == NO_AMOUNT else amount_minor,
    )


def moment_in(date: str | None, zone: ZoneInfo) -> int | None:
    """Reads a date of the gateway's; None where it can't be read."""
    text = date or ""
    try:
        # The usual form is read by the quicker of two readers that agree on it.
        if _is_usual_date(text):
            moment = datetime.fromisoformat(text).replace(tzinfo=zone)
        else:
            moment = datetime.strptime(text, DATE_FORMAT).replace(tzinfo=zone)
    except ValueError:
        return None
    return int(moment.timestamp() * 1000)
