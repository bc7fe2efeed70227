"""What the bodies of the interface look like, field by field, and how they become calls.

Each body is a type; its annotations are the rules. From them come the fast check (msgspec), the list of everything
that is wrong (``field_errors``) and the schemas in ``/openapi.json``, so that the three can't differ.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from payrelay.api.http.json_text import ExponentNumber, parse_object, printable, unusable_texts
from payrelay.api.routes.card_texts import CARD_READERS, CARD_SCHEMAS
from payrelay.api.routes.form_texts import FORM_READERS, FORM_SCHEMAS
from payrelay.core.access.client_token import CLIENT_SCOPES, LIFE_MAX_S, LIFE_MIN_S, LIFE_USUAL_S
from payrelay.core.access.credential import Scope
from payrelay.core.calls import Capture, Charge, Item, Refund, Release
from payrelay.core.money import AMOUNT_MINOR_MAX, MINOR_PER_UNIT, AmountError, minor_units
from payrelay.core.secret import Starred
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.access.issue_client_token import WantedToken

TEXT_LENGTH_MAX: Final = 255
"""Of every text; the gateway documents no limit, databases and card networks like this one."""
ITEMS_LENGTH_MAX: Final = 1000
"""The title of what is bought may list it."""
ITEM_LIST_LENGTH_MAX: Final = 100
"""A receipt; with 64 KiB for the whole body more would hardly fit."""
QUANTITY_MAX: Final = 999_999_999
"""Fits every 32-bit integer on the way."""

SCOPES_MAX: Final = 20
"""Of a client token; there are fewer."""
_CLIENT_SCOPES: Final = tuple(sorted(CLIENT_SCOPES))
_NO_NUL: Final = r"^[^\x00]*$"
# A host by name or number and whatever visible characters behind it: shops use brackets and bars in their queries.
_WEB_ADDRESS: Final = (
    r"^[Hh][Tt][Tt][Pp][Ss]?://(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}\])"
    r"(?::[0-9]{1,5})?(?:[/?#][!-~]*)?$"
)
_web_address_match: Final = re.compile(_WEB_ADDRESS).fullmatch
_PAYMENT_ID_DIGITS_MAX: Final = 19
_PAYMENT_ID_END: Final = 10**_PAYMENT_ID_DIGITS_MAX
_payment_id_match: Final = re.compile(r"[0-9]{1,19}").fullmatch
_refund_text_match: Final = re.compile(r"[0-9]{1,12}\.[0-9]{2}").fullmatch


class Amount(int):
    """An amount of money greater than 0, in hundredths."""


class UnitAmount(int):
    """The price of one item, which may be 0, in hundredths."""


class RefundAmount(int):
    """The part to give back, as a number or as a text with two decimals, in hundredths."""


class Quantity(int):
    """How many of an item."""


class PaymentId(str):
    """The gateway's number of a payment, as text."""

    __slots__ = ()


class Lifetime(int):
    """How long a client token is good for, in seconds."""


class ClientScope(str):
    """What a client token may be allowed to do."""

    __slots__ = ()


class WebAddress(str):
    """An absolute http or https address."""

    __slots__ = ()


def _amount(value: object) -> Amount:
    return Amount(_positive_minor(value))


def _positive_minor(value: object) -> int:
    # By type, not isinstance: True is an int to Python and not a number to anybody else.
    if type(value) is not int and type(value) is not Decimal:
        raise ValueError(_not_a_number(value))
    return minor_units(value)


def _unit_amount(value: object) -> UnitAmount:
    if type(value) in {int, Decimal} and value == 0:
        return UnitAmount(0)
    try:
        return UnitAmount(_positive_minor(value))
    except AmountError as error:
        raise ValueError(str(error).replace("greater than 0", "0 or greater")) from None


def _refund_amount(value: object) -> RefundAmount:
    if isinstance(value, str):
        if _refund_text_match(value) is None:
            raise ValueError('must be a number, or a text with two decimals such as "100.50"')
        return RefundAmount(minor_units(Decimal(value)))
    return RefundAmount(_positive_minor(value))


def _quantity(value: object) -> Quantity:
    if type(value) is Decimal and value <= QUANTITY_MAX and value == value.to_integral_value():
        return _quantity(int(value))
    if type(value) is not int:
        raise ValueError("must be a whole number" if not isinstance(value, ExponentNumber) else _not_a_number(value))
    if not 1 <= value <= QUANTITY_MAX:
        raise ValueError(f"must be 1 to {QUANTITY_MAX}")
    return Quantity(value)


