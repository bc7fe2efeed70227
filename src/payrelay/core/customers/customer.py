"""Stored customers: a cardholder has approved a card, and is charged by a handle in place of the gateway's token.

Rules:

1. A customer has one token for good. An approval with an equal token is for that customer; an approval with another
   token makes another customer. The token is no part of the value here. The store keeps it sealed, and gives it only to
   a charge.
2. A removed or erased customer has no token, and never gets one. A new approval by the cardholder makes another
   customer. A repeat of the approval that made the customer changes nothing.
3. A step that the table ``TRANSITIONS`` lacks is an error that names state and event.
4. An event about a customer names no person: it has no reference, no label and no cardholder.

To be changed together: ``TRANSITIONS``, the table ``customers`` in the store, and ``docs/customers.md``, which a test
compares with this table.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.events.event import OutgoingEvent, event_id
from payrelay.core.secret import MaskedRepr, Secret
from payrelay.core.views import with_members_of
from payrelay.errors import IllegalTransition

PREFIX: Final = "cus"
_HANDLE: Final = f"{PREFIX}_"
CARD_FACT_LENGTH_MAX: Final = 32
"""For the card's kind and its masked number: gateways give a word, and a number of at most 19 digits with spaces."""
CARD_EXPIRY_PATTERN: Final = (
    r"^(?:(0?[1-9]|1[0-2])(?: ?[/-] ?)?(?:20)?([0-9]{2})|20([0-9]{2})(?: ?[/-] ?(0?[1-9]|1[0-2])|(0[1-9]|1[0-2])))$"
)
"""A month and a year in any order that can be read in one way only, by its month or by a year of four digits.

``0129``, ``129``, ``01/29``, ``1/29``, ``01/2029``, ``2029-01`` and ``202901`` are January 2029. Spreadsheets take the
zero from before a month. A year of two digits is the last part: ``2901`` is refused, and read as no month.
"""
CARD_EXPIRY_WORDS: Final = 'must be a month and a year, such as "0129" or "01/29"'
_DIGITS_SHOWN: Final = 4
_expiry_match: Final = re.compile(CARD_EXPIRY_PATTERN).fullmatch


class CustomerState(StrEnum):
    """The state of a stored customer."""

    ACTIVE = "active"
    """The customer can be charged."""
    REMOVED = "removed"
    """The token is destroyed, and the customer can't be charged any more."""
    ERASED = "erased"
    """The token and all personal data are destroyed, and the key under which they were sealed."""


class CustomerEvent(StrEnum):
    """What can happen to a customer."""

    APPROVED = "approved"
    """The customer's token came with another approval, or with a repeat of its approval."""
    CHANGED = "changed"
    """The merchant gave the customer another label or reference."""
    REMOVED = "removed"
    ERASED = "erased"


TRANSITIONS: Final[dict[tuple[CustomerState, CustomerEvent], CustomerState]] = {
    (CustomerState.ACTIVE, CustomerEvent.APPROVED): CustomerState.ACTIVE,
    (CustomerState.ACTIVE, CustomerEvent.CHANGED): CustomerState.ACTIVE,
    (CustomerState.ACTIVE, CustomerEvent.REMOVED): CustomerState.REMOVED,
    (CustomerState.ACTIVE, CustomerEvent.ERASED): CustomerState.ERASED,
    (CustomerState.REMOVED, CustomerEvent.CHANGED): CustomerState.REMOVED,
    (CustomerState.REMOVED, CustomerEvent.REMOVED): CustomerState.REMOVED,
    (CustomerState.REMOVED, CustomerEvent.ERASED): CustomerState.ERASED,
    (CustomerState.ERASED, CustomerEvent.REMOVED): CustomerState.ERASED,
    (CustomerState.ERASED, CustomerEvent.ERASED): CustomerState.ERASED,
}

STATE_SENTENCES: Final[dict[CustomerState, str]] = {
    CustomerState.ACTIVE: "The customer can be charged.",
    CustomerState.REMOVED: "The customer was removed, its token was destroyed, and it can no longer be charged.",
    CustomerState.ERASED: (
        "The customer's personal data was erased and its key destroyed, and the customer can no longer be charged."
    ),
}

