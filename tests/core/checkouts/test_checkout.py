import itertools
from datetime import date
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples import ASKED, CHECKOUT

from payrelay.core.checkouts.checkout import (
    CLOSED_SENTENCE,
    HOLDING_ORDER,
    INQUIRED_FOR_MS,
    INQUIRY_MS_MAX,
    STATE_SENTENCES,
    TRANSITIONS,
    Checkout,
    CheckoutEvent,
    CheckoutKind,
    CheckoutOutcome,
    CheckoutState,
    Details,
    Result,
    advance,
    begins_after,
    checkout_of,
    event_of,
    fits,
    is_inquired,
    next_inquiry_ms,
)
from payrelay.core.checkouts.hosted_payment import Buyer, HostedPayment, Plan, PostalAddress
from payrelay.core.events.event import TYPES

REPORTS = [each for each in CheckoutEvent if each is not CheckoutEvent.HOLD_ENDED]
PAID = Result(payment_id="320025000001")
DETAILS_OF_PLAN = Details(
    secret="s",
    asked=msgspec.structs.replace(
        ASKED,
        kind=CheckoutKind.RECURRING,
        plan=Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2030, 1, 1)),
    ),
)


def after(*events: CheckoutEvent) -> Checkout:
    """The checkout behind these events, whatever they change."""
    checkout = CHECKOUT
    for event in events:
        checkout = advance(checkout, event, at_ms=2_000) or checkout
    return checkout


@pytest.mark.parametrize("state", CheckoutState)
@pytest.mark.parametrize("event", CheckoutEvent)
def test_the_table_says_what_every_event_does(state: CheckoutState, event: CheckoutEvent) -> None:
    """What it lacks says nothing new: a late failure must not undo a payment."""
    checkout = msgspec.structs.replace(CHECKOUT, state=state)
    changed = advance(checkout, event, at_ms=2_000)

    assert (None if changed is None else changed.state) == TRANSITIONS.get((state, event))


def test_completed_is_final() -> None:
    """A merchant who reads that it is paid may ship."""
    assert not [event for state, event in TRANSITIONS if state is CheckoutState.COMPLETED]


@pytest.mark.parametrize("state", [state for state in CheckoutState if state is not CheckoutState.COMPLETED])
def test_every_other_state_may_still_be_completed(state: CheckoutState) -> None:
    """A customer goes back and pays after all."""
    assert TRANSITIONS[state, CheckoutEvent.COMPLETED] is CheckoutState.COMPLETED


@given(st.lists(st.sampled_from(REPORTS), max_size=8), st.randoms())
def test_any_order_of_reports_leads_to_one_result(events: list[CheckoutEvent], random: Random) -> None:
    """Notifications come twice, late and in any order, and the browser beside them."""
    shuffled = list(events)
    random.shuffle(shuffled)

    assert after(*shuffled).state is after(*events, *events).state


@pytest.mark.parametrize("events", list(itertools.permutations(CheckoutEvent, 2)))
def test_an_order_is_held_while_it_may_be_paid_by_this_one(events: tuple[CheckoutEvent, CheckoutEvent]) -> None:
    """Another checkout may be opened as soon as this one has come to nothing."""
    checkout = after(*events)

    assert checkout.guard == ("A-1" if checkout.state in HOLDING_ORDER else None)


def test_a_change_counts_and_says_when() -> None:
    """A writer names the version that he decided on."""
    changed = advance(CHECKOUT, CheckoutEvent.COMPLETED, at_ms=2_000, result=PAID)

    assert changed is not None
    assert (changed.version, changed.updated_at_ms, changed.payment_id) == (2, 2_000, "320025000001")


def test_what_is_known_stays_and_what_is_not_is_filled_in() -> None:
    """An inquiry finds the payment; the notification behind it brings the customer, and must not change the payment."""
    completed = advance(CHECKOUT, CheckoutEvent.COMPLETED, at_ms=2_000, result=PAID)
    assert completed is not None
    more = Result(payment_id="320025000002", customer_id="cus_1")
    filled = advance(completed, CheckoutEvent.COMPLETED, at_ms=3_000, result=more)
    assert filled is not None

    assert (filled.state, filled.payment_id, filled.customer_id) == (
        CheckoutState.COMPLETED,
        "320025000001",
        "cus_1",
    )
    assert advance(filled, CheckoutEvent.COMPLETED, at_ms=4_000, result=more) is None


def test_the_payment_of_one_plan_is_none_of_anothers() -> None:
    """An order was subscribed to twice; whoever gives a payment back would take it from the wrong plan."""
    plan = msgspec.structs.replace(CHECKOUT, kind=CheckoutKind.RECURRING)
    done = advance(plan, CheckoutEvent.COMPLETED, at_ms=2_000, result=Result(subscription_id="42"))
    assert done is not None
    second = Result(subscription_id="43", payment_id="320025000009")

    assert advance(done, CheckoutEvent.COMPLETED, at_ms=3_000, result=second) is None


