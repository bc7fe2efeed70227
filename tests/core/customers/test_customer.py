"""The life of a stored customer: what an approval makes of it, and what is left of it."""

from typing import Any

import msgspec
import pytest

from payrelay.core.customers.customer import (
    STATE_SENTENCES,
    TRANSITIONS,
    Approval,
    Customer,
    CustomerEvent,
    CustomerState,
    Names,
    approved,
    approved_again,
    erased,
    event_of_customer,
    is_handle,
    is_repeat,
    removed,
    renamed,
)
from payrelay.core.events.event import TYPES
from payrelay.core.secret import Secret
from payrelay.errors import IllegalTransition

APPROVAL = Approval(
    account="gateway",
    merchant="0123456789abcdef",
    principal="shop",
    reference="person-7",
    token=Secret("59AFEE022CC69CA39D325E1B59130862"),
    method="VISA",
    card_no_masked="************1292",
    card_expiry="0129",
    card_holder="S Perera",
    order_id="A-1",
    payment_id="320025000001",
)
CUSTOMER = approved(APPROVAL, "cus_1", at_ms=1_000)


def again(customer: Customer = CUSTOMER, **members: object) -> Customer:
    """Gives the customer after an approval that differs from the first in what is named."""
    return approved_again(customer, msgspec.structs.replace(APPROVAL, **members), at_ms=2_000)


def test_an_approval_makes_an_active_customer() -> None:
    """It can be charged at once, and knows what the approval said, but for the token and the holder."""
    assert CUSTOMER.can_be_charged
    assert (CUSTOMER.version, CUSTOMER.reference, CUSTOMER.order_id, CUSTOMER.has_holder) == (
        1,
        "person-7",
        "A-1",
        True,
    )
    assert "59AFEE" not in repr(CUSTOMER)
    assert "Perera" not in repr(CUSTOMER)


def test_an_approval_prints_neither_token_nor_holder() -> None:
    """Tracebacks show the values of functions."""
    assert "59AFEE" not in repr(APPROVAL)
    assert "Perera" not in repr(APPROVAL)


def test_the_same_approval_changes_nothing() -> None:
    """The gateway reports everything twice; that must make no second event."""
    assert again() is CUSTOMER


def test_another_approval_brings_the_card_up_to_date() -> None:
    """A bank sends a new card with another expiry, and the token goes on."""
    changed = again(order_id="A-2", card_expiry="0631", payment_id=None)

    assert (changed.card_expiry, changed.order_id, changed.payment_id) == ("0631", "A-2", "320025000001")
    assert (changed.version, changed.updated_at_ms, changed.created_at_ms) == (2, 2_000, 1_000)


def test_what_an_approval_does_not_say_stays() -> None:
    """A token that is handed over comes alone."""
    bare: dict[str, Any] = {
        "method": None,
        "card_no_masked": None,
        "card_expiry": None,
        "card_holder": None,
        "order_id": None,
    }

    assert again(**bare, payment_id=None) is CUSTOMER


def test_a_name_is_filled_in_where_there_is_none() -> None:
    """A card may be approved before the merchant knows whose it is; what it says later is never overwritten."""
    nameless = renamed(CUSTOMER, Names(reference=None, label=None), at_ms=1_500)

    assert again(nameless, order_id="A-2", label="Blue card").reference == "person-7"
    assert again(nameless, order_id="A-2", label="Blue card").label == "Blue card"
    assert again(order_id="A-2", reference="person-8").reference == "person-7"


def test_a_repeat_brings_no_name_back() -> None:
    """The merchant took the name away after the approval; hearing of the approval once more must not undo that."""
    nameless = renamed(CUSTOMER, Names(reference=None, label=None), at_ms=1_500)

    assert again(nameless) is nameless


@pytest.mark.parametrize(("order_id", "is_same"), [("A-1", True), ("A-2", False), (None, False)])
def test_a_repeat_is_recognised_by_its_order(order_id: str | None, *, is_same: bool) -> None:
    """A token that is handed over is meant each time; an approval is known by the order that it was made in."""
    assert is_repeat(CUSTOMER, msgspec.structs.replace(APPROVAL, order_id=order_id)) is is_same


def test_names_change_and_are_removed() -> None:
    """Null takes a name away; what is as it was is no change."""
    changed = renamed(CUSTOMER, Names(reference="person-8", label="Blue card"), at_ms=2_000)

    assert (changed.reference, changed.label, changed.version) == ("person-8", "Blue card", 2)
    assert renamed(changed, Names(reference="person-8", label="Blue card"), at_ms=3_000) is changed


