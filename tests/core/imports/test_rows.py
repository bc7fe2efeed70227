"""Rows as items: files in Payrelay's own form."""

import pytest

from payrelay.core.payments.payment import PaymentStatus
from payrelay.imports.rules.csv_rows import csv_rows
from payrelay.imports.rules.items import CardItem, ImportUnreadableError, Item, NoItem, PaymentItem, PlanItem, SourceRow
from payrelay.imports.rules.own_rows import item_of

TOKEN = "59AFEE022CC69CA39D325E1B59130862"


def read(text: str) -> list[SourceRow | NoItem]:
    """Reads a CSV file."""
    return list(csv_rows(text.splitlines(keepends=True)))


def own(text: str) -> list[Item]:
    """Reads a CSV file of Payrelay's own form."""
    return [item_of(each, "UTC", lambda _: None) if isinstance(each, SourceRow) else each for each in read(text)]


def test_each_kind_of_file_is_read() -> None:
    """The three that a shop without laravel-payhere writes."""
    [paid, refunded] = own(
        "\ufeffPayment_ID,order_id,amount,currency,status,paid_at\n1,A,5,LKR,,2026-11-25\n2,A,5,LKR,refunded,\n"
    )
    [plan, ended] = own("subscription_id,order_id,amount,currency,state\n42,A,5,LKR,\n43,B,,,stopped\n")
    [card, nameless] = own(f"customer_token,reference,order_id\n{TOKEN},person-7,\n{TOKEN},,\n")

    assert isinstance(paid, PaymentItem)
    assert isinstance(refunded, PaymentItem)
    assert (paid.status, refunded.status) == (PaymentStatus.RECEIVED, PaymentStatus.REFUNDED)
    assert isinstance(plan, PlanItem)
    assert isinstance(ended, PlanItem)
    assert (plan.state, plan.amount_minor, ended.state, ended.amount_minor) == ("active", 500, "stopped", None)
    assert isinstance(card, CardItem)
    assert (card.name, nameless.name) == ("card of person-7", "card of nobody named")


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("card_expiry", "1/29", "0129"),
        ("card_expiry", "129", "0129"),
        ("card_expiry", "2029-01", "0129"),
        ("method", "VISA", "VISA"),
        ("card_no", "************1292", "************1292"),
        ("card_expiry", "13/29", None),
        ("card_expiry", "Jan-29", None),
        ("card_expiry", "29-01-31", None),
        ("method", "V" * 33, None),
        ("card_no", "*" * 33, None),
    ],
)
def test_what_a_file_tells_of_a_card_is_kept_or_its_line_is_refused(column: str, value: str, shown: str | None) -> None:
    """A card that was called new, and whose expiry was dropped without a word, was noticed when it was declined."""
    [item] = own(f"customer_token,{column}\n{TOKEN},{value}\n")

    if shown is None:
        assert isinstance(item, NoItem)
        assert item.is_refused
        assert item.reason.startswith(f"{column} ")
    else:
        assert isinstance(item, CardItem)
        assert shown in {item.card_expiry, item.method, item.card_no_masked}


def test_a_currency_without_an_amount_is_kept() -> None:
    """It is what the subscription is in, whatever an installment is."""
    [plan] = own("subscription_id,order_id,amount,currency\n42,A,,LKR\n")

    assert isinstance(plan, PlanItem)
    assert (plan.currency, plan.amount_minor) == ("LKR", None)


@pytest.mark.parametrize(
    "text",
    [
        "payment_id,order_id,amount,currency,status\n1,A,5,LKR,odd\n",
        "subscription_id,order_id,state\n42,A,odd\n",
        "customer_token\nshort\n",
        "payment_id,order_id\n1\n",
    ],
)
def test_a_wrong_line_is_refused_with_its_number(text: str) -> None:
    """The others of the file are read."""
    [line] = own(text)

    assert isinstance(line, NoItem)
    assert (line.place, line.name, line.is_refused) == ("line 2", "", True)


def test_a_line_of_another_merchant_is_refused() -> None:
    """As in the tables."""
    [row] = read("payment_id,order_id,amount,currency,merchant_id\n1,A,5,LKR,1999999\n")
    assert isinstance(row, SourceRow)

    assert isinstance(item_of(row, "UTC", lambda _: False), NoItem)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no column that tells"),
        (",a\n", "empty name"),
        ("a,b\n", "no column that tells"),
        ("payment_id,payment_id\n", "one twice"),
        ("payment_id,amonut\n", "'amonut'"),
        ('payment_id\n"1\n', "is not CSV"),
    ],
)
def test_a_file_without_a_head_is_unreadable(text: str, why: str) -> None:
    """A mistyped column that was passed over would import payments without it."""
    with pytest.raises(ImportUnreadableError, match=why):
        read(text)
