"""What follows where a payment's record shows it as received again: nothing at one look, a failure at two."""

import pytest
from tests.core.orders.order_facts import P, again, chargeback, facts_of, failed, imported, op, returned, seen

from payrelay.core.orders.given_back import is_won
from payrelay.core.orders.joining import PaymentFacts, facts_of_one
from payrelay.core.orders.received_again import SECOND_LOOK_MS, failures_in, is_in_question, received_ms
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus

RECEIVED, REFUNDED, TAKEN_BACK = PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK
LATER_MS = 3_000 + SECOND_LOOK_MS
CHARGE, WHOLE = op(Kind.CHARGE), op(Kind.REFUND, amount_minor=None)
BY_AMOUNT, PART = op(Kind.REFUND, 2, currency=None), op(Kind.REFUND, 3, amount_minor=4_000)
LATE = op(Kind.REFUND, 4, amount_minor=None, created_at_ms=2_500)
ADOPTED = op(Kind.REFUND, 5, amount_minor=None, created_at_ms=2_500, send_by_ms=0)
"""What an earlier try did before, whose operation was lost."""
CONFIRMED = (returned(REFUNDED, 2_000), again(3_000), seen(at_ms=LATER_MS))


def facts(*history: object) -> PaymentFacts:
    """Puts the facts of payment P together."""
    return facts_of_one(facts_of(CHARGE, *history, order_id=None, payment_id=P))


@pytest.mark.parametrize(
    ("history", "is_open", "at_ms"),
    [
        ((), False, -1),
        ((seen(REFUNDED),), False, -1),
        ((seen(),), False, 2_000),
        ((seen(), returned(REFUNDED, 2_500)), False, 2_000),
        ((returned(REFUNDED, 1_000), seen()), True, -1),
        ((returned(REFUNDED, 2_000), seen()), True, -1),
        ((returned(REFUNDED, 1_000), again(2_000), seen(at_ms=1_999 + SECOND_LOOK_MS)), True, -1),
        ((returned(REFUNDED, 1_000), again(2_000), seen(at_ms=2_000 + SECOND_LOOK_MS)), False, 2_000 + SECOND_LOOK_MS),
        ((returned(TAKEN_BACK, 1_000), seen()), True, -1),
        ((chargeback(1_000), seen()), True, -1),
        ((imported(REFUNDED), seen()), True, -1),
        ((imported(), seen()), False, 2_000),
        ((returned(REFUNDED, 1_000), returned(RECEIVED, 1_500), seen()), False, 2_000),
        ((returned(REFUNDED, 1_600), returned(RECEIVED, 1_500), seen()), True, 1_500),
        ((returned(REFUNDED, 2_500), returned(RECEIVED, 1_500), seen(REFUNDED)), False, 1_500),
    ],
)
def test_one_look_says_nothing(history: tuple[object, ...], at_ms: int, *, is_open: bool) -> None:
    """A copy at the gateway that lags behind shows a refunded payment as received, exactly as a failed refund does."""
    assert (is_in_question(facts(*history)), received_ms(facts(*history))) == (is_open, at_ms)
    assert is_won(1_000, facts(*history)) is (at_ms > 1_000)


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ((), []),
        ((WHOLE, *CONFIRMED), [WHOLE]),
        ((WHOLE, BY_AMOUNT, LATE, *CONFIRMED), [WHOLE, BY_AMOUNT]),
        ((WHOLE, PART, *CONFIRMED), []),
        ((WHOLE, PART, failed(PART), *CONFIRMED), [WHOLE]),
        ((WHOLE, failed(WHOLE), *CONFIRMED), []),
        ((op(Kind.REFUND, state=State.UNKNOWN, amount_minor=None), *CONFIRMED), []),
        ((op(Kind.REFUND, amount_minor=None, currency="USD"), *CONFIRMED), []),
        ((WHOLE, returned(REFUNDED, 2_000), again(3_000), seen(at_ms=LATER_MS - 1)), []),
        ((WHOLE, returned(REFUNDED, 2_000), seen(at_ms=LATER_MS)), []),
        ((WHOLE, returned(TAKEN_BACK, 2_000), again(3_000), seen(at_ms=LATER_MS)), []),
        ((ADOPTED, *CONFIRMED), [ADOPTED]),
    ],
)
def test_a_refund_fails_at_the_second_look(history: tuple[object, ...], found: list[object]) -> None:
    """Only one that the record showed after it was asked for: a later one may not be shown yet, and a part never is."""
    stored = list(failures_in(facts(*history)))
    assert [each.operation_id for each, _ in stored] == [each.id for each in found]  # type: ignore[attr-defined]
    for fact, event in stored:
        assert (fact.payment_id, fact.known_at_ms, event.at_ms) == (P, LATER_MS, LATER_MS)
        assert event.data["amount"] == "100.00"
        assert (event.type, event.data["operation_id"], event.data["currency"]) == (
            "payment.refund_failed",
            fact.operation_id,
            "LKR",
        )
