from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples

from payrelay.core.checkouts.text_holders import (
    HolderKind,
    TextHolder,
    beside_approval,
    beside_authorization,
    beside_hosted_authorization,
    doubted_by_forms,
    of_other_orders,
)
from payrelay.core.payments.proof import Match, MatchResult

FORM: Final = TextHolder(subject="chk_1", kind=HolderKind.FORM, noun="payment", order_id="A1", is_exact=True)
CALL: Final = TextHolder(subject="op_1", kind=HolderKind.CALL, noun="authorization", order_id="A1", is_exact=True)
CHARGE: Final = msgspec.structs.replace(CALL, subject="op_2", noun="charge")
APPROVAL: Final = msgspec.structs.replace(FORM, subject="chk_2", noun="preapproval")


def test_an_authorization_is_not_beside_itself() -> None:
    """Its own call has its text, and nothing else would ever prove it."""
    assert beside_authorization([CALL], "op_1") == []


@pytest.mark.parametrize("other", [FORM, APPROVAL, msgspec.structs.replace(FORM, noun=None, is_exact=False)])
def test_any_form_is_beside_an_authorization(other: TextHolder) -> None:
    """Whatever a form was given out for, it can be posted to the page for authorizations."""
    assert beside_authorization([CALL, other], "op_1") == [other]


def test_another_authorization_is_beside_it_and_a_charge_is_not() -> None:
    """A charge that is made at once is never notified with an authorization's status."""
    other = msgspec.structs.replace(CALL, subject="op_3")

    assert beside_authorization([CALL, other, CHARGE], "op_1") == [other]


@pytest.mark.parametrize("other", [FORM, CALL, CHARGE, msgspec.structs.replace(APPROVAL, order_id="A")])
def test_whatever_else_has_its_text_is_beside_an_approval(other: TextHolder) -> None:
    """A payment of another order, with a token written into its notification, would pass for the approval."""
    assert beside_approval([APPROVAL, other], "A1") == [other]


def test_an_approval_of_the_same_order_is_not_beside_it() -> None:
    """A customer who comes back gets a second form for the same."""
    assert beside_approval([APPROVAL, msgspec.structs.replace(APPROVAL, subject="chk_3")], "A1") == []


def test_an_order_of_which_the_amount_is_not_known_is_not_beside_an_approval() -> None:
    """Where orders are numbers, nearly every order begins like an earlier one."""
    assert beside_approval([msgspec.structs.replace(FORM, is_exact=False)], "A12") == []


@pytest.mark.parametrize("other", [FORM, CALL, CHARGE, APPROVAL])
def test_a_text_of_one_order_alone_is_of_no_other(other: TextHolder) -> None:
    """A customer may have several forms of one order, and each attempt is one of that order."""
    is_lost = msgspec.structs.replace(other, order_id=None)

    assert of_other_orders([FORM, other], "A1") == []
    assert of_other_orders([FORM, other], "A125") == [FORM, other]
    assert of_other_orders([FORM, is_lost], "A1") == [is_lost]


def test_an_amount_that_is_not_known_makes_no_other_order() -> None:
    """Else no attempt would be told of an order whose id begins like an old approval's."""
    assert of_other_orders([msgspec.structs.replace(FORM, is_exact=False)], "A12") == []


@pytest.mark.parametrize("holder", [FORM, CALL, APPROVAL])
def test_what_has_the_text_of_a_hosted_authorization_under_another_order_is_beside_it(holder: TextHolder) -> None:
    """Its customer could take the order with a token of their own; under the same order the amount is the same too."""
    assert beside_hosted_authorization([holder, CHARGE], "A125") == [holder]
    assert beside_hosted_authorization([holder, CHARGE], "A1") == []
    assert beside_hosted_authorization([msgspec.structs.replace(holder, is_exact=False)], "A125") == []


@given(
    seen=st.sampled_from(MatchResult),
    holders=st.lists(
        st.builds(
            TextHolder,
            subject=st.sampled_from(["chk_1", "chk_2", "op_1"]),
            kind=st.sampled_from(HolderKind),
            noun=st.sampled_from(["payment", "authorization", "preapproval", "recurring", "charge", None]),
            order_id=st.sampled_from(["A1", "A125", None]),
            is_exact=st.booleans(),
        ),
        max_size=3,
    ),
    own=st.frozensets(st.sampled_from(["chk_1", "chk_2"])),
)
def test_a_payment_is_certain_only_where_no_form_can_have_made_it(
    seen: MatchResult, holders: list[TextHolder], own: frozenset[str]
) -> None:
    """A form can be paid again: whatever it was for, whosever order, and whatever became of its checkout."""
    match = Match(seen=seen, payment=samples.PAYMENT, payments_compared=("320",))
    doubted = doubted_by_forms(match, holders, own=own)

    has_form = any(each.kind is HolderKind.FORM and each.subject not in own for each in holders)
    assert (doubted.seen is MatchResult.ONE_FITS) == (seen is MatchResult.ONE_FITS and not has_form)
    if doubted.seen is not seen:
        assert doubted == msgspec.structs.replace(match, seen=MatchResult.MAY_BE_OF_A_FORM)
