"""Stored customers: people who approved a card, which may be charged later."""

from functools import partial
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.body import EMPTY_IS_ABSENT, NO_NUL, CheckedValue, RedactedBody, Text, VisibleText, matching
from payrelay.api.requests.parameters import LIMIT, choice, own_cursor, own_id, page_of, text
from payrelay.api.requests.route import EmptyBody, Route, only_own, refused
from payrelay.core.access.credential import Scope
from payrelay.core.customers.customer import (
    CARD_EXPIRY_PATTERN,
    CARD_EXPIRY_WORDS,
    CARD_FACT_LENGTH_MAX,
    CustomerFilter,
    CustomerState,
    ExistingApproval,
    month_and_year,
)
from payrelay.core.secret import Secret
from payrelay.errors import Code
from payrelay.flows.customers.change_customer import NewNames, change_customer
from payrelay.flows.customers.erase_customer import erase_customer, remove_customer
from payrelay.flows.customers.import_customer import import_customer
from payrelay.flows.customers.list_customers import list_customers
from payrelay.flows.customers.show_customer import show_customer

_MASKED_CARD: Final = r"^[*Xx -]{0,20}[0-9]{4}$"

CUSTOMER: Final = own_id("cus", "customer")
REFERENCE: Final = text("reference", "Only customers with this reference.", "user-17")
CUSTOMER_STATE: Final = choice("state", "Only customers in this state.", CustomerState, CustomerState.ACTIVE)
CUSTOMER_CURSOR: Final = own_cursor("cus", "a customer")


class MaskedCard(
    CheckedValue,
    str,
    check=matching(_MASKED_CARD, "must be masked: asterisks and the last four digits"),
    schema={
        "type": "string",
        "pattern": _MASKED_CARD,
        "description": "The card number, masked: asterisks and the last four digits.",
    },
):
    """A card number, masked except for its last four digits."""

    __slots__ = ()


class CardExpiry(
    CheckedValue,
    str,
    check=matching(CARD_EXPIRY_PATTERN, CARD_EXPIRY_WORDS),
    schema={
        "type": "string",
        "pattern": CARD_EXPIRY_PATTERN,
        "description": "Month and year, `0129`. `01/29`, `1/29`, `01/2029`, `2029-01` and `129` are read too, and shown"
        " as `0129`.",
    },
):
    """The month and year in which a card expires."""

    __slots__ = ()


_Reference = Annotated[Text, Meta(description="Your own name for the customer; customers can be listed by it.")]
_Label = Annotated[Text, Meta(description="A name for people to read.")]


class CustomerBody(RedactedBody, frozen=True, kw_only=True):
    """The body that imports a customer by the gateway's token."""

    customer_token: Annotated[VisibleText, Meta(description="The gateway's token, as its notification had it.")]
    reference: _Reference | None = None
    label: Annotated[_Label | None, EMPTY_IS_ABSENT] = None
    method: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=CARD_FACT_LENGTH_MAX,
                extra_json_schema={"pattern": NO_NUL},
                description="Such as `VISA`.",
            ),
        ]
        | None,
        EMPTY_IS_ABSENT,
    ] = None
    card_no_masked: Annotated[MaskedCard | None, EMPTY_IS_ABSENT] = None
    card_expiry: Annotated[CardExpiry | None, EMPTY_IS_ABSENT] = None
    card_holder: Annotated[
        Annotated[Text, Meta(description="The name on the card. It is kept sealed, and never shown.")] | None,
        EMPTY_IS_ABSENT,
    ] = None

    def call(self) -> ExistingApproval:
        """Gives the approval that this body describes."""
        return ExistingApproval(
            token=Secret(str(self.customer_token)),
            reference=self.reference,
            label=self.label,
            method=self.method,
            card_no_masked=None if self.card_no_masked is None else str(self.card_no_masked),
            card_expiry=None if self.card_expiry is None else month_and_year(str(self.card_expiry)),
            card_holder=self.card_holder,
        )


class CustomerNamesBody(RedactedBody, frozen=True, kw_only=True):
    """The body that changes a customer's names: an absent member stays as it is, null removes the name."""

    needs_one_of = ("label", "reference")

    reference: _Reference | UnsetType | None = UNSET
    label: _Label | UnsetType | None = UNSET

    def call(self) -> NewNames:
        """Gives the new names."""
        return NewNames(reference=self.reference, label=self.label)


def _filter_of(query: dict[str, str]) -> CustomerFilter:
    return CustomerFilter(
        reference=query.get("reference"), state=CustomerState(query["state"]) if "state" in query else None
    )


_write_route: Final = partial(Route, scope=Scope.CUSTOMERS_WRITE, bound=refused)

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="listCustomers",
        path="/customers",
        sentence="List stored customers, newest first",
        scope=Scope.CUSTOMERS_READ,
        handler=lambda relay, parsed: list_customers(
            relay, parsed.request, _filter_of(parsed.query), **page_of(parsed.query)
        ),
        answer="customers",
        bound=only_own,
        query=(REFERENCE, CUSTOMER_STATE, CUSTOMER_CURSOR, LIMIT),
    ),
    _write_route(
        name="importCustomer",
        method="POST",
        path="/customers",
        sentence="Store a customer by a gateway's token that you have already",
        handler=lambda relay, parsed: import_customer(relay, parsed.request, parsed.body_as(CustomerBody).call()),
        answer="customer",
        body=CustomerBody,
    ),
    Route(
        name="showCustomer",
        path="/customers/{id}",
        sentence="Show a stored customer",
        scope=Scope.CUSTOMERS_READ,
        handler=lambda relay, parsed: show_customer(relay, parsed.request, parsed.id),
        answer="customer",
        bound=only_own,
        segment=CUSTOMER,
    ),
    _write_route(
        name="changeCustomer",
        method="PATCH",
        path="/customers/{id}",
        sentence="Give a stored customer another reference or label",
        handler=lambda relay, parsed: change_customer(
            relay, parsed.request, parsed.id, parsed.body_as(CustomerNamesBody).call()
        ),
        answer="customer",
        segment=CUSTOMER,
        body=CustomerNamesBody,
        own_codes=(Code.CONFLICT,),
    ),
    _write_route(
        name="removeCustomer",
        method="DELETE",
        path="/customers/{id}",
        sentence="Remove a stored customer, and destroy its token",
        handler=lambda relay, parsed: remove_customer(relay, parsed.request, parsed.id),
        answer="customer",
        segment=CUSTOMER,
        body=EmptyBody,
    ),
    _write_route(
        name="eraseCustomer",
        method="POST",
        path="/customers/{id}/erase",
        sentence="Erase the personal data of a stored customer, and destroy its key",
        handler=lambda relay, parsed: erase_customer(relay, parsed.request, parsed.id),
        answer="erased customer",
        segment=CUSTOMER,
        body=EmptyBody,
    ),
)
