"""What a refund gives back, or what is in its way, by one row for each history and each amount that is asked for."""

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.orders.order_facts import (
    LAPSE,
    P,
    again,
    chargeback,
    facts_of,
    failed,
    hold,
    imported,
    op,
    page,
    returned,
    seen,
    told,
)
from tests.core.orders.test_balance_laws import histories
from tests.draws import examples

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import DoubtKind, PaymentBalance
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.orders.refunding import (
    NAMED_MAX,
    Obstacle,
    RefundPlan,
    figures_sentence,
    payment_in,
    plan_refund,
    refusal_sentence,
    standing_of,
)
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus

NOW_MS = 10_000
CHARGE = op(Kind.CHARGE)
WHOLE = op(Kind.REFUND, 1, amount_minor=None)
FORTY, SIXTY = op(Kind.REFUND, 2, amount_minor=4_000), op(Kind.REFUND, 3, amount_minor=6_000)
REFUNDED, TAKEN_BACK = PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK
GONE, TAKEN, MORE = Obstacle.GIVEN_BACK, Obstacle.CHARGED_BACK, Obstacle.MORE_THAN_LEFT
UNSEEN = Obstacle.NOT_SEEN_YET
PART_BACK = chargeback(part_minor=3_000)

CONFIRMED = (again(3_000), seen(at_ms=3_000 + SECOND_LOOK_MS))

CONTRADICTED = {DoubtKind.DIFFERENT_AMOUNTS}


class Row(NamedTuple):
    """A history, and for each amount that is asked for what is sent, or what is in the way; None is no amount."""

    name: str
    history: tuple[object, ...]
    answers: dict[int | None, int | Obstacle | None]
    told: str = ""


