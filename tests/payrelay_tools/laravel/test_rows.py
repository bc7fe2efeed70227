"""Rows as items: laravel-payhere's tables of every published version."""

import pytest
from tests.laravel_shop import APP_KEY_TEXT, encrypted, payment, subscription

from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.secret import Secret
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.imports.rules.items import CardItem, Item, NoItem, PaymentItem, PlanItem, SourceRow
from payrelay_tools.laravel.rows import is_of_laravel, items_of_laravel
from payrelay_tools.laravel.secrets import AppKeys

KEYS = AppKeys([Secret(APP_KEY_TEXT)])
TOKEN = "59AFEE022CC69CA39D325E1B59130862"


def items(row: dict[str, object], *, is_own: bool | None = True) -> list[Item]:
    """Gives the items of a row of laravel-payhere's."""
    values = {name: None if value is None else str(value) for name, value in row.items()}
    source = SourceRow(table="t", place="t 1", values=values)
    return list(items_of_laravel(source, KEYS, "UTC", lambda _: is_own))


def reasons(row: dict[str, object]) -> list[tuple[bool, str]]:
    """Gives why the items of a row are none."""
    return [(each.is_refused, each.reason) for each in items(row) if isinstance(each, NoItem)]


def test_a_payment_is_a_payment() -> None:
    """Whether its columns are encrypted or not."""
    [plain] = items(payment(1))
    [opened] = items(encrypted(payment(1)))

    assert plain == opened
    assert isinstance(plain, PaymentItem)
    assert (plain.payment_id, plain.order_id, plain.amount_minor, plain.currency, plain.status) == (
        "320025000001",
        "1001",
        125_050,
        "LKR",
        PaymentStatus.RECEIVED,
    )
    assert plain.name == "payment 320025000001"


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"refunded": 1}, PaymentStatus.REFUNDED),
        ({"refunded": "true"}, PaymentStatus.REFUNDED),
        ({"refunded": "T"}, PaymentStatus.REFUNDED),
        ({"refunded": "f"}, PaymentStatus.RECEIVED),
        ({"status_code": "-3"}, PaymentStatus.CHARGED_BACK),
    ],
)
def test_a_payment_that_was_given_back_is_told_so(members: dict[str, object], status: PaymentStatus) -> None:
    """It has an owner all the same, and nobody refunds it by mistake."""
    [item] = items(payment(1, **members))

    assert isinstance(item, PaymentItem)
    assert item.status is status


def test_an_approval_is_a_card_and_its_payment() -> None:
    """The card keeps the order of its approval: so a removed customer doesn't come back."""
    card, paid = items(encrypted(payment(1, customer_token=TOKEN)))

    assert isinstance(card, CardItem)
    assert card.token == Secret(TOKEN)
    assert (card.reference, card.order_id, card.card_expiry) == ("7", "1001", "1229")
    assert TOKEN not in repr(card)
    assert card.name == "card of order 1001"
    assert isinstance(paid, PaymentItem)


def test_an_installment_is_a_payment_and_its_subscription() -> None:
    """Versions without the gateway's number in their own table tell of subscriptions only so."""
    row = payment(1, subscription_id="420075000001", item_rec_status="0", item_rec_install_paid=3)
    paid, plan = items(row | {"item_rec_date_next": "2026-12-25"})

    assert isinstance(plan, PlanItem)
    assert (plan.subscription_id, plan.state, plan.paid, plan.next_on) == (
        "420075000001",
        SubscriptionState.ACTIVE,
        3,
        "2026-12-25",
    )
    assert plan.name == "subscription 420075000001"
    assert isinstance(paid, PaymentItem)
    assert plan.payment_id == paid.payment_id


@pytest.mark.parametrize(
    ("message", "state"),
    [("RECURRING_COMPLETE", SubscriptionState.COMPLETED), ("RECURRING_STOPPED", SubscriptionState.STOPPED)],
)
def test_a_message_that_ends_a_subscription_ends_it(message: str, state: SubscriptionState) -> None:
    """Whatever the number beside it says."""
    *_, plan = items(payment(1, subscription_id="42", message_type=message))

    assert isinstance(plan, PlanItem)
    assert plan.state is state


