"""Forms as a hostile browser posts them: whatever the documented hash doesn't cover is taken as it comes.

That the gateway compares nothing but its hash is assumed: its documents name no other check.
"""

import pytest
from tests.hostile_browser import (
    HostileBrowser,
    Split,
    approval_of_nothing,
    edited,
    moved,
    split_of,
    splits_of,
    with_plan,
)
from tests.payrelay_simulator.shop import a_form

from payrelay_simulator import PageError, World
from payrelay_simulator.pages.forms import Page
from payrelay_simulator.records import Period

ASKED = a_form("2510.00", order_id="A1", amount="2510.00")


def told(world: World) -> list[dict[str, str]]:
    """What the gateway notifies of, as it is due now."""
    return [each.fields for each in world.notifications.take_due(world.clock.now())]


def test_the_splits_of_a_run_are_all_that_are_amounts() -> None:
    """Digits move both ways; what is no amount, or has a zero in front, signs no form."""
    assert split_of("checkout", ASKED) == Split("A1", "2510.00")
    assert list(splits_of(Split("A1", "2510.00"))) == [
        Split("A", "12510.00"),
        Split("A12", "510.00"),
        Split("A125", "10.00"),
    ]
    assert list(splits_of(Split("B", "0.50"))) == []


@pytest.mark.parametrize("page", ["checkout", "authorize", "preapprove"])
@pytest.mark.parametrize("to", list(splits_of(Split("A1", "2510.00"))), ids=str)
def test_moved_digits_are_taken(world: World, page: Page, to: Split) -> None:
    """The hash of A1 with 2510.00 is that of A125 with 10.00 too, and the gateway notifies of what was posted."""
    visit = HostileBrowser(world).pay(page, moved(ASKED, to))

    assert (visit.state, visit.form.order_id, visit.form.due_cents) == (
        "paid",
        to.order_id,
        int(to.amount.replace(".", "")),
    )
    signed = {each["md5sig"] for each in told(world)}
    HostileBrowser(world).pay(page, ASKED)
    assert signed == {each["md5sig"] for each in told(world)}


def test_a_payment_becomes_an_approval_that_takes_nothing(world: World) -> None:
    """Where digits can be moved so that 10.00 remains, the form approves a card for another order, and pays nothing."""
    visit = HostileBrowser(world).pay("preapprove", approval_of_nothing(ASKED, Split("A125", "10.00")))

    assert (visit.state, visit.form.amount_cents) == ("paid", None)
    notification = told(world)[0]
    assert (notification["order_id"], notification["payhere_amount"]) == ("A125", "10.00")
    assert "customer_token" in notification


def test_an_approval_becomes_a_payment_or_an_authorization(world: World) -> None:
    """The form that only approves a card of A125 holds 2510.00 for A1, or 510.00 for A12."""
    form = a_form("10.00", order_id="A125", amount="")
    assert split_of("preapprove", form) == Split("A125", "10.00")

    visit = HostileBrowser(world).pay("authorize", moved(form, Split("A1", "2510.00")))

    assert (visit.form.kind, visit.form.due_cents) == ("authorization", 251_000)
    assert "authorization_token" in told(world)[0]


@pytest.mark.parametrize("page", ["checkout", "authorize", "preapprove"])
def test_a_form_is_taken_on_any_page(world: World, page: Page) -> None:
    """What a form is for is in no signed text, but only in the address that it is posted to."""
    assert HostileBrowser(world).pay(page, ASKED).state == "paid"


@pytest.mark.parametrize(
    "changes",
    [
        {"notify_url": "https://customer.example/"},
        {"return_url": "https://customer.example/"},
        {"items": "Something else"},
        {"first_name": "Nimal", "email": "nimal@example.com"},
        {"payment_method": "VISA"},
        {"custom_1": "forged", "custom_2": "forged"},
        {"item_name_1": "Bell", "amount_1": "1.00"},
    ],
)
def test_unsigned_fields_may_be_edited(world: World, changes: dict[str, str]) -> None:
    """None of them is evidence of what the merchant asked for."""
    assert HostileBrowser(world).pay("checkout", edited(ASKED, **changes)).state == "paid"


def test_the_notification_goes_where_the_browser_says(world: World) -> None:
    """A customer who edits notify_url gets the gateway's genuine signature himself, and the merchant hears nothing."""
    HostileBrowser(world).pay("checkout", edited(ASKED, notify_url="https://customer.example/"))

    notification = world.notifications.records()[0]
    assert notification.notify_url == "https://customer.example/"
    assert notification.fields["md5sig"]


def test_a_plan_may_be_added_edited_and_removed(world: World) -> None:
    """How often and how much is charged later is signed nowhere: only the first payment is."""
    browser = HostileBrowser(world)

    added = browser.pay("checkout", with_plan(ASKED, installment="1.00")).form
    changed = browser.pay("checkout", edited(ASKED, recurrence="1 Week", duration="2 Week")).form
    removed = browser.pay("checkout", moved(with_plan(ASKED, installment="1.00"), Split("A1", "2510.00"))).form

    assert (added.kind, added.amount_cents, added.due_cents) == ("recurring", 100, 251_000)
    assert changed.plan is not None
    assert changed.plan.recurrence == Period(count=1, unit="Week")
    assert (removed.kind, removed.plan) == ("payment", None)


def test_a_later_start_turns_a_payment_into_a_plan_that_takes_nothing(world: World) -> None:
    """A plan that begins later is signed over 10.00, whatever its installments are."""
    form = edited(
        ASKED,
        order_id="A125",
        amount="1.00",
        recurrence="1 Month",
        duration="Forever",
        recurring_start_date="2027-01-01",
    )

    visit = HostileBrowser(world).pay("checkout", form)

    assert (visit.form.kind, visit.form.amount_cents, visit.form.due_cents) == ("recurring", 100, 1_000)


def test_the_last_of_a_doubled_field_counts(world: World) -> None:
    """Whoever reads the form twice reads the same value twice: doubling gains nothing over editing."""
    browser = HostileBrowser(world)

    visit = browser.pay("checkout", [("order_id", "A125"), ("amount", "10.00"), *ASKED.items()])
    assert (visit.form.order_id, visit.form.due_cents) == ("A1", 251_000)
    with pytest.raises(PageError, match="Unauthorized"):
        browser.pay("checkout", [*ASKED.items(), ("amount", "1.00")])


def test_a_run_that_differs_is_refused(world: World) -> None:
    """What the hash covers it covers: no digit comes in, goes away or changes its place."""
    browser = HostileBrowser(world)

    for changes in ({"amount": "2511.00"}, {"order_id": "A2"}, {"currency": "USD"}, {"order_id": "A12"}):
        with pytest.raises(PageError, match="Unauthorized"):
            browser.enter("checkout", edited(ASKED, **changes))