_EVENT_TYPES: Final[dict[CustomerEvent, str]] = {
    CustomerEvent.APPROVED: "updated",
    CustomerEvent.CHANGED: "updated",
    CustomerEvent.REMOVED: "removed",
    CustomerEvent.ERASED: "erased",
}


class Approval(MaskedRepr, frozen=True, kw_only=True):
    """An approval of a card by its holder, or a token that a merchant already has and hands over.

    Attributes:
        account, merchant: the gateway account of the approval.
        principal: the principal that the customer is to belong to.
        reference: the client's own name for the customer.
        token: the gateway's token, by which the card is charged.
        method, card_no_masked, card_expiry, card_holder: what is known of the card.
        order_id, payment_id: of the checkout of the approval; None for a token that was handed over.
        label: free text for people.
    """

    account: str
    merchant: str
    principal: str
    reference: str | None
    token: Secret
    method: str | None
    card_no_masked: str | None
    card_expiry: str | None
    card_holder: str | None
    order_id: str | None
    payment_id: str | None = None
    label: str | None = None


class ExistingApproval(MaskedRepr, frozen=True, kw_only=True):
    """A token that a merchant already has, and what it knows of the card; the members are those of ``Approval``."""

    token: Secret
    reference: str | None = None
    label: str | None = None
    method: str | None = None
    card_no_masked: str | None = None
    card_expiry: str | None = None
    card_holder: str | None = None


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """A stored customer with its present state.

    Attributes:
        id: ``cus_…``; a charge names it in place of the gateway's token.
        account: the configured name of the account of the approval.
        merchant: the merchant account at the gateway; the customer can be charged under each of its names.
        principal: the principal that it belongs to.
        state, version: its state; the version starts at 1, one more with every change.
        reference: the client's own name for the customer.
        label: free text for people.
        method, card_no_masked, card_expiry: of the card.
        has_holder: whether the name on the card is known; the store keeps it sealed, and nothing shows it.
        order_id, payment_id: of the checkout of the last approval.
        created_at_ms, updated_at_ms: milliseconds since 1970, UTC.
    """

    id: str
    account: str
    merchant: str
    principal: str
    state: CustomerState
    version: int
    reference: str | None
    label: str | None
    method: str | None
    card_no_masked: str | None
    card_expiry: str | None
    has_holder: bool
    order_id: str | None
    payment_id: str | None
    created_at_ms: int
    updated_at_ms: int

    @property
    def can_be_charged(self) -> bool:
        """True while it has a token."""
        return self.state is CustomerState.ACTIVE


class CustomerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the customers to list: those that are equal in every field that is given."""

    merchant: str | None = None
    principal: str | None = None
    account: str | None = None
    id: str | None = None
    reference: str | None = None
    state: CustomerState | None = None


def is_handle(customer_token: str) -> bool:
    """True where a charge's ``customer_token`` is a handle; a gateway's own tokens never begin with ``cus_``."""
    return customer_token.startswith(_HANDLE)


def approved(approval: Approval, customer_id: str, *, at_ms: int) -> Customer:
    """Gives the new customer that an approval makes."""
    return with_members_of(
        approval,
        Customer,
        id=customer_id,
        state=CustomerState.ACTIVE,
        version=1,
        method=_fact(approval.method),
        card_no_masked=masked(approval.card_no_masked),
        card_expiry=_fact(approval.card_expiry),
        has_holder=bool(approval.card_holder),
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
    )


def is_repeat(customer: Customer, approval: Approval) -> bool:
    """True where the approval repeats the last approval of the customer.

    A token that is handed over has no order, and so is never a repeat.
    """
    return approval.order_id is not None and approval.order_id == customer.order_id


def approved_again(customer: Customer, approval: Approval, *, at_ms: int) -> Customer:
    """Gives the customer after a further approval with its token; unchanged where the approval has nothing new.

    The card's data is taken from the approval. A reference and a label are taken where the customer has none, and never
    from a repeat, so that later changes by the merchant stay.
    """
    is_new = not is_repeat(customer, approval)
    return _after(
        customer,
        CustomerEvent.APPROVED,
        at_ms,
        reference=customer.reference or (approval.reference if is_new else None),
        label=customer.label or (approval.label if is_new else None),
        method=_fact(approval.method) or customer.method,
        card_no_masked=masked(approval.card_no_masked) or customer.card_no_masked,
        card_expiry=_fact(approval.card_expiry) or customer.card_expiry,
        has_holder=bool(approval.card_holder) or customer.has_holder,
        order_id=approval.order_id or customer.order_id,
        payment_id=approval.payment_id or customer.payment_id,
    )


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """The merchant's own names for a customer."""

    reference: str | None
    label: str | None