def _payment_id(value: object) -> PaymentId:
    if type(value) is Decimal and value < _PAYMENT_ID_END and value == value.to_integral_value():
        value = int(value)  # 7.0 is the integer 7 to JSON Schema, and to most clients
    text = str(value) if type(value) is int and 0 <= value < _PAYMENT_ID_END else value
    if not isinstance(text, str) or _payment_id_match(text) is None:
        raise ValueError("must be the number of a payment: 1 to 19 digits")
    return PaymentId(text)


def _web_address(value: object) -> WebAddress:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - msgspec adds the path to a ValueError only
    if len(value) > TEXT_LENGTH_MAX or _web_address_match(value) is None:
        raise ValueError(f"must be an absolute http or https address of at most {TEXT_LENGTH_MAX} characters")
    return WebAddress(value)


def _lifetime(value: object) -> Lifetime:
    if type(value) is Decimal and value <= LIFE_MAX_S and value == value.to_integral_value():
        value = int(value)  # 900.0 is the integer 900 to JSON Schema
    if type(value) is not int or not LIFE_MIN_S <= value <= LIFE_MAX_S:
        raise ValueError(f"must be a whole number of seconds, {LIFE_MIN_S} to {LIFE_MAX_S}")
    return Lifetime(value)


def _client_scope(value: object) -> ClientScope:
    if not isinstance(value, str) or value not in _CLIENT_SCOPES:
        raise ValueError(f"must be one of {', '.join(_CLIENT_SCOPES)}")
    return ClientScope(value)


def _not_a_number(value: object) -> str:
    return "must be written without an exponent" if isinstance(value, ExponentNumber) else "must be a number"


_READERS: Final[dict[type, Callable[[object], object]]] = {
    Amount: _amount,
    UnitAmount: _unit_amount,
    RefundAmount: _refund_amount,
    Quantity: _quantity,
    PaymentId: _payment_id,
    WebAddress: _web_address,
    Lifetime: _lifetime,
    ClientScope: _client_scope,
    **CARD_READERS,
    **FORM_READERS,
}

_MINIMUM: Final = 1 / MINOR_PER_UNIT
_MAXIMUM: Final = AMOUNT_MINOR_MAX / MINOR_PER_UNIT
_AMOUNT_SCHEMA: Final[dict[str, object]] = {
    "type": "number",
    "minimum": _MINIMUM,
    "maximum": _MAXIMUM,
    "description": "Written out in decimals, without an exponent; at most two of them.",
    "x-decimals-max": 2,
}
SCHEMAS: Final[dict[type, dict[str, object]]] = {
    Amount: _AMOUNT_SCHEMA,
    UnitAmount: {**_AMOUNT_SCHEMA, "minimum": 0},
    RefundAmount: {
        "anyOf": [_AMOUNT_SCHEMA, {"type": "string", "pattern": r"^(?!0+\.00$)[0-9]{1,12}\.[0-9]{2}$"}],
        "description": "The part to give back; without it the whole payment is.",
    },
    Quantity: {"type": "integer", "minimum": 1, "maximum": QUANTITY_MAX},
    PaymentId: {
        "anyOf": [
            {"type": "string", "pattern": "^[0-9]{1,19}$"},
            {"type": "integer", "minimum": 0, "maximum": _PAYMENT_ID_END - 1},
        ],
        "description": "The gateway's number of the payment.",
    },
    WebAddress: {"type": "string", "pattern": _WEB_ADDRESS, "maxLength": TEXT_LENGTH_MAX},
    Lifetime: {"type": "integer", "minimum": LIFE_MIN_S, "maximum": LIFE_MAX_S, "default": LIFE_USUAL_S},
    ClientScope: {"type": "string", "enum": list(_CLIENT_SCOPES)},
    **CARD_SCHEMAS,
    **FORM_SCHEMAS,
}
"""How the types of our own are written in JSON Schema."""

Text = Annotated[str, Meta(min_length=1, max_length=TEXT_LENGTH_MAX, extra_json_schema={"pattern": _NO_NUL})]
Title = Annotated[str, Meta(min_length=1, max_length=ITEMS_LENGTH_MAX, extra_json_schema={"pattern": _NO_NUL})]
Currency = Annotated[str, Meta(min_length=3, max_length=3, pattern="^[A-Z]{3}$")]