ROWS = (
    Row("nothing", (), {None: None, 1: 1, 10_000: 10_000}, "nothing is known here of this payment"),
    Row(
        "paid",
        (CHARGE,),
        {None: None, 4_000: 4_000, 10_000: 10_000, 10_001: MORE},
        "LKR 100.00 was paid and LKR 100.00 is left",
    ),
    Row("a page", (page(CheckoutKind.PAYMENT, CheckoutState.COMPLETED),), {None: None, 10_000: 10_000, 10_001: MORE}),
    Row("only held", (op(Kind.AUTHORIZATION), hold()), {None: None, 10_001: 10_001}),
    Row("captured in part", (op(Kind.AUTHORIZATION), op(Kind.CAPTURE, amount_minor=6_000)), {None: None, 6_001: MORE}),
    Row(
        "a part went back",
        (CHARGE, FORTY),
        {None: 6_000, 1: 1, 6_000: 6_000, 6_001: MORE, 10_000: MORE},
        "LKR 100.00 was paid, LKR 40.00 was given back by op_refund_2 (LKR 40.00) and LKR 60.00 is left",
    ),
    Row(
        "parts that are the whole",
        (CHARGE, FORTY, SIXTY),
        {None: GONE, 1: GONE},
        "LKR 100.00 was paid, LKR 100.00 was given back by op_refund_2 (LKR 40.00), op_refund_3 (LKR 60.00)"
        " and nothing is left",
    ),
    Row("the whole went back", (CHARGE, WHOLE), {None: GONE, 1: GONE, 10_000: GONE}),
    Row("a refund that is under way", (CHARGE, op(Kind.REFUND, state=State.UNKNOWN)), {None: None, 10_000: 10_000}),
    Row("a refund that was declined", (CHARGE, op(Kind.REFUND, state=State.REFUSED)), {None: None, 10_000: 10_000}),
    Row(
        "a refund that later news calls failed",
        (CHARGE, WHOLE, failed(WHOLE), returned(REFUNDED, 2_000), *CONFIRMED),
        {None: None, 10_000: 10_000},
    ),
    Row(
        "a refund that one look doesn't show any more",
        (CHARGE, WHOLE, returned(REFUNDED, 2_000), again(3_000), seen(at_ms=3_000)),
        {None: UNSEEN, 1: UNSEEN, 10_000: UNSEEN},
    ),
    Row(
        "a chargeback that one look doesn't show any more",
        (CHARGE, chargeback(), returned(TAKEN_BACK, 3_000), seen(at_ms=9_000)),
        {None: UNSEEN, 1: UNSEEN},
    ),
    Row(
        "a part here, and a record that shows a refund: the rest may have gone back elsewhere",
        (CHARGE, FORTY, seen(REFUNDED)),
        {None: GONE, 1: GONE, 6_000: GONE},
    ),
    Row("a chargeback that no record proves yet", (CHARGE, told()), {None: UNSEEN, 1: UNSEEN, 10_001: UNSEEN}),
    Row("a chargeback of a payment that isn't named", (CHARGE, told(payment_id=None)), {None: UNSEEN}),
    Row("a chargeback of a payment that nothing else knows", (told(),), {None: UNSEEN, 1: UNSEEN}),
    Row("a chargeback of what is only held", (op(Kind.AUTHORIZATION), told()), {None: UNSEEN}),
    Row("a refund that the record doesn't show", (CHARGE, WHOLE, seen(at_ms=9_000)), {None: GONE, 1: GONE}),
    Row(
        "a refund made elsewhere, of which nobody says how much",
        (CHARGE, seen(REFUNDED)),
        {None: GONE, 1: GONE, 4_000: GONE, 9_999: GONE, 10_000: GONE},
    ),
    Row(
        "a refund made elsewhere, and then a part here",
        (CHARGE, returned(REFUNDED, 500), FORTY, seen(REFUNDED)),
        {None: GONE, 1: GONE, 6_000: GONE},
        "LKR 100.00 was paid, LKR 100.00 was given back by op_refund_2 (LKR 40.00), others and nothing is left",
    ),
    Row(
        "a refund made elsewhere, and then a status that nobody knows",
        (CHARGE, returned(REFUNDED, 500), seen(PaymentStatus.OTHER)),
        {None: GONE, 1: GONE},
    ),
    Row("imported as refunded, and then a part here", (imported(REFUNDED), FORTY), {None: GONE, 1: GONE, 6_000: GONE}),
    Row(
        "a part by the bank, the rest here, and a record that shows a refund",
        (CHARGE, PART_BACK, op(Kind.REFUND, 4, amount_minor=7_000), seen(REFUNDED, at_ms=9_000)),
        {None: TAKEN, 1: TAKEN},
    ),
    Row(
        "the whole by the bank, a part here, and a record that shows a refund",
        (CHARGE, chargeback(), FORTY, seen(PaymentStatus.REFUND_REQUESTED, at_ms=9_000)),
        {None: TAKEN, 1: TAKEN},
    ),
    Row(
        "the whole by the bank, and the whole here",
        (CHARGE, chargeback(), WHOLE),
        {None: GONE, 1: GONE},
        "LKR 100.00 was paid, LKR 100.00 was given back by op_refund_1 (LKR 100.00), the payment was charged back as"
        " well and nothing is left",
    ),
    Row("imported as refunded", (imported(REFUNDED),), {None: GONE, 1: GONE}),
    Row(
        "charged back",
        (CHARGE, seen(TAKEN_BACK), chargeback()),
        {None: TAKEN, 1: TAKEN, 10_000: TAKEN},
        "LKR 100.00 was paid, LKR 100.00 was charged back and nothing is left",
    ),
    Row("charged back, by the record alone", (CHARGE, seen(TAKEN_BACK)), {None: TAKEN, 1: TAKEN}),
    Row("imported as charged back", (imported(TAKEN_BACK),), {None: TAKEN, 1: TAKEN}),
    Row("charged back in part", (CHARGE, seen(TAKEN_BACK), PART_BACK), {None: 7_000, 7_000: 7_000, 7_001: MORE}),
    Row("a part back, and the rest by the bank", (CHARGE, FORTY, seen(TAKEN_BACK), chargeback()), {None: TAKEN}),
    Row("the whole back, and by the bank too", (CHARGE, WHOLE, seen(TAKEN_BACK), chargeback()), {None: GONE}),
    Row(
        "a chargeback that was won",
        (CHARGE, chargeback(2_000), *CONFIRMED),
        {None: None, 10_000: 10_000},
    ),
    Row(
        "the amount isn't known, and a part went back",
        (op(Kind.REFUND, 2, amount_minor=4_000),),
        {None: None, 99_999: 99_999},
        "nothing says how much was paid and it was given back by op_refund_2 (LKR 40.00)",
    ),
    Row(
        "the amount isn't known, and the whole went back",
        (WHOLE,),
        {None: GONE, 1: GONE},
        "nothing says how much was paid and it was given back by op_refund_1 (the whole)",
    ),
    Row(
        "the amount isn't known, and the bank took it",
        (chargeback(amount_minor=None),),
        {None: TAKEN, 1: TAKEN},
        "nothing says how much was paid and it was charged back",
    ),
    Row("the amount isn't known, and the bank took a part", (PART_BACK,), {None: None, 99_999: 99_999}),
    Row(
        "two sources name different amounts",
        (CHARGE, seen(amount_minor=12_000), FORTY),
        {None: 6_000, 8_000: 8_000, 8_001: MORE},
    ),
    Row(
        "one amount gone, and another source names more",
        (CHARGE, FORTY, SIXTY, seen(amount_minor=12_000)),
        {None: GONE, 2_000: 2_000, 2_001: GONE},
    ),
    Row(
        "one amount gone, and another source names less",
        (CHARGE, FORTY, seen(amount_minor=9_000)),
        {6_000: 6_000, 6_001: MORE},
    ),
    Row(
        "two sources name different currencies",
        (CHARGE, seen(currency="USD"), FORTY),
        {None: 6_000, 6_000: 6_000, 6_001: MORE},
    ),
    Row(
        "the whole is gone, whatever it was",
        (CHARGE, seen(amount_minor=12_000), WHOLE),
        {None: GONE, 1: GONE},
    ),
    Row("more was given back than was paid", (CHARGE, WHOLE, FORTY), {None: GONE, 1: GONE}),
)