def renamed(customer: Customer, names: Names, *, at_ms: int) -> Customer:
    """Gives the customer with other names; unchanged where the names are equal."""
    return _after(customer, CustomerEvent.CHANGED, at_ms, reference=names.reference, label=names.label)


def removed(customer: Customer, *, at_ms: int) -> Customer:
    """Gives the customer without its token and the name on the card; unchanged where it has no token any more."""
    return _after(customer, CustomerEvent.REMOVED, at_ms, has_holder=False)


def erased(customer: Customer, *, at_ms: int) -> Customer:
    """Gives the customer without personal data; unchanged where it has none already.

    Its id, its principal, its times and the ids of order and payment stay. Operations, events and the audit refer to
    them, and none of them identifies the person.
    """
    return _after(
        customer,
        CustomerEvent.ERASED,
        at_ms,
        reference=None,
        label=None,
        method=None,
        card_no_masked=None,
        card_expiry=None,
        has_holder=False,
    )


def event_of_customer(customer: Customer, event: CustomerEvent | None) -> OutgoingEvent:
    """Gives the event of a change that led to this customer; None for ``event`` means that the customer is new."""
    return OutgoingEvent(
        id=event_id(customer.updated_at_ms, f"{customer.id}/{customer.version}"),
        type=f"customer.{'created' if event is None else _EVENT_TYPES[event]}",
        account=customer.account,
        merchant=customer.merchant,
        principal=customer.principal,
        subject=f"customer:{customer.id}",
        at_ms=customer.updated_at_ms,
        data={
            "customer_id": customer.id,
            "state": customer.state.value,
            "version": customer.version,
            "method": customer.method,
            "card_no_masked": customer.card_no_masked,
            "card_expiry": month_and_year(customer.card_expiry),
            "order_id": customer.order_id,
            "payment_id": customer.payment_id,
        },
    )


def masked(card_no: str | None) -> str | None:
    """Gives a card's number with stars for all but its last four characters; None where it is empty or too long."""
    if not card_no or len(card_no) > CARD_FACT_LENGTH_MAX:
        return None
    shown = card_no[-_DIGITS_SHOWN:]
    return "*" * (len(card_no) - _DIGITS_SHOWN) + shown if len(card_no) > _DIGITS_SHOWN else shown


def month_and_year(expiry: str | None) -> str | None:
    """Gives the month and the year in which a card expires as four digits, ``0129``; None where they can't be read."""
    match = None if expiry is None else _expiry_match(expiry)
    if match is None:
        return None
    month = match[1] or match[4] or match[5]
    return f"{month.zfill(2)}{match[2] or match[3]}"


def _fact(text: str | None) -> str | None:
    return text if text and len(text) <= CARD_FACT_LENGTH_MAX else None


def _after(customer: Customer, event: CustomerEvent, at_ms: int, **members: str | bool | None) -> Customer:
    try:
        state = TRANSITIONS[customer.state, event]
    except KeyError:
        raise IllegalTransition(f"a customer that is {customer.state} can't take the event {event}") from None
    changed = msgspec.structs.replace(customer, state=state, **members)
    if changed == customer:
        return customer
    return msgspec.structs.replace(changed, version=customer.version + 1, updated_at_ms=at_ms)
