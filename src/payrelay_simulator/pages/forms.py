"""The form that a merchant's page posts: every documented field is read and checked before a payer sees anything.

The payer's own browser posts it, and may have edited it. Two rules follow, as far as the gateway's documents go:

1. The hash is compared over the run of merchant, order, amount and currency, which has no separators. So order `A1`
   with `2510.00` and order `A125` with `10.00` have one hash. No other field is compared, nor is the page.
2. Of a field that comes twice the last one counts, as in PHP; whatever is read later reads that one.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec

from payrelay_simulator.clock import GATEWAY_ZONE
from payrelay_simulator.errors import SimulatorError
from payrelay_simulator.installments import is_shorter
from payrelay_simulator.money import cents_of, text_of
from payrelay_simulator.pages.cards import CARD_METHODS, WALLET_METHODS
from payrelay_simulator.records import Merchant, Period, Person
from payrelay_simulator.signature import md5sig
from payrelay_simulator.switches import Switches

Page = Literal["checkout", "preapprove", "authorize"]
Kind = Literal["payment", "recurring", "preapproval", "authorization"]

UNAUTHORIZED = "Unauthorized payment request"
WRONG_ADDRESS = "Unexpected error (PH-0022)"
HELAPAY_ERROR = "Unexpected error (HelaPay)"
SOMETHING_WRONG = "Something went wrong"

# Fields in one form, and characters in one value: nothing documented, far above any merchant's.
FIELDS_MAX = 1_000
VALUE_LENGTH_MAX = 4_096
ITEMS_MAX = 100

REQUIRED = (
    "merchant_id",
    "return_url",
    "cancel_url",
    "notify_url",
    "first_name",
    "last_name",
    "email",
    "phone",
    "address",
    "city",
    "country",
    "order_id",
    "items",
    "currency",
    "hash",
)
ADDRESSES = ("return_url", "cancel_url", "notify_url")

# What is signed where nothing, or nothing yet, is to be paid.
PREAPPROVAL_LKR = "10.00"
LATER_START_AMOUNTS: Mapping[str, str] = {"LKR": "10.00"}
LATER_START_AMOUNT_OTHER = "0.50"

HOST_LENGTH_MAX = 300  # a name has at most 253 characters; `urlsplit` reads long ones of other letters for seconds

RETRIES_LIMIT = 365  # one a day; more than a year of them is a slip

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_PHONE = re.compile(r"\+?[0-9][0-9 ()-]{5,18}[0-9]")
_SIGNED_AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]{1,2})?")
_ITEM = re.compile(r"(item_name|item_number|amount|quantity)_([1-9][0-9]{0,3})")
_LONG_HOST = re.compile(rf"[^/?#]*/\s*/[^/?#]{{{HOST_LENGTH_MAX + 1}}}")
_SCRIPT = re.compile(r"<\s*+(?:/\s*+)?script", re.IGNORECASE)


class PageError(SimulatorError):
    """The form is refused: `text` is what the gateway tells the payer, `details` what is wrong, for who built it."""

    def __init__(self, text: str, *details: str) -> None:
        super().__init__(f"{text}: {'; '.join(details)}")
        self.text = text
        self.details = details


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the order."""

    name: str = ""
    number: str = ""
    amount_cents: int | None = None
    quantity: int = 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How a recurring payment goes on. `starts_on` is only set for a day in the future."""

    recurrence: Period
    duration: Period | None
    startup_fee_cents: int = 0
    retries_max: int = 7
    is_auto_cancelled: bool = True
    starts_on: date | None = None


class HostedForm(msgspec.Struct, frozen=True, kw_only=True):
    """A form that is in order. `amount_cents` is None for a preapproval without an amount."""

    kind: Kind
    merchant: Merchant
    return_url: str
    cancel_url: str
    notify_url: str
    person: Person
    order_id: str
    title: str
    currency: str
    amount_cents: int | None
    # What is taken from the card now, and signed.
    due_cents: int
    custom_1: str = ""
    custom_2: str = ""
    platform: str = ""
    methods: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    plan: Plan | None = None


def read_form(
    page: Page,
    body: bytes,
    *,
    content_type: str,
    referer: str | None,
    merchants: tuple[Merchant, ...],
    switches: Switches,
    now: datetime,
) -> HostedForm:
    """Return the form, or raise the PageError that the payer is shown."""
    values = _values(content_type, body)
    _check_values(values)
    merchant = next((each for each in merchants if each.merchant_id == values.get("merchant_id")), None)
    if merchant is None:
        raise PageError(UNAUTHORIZED, f"merchant_id {values['merchant_id']!r} is not known")
    _check_referer(referer, switches)
    today = now.astimezone(GATEWAY_ZONE).date()
    kind = _kind(page, values)
    form = _form(kind, merchant, values, today=today, switches=switches)
    _check_hash(form, values["hash"], switches)
    return form


def signed_amount(form: HostedForm, switches: Switches) -> str:
    """Return the amount that the form's hash is made with."""
    if form.kind == "preapproval" and form.amount_cents is None:
        return text_of(form.due_cents)
    if form.plan is not None and form.plan.starts_on is not None:
        return text_of(form.due_cents)
    if form.plan is not None and switches.startup_fee_hash == "amount":
        return text_of(form.amount_cents or 0)
    return text_of(form.due_cents)


