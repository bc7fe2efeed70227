"""Stored customers: the cards that may be charged later, and the persons behind them."""

import re
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.body import NO_NUL, CheckedValue, RedactedBody, Text
from payrelay.api.requests.parameters import (
    LIMIT,
    PAGE_SIZE_USUAL,
    TEXT_LENGTH_MAX,
    TEXT_SCHEMA,
    Parameter,
    anything,
    at_most_long,
    matches,
    one_of,
)
from payrelay.api.requests.route import MAY_CLASH, TAKES_BODY, EmptyBody, ParsedRequest, Route, only_own, refused
from payrelay.core.access.credential import Scope
from payrelay.core.customers.customer import CustomerFilter, CustomerState, ExistingApproval
from payrelay.core.secret import Secret
from payrelay.flows.customers.change_customer import NewNames, change_customer
from payrelay.flows.customers.erase_customer import erase_customer, remove_customer
from payrelay.flows.customers.import_customer import import_customer
from payrelay.flows.customers.list_customers import list_customers
from payrelay.flows.customers.show_customer import show_customer

_MASKED_CARD: Final = r"^[*Xx -]{0,20}[0-9]{4}$"
_masked_card_match: Final = re.compile(_MASKED_CARD).fullmatch
_EXPIRY: Final = r"^(?:0[1-9]|1[0-2])/?[0-9]{2}$"
_expiry_match: Final = re.compile(_EXPIRY).fullmatch
_CUSTOMER_ID: Final = r"cus_[0-9a-f]{32}"
_EXAMPLE: Final = "cus_019c8b2f5a7e4d10b6f3a92c7e08d154"

CUSTOMER: Final = Parameter(
    name="id",
    sentence="Identifier of the customer.",
    schema={"type": "string", "pattern": f"^{_CUSTOMER_ID}$"},
    # A wrong one is no such customer.
    validator=anything,
    example=_EXAMPLE,
)
REFERENCE: Final = Parameter(
    name="reference",
    sentence="Only those that you call so.",
    schema=TEXT_SCHEMA,
    validator=at_most_long(TEXT_LENGTH_MAX),
    example="user-17",
)
CUSTOMER_STATE: Final = Parameter(
    name="state",
    sentence="Only customers in this state.",
    schema={"type": "string", "enum": [*CustomerState]},
    validator=one_of(*CustomerState),
    example=CustomerState.ACTIVE,
)
CUSTOMER_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this customer; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_CUSTOMER_ID}$"},
    validator=matches(_CUSTOMER_ID, "must be the id of a customer"),
    example=_EXAMPLE,
)


def _masked_card(value: object) -> str:
    if not isinstance(value, str) or _masked_card_match(value) is None:
        raise ValueError("must be masked: asterisks and the last four digits")
    return value


def _card_expiry(value: object) -> str:
    if not isinstance(value, str) or _expiry_match(value) is None:
        raise ValueError('must be a month and a year, such as "0129"')
    return value


class MaskedCard(
    CheckedValue,
    str,
    check=_masked_card,
    schema={
        "type": "string",
        "pattern": _MASKED_CARD,
        "description": "The card's number, masked: asterisks and the last four digits.",
    },
):
    """A card's number of which only the last four digits are there."""

    __slots__ = ()


class CardExpiry(
    CheckedValue,
    str,
    check=_card_expiry,
    schema={"type": "string", "pattern": _EXPIRY, "description": "Month and year, such as `0129` or `01/29`."},
):
    """The month and year in which a card ends."""

    __slots__ = ()


_Reference = Annotated[Text, Meta(description="Your own name for the person; customers are found by it.")]
_Label = Annotated[Text, Meta(description="For people.")]


