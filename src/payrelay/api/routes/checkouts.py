"""Checkouts: requests to customers that they answer on the gateway's page."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.amounts import (
    ITEM_LIST_LENGTH_MAX,
    Amount,
    Currency,
    Quantity,
    StartupFee,
    UnitAmount,
    positive_minor,
    startup_fee_minor,
)
from payrelay.api.requests.body import EMPTY_IS_ABSENT, Body, RedactedBody
from payrelay.api.requests.parameters import own_id
from payrelay.api.requests.route import EmptyBody, Route, only_own
from payrelay.api.routes.checkout_texts import (
    EXPIRES_IN_S_USUAL,
    AppLink,
    CustomText,
    Day,
    Duration,
    Email,
    ExpiresIn,
    FormText,
    FormTitle,
    Period,
    Phone,
    Retries,
)
from payrelay.api.routes.policies import own_checkout
from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.hosted_payment import (
    Buyer,
    CheckoutKind,
    HostedPayment,
    Item,
    NewCheckout,
    Plan,
    PostalAddress,
)
from payrelay.errors import Code, FieldError
from payrelay.flows.checkouts.close_checkout import close_checkout
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.checkouts.show_checkout import show_checkout

CHECKOUT: Final = own_id("chk", "checkout")
_PLAN_MEMBERS: Final = (
    "recurrence",
    "duration",
    "startup_fee",
    "auto_cancel",
    "max_retries",
    "recurring_start_date",
    "is_recovery_due",
)
_ITEM_MEMBERS: Final = ("itemList", "delivery")


class MembersOfKind(NamedTuple):
    """The members that a checkout of one kind must have, and those that it must not have."""

    required: tuple[str, ...]
    forbidden: tuple[str, ...]


MEMBERS_OF_KINDS: Final[dict[str, MembersOfKind]] = {
    CheckoutKind.PAYMENT: MembersOfKind(("amount",), _PLAN_MEMBERS),
    CheckoutKind.PREAPPROVAL: MembersOfKind((), (*_PLAN_MEMBERS, *_ITEM_MEMBERS, "payment_method")),
    CheckoutKind.RECURRING: MembersOfKind(("amount", "recurrence", "duration"), ("payment_method",)),
    CheckoutKind.AUTHORIZATION: MembersOfKind(("amount",), (*_PLAN_MEMBERS, *_ITEM_MEMBERS, "payment_method")),
}
"""The members of each kind, beyond those that every checkout has."""
_DAYS_LEAST: Final = {"Week": 7, "Month": 28, "Year": 365}
_DAYS_MOST: Final = {"Week": 7, "Month": 31, "Year": 366}


class PayerBody(RedactedBody, frozen=True, kw_only=True):
    """The customer who pays; the gateway requires every member."""

    first_name: FormText
    last_name: FormText
    email: Email
    phone: Phone
    address: FormText
    city: FormText
    country: FormText

    def buyer(self) -> Buyer:
        """Gives the customer as a ``Buyer``."""
        return Buyer(
            first_name=str(self.first_name),
            last_name=str(self.last_name),
            email=str(self.email),
            phone=str(self.phone),
            home=PostalAddress(address=str(self.address), city=str(self.city), country=str(self.country)),
        )


class DeliveryBody(RedactedBody, frozen=True, kw_only=True):
    """The address of the delivery."""

    address: Annotated[FormText | UnsetType, EMPTY_IS_ABSENT] = UNSET
    city: Annotated[FormText | UnsetType, EMPTY_IS_ABSENT] = UNSET
    country: Annotated[FormText | UnsetType, EMPTY_IS_ABSENT] = UNSET


class CheckoutItem(Body, frozen=True, kw_only=True):
    """One item of the purchase."""

    name: FormText
    number: FormText
    quantity: Quantity
    unit_amount: UnitAmount


class CheckoutBody(RedactedBody, frozen=True, kw_only=True):
    """The body of a new checkout."""

    type: Annotated[
        Literal["payment", "preapproval", "recurring", "authorization"],
        Meta(description="The kind of request to the customer."),
    ]
    order_id: Annotated[FormText, Meta(description="Identifier of the order, which has one checkout at a time.")]
    items: Annotated[FormTitle, Meta(description="Item title or order number.")]
    currency: Annotated[
        Currency, Meta(description="Currency code, three capital letters: one that the gateway's page takes.")
    ]
    customer: PayerBody
    amount: (
        Annotated[Amount, Meta(description="Optional for a preapproval; without it, nothing is charged now.")]
        | UnsetType
    ) = UNSET
    delivery: Annotated[DeliveryBody | UnsetType, EMPTY_IS_ABSENT] = UNSET
    itemList: (  # noqa: N815 - spelled so in the interface
        Annotated[list[CheckoutItem], Meta(max_length=ITEM_LIST_LENGTH_MAX)] | UnsetType
    ) = UNSET
    custom_1: CustomText | None = None
    custom_2: CustomText | None = None
    platform: Annotated[FormText | UnsetType, EMPTY_IS_ABSENT] = UNSET
    payment_method: Annotated[
        Annotated[
            Literal["VISA", "MASTER", "AMEX", "HELAPAY", "FRIMI", "QPLUS"],
            Meta(description="Skips the choice on the gateway's page; for a payment only."),
        ]
        | UnsetType,
        EMPTY_IS_ABSENT,
    ] = UNSET
    recurrence: Annotated[Period, Meta(description="How often, such as `1 Month`.")] | UnsetType = UNSET
    duration: Annotated[Duration, Meta(description="For how long: `1 Year`, or `Forever`.")] | UnsetType = UNSET
    startup_fee: StartupFee | UnsetType = UNSET
    auto_cancel: Annotated[bool, Meta(description="Live accounts only.")] | UnsetType = UNSET
    max_retries: Annotated[Retries, Meta(description="Live accounts only.")] | UnsetType = UNSET
    recurring_start_date: Annotated[Day, Meta(description="Live accounts only.")] | UnsetType = UNSET
    is_recovery_due: Annotated[bool, Meta(description="Live accounts only.")] | UnsetType = UNSET
    customer_reference: (
        Annotated[FormText, Meta(description="Your own name for the customer; an approved card is stored under it.")]
        | UnsetType
    ) = UNSET
    return_to: Annotated[AppLink | UnsetType, EMPTY_IS_ABSENT] = UNSET
    cancel_to: Annotated[AppLink | UnsetType, EMPTY_IS_ABSENT] = UNSET
    expires_in_s: ExpiresIn | UnsetType = UNSET

    @classmethod
    def together_errors(cls, members: dict[str, object]) -> Iterator[FieldError]:
        """Finds the errors between fields."""
        kind = members.get("type")
        if not isinstance(kind, str) or kind not in MEMBERS_OF_KINDS:
            return
        of_kind = MEMBERS_OF_KINDS[kind]
        for name in of_kind.required:
            if name not in members:
                yield FieldError(name, f"is required of a {kind}")
        for name in of_kind.forbidden:
            if name in members:
                yield FieldError(name, f"does not belong to a {kind}")
        if kind == CheckoutKind.RECURRING:
            yield from _plan_errors(members)

    def call(self) -> NewCheckout:
        """Gives the checkout that this body describes."""
        hosted_payment = HostedPayment(
            kind=CheckoutKind(self.type),
            order_id=str(self.order_id),
            items=str(self.items),
            currency=self.currency,
            amount_minor=None if self.amount is UNSET else int(self.amount),
            person=self.customer.buyer(),
            delivery=_address(self.delivery),
            item_list=() if self.itemList is UNSET else tuple(_item(entry) for entry in self.itemList),
            custom_1=_plain(self.custom_1) or None,
            custom_2=_plain(self.custom_2) or None,
            platform=_plain(self.platform),
            payment_method=_plain(self.payment_method),
            plan=self._plan(),
        )
        return NewCheckout(
            payment=hosted_payment,
            expires_in_s=EXPIRES_IN_S_USUAL if self.expires_in_s is UNSET else int(self.expires_in_s),
            customer_reference=_plain(self.customer_reference),
            return_to=_plain(self.return_to),
            cancel_to=_plain(self.cancel_to),
        )

    def _plan(self) -> Plan | None:
        if self.recurrence is UNSET or self.duration is UNSET:
            return None
        starts_on = self.recurring_start_date
        return Plan(
            recurrence=str(self.recurrence),
            duration=str(self.duration),
            startup_fee_minor=None if self.startup_fee is UNSET else int(self.startup_fee),
            auto_cancel=None if self.auto_cancel is UNSET else self.auto_cancel,
            max_retries=None if self.max_retries is UNSET else int(self.max_retries),
            is_recovery_due=None if self.is_recovery_due is UNSET else self.is_recovery_due,
            starts_on=None if starts_on is UNSET else date.fromisoformat(starts_on),
        )


def _plan_errors(members: dict[str, object]) -> Iterator[FieldError]:
    recurrence, duration = members.get("recurrence"), members.get("duration")
    if isinstance(recurrence, str) and isinstance(duration, str):
        shortest, longest = _days(recurrence, _DAYS_LEAST), _days(duration, _DAYS_MOST)
        if shortest is not None and longest is not None and longest < shortest:
            yield FieldError("duration", "must not be shorter than recurrence")
    amount_minor = _minor_of(positive_minor, members.get("amount"))
    fee_minor = _minor_of(startup_fee_minor, members.get("startup_fee"))
    if amount_minor is not None and fee_minor is not None and amount_minor + fee_minor <= 0:
        yield FieldError("startup_fee", "must leave something to be paid first")


def _days(period: str, days_of: dict[str, int]) -> int | None:
    """Gives the length of a period in days; None for a text that is no period, and for one without an end."""
    number, _, unit = period.partition(" ")
    is_period = unit in days_of and number.isascii() and number.isdigit() and len(number) <= len("999")
    return int(number) * days_of[unit] if is_period else None


def _minor_of(read: Callable[[object], int], value: object) -> int | None:
    """Gives an amount in hundredths; None where the check of its own field refuses it."""
    try:
        return read(value)
    except ValueError:
        return None


def _plain(text: str | UnsetType | None) -> str | None:
    return None if text is UNSET or text is None else str(text)


def _address(delivery: DeliveryBody | UnsetType) -> PostalAddress | None:
    """Gives the address of a delivery; None where nothing of it is known."""
    if delivery is UNSET:
        return None
    address = PostalAddress(
        address=_plain(delivery.address), city=_plain(delivery.city), country=_plain(delivery.country)
    )
    return None if address == PostalAddress() else address


def _item(entry: CheckoutItem) -> Item:
    return Item(
        name=str(entry.name),
        number=str(entry.number),
        quantity=int(entry.quantity),
        unit_amount_minor=int(entry.unit_amount),
    )


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="openCheckout",
        method="POST",
        path="/checkouts",
        sentence="Ask a customer to pay, approve a card, subscribe or authorize an amount, on the gateway's page",
        scope=Scope.CHECKOUTS_CREATE,
        handler=lambda relay, parsed: open_checkout(relay, parsed.request, parsed.body_as(CheckoutBody).call()),
        bound=own_checkout,
        answer="opened checkout",
        body=CheckoutBody,
        own_codes=(Code.IN_PROGRESS, Code.CONFLICT, Code.IDEMPOTENCY_MISMATCH, Code.NOT_CONFIGURED),
        takes_key=True,
    ),
    Route(
        name="showCheckout",
        path="/checkouts/{id}",
        sentence="Show a checkout, as far as its outcome is known now",
        scope=Scope.CHECKOUTS_READ,
        handler=lambda relay, parsed: show_checkout(relay, parsed.request, parsed.id),
        answer="checkout",
        bound=only_own,
        segment=CHECKOUT,
    ),
    Route(
        name="closeCheckout",
        method="DELETE",
        path="/checkouts/{id}",
        sentence="Close the page of a checkout, so that its order is free",
        scope=Scope.CHECKOUTS_CREATE,
        handler=lambda relay, parsed: close_checkout(relay, parsed.request, parsed.id),
        answer="closed checkout",
        bound=own_checkout,
        segment=CHECKOUT,
        body=EmptyBody,
        own_codes=(Code.CONFLICT,),
    ),
)