def test_a_failure_brings_no_ids() -> None:
    """A refused attempt has a payment id too, and is no payment."""
    failed = advance(CHECKOUT, CheckoutEvent.FAILED, at_ms=2_000, result=PAID)

    assert failed is not None
    assert failed.payment_id is None


@pytest.mark.parametrize("outcome", [CheckoutState.OPEN, CheckoutState.EXPIRED])
def test_no_report_opens_or_expires_a_checkout(outcome: CheckoutState) -> None:
    """Time alone ends a checkout."""
    content = CheckoutOutcome(account="gateway", merchant="m", order_id="A-1", outcome=outcome)
    with pytest.raises(ValueError, match=f"no report makes a checkout {outcome}"):
        assert content.event


def test_a_report_brings_the_results() -> None:
    """The ids go on to whoever asks."""
    content = CheckoutOutcome(
        account="gateway", merchant="m", order_id="A-1", outcome=CheckoutState.COMPLETED, subscription_id="42"
    )

    assert (content.event, content.result) == (CheckoutEvent.COMPLETED, Result(subscription_id="42"))


@pytest.mark.parametrize(
    ("kind", "asked", "seen", "currency", "is_fitting"),
    [
        ("payment", 100, 100, "LKR", True),
        ("payment", 100, 99, "LKR", False),
        ("payment", 100, 100, "USD", False),
        ("payment", 100, None, None, True),
        ("authorization", 100, 101, "LKR", False),
        ("preapproval", 100, 99, "LKR", False),
        ("preapproval", None, 1_000, "LKR", True),
        ("preapproval", None, 1_000, "USD", False),
        ("recurring", 100, 150, "LKR", True),
        ("recurring", 100, 100, "USD", False),
    ],
)
def test_only_the_money_that_was_asked_for_completes(
    kind: str, asked: int | None, seen: int | None, currency: str | None, *, is_fitting: bool
) -> None:
    """A customer who changes the amount in the form pays something else."""
    checkout = msgspec.structs.replace(CHECKOUT, kind=CheckoutKind(kind), amount_minor=asked)

    assert fits(checkout, seen, currency) is is_fitting


OF_ORDER: list[dict[str, object]] = [
    {"id": "chk_3", "state": CheckoutState.OPEN},
    {"id": "chk_2", "kind": CheckoutKind.RECURRING, "state": CheckoutState.FAILED, "subscription_id": "42"},
    {"id": "chk_1", "kind": CheckoutKind.PREAPPROVAL, "state": CheckoutState.CANCELLED, "payment_id": "7"},
    {"id": "chk_0", "amount_minor": 5, "state": CheckoutState.EXPIRED},
]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, "chk_3"),
        ({"kind": CheckoutKind.PAYMENT}, "chk_3"),
        ({"kind": CheckoutKind.PREAPPROVAL}, "chk_1"),
        ({"kind": CheckoutKind.AUTHORIZATION}, "chk_3"),
        ({"payment_id": "7"}, "chk_1"),
        ({"subscription_id": "42"}, "chk_2"),
        ({"amount_minor": 5, "kind": CheckoutKind.PAYMENT}, "chk_0"),
        ({"currency": "USD"}, None),
    ],
)
def test_of_an_orders_checkouts_the_one_that_fits_is_meant(members: dict[str, object], expected: str | None) -> None:
    """A customer may pay on the page of one that was given up, after another amount was asked for the same order."""
    checkouts = [msgspec.structs.replace(CHECKOUT, **each) for each in OF_ORDER]
    content = CheckoutOutcome(
        account="gateway",
        merchant=CHECKOUT.merchant,
        order_id=CHECKOUT.order_id,
        outcome=CheckoutState.COMPLETED,
        amount_minor=CHECKOUT.amount_minor,
        currency=CHECKOUT.currency,
    )
    chosen = checkout_of(checkouts, msgspec.structs.replace(content, **members))

    assert (None if chosen is None else chosen.id) == expected


def test_an_event_has_ids_and_money_and_no_personal_data() -> None:
    """It leaves the house."""
    event = event_of(after(CheckoutEvent.COMPLETED))
    assert {f"checkout.{state}" for state in CheckoutState if state is not CheckoutState.OPEN} < TYPES

    assert (event.type, event.subject, event.principal) == ("checkout.completed", f"checkout:{CHECKOUT.id}", "shop")
    assert event.data == {
        "checkout_id": CHECKOUT.id,
        "kind": "payment",
        "state": "completed",
        "reason": None,
        "version": 2,
        "order_id": "A-1",
        "amount": "1000.00",
        "currency": "LKR",
        "payment_id": None,
        "subscription_id": None,
        "customer_id": None,
    }
    assert event_of(msgspec.structs.replace(CHECKOUT, amount_minor=None)).data["amount"] is None


def test_the_same_change_is_the_same_event() -> None:
    """A writer that repeats it after a crash reports nothing twice."""
    assert event_of(after(CheckoutEvent.FAILED)).id == event_of(after(CheckoutEvent.FAILED)).id