def test_a_removed_customer_stays_without_its_holder() -> None:
    """The merchant's list still says whose card it was; nothing can be charged."""
    gone = removed(CUSTOMER, at_ms=2_000)

    assert not gone.can_be_charged
    assert (gone.state, gone.version, gone.has_holder, gone.reference) == (CustomerState.REMOVED, 2, False, "person-7")
    assert removed(gone, at_ms=3_000) is gone


@pytest.mark.parametrize("before", [CUSTOMER, removed(CUSTOMER, at_ms=1_500)])
def test_of_an_erased_customer_only_what_the_books_need_is_left(before: Customer) -> None:
    """Ids, times and state: nothing of it says who it was."""
    gone = erased(before, at_ms=2_000)

    left = {name: value for name, value in msgspec.structs.asdict(gone).items() if value is not None}
    assert left == {
        "id": "cus_1",
        "account": "gateway",
        "merchant": "0123456789abcdef",
        "principal": "shop",
        "state": CustomerState.ERASED,
        "version": before.version + 1,
        "has_holder": False,
        "order_id": "A-1",
        "payment_id": "320025000001",
        "created_at_ms": 1_000,
        "updated_at_ms": 2_000,
    }
    assert erased(gone, at_ms=3_000) is gone
    assert removed(gone, at_ms=3_000) is gone


@pytest.mark.parametrize("state", [CustomerState.REMOVED, CustomerState.ERASED])
def test_what_has_no_token_gets_none(state: CustomerState) -> None:
    """A removed customer that an approval brings back would be charged although the merchant took it away."""
    with pytest.raises(IllegalTransition, match=f"{state} can't take the event approved"):
        again(msgspec.structs.replace(CUSTOMER, state=state))


def test_an_erased_customer_takes_no_name() -> None:
    """What was erased on request must not be filled in again by mistake."""
    with pytest.raises(IllegalTransition, match="erased can't take the event changed"):
        renamed(erased(CUSTOMER, at_ms=2_000), Names(reference="x", label=None), at_ms=3_000)


def test_no_state_but_the_first_leads_to_active() -> None:
    """Removal and erasure are for good, whatever comes."""
    assert {before for (before, _), after in TRANSITIONS.items() if after is CustomerState.ACTIVE} == {
        CustomerState.ACTIVE
    }
    assert {after for (before, _), after in TRANSITIONS.items() if before is CustomerState.ERASED} == {
        CustomerState.ERASED
    }
    assert set(STATE_SENTENCES) == set(CustomerState)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (None, "customer.created"),
        (CustomerEvent.APPROVED, "customer.updated"),
        (CustomerEvent.CHANGED, "customer.updated"),
        (CustomerEvent.REMOVED, "customer.removed"),
        (CustomerEvent.ERASED, "customer.erased"),
    ],
)
def test_an_event_names_no_person(event: CustomerEvent | None, kind: str) -> None:
    """An event can't be called back from whoever received it: no name, no reference, no token."""
    labelled = renamed(CUSTOMER, Names(reference="nimal@example.com", label="Nimal's card"), at_ms=2_000)
    outgoing = event_of_customer(labelled, event)

    assert outgoing.type == kind
    assert kind in TYPES
    assert (outgoing.subject, outgoing.principal, outgoing.at_ms) == ("customer:cus_1", "shop", 2_000)
    assert not {"reference", "label", "card_holder", "token"} & set(outgoing.data)
    assert "imal" not in repr(outgoing)


def test_each_version_has_an_event_of_its_own() -> None:
    """Receivers drop an event whose id they know."""
    changed = again(order_id="A-2")

    assert event_of_customer(CUSTOMER, None).id != event_of_customer(changed, CustomerEvent.APPROVED).id
    assert event_of_customer(changed, CustomerEvent.APPROVED) == event_of_customer(changed, CustomerEvent.APPROVED)


def test_a_fact_that_is_no_fact_is_left_out() -> None:
    """A notification is posted by anybody who knows a signature; its fields may be of any length."""
    assert approved(msgspec.structs.replace(APPROVAL, method="V" * 33, card_expiry=""), "cus_2", at_ms=0).method is None


@pytest.mark.parametrize(
    ("text", "is_one"), [("cus_019c8b2f5a7e4d10b6f3a92c7e08d154", True), ("59AFEE022CC69CA39D325E1B59130862", False)]
)
def test_a_handle_differs_from_a_token_by_its_beginning(text: str, *, is_one: bool) -> None:
    """The gateway's tokens are hex digits, and never begin with cus_."""
    assert is_handle(text) is is_one
