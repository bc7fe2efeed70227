"""The events of operations."""

import pytest

from payrelay.core.events.event import PUBLISHED_STATES, TYPES, OutgoingEvent, event_id, of_operation
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import (
    TRANSITIONS,
    Event,
    JournalEntry,
    Kind,
    Operation,
    Retention,
    State,
    advance,
)

RETENTION = Retention(keyed_ms=30_000, unkeyed_ms=10_000)


def operation(state: State = State.SENDING) -> Operation:
    """Gives a charge in a state."""
    return Operation(
        id="op_019c8b2f5a7e4d10b6f3a92c7e08d154",
        account="gateway",
        merchant="m",
        principal="shop",
        kind=Kind.CHARGE,
        state=state,
        version=3,
        subject="order/A-1",
        guard="order/A-1",
        claim=None,
        claim_ends_at_ms=None,
        idempotency_key="CANARY-key",
        fingerprint="CANARY-fingerprint",
        request_id="req_1",
        order_id="A-1",
        payment_id="320025021815",
        subscription_id=None,
        amount_minor=34_567,
        currency="LKR",
        result_ref="CANARY-hash",
        created_at_ms=1_000,
        updated_at_ms=1_000,
        send_by_ms=2_000,
    )


def event_of_step(before: State, event: Event) -> OutgoingEvent | None:
    """Gives the event of a step."""
    return of_operation(*advance(operation(before), event, at_ms=5_000, retention=RETENTION, evidence=Evidence()))


def test_an_event_has_what_a_receiver_acts_on() -> None:
    """Ids, state and money, and no token, key or personal data: receivers elsewhere store the events."""
    event = event_of_step(State.SENDING, Event.SUCCEEDED)

    assert event is not None
    assert (event.type, event.subject) == ("operation.succeeded", "operation:op_019c8b2f5a7e4d10b6f3a92c7e08d154")
    assert event.data == {
        "operation_id": "op_019c8b2f5a7e4d10b6f3a92c7e08d154",
        "kind": "charge",
        "state": "succeeded",
        "version": 4,
        "order_id": "A-1",
        "payment_id": "320025021815",
        "subscription_id": None,
        "customer_id": None,
        "amount": "345.67",
        "currency": "LKR",
        "request_id": "req_1",
    }
    assert "CANARY" not in repr(event)


@pytest.mark.parametrize(("step", "after"), TRANSITIONS.items())
def test_every_change_to_a_published_state_has_an_event_and_no_inquiry_has(
    step: tuple[State, Event], after: State
) -> None:
    """A receiver that counts on events must miss no change, and isn't woken by each of the service's inquiries."""
    before, event = step

    outgoing = event_of_step(before, event)

    if after in {State.ACCEPTED, State.SENDING} or event in {
        Event.INQUIRED_ABOUT,
        Event.RESENT_TO_RESOLVE,
        Event.RESENT,
    }:
        assert outgoing is None
    elif before is not after:
        assert outgoing is not None
        assert outgoing.type == f"operation.{after}"


def test_the_first_entry_has_no_event() -> None:
    """That an operation was accepted is the answer to its own client."""
    entry = JournalEntry(version=1, at_ms=1_000, event=None, state=State.SENDING, evidence=Evidence())

    assert of_operation(operation(), entry) is None


def test_the_id_is_the_same_for_the_same_change_and_sorts_by_time() -> None:
    """What is written again after a lost commit is the same event, and an operator can sort ids."""
    assert event_id(5, "op_1/2") == event_id(5, "op_1/2") != event_id(5, "op_1/3")
    assert event_id(5, "z") < event_id(6, "a") < event_id(2**45, "a")
    assert len(event_id(5, "x")) == len("evt_") + 32


def test_every_type_is_a_noun_and_what_happened_to_it() -> None:
    """Endpoints are registered for nouns."""
    assert all(type_.count(".") == 1 for type_ in TYPES)
    assert {f"operation.{state}" for state in PUBLISHED_STATES} < TYPES


def test_an_amount_that_is_not_known_is_nothing() -> None:
    """A refund of the whole names none."""
    bare = Operation(
        **{**{name: getattr(operation(), name) for name in Operation.__struct_fields__}, "amount_minor": None}
    )
    changed, entry = advance(bare, Event.SUCCEEDED, at_ms=5, retention=RETENTION, evidence=Evidence())
    event = of_operation(changed, entry)

    assert event is not None
    assert event.data["amount"] is None
