"""Reads the notifications that PayHere posts: a form, signed over five of its fields. Pure.

Rules:

1. The signature is checked over the values as they came, byte for byte, before anything is reformatted.
2. Each signed field must be there once, readable and complete. An unreadable field of the others counts as absent.
3. Unknown fields are no error: the body is stored as it came.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from payrelay.core.notifications.notification import (
    Authenticity,
    MessageType,
    NotificationContent,
    NotificationKind,
    PlanStatus,
    ReportedStatus,
)
from payrelay.core.secret import Secret
from payrelay.gateways.gateway import ReceivedNotification, UnreadableNotification
from payrelay.gateways.payhere.wire.amounts import is_amount, minor_of
from payrelay.gateways.payhere.wire.checkout_forms import Merchant
from payrelay.gateways.payhere.wire.signed_texts import readings_of

BODY_BYTES_MAX: Final = 16_384
"""A notification has some 600 bytes, and more with long texts in the custom fields."""
FIELDS_MAX: Final = 100
"""The longest documented notification has 25."""
ORDER_ID_MAX: Final = 255
"""Characters; Payrelay never sent a longer one."""
TOKEN_MAX: Final = 256
"""Characters of a token; today's have 32 and 36."""
TEXT_MAX: Final = 200
"""Characters of a name or a word."""

SIGNED: Final = ("merchant_id", "order_id", "payhere_amount", "payhere_currency", "status_code")
"""In the order in which they are signed."""
_READ: Final = frozenset(
    {
        *SIGNED,
        "md5sig",
        "captured_amount",
        "payment_id",
        "subscription_id",
        "message_type",
        "customer_token",
        "authorization_token",
        "recurring",
        "item_rec_install_paid",
        "item_rec_date_next",
        "item_rec_status",
    }
)
"""Fields that have effects. If one came twice, the notification could be read in two ways."""

_STATUSES: Final[Mapping[str, ReportedStatus]] = MappingProxyType(
    {
        "2": ReportedStatus.SUCCEEDED,
        "3": ReportedStatus.AUTHORIZED,
        "0": ReportedStatus.PENDING,
        "-1": ReportedStatus.CANCELLED,
        "-2": ReportedStatus.FAILED,
        "-3": ReportedStatus.CHARGED_BACK,
    }
)
_PLAN_STATUSES: Final[Mapping[int | None, PlanStatus]] = MappingProxyType(
    {0: PlanStatus.ACTIVE, -1: PlanStatus.CANCELLED, 1: PlanStatus.COMPLETED}
)
_MESSAGE_TYPES: Final[Mapping[str, MessageType]] = MappingProxyType(
    {
        "AUTHORIZATION_SUCCESS": MessageType.AUTHORIZATION_SUCCESS,
        "AUTHORIZATION_FAILED": MessageType.AUTHORIZATION_FAILED,
        "RECURRING_INSTALLMENT_SUCCESS": MessageType.INSTALLMENT_SUCCESS,
        "RECURRING_INSTALLMENT_FAILED": MessageType.INSTALLMENT_FAILED,
        "RECURRING_COMPLETE": MessageType.COMPLETE,
        "RECURRING_STOPPED": MessageType.STOPPED,
    }
)

# Python calls more characters not printable, such as the joiner of Sinhala letters, which "Sri" needs.
_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_number = re.compile(r"[0-9]{1,19}").fullmatch
_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").match
_currency = re.compile(r"[A-Z]{3}").fullmatch
_word = re.compile(r"[A-Za-z0-9_-]{1,20}").fullmatch
_card_number = re.compile(r"[0-9*Xx •-]{4,30}").fullmatch
_whole_card_number = re.compile(r"[0-9]{12,}").search
_expiry = re.compile(r"[0-9/]{4,7}").fullmatch
_token = re.compile(r"[!-~]{1,256}").fullmatch
_small = re.compile(r"-?[0-9]{1,6}").fullmatch


class UnreadableError(ValueError):
    """The body is no notification. The text says why; it names fields, and quotes no value."""


class Form(msgspec.Struct, frozen=True):
    """The fields of a notification, with the values as they came."""

    values: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"Form({', '.join(sorted(self.values))})"

    def text(self, name: str, longest: int = TEXT_MAX) -> str | None:
        """Gives a value as text; None where it is absent, empty, too long, not UTF-8, or has control characters."""
        try:
            text = self.values.get(name, b"").decode()
        except UnicodeDecodeError:
            return None
        return text if text and len(text) <= longest and _control(text) is None else None


def received(body: bytes, merchant: Merchant | None) -> ReceivedNotification | UnreadableNotification:
    """Reads a notification and judges its authenticity; ``merchant`` as for ``authenticity_of``. Never raises."""
    try:
        form = read_form(body)
    except UnreadableError as error:
        return UnreadableNotification(reason=str(error))
    return ReceivedNotification(authenticity=authenticity_of(form, merchant), content=content_of(form))


