"""Whether a refund that the gateway's record shows was made here, by when its answer came."""

import pytest
from tests.core.orders.order_facts import facts_of, op, returned, seen

from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.figures import DoubtKind
from payrelay.core.payments.operation import Kind
from payrelay.core.payments.payment import PaymentStatus

REFUNDED = PaymentStatus.REFUNDED
ASKED_MS = 1_000


@pytest.mark.parametrize(
    ("sent_within_ms", "shown", "is_elsewhere"),
    [
        pytest.param(10_000, [returned(REFUNDED, ASKED_MS)], False, id="told since it was asked for"),
        pytest.param(
            *(10_000, [seen(REFUNDED, ASKED_MS - 9), returned(REFUNDED, ASKED_MS + 1)], False),
            id="done while the gateway was asked for the record",
        ),
        pytest.param(10_000, [returned(REFUNDED, ASKED_MS - 1)], True, id="told before it was asked for"),
        pytest.param(
            10_000, [seen(REFUNDED, ASKED_MS - 1)], True, id="of an answer of which only the call's time is known"
        ),
        pytest.param(
            0, [returned(REFUNDED, ASKED_MS - 1)], False, id="done by an earlier try, and told before this one"
        ),
    ],
)
@pytest.mark.parametrize("amount_minor", [None, 3_000])
def test_a_refund_is_elsewhere_where_none_made_here_explains_it(
    sent_within_ms: int, shown: list[object], amount_minor: int | None, *, is_elsewhere: bool
) -> None:
    """A doubt where everything is known would be a false statement to support, and would refuse what is left."""
    refund = op(Kind.REFUND, amount_minor=amount_minor, created_at_ms=ASKED_MS, send_by_ms=ASKED_MS + sent_within_ms)
    doubts = balance_of(facts_of(op(Kind.CHARGE), refund, *shown), now_ms=4_000).doubts
    assert any(each.kind is DoubtKind.REFUND_NOT_MADE_HERE for each in doubts) is is_elsewhere
