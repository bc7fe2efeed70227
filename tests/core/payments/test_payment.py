import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.payments.payment import (
    LOOK_S_MAX,
    LOOK_S_MIN,
    MISSING_MAX,
    PaymentStatus,
    TakenPayment,
    look_again_s,
    missing_ids,
    missing_sentence,
)

HOUR_MS = 3_600_000


def taken(payment_id: str | None = "320", *, known_at_ms: int = 0) -> TakenPayment:
    """Gives a payment that took money."""
    return TakenPayment(payment_id=payment_id, made_by="op_1", owner="shop", known_at_ms=known_at_ms)


@pytest.mark.parametrize(
    ("stored", "status"),
    [
        ("RECEIVED", PaymentStatus.RECEIVED),
        ("REFUND REQUESTED", PaymentStatus.REFUND_REQUESTED),
        ("REFUND PROCESSING", PaymentStatus.REFUND_PROCESSING),
        ("REFUNDED", PaymentStatus.REFUNDED),
        ("CHARGEBACKED", PaymentStatus.CHARGED_BACK),
    ],
)
def test_the_words_that_are_stored_stay_as_they_are(stored: str, status: PaymentStatus) -> None:
    """Databases that are there have them, and a statement asks for one of them."""
    assert PaymentStatus(stored) is status


@given(st.lists(st.none() | st.integers(1, 10**19 - 1).map(str), max_size=3 * MISSING_MAX))
def test_missing_payments_are_named_once_and_in_order(numbers: list[str | None]) -> None:
    """A header has room for so many: the newest, for which a client looks. One without a number can't be named."""
    named = missing_ids(map(taken, numbers))
    known = sorted({int(number) for number in numbers if number is not None})

    assert [int(number) for number in named] == known[-MISSING_MAX:]


@pytest.mark.parametrize(
    ("payment_ids", "named"),
    [
        ((), "by a payment whose number is not known,"),
        (("320",), "by the payment 320,"),
        (("320", "321"), "by the payments 320, 321,"),
    ],
)
def test_a_sentence_names_the_payments_that_are_not_shown(payment_ids: tuple[str, ...], named: str) -> None:
    """A person who reads it finds the payment, and doesn't take the money once more."""
    sentence = missing_sentence(payment_ids)

    assert sentence.startswith("money was taken ")
    assert named in sentence


@pytest.mark.parametrize(
    ("age_ms", "seconds"),
    [(-HOUR_MS, LOOK_S_MIN), (0, LOOK_S_MIN), (60_000, 6), (HOUR_MS, 360), (10 * HOUR_MS, LOOK_S_MAX)],
)
def test_the_longer_a_payment_is_known_the_later_one_looks_again(age_ms: int, seconds: int) -> None:
    """It mostly shows within moments. What hasn't for hours costs the gateway's budget a call every ten minutes."""
    now_ms = 100 * HOUR_MS
    older = taken(known_at_ms=0)

    assert look_again_s([older, taken(known_at_ms=now_ms - age_ms)], now_ms) == seconds