def read_form(body: bytes) -> Form:
    """Reads a form. Raises UnreadableError where it is none, or lacks a field that every notification has."""
    if len(body) > BODY_BYTES_MAX:
        raise UnreadableError(f"the body is over {BODY_BYTES_MAX} bytes")
    pieces = [piece for piece in body.split(b"&") if piece]
    if len(pieces) > FIELDS_MAX:
        raise UnreadableError(f"the body has over {FIELDS_MAX} fields")
    values: dict[str, bytes] = {}
    for piece in pieces:
        raw_name, _, raw_value = piece.partition(b"=")
        name = _plain(raw_name).decode("utf-8", "backslashreplace")
        if name in values:
            if name in _READ:
                raise UnreadableError(f"the field {name} is there twice")
            continue
        values[name] = _plain(raw_value)
    form = Form(values)
    for name in SIGNED:
        if form.text(name, ORDER_ID_MAX) is None:
            raise UnreadableError(f"the field {name} is missing or can't be read")
    if not values.get("md5sig"):
        raise UnreadableError("the field md5sig is missing")
    if _currency(form.text("payhere_currency") or "") is None:
        raise UnreadableError("the field payhere_currency is not three capital letters")
    if is_amount(form.text("payhere_amount") or "") is None:
        raise UnreadableError("the field payhere_amount is no amount")
    return form


def _plain(raw: bytes) -> bytes:
    return unquote_to_bytes(raw.replace(b"+", b" "))


def signature_of(form: Form, secret: Secret) -> bytes:
    """Gives the right value of ``md5sig``."""
    key = _md5(secret.reveal().encode())
    return _md5(b"".join(form.values[name] for name in SIGNED) + key)


def _md5(data: bytes) -> bytes:
    # The gateway chose the algorithm; Payrelay uses it for nothing else.
    return hashlib.md5(data, usedforsecurity=False).hexdigest().upper().encode()


def authenticity_of(form: Form, merchant: Merchant | None) -> Authenticity:
    """Judges whether the gateway sent a notification; the signature is compared in constant time.

    ``merchant`` is None where the account has no id or no secret.
    """
    if merchant is None:
        return Authenticity.NO_SECRET
    is_signed = hmac.compare_digest(form.values["md5sig"].upper(), signature_of(form, merchant.merchant_secret))
    if form.values["merchant_id"] != merchant.merchant_id.encode():
        return Authenticity.WRONG_MERCHANT
    return Authenticity.GENUINE if is_signed else Authenticity.FORGED


def content_of(form: Form) -> NotificationContent:
    """Translates a notification into our words. Never raises for a form that ``read_form`` gave."""
    reported = _STATUSES.get(form.text("status_code") or "", ReportedStatus.OTHER)
    order_id, amount = form.text("order_id", ORDER_ID_MAX) or "", form.text("payhere_amount") or ""
    currency = form.text("payhere_currency") or ""
    return NotificationContent(
        kind=_kind_of(form, reported),
        reported=reported,
        order_id=order_id,
        amount_minor=minor_of(amount),
        currency=currency,
        readings=readings_of(order_id, amount, currency),
        moved_minor=minor_of(form.text("captured_amount") or ""),
        payment_id=_id(form, "payment_id"),
        subscription_id=_id(form, "subscription_id"),
        message_type=_MESSAGE_TYPES.get(form.text("message_type") or ""),
        customer_token=_fitting(_token, form.text("customer_token", TOKEN_MAX)),
        authorization_token=_fitting(_token, form.text("authorization_token", TOKEN_MAX)),
        method=_fitting(_word, form.text("method")),
        card_no_masked=_masked(form.text("card_no")),
        card_expiry=_fitting(_expiry, form.text("card_expiry")),
        card_holder=None if (holder := form.text("card_holder_name")) is None else Secret(holder),
        installments_paid=_count(form.text("item_rec_install_paid")),
        next_on=_day(form.text("item_rec_date_next")),
        plan_status=_PLAN_STATUSES.get(_whole(form.text("item_rec_status"))),
    )


def _kind_of(form: Form, reported: ReportedStatus) -> NotificationKind:
    if reported is ReportedStatus.CHARGED_BACK:
        return NotificationKind.CHARGEBACK
    if form.text("subscription_id") is not None or form.text("message_type") is not None:
        return NotificationKind.RECURRING
    if form.text("customer_token", TOKEN_MAX) is not None:
        return NotificationKind.PREAPPROVAL
    if reported is ReportedStatus.AUTHORIZED or form.text("authorization_token", TOKEN_MAX) is not None:
        return NotificationKind.AUTHORIZATION
    return NotificationKind.PAYMENT


def _id(form: Form, name: str) -> str | None:
    text = form.text(name)
    return None if text is None or _number(text) is None else text.lstrip("0") or None


def _masked(text: str | None) -> str | None:
    """Gives a card's number where it is masked. A full number is never stored in clear."""
    if text is None or _card_number(text) is None:
        return None
    return None if _whole_card_number(re.sub(r"[ -]", "", text)) else text


def _fitting(pattern: Callable[[str], object], text: str | None) -> str | None:
    return text if text is not None and pattern(text) else None


def _count(text: str | None) -> int | None:
    number = _whole(text)
    return number if number is not None and number >= 0 else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and _small(text) else None


def _day(text: str | None) -> str | None:
    found = None if text is None else _date(text)
    return None if found is None else found[0]
