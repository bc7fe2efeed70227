import hashlib
from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.calls import Item
from payrelay.core.checkouts.hosted_payment import Buyer, CheckoutKind, HostedPayment, Plan, PostalAddress
from payrelay.core.money import decimal_text
from payrelay.core.secret import Secret
from payrelay.gateways.gateway import ReturnUrls
from payrelay.gateways.payhere.account import Account, signer_of
from payrelay.gateways.payhere.wire.checkout_forms import HashAmounts, Merchant, build_form, hash_of, md5_capitals

TODAY = date(2026, 11, 21)
MERCHANT = Merchant(
    base_url="https://sandbox.payhere.lk", merchant_id="1211149", merchant_secret=Secret("MzExMTIyMjMzMw==")
)
OLDER = Merchant(base_url="https://sandbox.payhere.lk", merchant_id="2xxxxx", merchant_secret=Secret("x" * 32))
RETURNS = ReturnUrls(
    return_url="https://pay.example/gateway/checkouts/chk_1/s/return",
    cancel_url="https://pay.example/gateway/checkouts/chk_1/s/cancel",
    notify_url="https://pay.example/gateway/notifications",
)
PERSON = Buyer(
    first_name="Saman",
    last_name="Perera",
    email="saman@example.com",
    phone="0771234567",
    home=PostalAddress(address="No. 1, Galle Road", city="Colombo", country="Sri Lanka"),
)
ASKED = HostedPayment(
    kind=CheckoutKind.PAYMENT,
    order_id="Order12345",
    items="Door bell",
    currency="LKR",
    amount_minor=100_000,
    person=PERSON,
)
PLAN = Plan(recurrence="1 Month", duration="1 Year")


def asked(**members: object) -> HostedPayment:
    """What is asked, but for what is named."""
    return msgspec.structs.replace(ASKED, **members)


def signed(amount: str, currency: str = "LKR") -> str:
    """The hash of an amount, written out from the gateway's documents once more."""
    secret = hashlib.md5(b"MzExMTIyMjMzMw==").hexdigest().upper()  # noqa: S324, the gateway's choice
    text = f"1211149Order12345{amount}{currency}{secret}"
    return hashlib.md5(text.encode()).hexdigest().upper()  # noqa: S324, the gateway's choice


@pytest.mark.parametrize(
    ("merchant", "what", "expected"),
    [
        (OLDER, asked(order_id="12345"), "D76F7AB16EDBE176244577AE8A46F460"),
        (MERCHANT, ASKED, "B34BC29666CF0280A3097909DFBE8477"),
        (MERCHANT, asked(kind=CheckoutKind.PREAPPROVAL, amount_minor=None), "12E6311FAC0CF7E212848DBE2A8C4163"),
        (
            MERCHANT,
            asked(kind=CheckoutKind.PREAPPROVAL, amount_minor=None, currency="USD"),
            "831DAF168351610953854C62D35679F3",
        ),
    ],
    ids=["older", "payment", "approval in rupees", "approval in dollars"],
)
def test_hashes_are_those_of_the_vectors(merchant: Merchant, what: HostedPayment, expected: str) -> None:
    """The gateway refuses a form with any other one, in front of the customer."""
    assert hash_of(merchant, what, today=TODAY) == expected


def test_the_digest_of_the_secret_is_in_capitals() -> None:
    """Not the secret: that is what most who are refused have done."""
    assert md5_capitals("x" * 32) == "DC8FE1D6497EBD23F5975D8D2A1C5E81"
    assert md5_capitals("MzExMTIyMjMzMw==") == "312A50CD80B9270F0260D6CB4749C732"


@pytest.mark.parametrize(
    ("what", "amount", "currency"),
    [
        (asked(kind=CheckoutKind.PREAPPROVAL), "1000.00", "LKR"),
        (asked(kind=CheckoutKind.AUTHORIZATION), "1000.00", "LKR"),
        (asked(plan=PLAN), "1000.00", "LKR"),
        (asked(plan=msgspec.structs.replace(PLAN, startup_fee_minor=25_050)), "1250.50", "LKR"),
        (asked(plan=msgspec.structs.replace(PLAN, startup_fee_minor=-25_050)), "749.50", "LKR"),
        (asked(plan=msgspec.structs.replace(PLAN, starts_on=date(2026, 11, 22))), "10.00", "LKR"),
        (asked(plan=msgspec.structs.replace(PLAN, starts_on=date(2026, 11, 22)), currency="USD"), "0.50", "USD"),
        (asked(plan=msgspec.structs.replace(PLAN, starts_on=TODAY)), "1000.00", "LKR"),
        (
            asked(plan=msgspec.structs.replace(PLAN, starts_on=date(2027, 1, 1), startup_fee_minor=100)),
            "10.00",
            "LKR",
        ),
    ],
)
def test_the_hashed_amount_is_the_first_charge(what: HostedPayment, amount: str, currency: str) -> None:
    """The field `amount` stays the recurring part; the hash has the first payment, or the gateway's own amount."""
    form = build_form(MERCHANT, what, RETURNS, today=TODAY)

    assert form.fields["hash"] == signed(amount, currency)
    assert form.fields["amount"] == "1000.00"


