"""The text that a signature covers: one for every border between order and amount, and another one for all else."""

from datetime import date
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.world import CHARGE
from tests.samples import ASKED

from payrelay.core.calls import Capture, Effect, Refund
from payrelay.core.checkouts.hosted_payment import CheckoutKind, HostedPayment, Plan
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.keyed_digest import DigestKey
from payrelay.core.money import decimal_text
from payrelay.gateways.gateway import HostedPage, ReturnUrls
from payrelay.gateways.payhere.wire.checkout_forms import HashAmounts, signed_texts_of
from payrelay.gateways.payhere.wire.signed_texts import readings_of

TODAY: Final = date(2026, 11, 21)
KEY: Final = DigestKey(b"k" * 32, "signed text")
PLAN: Final = Plan(recurrence="1 Month", duration="1 Year", startup_fee_minor=2_500)

orders = st.text(st.sampled_from("A1250-,. "), min_size=1, max_size=12)
amounts = st.integers(min_value=1, max_value=99_999_999_999_999)
texts = st.builds(SignedText, order_id=orders, amount_minor=amounts, currency=st.sampled_from(["LKR", "USD"]))


def joined(text: SignedText) -> str:
    """Writes what the gateway signs, once more by its documents."""
    return f"{text.order_id}{decimal_text(text.amount_minor)}{text.currency}"


def page(**members: object) -> HostedPage:
    """Gives a page for what is asked, but for what is named."""
    returns = ReturnUrls(return_url="", cancel_url="", notify_url="")
    payment: HostedPayment = msgspec.structs.replace(ASKED, **members)
    return HostedPage(checkout_id="chk_1", payment=payment, returns=returns, today=TODAY)


def signed_minor(subject: HostedPage | Effect, amounts: HashAmounts | None = None) -> list[int | None]:
    """Gives the signed amounts."""
    return [text.amount_minor for text in signed_texts_of(subject, amounts or HashAmounts())]


@settings(max_examples=examples(300))
@given(one=texts, other=texts)
def test_two_digests_are_equal_where_the_signed_texts_are(one: SignedText, other: SignedText) -> None:
    """A digest that told two splits of a text apart would let the one be taken for the other."""
    assert (KEY.digest(*one.digested) == KEY.digest(*other.digested)) is (joined(one) == joined(other))


@settings(max_examples=examples(300))
@given(text=texts)
def test_every_split_of_a_text_is_read_and_has_one_digest(text: SignedText) -> None:
    """Whatever split the sender of a notification chooses, everything that has its text is found."""
    amount = decimal_text(text.amount_minor)
    run = text.order_id + amount
    readings = readings_of(text.order_id, amount, text.currency)

    assert text in readings
    for reading in readings:
        border = len(reading.order_id)
        if run[border:] == decimal_text(reading.amount_minor):  # as forms have it
            assert reading.digested == text.digested
        again = readings_of(run[:border], run[border:], text.currency)
        assert set(again) == set(readings)


@pytest.mark.parametrize(
    ("order_id", "amount", "found"),
    [
        ("A1", "2510.00", {("A1", 251_000), ("A12", 51_000), ("A125", 1_000)}),
        ("A125", "10.00", {("A1", 251_000), ("A12", 51_000), ("A125", 1_000)}),
        ("A1", "2,510.00", {("A1", 251_000), ("A", 1_251_000), ("A12,", 51_000), ("A12,5", 1_000)}),
        ("319486", "599.00", {("3194865", 9_900), ("31948659", 900)}),
        ("B", "10.5", {("B", 1_050)}),
        ("B", "10.500", {("B", 1_050)}),
        ("B", "10.501", set()),
        ("B", "0.00", set()),
        ("7", "10.00", {("7", 1_000)}),
    ],
)
def test_what_a_notification_may_be_read_as(order_id: str, amount: str, found: set[tuple[str, int]]) -> None:
    """Each border that leaves an amount: the gateway never writes one with a zero before it."""
    readings = {(each.order_id, each.amount_minor) for each in readings_of(order_id, amount, "LKR")}

    assert readings >= found
    assert all(amount_minor for _, amount_minor in readings)


def test_a_long_order_is_read_as_quickly_as_a_short_one() -> None:
    """Whoever posts an order of 255 digits must not buy time with it."""
    assert len(readings_of("9" * 255, "10.00", "LKR")) < 40


@pytest.mark.parametrize("kind", [CheckoutKind.PAYMENT, CheckoutKind.AUTHORIZATION, CheckoutKind.PREAPPROVAL])
def test_a_form_has_the_amount_that_is_asked(kind: CheckoutKind) -> None:
    """It stands in the hash with two decimals."""
    assert signed_minor(page(kind=kind)) == [ASKED.amount_minor]


@pytest.mark.parametrize(("currency", "amount_minor"), [("LKR", 1_000), ("USD", 101)])
def test_a_form_that_charges_nothing_has_the_amount_of_the_settings(currency: str, amount_minor: int) -> None:
    """The text changes with the setting, and each is kept."""
    subject = page(kind=CheckoutKind.PREAPPROVAL, amount_minor=None, currency=currency)

    assert signed_minor(subject, HashAmounts(preapproval_other_minor=101)) == [amount_minor]


def test_the_form_of_a_plan_changes_with_the_day() -> None:
    """Before its first day a trial's amount is signed, and from that day on the first payment; later payments always.

    A form of yesterday is as good as one of today.
    """
    later = msgspec.structs.replace(PLAN, starts_on=date(2026, 11, 22))
    before = page(kind=CheckoutKind.RECURRING, amount_minor=50_000, plan=later)

    assert signed_minor(before) == [1_000, 50_000]
    assert signed_minor(msgspec.structs.replace(before, today=date(2026, 11, 22))) == [50_000, 52_500]


def test_only_a_call_for_an_authorization_has_a_text() -> None:
    """Its notification proves it; that of a charge is only a reason to ask the gateway."""
    hold = msgspec.structs.replace(CHARGE, authorize=True)

    assert signed_minor(hold) == [CHARGE.amount_minor]
    for effect in (
        CHARGE,
        Capture(authorization_token="t", amount_minor=1, description="d"),
        Refund(payment_id="1", description="d"),
    ):
        assert signed_minor(effect) == []
