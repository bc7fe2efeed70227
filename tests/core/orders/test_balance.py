"""The balance of an order, by one row for each kind of history."""

import msgspec
import pytest
from tests.core.orders.balance_rows import CAPTURE, CHARGE, HELD, HELD_PAGE, PART, REFUND, ROWS
from tests.core.orders.order_facts import LAPSE, chargeback, facts_of, hold, imported, installment, op, page, seen

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.figures import DoubtKind, Figure, OrderBalance
from payrelay.core.payments.operation import Kind


def test_each_kind_of_history_has_its_figures() -> None:
    """Support, accounting and refusals read these figures: a wrong one gives money away or keeps it back."""
    balances = {row.name: balance_of(facts_of(*row.history), now_ms=10_000) for row in ROWS}
    found = {name: (*_sums(each), sorted(doubt.kind for doubt in each.doubts)) for name, each in balances.items()}
    assert found == {
        row.name: (row.paid, row.held, row.given_back, row.charged_back, row.left, sorted(row.doubts)) for row in ROWS
    }


def _sums(balance: OrderBalance) -> tuple[int | None, int, int, int, int | None]:
    """Adds up the payments; paid and left are None where one isn't known, and where no money moved."""
    paid = [each.paid_minor for each in balance.payments]
    left = [each.left_minor for each in balance.payments]
    return (
        None if None in paid or not paid else sum(each or 0 for each in paid),
        sum(each.held_minor for each in balance.payments),
        sum(each.given_back_minor for each in balance.payments),
        sum(each.charged_back_minor for each in balance.payments),
        None if None in left or not left else sum(each or 0 for each in left),
    )


def test_each_figure_says_where_it_comes_from() -> None:
    """Support tells a customer who refunded what, and an accountant follows a sum to its operations."""
    (payment,) = balance_of(facts_of(HELD, CAPTURE, PART, chargeback(amount_minor=1_000)), now_ms=0).payments
    assert {
        figure: [(each.source, each.id, each.amount_minor) for each in payment.of(figure)] for figure in Figure
    } == {
        Figure.PAID: [("chargeback", "ntf_1", None), ("operation", CAPTURE.id, 6_000)],
        Figure.HELD: [("operation", HELD.id, 10_000)],
        Figure.GIVEN_BACK: [("operation", PART.id, 3_000)],
        Figure.CHARGED_BACK: [("chargeback", "ntf_1", 1_000)],
    }


def test_a_hold_says_until_when_it_can_be_captured() -> None:
    """The gateway lets a hold lapse after seven days; whoever captures later gets nothing."""
    (payment,) = balance_of(facts_of(HELD), now_ms=999 + LAPSE).payments
    assert (payment.held_until_ms, balance_of(facts_of(HELD), now_ms=1_000 + LAPSE).payments[0].held_minor) == (
        1_000 + LAPSE,
        0,
    )


def test_a_hold_hides_no_other_hold_of_its_order() -> None:
    """One report is kept for an order: where it may be of each of two pages, both are held as far as is known."""
    other = page(CheckoutKind.AUTHORIZATION, CheckoutState.NOTIFIED, 2, amount_minor=20_000, first_minor=20_000)
    balance = balance_of(facts_of(HELD_PAGE, other, hold()), now_ms=2_000)

    assert [(each.id, each.held_minor) for each in balance.payments] == [("chk_1", 10_000), ("chk_2", 20_000)]


def test_rows_that_somebody_changed_are_a_doubt() -> None:
    """Nothing of them is believed, and nobody is told that all is well."""
    balance = balance_of(msgspec.structs.replace(facts_of(CHARGE), wrong=("operations/op_9",)), now_ms=0)
    assert ([(each.kind, each.id) for each in balance.doubts], balance.is_certain) == (
        [(DoubtKind.FORGED, "operations/op_9")],
        False,
    )


def test_an_order_with_too_much_has_no_figures() -> None:
    """Figures of a part of it would be wrong ones."""
    balance = balance_of(msgspec.structs.replace(facts_of(CHARGE), is_complete=False), now_ms=0)
    assert (balance.is_complete, balance.payments, balance.currencies) == (False, (), ())
    assert [each.kind for each in balance.doubts] == [DoubtKind.TOO_MANY]


def test_an_order_with_too_much_has_its_other_doubts() -> None:
    """Whoever asks whether a recovery lasts must be told, however much is stored."""
    facts = msgspec.structs.replace(facts_of(CHARGE), is_complete=False, may_lack_more=True, wrong=("operations/op_9",))
    kinds = {each.kind for each in balance_of(facts, now_ms=0).doubts}
    assert kinds == {DoubtKind.TOO_MANY, DoubtKind.LOST_COMMITS, DoubtKind.FORGED}


def test_a_payment_that_only_a_wrong_row_named_is_no_payment_of_the_order() -> None:
    """Whoever changes a page's payment in the database must not have another order's money counted."""
    others = (op(Kind.CHARGE, 2, order_id="B-1", payment_id="5"), seen(order_id="B-1", payment_id="5"))
    facts = facts_of(
        CHARGE, *others, installment("5"), msgspec.structs.replace(imported(), payment_id="6", order_id="B")
    )
    facts = msgspec.structs.replace(facts, subscriptions=frozenset())
    assert balance_of(facts, now_ms=0) == balance_of(facts_of(CHARGE), now_ms=0)


def test_a_payment_knows_whether_it_is_certain_and_whether_something_is_left() -> None:
    """What is certain may be told without a but; what has nothing left is as if it weren't paid."""
    (whole,), (part,) = (balance_of(facts_of(CHARGE, each), now_ms=0).payments for each in (REFUND, PART))
    assert ((whole.is_certain, whole.is_paid), (part.is_certain, part.is_paid)) == ((True, False), (False, True))
    assert balance_of(facts_of(CHARGE), now_ms=0).payment("9") is None


@pytest.mark.parametrize(
    "history", [(CHARGE,), (HELD_PAGE,), (installment(),), (imported(),), (seen(),), (chargeback(),)]
)
def test_an_order_of_which_anything_is_stored_is_known(history: tuple[object, ...]) -> None:
    """An order that nobody here knows is not found; every other one is."""
    assert (facts_of(*history).is_known, facts_of().is_known) == (True, False)


def test_lost_commits_leave_nothing_certain() -> None:
    """What was made in the lost time isn't here, and may be known again later."""
    balance = balance_of(msgspec.structs.replace(facts_of(CHARGE), may_lack_more=True), now_ms=0)
    assert [each.kind for each in balance.doubts] == [DoubtKind.LOST_COMMITS]


def test_every_doubt_has_a_sentence_for_people() -> None:
    """The word alone tells a program; a person reads why."""
    assert all(each.sentence for each in DoubtKind)