def test_a_payment_under_the_name_of_a_later_column_is_one_too() -> None:
    """The package's own shop had another name for it."""
    row = payment(1)
    row["payhere_payment_id"] = row.pop("payment_id")

    assert isinstance(items(row)[0], PaymentItem)


@pytest.mark.parametrize(
    ("members", "is_refused", "why"),
    [
        ({"status_code": "0"}, True, "pending"),
        ({"status_code": "-1"}, False, "cancelled"),
        ({"status_code": "-2"}, False, "failed"),
        ({"status_code": "3"}, True, "authorization"),
        ({"status_code": "7"}, True, "status_code"),
        ({"status_code": None}, True, "status_code is missing"),
        ({"payment_id": None}, False, "payment_id is missing"),
        ({"payhere_amount": "1e20"}, True, "payhere_amount"),
        ({"payhere_currency": "Rs"}, True, "payhere_currency"),
        ({"refunded": "maybe"}, True, "refunded is neither 1 nor 0"),
        ({"subscription_id": "42", "item_rec_status": "7"}, True, "item_rec_status is none"),
        ({"customer_token": TOKEN, "card_expiry": "13/29"}, True, "card_expiry must be a month and a year"),
        ({"customer_token": TOKEN, "method": "V" * 33}, True, "method has more than 32"),
        ({"customer_token": TOKEN, "card_no": "*" * 33}, True, "card_no has more than 32"),
        ({"customer_token": TOKEN, "status_code": "-3"}, False, "its card is left out"),
    ],
)
def test_what_is_no_payment_says_why(members: dict[str, object], *, is_refused: bool, why: str) -> None:
    """What took no money is passed over; what may have, or can't be read, is refused."""
    [(found, reason)] = reasons(payment(1, **members))

    assert found is is_refused
    assert why in reason


def test_a_row_with_a_wrong_part_gives_nothing_of_it() -> None:
    """A card whose payment can't be read comes with the next, mended file."""
    assert [type(each) for each in items(payment(1, customer_token=TOKEN, payhere_amount="x"))] == [NoItem]


def test_a_row_of_another_merchant_is_refused() -> None:
    """One database may serve two shops."""
    assert [type(each) for each in items(payment(1), is_own=False)] == [NoItem]
    assert [type(each) for each in items(payment(1), is_own=None)] == [PaymentItem]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("0", SubscriptionState.ACTIVE),
        ("1", SubscriptionState.COMPLETED),
        ("-1", SubscriptionState.STOPPED),
        ("Active", SubscriptionState.ACTIVE),
        ("FAILED", SubscriptionState.STOPPED),
    ],
)
def test_the_table_of_subscriptions_tells_their_states(status: str, state: SubscriptionState) -> None:
    """In numbers, and in the words of the first versions."""
    [plan] = items(subscription(1, payhere_subscription_id="420075000001", status=status))

    assert isinstance(plan, PlanItem)
    assert plan.state is state


@pytest.mark.parametrize(
    ("members", "is_refused"),
    [
        ({"payhere_subscription_id": 42, "status": "-3"}, False),
        ({"payhere_subscription_id": 42, "status": None}, False),
        ({"payhere_subscription_id": None}, False),
        ({"payhere_subscription_id": 42, "status": "odd"}, True),
    ],
)
def test_what_is_no_subscription_yet_is_none(members: dict[str, object], *, is_refused: bool) -> None:
    """A customer who never paid has a row there, too."""
    [(found, _)] = reasons(subscription(1, **members))

    assert found is is_refused


def test_other_tables_are_none_of_the_package() -> None:
    """Every shop has a table with an order."""
    assert not is_of_laravel(frozenset({"id", "order_id", "status"}))