class Body(Starred, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all bodies: a member that we don't know is refused by name."""

    @classmethod
    def together_errors(cls, members: dict[str, object]) -> Iterator[FieldError]:  # noqa: ARG003 - for others to fill
        """Finds what is wrong between fields, which no annotation says."""
        return iter(())


class ItemEntry(Body, frozen=True, kw_only=True):
    """One line of a charge's item list."""

    name: Text
    number: Text
    quantity: Quantity
    unit_amount: UnitAmount


class ChargeBody(Body, frozen=True, kw_only=True):
    """The body of a charge."""

    type: Annotated[
        Literal["PAYMENT", "AUTHORIZE"],
        Meta(description="PAYMENT takes the money now, AUTHORIZE holds it for a later capture."),
    ]
    order_id: Annotated[Text, Meta(description="Identifier of the order.")]
    items: Annotated[Title, Meta(description="Item title or order number.")]
    currency: Annotated[Currency, Meta(description="Currency code, three capital letters.")]
    amount: Amount
    customer_token: Annotated[Text, Meta(description="Id of a stored customer, or the gateway's token.")]
    custom_1: Annotated[Text | None, Meta(description="Custom parameter 1.")] = None
    custom_2: Annotated[Text | None, Meta(description="Custom parameter 2.")] = None
    notify_url: WebAddress | UnsetType = UNSET
    itemList: (  # noqa: N815 - spelled so in the interface
        Annotated[list[ItemEntry], Meta(max_length=ITEM_LIST_LENGTH_MAX)] | UnsetType
    ) = UNSET

    def call(self) -> Charge:
        """Gives the charge that is asked for."""
        return Charge(
            authorize=self.type == "AUTHORIZE",
            order_id=self.order_id,
            items=self.items,
            currency=self.currency,
            amount_minor=int(self.amount),
            customer_token=self.customer_token,
            custom_1=self.custom_1,
            custom_2=self.custom_2,
            notify_url=None if self.notify_url is UNSET else str(self.notify_url),
            item_list=None if self.itemList is UNSET else tuple(_item(entry) for entry in self.itemList),
        )


class CaptureBody(Body, frozen=True, kw_only=True):
    """The body of a capture: description or deduction_details or both, of which the second is sent."""

    authorization_token: Annotated[
        Text, Meta(description="Token that an AUTHORIZE charge yielded, or the checkout's id.")
    ]
    amount: Amount
    description: Annotated[Text, Meta(description="Details about the capture.")] | UnsetType = UNSET
    deduction_details: Annotated[Text, Meta(description="The same; wins where both are given.")] | UnsetType = UNSET

    def call(self) -> Capture:
        """Gives the capture that is asked for."""
        details = self.deduction_details or self.description
        return Capture(
            authorization_token=self.authorization_token,
            amount_minor=int(self.amount),
            description="" if details is UNSET else details,
        )


class RefundBody(Body, frozen=True, kw_only=True):
    """The body of a refund: exactly one of payment_id and authorization_token."""

    description: Annotated[Text, Meta(description="Why it is given back.")]
    payment_id: PaymentId | UnsetType = UNSET
    authorization_token: (
        Annotated[Text, Meta(description="Of a hold to let go of, or the checkout's id.")] | UnsetType
    ) = UNSET
    amount: RefundAmount | UnsetType = UNSET

    def call(self) -> Refund | Release:
        """Gives the refund, or the release of a hold, that is asked for."""
        amount_minor = None if self.amount is UNSET else int(self.amount)
        if self.authorization_token is UNSET:
            payment_id = "" if self.payment_id is UNSET else str(self.payment_id)
            return Refund(payment_id=payment_id, description=self.description, amount_minor=amount_minor)
        return Release(
            authorization_token=self.authorization_token, description=self.description, amount_minor=amount_minor
        )


class ClientTokenBody(Body, frozen=True, kw_only=True):
    """The body that asks for a client token: for a customer, for an order, or for both."""

    customer_id: Annotated[Text, Meta(description="The only customer it is good for, `cus_…`.")] | UnsetType = UNSET
    order_id: Annotated[Text, Meta(description="The only order it is good for.")] | UnsetType = UNSET
    amount_max: Amount | UnsetType = UNSET
    currency: Annotated[Currency, Meta(description="Of `amount_max`; the two come together.")] | UnsetType = UNSET
    scopes: (
        Annotated[
            list[ClientScope],
            Meta(min_length=1, max_length=SCOPES_MAX, description="What it may do; without it, look and not pay."),
        ]
        | UnsetType
    ) = UNSET
    expires_in_s: Lifetime | UnsetType = UNSET

    def wanted(self) -> WantedToken:
        """Gives the token that is asked for."""
        return WantedToken(
            customer_id=None if self.customer_id is UNSET else self.customer_id,
            order_id=None if self.order_id is UNSET else self.order_id,
            amount_max_minor=None if self.amount_max is UNSET else int(self.amount_max),
            currency=None if self.currency is UNSET else self.currency,
            scopes=None if self.scopes is UNSET else tuple(map(Scope, self.scopes)),
            life_s=LIFE_USUAL_S if self.expires_in_s is UNSET else int(self.expires_in_s),
        )


class EmptyBody(Body, frozen=True, kw_only=True):
    """An empty object, where nothing is to be said."""


BodyT = TypeVar("BodyT", bound=Body)


def parse_body(body: bytes, kind: type[BodyT]) -> BodyT:
    """Reads a body of this kind.

    Raises Refusal: malformed_request where it isn't one JSON object, invalid_request with every field that is wrong.
    """
    members = parse_object(body)
    errors: list[FieldError] = []
    if b"\\u" in body:
        errors.extend(unusable_texts(members))
    errors.extend(_together_errors(kind, members))
    errors.extend(kind.together_errors(members))
    if not errors:
        try:
            return msgspec.convert(members, kind, dec_hook=_read)
        except msgspec.ValidationError:
            pass
    named = {error.path for error in errors}
    found = [error for error in _errors(members, msgspec.inspect.type_info(kind), "") if error.path not in named]
    raise wrong_fields([*found, *errors] or [FieldError("", "is not valid")])


def _read(kind: type, value: object) -> object:
    return _READERS[kind](value)


def _item(entry: ItemEntry) -> Item:
    return Item(
        name=entry.name,
        number=entry.number,
        quantity=int(entry.quantity),
        unit_amount_minor=int(entry.unit_amount),
    )


def _together_errors(kind: type[Body], members: dict[str, object]) -> Iterator[FieldError]:
    """Finds what is wrong between fields, which no annotation says."""
    if kind is CaptureBody and not ("description" in members or "deduction_details" in members):
        yield FieldError("description", "is required, or deduction_details")
    if kind is ClientTokenBody and not ("customer_id" in members or "order_id" in members):
        yield FieldError("customer_id", "is required, or order_id")
    if kind is RefundBody:
        has_id, has_token = "payment_id" in members, "authorization_token" in members
        if has_id and has_token:
            yield FieldError("authorization_token", "must not be given together with payment_id")
        elif not has_id and not has_token:
            yield FieldError("payment_id", "is required, or authorization_token")


def _errors(value: object, kind: msgspec.inspect.Type, path: str) -> Iterator[FieldError]:
    """Lists everything that is wrong with a value, by the same annotations that the fast check goes by."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            yield from _errors(value, inner, path)
        case msgspec.inspect.StructType():
            yield from _object_errors(value, kind, path)
        case msgspec.inspect.ListType():
            yield from _array_errors(value, kind, path)
        case msgspec.inspect.UnionType(types=types):
            if value is not None:
                yield from _errors(value, types[0], path)
        case _:
            words = _scalar_complaint(value, kind)
            if words is not None:
                yield FieldError(path, words)


def _object_errors(value: object, kind: msgspec.inspect.StructType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield FieldError(path, "must be an object")
        return
    prefix = f"{path}." if path else ""
    for field in kind.fields:
        if field.name in value:
            yield from _errors(value[field.name], field.type, prefix + field.name)
        elif field.required:
            yield FieldError(prefix + field.name, "is required")
    known = {field.name for field in kind.fields}
    for name in value:
        if name not in known:
            yield FieldError(prefix + printable(name), "is not a known field")


def _array_errors(value: object, kind: msgspec.inspect.ListType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield FieldError(path, "must be an array")
    elif kind.max_length is not None and len(value) > kind.max_length:
        yield FieldError(path, f"must have at most {kind.max_length} entries")
    elif kind.min_length is not None and len(value) < kind.min_length:
        yield FieldError(path, f"must have at least {kind.min_length} entries" if kind.min_length > 1 else "is empty")
    else:
        for index, entry in enumerate(value):
            yield from _errors(entry, kind.item_type, f"{path}[{index}]")


def _scalar_complaint(value: object, kind: msgspec.inspect.Type) -> str | None:
    match kind:
        case msgspec.inspect.CustomType(cls=cls):
            try:
                _READERS[cls](value)
            except ValueError as error:
                return str(error)
        case msgspec.inspect.LiteralType(values=values):
            return None if value in values else f"must be {' or '.join(sorted(map(str, values), reverse=True))}"
        case msgspec.inspect.BoolType():
            return None if isinstance(value, bool) else "must be true or false"
        case msgspec.inspect.StrType():
            return _text_complaint(value, kind)
    return None


def _text_complaint(value: object, kind: msgspec.inspect.StrType) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    shortest, longest = kind.min_length or 0, kind.max_length or TEXT_LENGTH_MAX
    if kind.pattern is not None:
        return None if len(value) == longest and re.search(kind.pattern, value) else "must be three capital letters"
    if shortest <= len(value) <= longest:
        return None
    return "must not be empty" if not value else f"must have at most {longest} characters"