def payment_of(facts: OrderFacts) -> PaymentBalance | None:
    """The balance of payment P."""
    return payment_in(balance_of(facts, now_ms=NOW_MS), P)


def test_what_is_sent_or_in_the_way() -> None:
    """More than was paid is never sent where the amount is known; what nobody knows is left to the gateway."""
    payments = {row.name: payment_of(facts_of(*row.history, order_id=None, payment_id=P)) for row in ROWS}
    plans = {row.name: {asked: plan_refund(payments[row.name], asked) for asked in row.answers} for row in ROWS}
    found = {
        name: {asked: plan.obstacle or plan.amount_minor for asked, plan in each.items()}
        for name, each in plans.items()
    }
    assert found == {row.name: row.answers for row in ROWS}
    named = [WHOLE.id, FORTY.id, SIXTY.id]
    told = {row.name: row.told for row in ROWS if row.told}
    assert {name: figures_sentence(payments[name], named) for name in told} == told


@pytest.mark.parametrize("asked", [None, 1, 10_000])
def test_what_is_not_added_up_is_in_the_way(asked: int | None) -> None:
    """A payment with more than is read has been refunded any number of times: nobody may take it for untouched."""
    facts = msgspec.structs.replace(facts_of(CHARGE, order_id=None, payment_id=P), is_complete=False)
    payment = payment_in(balance_of(facts, now_ms=NOW_MS), P)
    assert payment is not None
    assert plan_refund(payment, asked) == RefundPlan(amount_minor=asked, obstacle=Obstacle.NOT_ADDED_UP)
    assert refusal_sentence(payment, Obstacle.NOT_ADDED_UP) == (
        "nothing says what is left of this payment: more is stored of this payment than the service adds up at once"
    )
    assert standing_of(payment) not in {standing_of(None), standing_of(payment_of(facts_of(CHARGE)))}


