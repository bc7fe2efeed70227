"""The bodies of charges, captures, refunds and voids, and the calls that they become."""

import re
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.amounts import ITEM_LIST_LENGTH_MAX, Amount, Currency, Quantity, UnitAmount, whole
from payrelay.api.requests.body import (
    EMPTY_IS_ABSENT,
    NO_NUL,
    TEXT_LENGTH_MAX,
    Body,
    CheckedValue,
    Text,
    VisibleText,
)
from payrelay.api.requests.tokens import AuthorizationToken
from payrelay.core.calls import Capture, Charge, Item, Refund, Void

ITEMS_LENGTH_MAX: Final = 1000
"""Long, because the title of a purchase may list its items."""
# A host by name or number, then any visible characters: shops use brackets and bars in their queries.
_WEB_ADDRESS: Final = (
    r"^[Hh][Tt][Tt][Pp][Ss]?://(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}\])"
    r"(?::[0-9]{1,5})?(?:[/?#][!-~]*)?$"
)
_web_address_match: Final = re.compile(_WEB_ADDRESS).fullmatch
_PAYMENT_ID_DIGITS_MAX: Final = 19
_PAYMENT_ID_END: Final = 10**_PAYMENT_ID_DIGITS_MAX
_payment_id_match: Final = re.compile(r"[0-9]{1,19}").fullmatch

Custom = Annotated[str, Meta(max_length=TEXT_LENGTH_MAX, extra_json_schema={"pattern": NO_NUL})]
Title = Annotated[str, Meta(min_length=1, max_length=ITEMS_LENGTH_MAX, extra_json_schema={"pattern": NO_NUL})]


def _payment_id(value: object) -> str:
    value = whole(value, _PAYMENT_ID_END - 1)
    text = str(value) if type(value) is int and 0 <= value < _PAYMENT_ID_END else value
    if not isinstance(text, str) or _payment_id_match(text) is None:
        raise ValueError("must be the number of a payment: 1 to 19 digits")
    return text


def _web_address(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - what is wrong with a value is a ValueError here
    if len(value) > TEXT_LENGTH_MAX or _web_address_match(value) is None:
        raise ValueError(f"must be an absolute http or https address of at most {TEXT_LENGTH_MAX} characters")
    return value


class PaymentId(
    CheckedValue,
    str,
    check=_payment_id,
    schema={
        "anyOf": [
            {"type": "string", "pattern": "^[0-9]{1,19}$"},
            {"type": "integer", "minimum": 0, "maximum": _PAYMENT_ID_END - 1},
        ],
        "description": "The gateway's identifier of the payment.",
    },
):
    """The gateway's number of a payment, as text."""

    __slots__ = ()


class WebAddress(
    CheckedValue,
    str,
    check=_web_address,
    schema={"type": "string", "pattern": _WEB_ADDRESS, "maxLength": TEXT_LENGTH_MAX},
):
    """An absolute http or https address."""

    __slots__ = ()


class ItemEntry(Body, frozen=True, kw_only=True):
    """One entry of a charge's item list."""

    name: Text
    number: Text
    quantity: Quantity
    unit_amount: UnitAmount


class ChargeBody(Body, frozen=True, kw_only=True):
    """The body of a charge."""

    type: Annotated[
        Literal["PAYMENT", "AUTHORIZE"],
        Meta(description="PAYMENT charges the amount now, AUTHORIZE authorizes it for a later capture."),
    ]
    order_id: Annotated[Text, Meta(description="Identifier of the order.")]
    items: Annotated[Title, Meta(description="Item title or order number.")]
    currency: Annotated[Currency, Meta(description="Currency code, three capital letters.")]
    amount: Amount
    customer_token: Annotated[VisibleText, Meta(description="Id of a stored customer, or the gateway's token.")]
    custom_1: Annotated[Custom | None, Meta(description="Custom parameter 1; an empty one counts as none.")] = None
    custom_2: Annotated[Custom | None, Meta(description="Custom parameter 2; an empty one counts as none.")] = None
    notify_url: Annotated[WebAddress | UnsetType, EMPTY_IS_ABSENT] = UNSET
    itemList: (  # noqa: N815 - spelled so in the interface
        Annotated[list[ItemEntry], Meta(max_length=ITEM_LIST_LENGTH_MAX)] | UnsetType
    ) = UNSET

    def call(self) -> Charge:
        """Gives the charge that this body describes."""
        return Charge(
            authorize=self.type == "AUTHORIZE",
            order_id=self.order_id,
            items=self.items,
            currency=self.currency,
            amount_minor=int(self.amount),
            customer_token=str(self.customer_token),
            custom_1=self.custom_1 or None,
            custom_2=self.custom_2 or None,
            notify_url=None if self.notify_url is UNSET else str(self.notify_url),
            item_list=None if self.itemList is UNSET else tuple(_item(entry) for entry in self.itemList),
        )


class CaptureBody(Body, frozen=True, kw_only=True):
    """The body of a capture: description, deduction_details or both; of both, deduction_details is sent."""

    needs_one_of = ("description", "deduction_details")

    authorization_token: Annotated[
        AuthorizationToken,
        Meta(description="Token of the authorization, from an AUTHORIZE charge, or the checkout's id."),
    ]
    amount: Amount
    description: Annotated[
        Annotated[Text, Meta(description="Details about the capture.")] | UnsetType, EMPTY_IS_ABSENT
    ] = UNSET
    deduction_details: Annotated[
        Annotated[Text, Meta(description="Details about the capture; sent in place of description.")] | UnsetType,
        EMPTY_IS_ABSENT,
    ] = UNSET

    def call(self) -> Capture:
        """Gives the capture that this body describes."""
        details = self.deduction_details or self.description
        return Capture(
            authorization_token=str(self.authorization_token),
            amount_minor=int(self.amount),
            description="" if details is UNSET else details,
        )


class RefundBody(Body, frozen=True, kw_only=True):
    """The body of a refund or a void: exactly one of payment_id and authorization_token."""

    needs_one_of = ("payment_id", "authorization_token")
    takes_both = False

    description: Annotated[Text, Meta(description="The reason of the refund or the void.")]
    payment_id: PaymentId | UnsetType = UNSET
    authorization_token: (
        Annotated[AuthorizationToken, Meta(description="Token of the authorization to void, or the checkout's id.")]
        | UnsetType
    ) = UNSET
    amount: (
        Annotated[
            Amount,
            Meta(
                description="The amount to refund. Absent or null, all that is left of the payment is refunded; 0 is"
                " refused, and so is more than is left. Two equal requests without an Idempotency-Key, within the"
                " repeat window, are one refund."
            ),
        ]
        | UnsetType
    ) = UNSET

    def call(self) -> Refund | Void:
        """Gives the refund, or the void of an authorization, that this body describes."""
        amount_minor = None if self.amount is UNSET else int(self.amount)
        if self.authorization_token is UNSET:
            payment_id = "" if self.payment_id is UNSET else str(self.payment_id)
            return Refund(payment_id=payment_id, description=self.description, amount_minor=amount_minor)
        return Void(
            authorization_token=str(self.authorization_token), description=self.description, amount_minor=amount_minor
        )


def _item(entry: ItemEntry) -> Item:
    return Item(
        name=entry.name,
        number=entry.number,
        quantity=int(entry.quantity),
        unit_amount_minor=int(entry.unit_amount),
    )