def _values(content_type: str, body: bytes) -> dict[str, str]:
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise PageError(SOMETHING_WRONG, "the form must be application/x-www-form-urlencoded")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise PageError(SOMETHING_WRONG, "the form is not UTF-8, or has too many fields") from None
    return dict(pairs)


def _check_values(values: Mapping[str, str]) -> None:
    contact = []
    wrong = [f"{name} is missing" for name in REQUIRED if not values.get(name) and name not in {"email", "phone"}]
    for name, pattern in (("email", _EMAIL), ("phone", _PHONE)):
        if not values.get(name):
            contact.append(f"{name} is missing")
        elif not pattern.fullmatch(values[name]):
            contact.append(f"{name} is not valid")
    for name, value in values.items():
        if len(value) > VALUE_LENGTH_MAX:
            wrong.append(f"{name} is too long")
        elif _SCRIPT.search(value) or any(_is_forbidden(character) for character in value):
            wrong.append(f"{name} has an emoji, a script tag or a control character in it")
    wrong.extend(
        f"{name} is no web address" for name in ADDRESSES if values.get(name) and not _is_web_address(values[name])
    )
    if wrong:
        raise PageError(SOMETHING_WRONG, *wrong, *contact)
    if contact:
        raise PageError(HELAPAY_ERROR if values.get("payment_method") == "HELAPAY" else SOMETHING_WRONG, *contact)


def _is_forbidden(character: str) -> bool:
    # Symbols beyond the basic plane are emoji; so are a few inside it, which the category "other symbol" holds.
    return unicodedata.category(character) in {"Cc", "Cs", "Cn"} or (
        ord(character) > 0x2190 and unicodedata.category(character) == "So"  # noqa: PLR2004 - where symbols begin
    )


def _is_web_address(value: str) -> bool:
    if _LONG_HOST.match(value):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _check_referer(referer: str | None, switches: Switches) -> None:
    host = ""
    if referer and _is_web_address(referer):
        host = urlsplit(referer).hostname or ""
    if not host:
        raise PageError(
            UNAUTHORIZED, "no Referer came with the form: the page must not send Referrer-Policy no-referrer"
        )
    allowed = switches.allowed_domains
    if allowed and "*" not in allowed and host not in allowed:
        raise PageError(UNAUTHORIZED, f"the form was posted from {host}, which is not among the allowed domains")


def _kind(page: Page, values: Mapping[str, str]) -> Kind:
    if page == "preapprove":
        return "preapproval"
    if page == "authorize":
        return "authorization"
    return "recurring" if values.get("recurrence") else "payment"


def _form(kind: Kind, merchant: Merchant, values: Mapping[str, str], *, today: date, switches: Switches) -> HostedForm:
    currency = values["currency"]
    if currency not in switches.form_currencies:
        raise PageError(SOMETHING_WRONG, f"currency must be one of {', '.join(switches.form_currencies)}")
    amount_cents = cents_of(values["amount"]) if values.get("amount") else None
    if amount_cents is None and (values.get("amount") or kind != "preapproval"):
        detail = "is no positive amount with at most two decimals" if values.get("amount") else "is missing"
        raise PageError(SOMETHING_WRONG, f"amount {detail}")
    plan = _plan(values, today=today, switches=switches) if kind == "recurring" else None
    methods = _methods(kind)
    chosen = values.get("payment_method", "")
    if chosen and chosen not in methods:
        raise PageError(SOMETHING_WRONG, f"payment_method must be one of {', '.join(methods)}")
    return HostedForm(
        kind=kind,
        merchant=merchant,
        return_url=values["return_url"],
        cancel_url=values["cancel_url"],
        notify_url=values["notify_url"],
        person=Person(**{name: values[name] for name in Person.__struct_fields__}),
        order_id=values["order_id"],
        title=values["items"],
        currency=currency,
        amount_cents=amount_cents,
        due_cents=_due_cents(kind, amount_cents, currency, plan=plan, switches=switches),
        custom_1=values.get("custom_1", ""),
        custom_2=values.get("custom_2", ""),
        platform=values.get("platform", ""),
        methods=(chosen,) if chosen else methods,
        items=_items(values),
        plan=plan,
    )


def _methods(kind: Kind) -> tuple[str, ...]:
    if kind == "payment":
        return (*CARD_METHODS, *WALLET_METHODS)
    return ("VISA", "MASTER")


