"""What a bound credential may pay."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.access.allowance import (
    PAYMENTS_MAX,
    Allowance,
    AskedPayment,
    PaymentKind,
    PlanTerms,
    require_allowed,
)
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.errors import Code, Refusal

MONTHLY = PlanTerms(recurrence="1 Month", duration="1 Year")
EXACT = Allowance(amount_minor=34_567, currency="LKR")
ASKED = AskedPayment(kind="payment", amount_minor=34_567, currency="LKR")


def is_allowed(allowance: Allowance | None, asked: AskedPayment) -> bool:
    """Tells whether it may be paid."""
    try:
        require_allowed(allowance, asked)
    except Refusal as refusal:
        return refusal.code is not Code.FORBIDDEN
    return True


def test_the_kinds_are_those_of_checkouts() -> None:
    """One word for one thing: what a checkout is for is what a token is for."""
    assert set(get_args(PaymentKind)) == set(CheckoutKind)


@given(st.integers(1, 10**6), st.sampled_from(["LKR", "USD"]), st.sampled_from(get_args(PaymentKind)))
def test_an_exact_amount_is_the_only_one(amount_minor: int, currency: str, kind: PaymentKind) -> None:
    """A hundredth less is refused like a million more, and so is another currency or kind."""
    asked = AskedPayment(kind=kind, amount_minor=amount_minor, currency=currency)

    assert is_allowed(EXACT, asked) is (asked == ASKED)
    assert is_allowed(EXACT, ASKED)


@given(st.integers(1, 10**6))
def test_an_open_amount_is_the_apps_choice(amount_minor: int) -> None:
    """Only for a server that says so; kind and currency stay named."""
    allowance = Allowance(is_open=True, currency="LKR")
    asked = msgspec.structs.replace(ASKED, amount_minor=amount_minor)

    assert is_allowed(allowance, asked)
    assert not is_allowed(allowance, msgspec.structs.replace(asked, currency="USD"))
    assert not is_allowed(allowance, msgspec.structs.replace(asked, kind="authorization"))


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": None},
        {"plan": msgspec.structs.replace(MONTHLY, recurrence="1 Year")},
        {"plan": msgspec.structs.replace(MONTHLY, duration="Forever")},
        {"plan": msgspec.structs.replace(MONTHLY, startup_fee_minor=-34_000)},
        {"has_more_terms": True},
        {"amount_minor": 100},
        {"amount_minor": None},
    ],
)
def test_a_plan_is_named_whole(changes: dict[str, Any]) -> None:
    """The same amount once a year in place of once a month would be a twelfth of the price."""
    allowance = msgspec.structs.replace(EXACT, kind="recurring", plan=MONTHLY)
    asked = msgspec.structs.replace(ASKED, kind="recurring", plan=MONTHLY)

    assert is_allowed(allowance, asked)
    assert not is_allowed(allowance, msgspec.structs.replace(asked, **changes))


def test_an_approval_may_charge_nothing() -> None:
    """Where no amount is named for it, none may be asked for."""
    allowance = Allowance(kind="preapproval", currency="LKR")
    asked = AskedPayment(kind="preapproval", amount_minor=None, currency="LKR")

    assert allowance.is_consistent
    assert is_allowed(allowance, asked)
    assert not is_allowed(allowance, msgspec.structs.replace(asked, amount_minor=1))


def test_without_an_allowance_nothing_is_paid() -> None:
    """Whoever was given no amount pays none, whatever the scopes."""
    assert not is_allowed(None, ASKED)


@pytest.mark.parametrize(
    ("changes", "is_right"),
    [
        ({}, True),
        ({"amount_minor": None}, False),
        ({"amount_minor": 0}, False),
        ({"amount_minor": -5}, False),
        ({"is_open": True}, False),
        ({"is_open": True, "amount_minor": None}, True),
        ({"is_open": True, "amount_minor": None, "amount_max_minor": 5}, True),
        ({"is_open": True, "amount_minor": None, "amount_max_minor": 0}, False),
        ({"amount_max_minor": 5}, False),
        ({"kind": "preapproval"}, True),
        ({"kind": "preapproval", "amount_minor": None}, True),
        ({"kind": "recurring"}, False),
        ({"kind": "recurring", "plan": MONTHLY}, True),
        ({"kind": "recurring", "plan": MONTHLY, "is_open": True, "amount_minor": None}, False),
        ({"kind": "recurring", "is_open": True, "amount_minor": None}, True),
        ({"plan": MONTHLY}, False),
        ({"payments_max": 0}, False),
        ({"payments_max": PAYMENTS_MAX}, True),
        ({"payments_max": PAYMENTS_MAX + 1}, False),
    ],
    ids=str,
)
def test_an_allowance_does_not_contradict_itself(changes: dict[str, Any], *, is_right: bool) -> None:
    """Claims that say two things, or nothing, are not those of a token of ours."""
    assert msgspec.structs.replace(EXACT, **changes).is_consistent is is_right