class CustomerBody(RedactedBody, frozen=True, kw_only=True):
    """The body that hands a gateway's token over."""

    customer_token: Annotated[Text, Meta(description="The gateway's token, as its notification brought it.")]
    reference: _Reference | None = None
    label: _Label | None = None
    method: (
        Annotated[
            str,
            Meta(min_length=1, max_length=32, extra_json_schema={"pattern": NO_NUL}, description="Such as `VISA`."),
        ]
        | None
    ) = None
    card_no_masked: MaskedCard | None = None
    card_expiry: CardExpiry | None = None
    card_holder: (
        Annotated[Text, Meta(description="The name on the card; it is kept sealed, and never shown.")] | None
    ) = None

    def given(self) -> ExistingApproval:
        """Gives what is handed over."""
        return ExistingApproval(
            token=Secret(self.customer_token),
            reference=self.reference,
            label=self.label,
            method=self.method,
            card_no_masked=None if self.card_no_masked is None else str(self.card_no_masked),
            card_expiry=None if self.card_expiry is None else str(self.card_expiry),
            card_holder=self.card_holder,
        )


class CustomerNamesBody(RedactedBody, frozen=True, kw_only=True):
    """The body that gives a customer other names; what is not there stays as it is, null takes a name away."""

    needs_one_of = ("label", "reference")

    reference: _Reference | UnsetType | None = UNSET
    label: _Label | UnsetType | None = UNSET

    def names(self) -> NewNames:
        """Gives the names that are asked for."""
        return NewNames(reference=self.reference, label=self.label)


def _filter_of(query: dict[str, str]) -> CustomerFilter:
    return CustomerFilter(
        reference=query.get("reference"), state=CustomerState(query["state"]) if "state" in query else None
    )


def _emptily_named(asked: ParsedRequest) -> str:
    """Gives the customer in the path, of a request whose body says nothing; raises Refusal."""
    asked.require_empty()
    return asked.id


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="listCustomers",
        method="GET",
        path="/customers",
        sentence="List stored customers, newest first",
        scope=Scope.CUSTOMERS_READ,
        handler=lambda relay, asked: list_customers(
            relay,
            asked.request,
            _filter_of(asked.query),
            before=asked.query.get("cursor"),
            limit=int(asked.query.get("limit", PAGE_SIZE_USUAL)),
        ),
        answer="customers",
        bound=only_own,
        query=(
            REFERENCE,
            CUSTOMER_STATE,
            CUSTOMER_CURSOR,
            LIMIT,
        ),
    ),
    Route(
        name="importCustomer",
        method="POST",
        path="/customers",
        sentence="Store a customer from a gateway's token that you hold already",
        scope=Scope.CUSTOMERS_WRITE,
        handler=lambda relay, asked: import_customer(relay, asked.request, asked.parsed(CustomerBody).given()),
        answer="customer",
        bound=refused,
        body=CustomerBody,
        codes=TAKES_BODY,
    ),
    Route(
        name="showCustomer",
        method="GET",
        path="/customers/{id}",
        sentence="Show a stored customer",
        scope=Scope.CUSTOMERS_READ,
        handler=lambda relay, asked: show_customer(relay, asked.request, asked.id),
        answer="customer",
        bound=only_own,
        segment=CUSTOMER,
    ),
    Route(
        name="changeCustomer",
        method="PATCH",
        path="/customers/{id}",
        sentence="Give a stored customer another reference or label",
        scope=Scope.CUSTOMERS_WRITE,
        handler=lambda relay, asked: change_customer(
            relay, asked.request, asked.id, asked.parsed(CustomerNamesBody).names()
        ),
        answer="customer",
        bound=refused,
        segment=CUSTOMER,
        body=CustomerNamesBody,
        codes=MAY_CLASH,
    ),
    Route(
        name="removeCustomer",
        method="DELETE",
        path="/customers/{id}",
        sentence="Remove a stored customer, and destroy its token",
        scope=Scope.CUSTOMERS_WRITE,
        handler=lambda relay, asked: remove_customer(relay, asked.request, _emptily_named(asked)),
        answer="customer",
        bound=refused,
        segment=CUSTOMER,
        body=EmptyBody,
        codes=TAKES_BODY,
    ),
    Route(
        name="eraseCustomer",
        method="POST",
        path="/customers/{id}/erase",
        sentence="Erase the personal data of a stored customer",
        scope=Scope.CUSTOMERS_WRITE,
        handler=lambda relay, asked: erase_customer(relay, asked.request, _emptily_named(asked)),
        answer="customer",
        bound=refused,
        segment=CUSTOMER,
        body=EmptyBody,
        codes=TAKES_BODY,
    ),
)
