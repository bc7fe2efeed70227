"""When the hold of a page is over, so that its order is free again."""

from typing import Final

import pytest
from tests.core.orders.order_facts import HASH, LAPSE, facts_of, hold, op, page

from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.orders.facts import AcceptedHold
from payrelay.core.orders.taken import is_hold_over, page_let_go
from payrelay.core.payments.operation import Kind, Operation, State

HELD_PAGE: Final = page(CheckoutKind.AUTHORIZATION, CheckoutState.NOTIFIED)
NOW_MS: Final = 2_000
VOID: Final = op(Kind.VOID, amount_minor=None, payment_id=None)
LAPSED: Final = hold(NOW_MS - LAPSE)
STANDS: Final = hold(NOW_MS - LAPSE + 1)


def part(amount_minor: int, number: int = 1, **members: object) -> Operation:
    """A void that names an amount."""
    return op(Kind.VOID, number, amount_minor=amount_minor, payment_id=None, **members)


CASES: Final[dict[str, tuple[bool, tuple[object, ...]]]] = {
    "reported": (False, (HELD_PAGE, STANDS)),
    "lapsed": (True, (HELD_PAGE, LAPSED)),
    "lapsed, and its report is gone": (True, (page(HELD_PAGE.kind, HELD_PAGE.state, updated_at_ms=NOW_MS - LAPSE),)),
    "voided": (True, (HELD_PAGE, STANDS, VOID)),
    "voided in parts": (True, (HELD_PAGE, STANDS, part(4_000), part(6_000, 2))),
    "voided in part": (False, (HELD_PAGE, STANDS, part(4_000))),
    "another hold was voided": (False, (HELD_PAGE, STANDS, part(10_000, subject="authorization/other"))),
    "captured": (False, (HELD_PAGE, LAPSED, op(Kind.CAPTURE))),
    "captured, and its report is gone": (
        False,
        (page(HELD_PAGE.kind, HELD_PAGE.state, updated_at_ms=NOW_MS - LAPSE), op(Kind.CAPTURE)),
    ),
    "a capture was declined": (True, (HELD_PAGE, LAPSED, op(Kind.CAPTURE, state=State.DECLINED))),
    "a capture has no outcome": (False, (HELD_PAGE, LAPSED, op(Kind.CAPTURE, state=State.UNKNOWN))),
    "a void has no outcome": (False, (HELD_PAGE, STANDS, op(Kind.VOID, state=State.UNKNOWN))),
    "two pages were reported": (False, (HELD_PAGE, page(HELD_PAGE.kind, HELD_PAGE.state, 2), LAPSED)),
    "completed": (False, (page(CheckoutKind.AUTHORIZATION, CheckoutState.COMPLETED), LAPSED)),
    "no page": (False, (LAPSED,)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_let_go_once_nothing_is_left_of_its_hold(case: str) -> None:
    """Too early and the customer pays beside a hold that is taken; never, and the shop can't sell to this order."""
    is_over, found = CASES[case]
    assert (page_let_go(facts_of(*found), now_ms=NOW_MS) is not None) is is_over


def test_what_is_too_much_to_be_read_lets_nothing_go() -> None:
    """What wasn't read may be a capture."""
    facts = facts_of(HELD_PAGE, LAPSED)
    assert is_hold_over(LAPSED, facts, now_ms=NOW_MS)
    assert not is_hold_over(
        LAPSED, type(facts)(order_id="A-1", checkouts=(HELD_PAGE,), is_complete=False), now_ms=NOW_MS
    )


def test_a_hold_that_was_never_accepted_is_judged_by_its_own_voids() -> None:
    """A report that comes again after the void names the same token, whatever was accepted since."""
    cancelled = page(CheckoutKind.AUTHORIZATION, CheckoutState.CANCELLED)
    other = AcceptedHold(token_hash="another", accepted_at_ms=NOW_MS)
    facts = facts_of(cancelled, VOID, other)
    assert is_hold_over(AcceptedHold(token_hash=HASH, accepted_at_ms=NOW_MS), facts, now_ms=NOW_MS)
    assert not is_hold_over(other, facts, now_ms=NOW_MS)
    assert not is_hold_over(other, facts_of(other), now_ms=NOW_MS)