def test_its_page_takes_customers_until_it_expires() -> None:
    """A link from an old mail leads nobody to pay."""
    assert CHECKOUT.takes_customers(60_999)
    assert not CHECKOUT.takes_customers(61_000)
    assert not after(CheckoutEvent.FAILED).takes_customers(2_000)


@given(st.integers(0, 10**12))
def test_looks_come_less_often_with_time(age_ms: int) -> None:
    """A page that is left open all night must not use up the gateway's budget."""
    now_ms = CHECKOUT.created_at_ms + age_ms

    plan = msgspec.structs.replace(CHECKOUT, kind=CheckoutKind.RECURRING)

    assert 3_000 <= next_inquiry_ms(CHECKOUT, now_ms) - now_ms <= INQUIRY_MS_MAX
    assert 30_000 <= next_inquiry_ms(plan, now_ms) - now_ms <= INQUIRY_MS_MAX


def test_only_what_can_be_shown_and_is_not_completed_is_searched_for_and_not_for_ever() -> None:
    """The gateway's records show payments and plans alone; each inquiry costs a permit."""
    authorization = msgspec.structs.replace(CHECKOUT, kind=CheckoutKind.AUTHORIZATION)

    assert is_inquired(CHECKOUT, 4_000)
    assert is_inquired(msgspec.structs.replace(CHECKOUT, kind=CheckoutKind.RECURRING), 4_000)
    assert is_inquired(after(CheckoutEvent.EXPIRED), 4_000)
    assert not is_inquired(CHECKOUT, 3_999)
    assert not is_inquired(CHECKOUT, 1_000 + INQUIRED_FOR_MS)
    assert not is_inquired(authorization, 4_000)
    assert not is_inquired(after(CheckoutEvent.COMPLETED), 4_000)


def test_a_plan_begins_after_the_days_before_its_own() -> None:
    """On its own day the first payment is charged at once. What was forgotten of a checkout begins on no later day."""
    asked = msgspec.structs.replace(DETAILS_OF_PLAN.asked, plan=None)

    assert begins_after(DETAILS_OF_PLAN, date(2029, 12, 31))
    assert not begins_after(DETAILS_OF_PLAN, date(2030, 1, 1))
    assert not begins_after(msgspec.structs.replace(DETAILS_OF_PLAN, asked=asked), date(2029, 12, 31))
    assert not begins_after(None, date(2029, 12, 31))


def test_every_state_has_its_sentence() -> None:
    """Pages and docs say it to people."""
    assert STATE_SENTENCES.keys() == set(CheckoutState)


@pytest.mark.parametrize("state", CheckoutState)
def test_a_closed_page_says_so_while_nothing_more_is_known(state: CheckoutState) -> None:
    """A failure or a payment that comes later says more; when the page was closed stays all the same."""
    closed = after(CheckoutEvent.CLOSED)
    event = {after: event for (before, event), after in TRANSITIONS.items() if before is CheckoutState.CANCELLED}
    later = advance(closed, event[state], at_ms=3_000) if state in event else None

    assert (closed.reason, closed.sentence, closed.closed_at_ms) == ("closed", CLOSED_SENTENCE, 2_000)
    assert event_of(closed).data["reason"] == "closed"
    if later is not None:
        assert (later.reason, later.sentence, later.closed_at_ms) == (None, STATE_SENTENCES[state], 2_000)


def test_the_end_of_a_hold_closes_a_notified_page_and_no_other_one() -> None:
    """The order is free then. A late void must not undo what its capture completed, nor end a page that is open."""
    notified = after(CheckoutEvent.NOTIFIED)
    ended = advance(notified, CheckoutEvent.HOLD_ENDED, at_ms=3_000)

    assert ended is not None
    assert (ended.state, ended.guard, ended.reason) == (CheckoutState.CANCELLED, None, "closed")
    assert {state for state, event in TRANSITIONS if event is CheckoutEvent.HOLD_ENDED} == {CheckoutState.NOTIFIED}


def test_no_personal_data_is_printed() -> None:
    """A traceback goes into the log."""
    home = PostalAddress(address="CANARY", city="CANARY", country="CANARY")
    person = Buyer(first_name="CANARY", last_name="CANARY", email="CANARY", phone="CANARY", home=home)
    asked = HostedPayment(
        kind=CheckoutKind.PAYMENT, order_id="A-1", items="CANARY", currency="LKR", amount_minor=1, person=person
    )
    details = Details(secret="CANARY", asked=asked, return_to="CANARY")

    assert "CANARY" not in f"{home!r}{person!r}{asked!r}{details!r}{asked.__rich_repr__()}"


def test_the_diagram_in_the_docs_is_the_table() -> None:
    """A developer reads it to know what can still happen."""
    page = (Path(__file__).parents[3] / "docs" / "checkouts.md").read_text()

    for (state, event), target in TRANSITIONS.items():
        assert f"    {state} --> {target}: {event}\n" in page