def test_a_refusal_says_what_is_not_certain() -> None:
    """A person who insists knows then what the figures rest on."""
    payment = payment_of(facts_of(CHARGE, WHOLE, seen(at_ms=9_000)))
    assert payment is not None
    assert refusal_sentence(payment, GONE) == (
        "this payment is already refunded: LKR 100.00 was paid, LKR 100.00 was given back and nothing is left; the"
        " gateway accepted the refund, and its record, read after that, showed the payment as not refunded"
    )


def test_a_refusal_says_how_much_a_bank_may_have_taken() -> None:
    """Whoever insists knows what was told: no figure has it before the record proves it."""
    for amount_minor, amount in ((2_500, " (LKR 25.00)"), (None, "")):
        payment = payment_of(facts_of(CHARGE, told(amount_minor)))
        assert payment is not None
        assert refusal_sentence(payment, UNSEEN) == (
            "what is left of this payment is not known yet: LKR 100.00 was paid and LKR 100.00 is left; the gateway"
            f" notified a chargeback, and its record of the payment doesn't show it yet{amount}"
        )


def test_refunds_of_others_are_in_the_sum_and_have_no_name() -> None:
    """A key learns how much is gone of its payment, and no id of somebody else's operation."""
    payment = payment_of(facts_of(CHARGE, FORTY, SIXTY))
    assert "LKR 100.00 was given back by op_refund_2 (LKR 40.00), others and" in figures_sentence(payment, [FORTY.id])
    assert "op_" not in figures_sentence(payment)


def test_a_sentence_names_a_few_refunds() -> None:
    """A payment that went back in hundreds of parts has no answer of hundreds of lines."""
    parts = [op(Kind.REFUND, number, amount_minor=1) for number in range(10, 30)]
    told = figures_sentence(payment_of(facts_of(CHARGE, *parts)), [each.id for each in parts])
    assert told.count("op_refund_") == NAMED_MAX


@pytest.mark.parametrize(
    "change",
    [
        (FORTY,),
        (op(Kind.REFUND, state=State.SENDING),),
        (seen(TAKEN_BACK),),
        (chargeback(part_minor=1),),
        (told(),),
        (seen(REFUNDED),),
    ],
)
def test_a_standing_is_another_one_after_each_return(change: tuple[object, ...]) -> None:
    """A page that was shown before it must not be confirmed after it."""
    before, after = facts_of(CHARGE, WHOLE), facts_of(CHARGE, WHOLE, *change)
    assert standing_of(payment_of(before)) == standing_of(payment_of(before))
    if change != (seen(REFUNDED),):  # which is the refund that is known already
        assert standing_of(payment_of(before)) != standing_of(payment_of(after))
    assert standing_of(payment_of(facts_of(CHARGE))) != standing_of(payment_of(facts_of(CHARGE, *change)))


def test_a_standing_stays_while_nothing_moves() -> None:
    """Somebody who only looks, or a hold that lapses, makes no page stale."""
    paid = standing_of(payment_of(facts_of(CHARGE)))
    assert paid == standing_of(payment_of(facts_of(CHARGE, seen())))
    assert paid == standing_of(balance_of(facts_of(CHARGE), now_ms=LAPSE * 2).payment(P))
    assert standing_of(None) == "unknown"


def test_facts_without_an_operation_keep_the_others() -> None:
    """A refund that was just stored is not in its own way."""
    assert facts_of(CHARGE, FORTY).without(FORTY.id) == facts_of(CHARGE)


@given(history=histories(), asked=st.integers(1, 30_000) | st.none())
@settings(max_examples=examples(300))
def test_nothing_is_sent_beyond_what_is_left(history: list[object], asked: int | None) -> None:
    """Whatever the history: where nothing contradicts the figures, what goes out is at most what is left."""
    for payment in balance_of(facts_of(*history), now_ms=NOW_MS).payments:
        plan, doubts = plan_refund(payment, asked), {each.kind for each in payment.doubts}
        if plan.obstacle is not None:
            assert refusal_sentence(payment, plan.obstacle)
        elif payment.paid_minor and payment.left_minor is not None and not doubts & CONTRADICTED:
            sent_minor = payment.paid_minor if plan.amount_minor is None else plan.amount_minor
            assert 0 < sent_minor <= payment.left_minor