@pytest.mark.parametrize(
    ("what", "amount", "currency"),
    [
        (asked(kind=CheckoutKind.PREAPPROVAL, amount_minor=None), "11.00", "LKR"),
        (asked(kind=CheckoutKind.PREAPPROVAL, amount_minor=None, currency="USD"), "1.01", "USD"),
        (asked(plan=msgspec.structs.replace(PLAN, starts_on=date(2027, 1, 1))), "12.00", "LKR"),
        (asked(plan=msgspec.structs.replace(PLAN, starts_on=date(2027, 1, 1)), currency="EUR"), "0.60", "EUR"),
    ],
)
def test_the_gateways_own_amounts_can_be_set(what: HostedPayment, amount: str, currency: str) -> None:
    """It has changed one of them overnight, and on live before its sandbox."""
    amounts = HashAmounts(
        preapproval_lkr_minor=1_100, preapproval_other_minor=101, trial_lkr_minor=1_200, trial_other_minor=60
    )
    merchant = msgspec.structs.replace(MERCHANT, amounts=amounts)

    assert hash_of(merchant, what, today=TODAY) == signed(amount, currency)


@given(st.integers(1, 10**14 - 1))
def test_every_amount_is_written_with_two_decimals_and_a_point(amount_minor: int) -> None:
    """Separators of thousands or a missing zero make another hash."""
    form = build_form(MERCHANT, asked(amount_minor=amount_minor), RETURNS, today=TODAY)

    assert form.fields["amount"] == decimal_text(amount_minor)
    assert form.fields["hash"] == signed(decimal_text(amount_minor))
    assert form.fields["amount"].replace(".", "").isdigit()


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (CheckoutKind.PAYMENT, "https://sandbox.payhere.lk/pay/checkout"),
        (CheckoutKind.RECURRING, "https://sandbox.payhere.lk/pay/checkout"),
        (CheckoutKind.PREAPPROVAL, "https://sandbox.payhere.lk/pay/preapprove"),
        (CheckoutKind.AUTHORIZATION, "https://sandbox.payhere.lk/pay/authorize"),
    ],
)
def test_each_kind_goes_to_its_page(kind: CheckoutKind, address: str) -> None:
    """At another one the customer reads of an unexpected error."""
    assert build_form(MERCHANT, asked(kind=kind), RETURNS, today=TODAY).action == address


def test_a_plain_payment_posts_what_is_required_and_nothing_else() -> None:
    """What isn't known isn't said."""
    assert build_form(MERCHANT, ASKED, RETURNS, today=TODAY).fields == {
        "merchant_id": "1211149",
        "return_url": RETURNS.return_url,
        "cancel_url": RETURNS.cancel_url,
        "notify_url": RETURNS.notify_url,
        "first_name": "Saman",
        "last_name": "Perera",
        "email": "saman@example.com",
        "phone": "0771234567",
        "address": "No. 1, Galle Road",
        "city": "Colombo",
        "country": "Sri Lanka",
        "order_id": "Order12345",
        "items": "Door bell",
        "currency": "LKR",
        "amount": "1000.00",
        "hash": "B34BC29666CF0280A3097909DFBE8477",
    }


def test_everything_that_can_be_said_is_posted() -> None:
    """Every field of the gateway's four pages."""
    plan = Plan(
        recurrence="2 Week",
        duration="Forever",
        startup_fee_minor=-5_000,
        auto_cancel=False,
        max_retries=3,
        is_recovery_due=True,
        starts_on=date(2026, 12, 24),
    )
    what = asked(
        delivery=PostalAddress(address="No. 2", city="Kandy", country="Sri Lanka"),
        item_list=(
            Item(name="Bell", number="b-1", quantity=2, unit_amount_minor=25_000),
            Item(name="Button", number="b-2", quantity=1, unit_amount_minor=50_005),
        ),
        custom_1="a",
        custom_2="b",
        platform="app",
        payment_method="VISA",
        plan=plan,
    )
    fields = build_form(MERCHANT, what, RETURNS, today=TODAY).fields

    assert {name: fields[name] for name in list(fields)[16:]} == {
        "delivery_address": "No. 2",
        "delivery_city": "Kandy",
        "delivery_country": "Sri Lanka",
        "item_name_1": "Bell",
        "item_number_1": "b-1",
        "amount_1": "250.00",
        "quantity_1": "2",
        "item_name_2": "Button",
        "item_number_2": "b-2",
        "amount_2": "500.05",
        "quantity_2": "1",
        "platform": "app",
        "custom_1": "a",
        "custom_2": "b",
        "payment_method": "VISA",
        "recurrence": "2 Week",
        "duration": "Forever",
        "startup_fee": "-50.00",
        "auto_cancel": "false",
        "max_retries": "3",
        "recurring_start_date": "2026-12-24",
        "is_recovery_due": "true",
    }


def test_an_approval_that_charges_nothing_posts_no_amount() -> None:
    """An amount would be charged beside the approval."""
    fields = build_form(MERCHANT, asked(kind=CheckoutKind.PREAPPROVAL, amount_minor=None), RETURNS, today=TODAY).fields

    assert "amount" not in fields


def test_a_form_prints_nothing_of_the_customer() -> None:
    """It may stand in a traceback."""
    assert "Saman" not in repr(build_form(MERCHANT, ASKED, RETURNS, today=TODAY))


@pytest.mark.parametrize("missing", ["merchant_id", "merchant_secret"])
def test_without_id_or_secret_nothing_is_signed(missing: str) -> None:
    """The gateway would refuse it in front of the customer."""
    account = Account(
        name="gateway",
        environment="sandbox",
        base_url="https://sandbox.payhere.lk/",
        app_id="a",
        app_secret=Secret("s"),
        merchant_id="1211149",
        merchant_secret=Secret("MzExMTIyMjMzMw=="),
    )

    assert signer_of(account) == MERCHANT
    assert signer_of(msgspec.structs.replace(account, **{missing: None})) is None
