import pytest

from payrelay.core.payments.payment import PaymentStatus, status_of


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
    assert (status_of(stored), status.value) == (status, stored)


def test_a_word_that_nobody_knows_is_another_one() -> None:
    """Earlier versions stored whatever word the gateway had."""
    assert status_of("SLEEPING") is PaymentStatus.OTHER