def _due_cents(kind: Kind, amount_cents: int | None, currency: str, *, plan: Plan | None, switches: Switches) -> int:
    if kind == "preapproval" and amount_cents is None:
        return _cents(PREAPPROVAL_LKR if currency == "LKR" else switches.preapproval_hash_amount)
    if plan is not None and plan.starts_on is not None:
        return _cents(LATER_START_AMOUNTS.get(currency, LATER_START_AMOUNT_OTHER))
    due_cents = (amount_cents or 0) + (0 if plan is None else plan.startup_fee_cents)
    if due_cents <= 0:
        raise PageError(SOMETHING_WRONG, "startup_fee takes off as much as the first payment, or more")
    return due_cents


def _cents(text: str) -> int:
    cents = cents_of(text)
    if cents is None:
        raise ValueError(f"{text} is no amount")
    return cents


def _items(values: Mapping[str, str]) -> tuple[Item, ...]:
    rows: dict[int, dict[str, str]] = {}
    for name, value in values.items():
        found = _ITEM.fullmatch(name)
        if found is not None:
            rows.setdefault(int(found[2]), {})[found[1]] = value
    if len(rows) > ITEMS_MAX:
        raise PageError(SOMETHING_WRONG, f"there are more than {ITEMS_MAX} items")
    return tuple(_item(number, rows[number]) for number in sorted(rows))


def _item(number: int, row: Mapping[str, str]) -> Item:
    amount, quantity = row.get("amount", ""), row.get("quantity", "")
    amount_cents = cents_of(amount) if amount else None
    if amount and amount_cents is None:
        raise PageError(SOMETHING_WRONG, f"amount_{number} is no positive amount with at most two decimals")
    if quantity and not (quantity.isascii() and quantity.isdigit() and len(quantity) < 7 and int(quantity) > 0):  # noqa: PLR2004 - a million of anything
        raise PageError(SOMETHING_WRONG, f"quantity_{number} is no positive number")
    return Item(
        name=row.get("item_name", ""),
        number=row.get("item_number", ""),
        amount_cents=amount_cents,
        quantity=int(quantity or 1),
    )


def _plan(values: Mapping[str, str], *, today: date, switches: Switches) -> Plan:
    recurrence = _period(values["recurrence"])
    duration = None if values.get("duration") == "Forever" else _period(values.get("duration", ""))
    if recurrence is None:
        raise PageError(SOMETHING_WRONG, "recurrence must be a number and Week, Month or Year, such as 1 Month")
    if values.get("duration") != "Forever" and duration is None:
        raise PageError(SOMETHING_WRONG, "duration must be Forever, or a number and Week, Month or Year")
    if duration is not None and is_shorter(duration, recurrence):
        raise PageError(SOMETHING_WRONG, "duration is shorter than one recurrence")
    fee = values.get("startup_fee", "")
    if fee and not _SIGNED_AMOUNT.fullmatch(fee):
        raise PageError(SOMETHING_WRONG, "startup_fee is no amount with at most two decimals")
    live_only = [name for name in LIVE_ONLY if values.get(name)]
    if live_only and switches.recurring_options == "refused":
        raise PageError(SOMETHING_WRONG, f"{', '.join(live_only)}: not supported in the sandbox")
    is_auto_cancelled, _ = (_boolean(values, name) for name in ("auto_cancel", "is_recovery_due"))
    retries = values.get("max_retries", "") or "7"
    if not (retries.isascii() and retries.isdigit() and len(retries) <= len(str(RETRIES_LIMIT))):
        raise PageError(SOMETHING_WRONG, "max_retries is no number of retries")
    sign = -1 if fee.startswith("-") else 1
    return Plan(
        recurrence=recurrence,
        duration=duration,
        startup_fee_cents=sign * (cents_of(fee.removeprefix("-")) or 0) if fee else 0,
        retries_max=min(int(retries), RETRIES_LIMIT),
        is_auto_cancelled=is_auto_cancelled,
        starts_on=_starts_on(values.get("recurring_start_date", ""), today),
    )


LIVE_ONLY = ("auto_cancel", "max_retries", "recurring_start_date", "is_recovery_due")


def _boolean(values: Mapping[str, str], name: str) -> bool:
    value = values.get(name, "") or "true"
    if value not in {"true", "false"}:
        raise PageError(SOMETHING_WRONG, f"{name} must be true or false")
    return value == "true"


def _starts_on(text: str, today: date) -> date | None:
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=GATEWAY_ZONE).date()
    except ValueError:
        raise PageError(SOMETHING_WRONG, "recurring_start_date must be a day, such as 2026-12-31") from None
    if day < today:
        raise PageError(SOMETHING_WRONG, "recurring_start_date is past")
    return day if day > today else None


def _period(text: str) -> Period | None:
    number, _, unit = text.partition(" ")
    try:
        return msgspec.convert({"count": number, "unit": unit}, Period, strict=False)
    except msgspec.ValidationError:
        return None


def _check_hash(form: HostedForm, given: str, switches: Switches) -> None:
    amount = signed_amount(form, switches)
    parts = (form.merchant.merchant_id, form.order_id, amount, form.currency)
    if given != md5sig(*parts, merchant_secret=form.merchant.merchant_secret):
        raise PageError(UNAUTHORIZED, f"hash is not that of {' + '.join(parts)} + UPPER(MD5(merchant_secret))")
