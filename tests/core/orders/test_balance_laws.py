"""Laws of the balance, over histories that nobody thought of."""

from typing import Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.orders.order_facts import (
    again,
    chargeback,
    facts_of,
    failed,
    hold,
    imported,
    installment,
    op,
    page,
    returned,
    seen,
    told,
)
from tests.draws import examples

from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import CurrencyBalance, DoubtKind, PaymentBalance
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus

NOW_MS: Final = 10_000
MONEY: Final = st.integers(1, 20_000)
MOMENTS: Final = st.integers(0, 20_000)
CURRENCIES: Final = st.sampled_from(["LKR", "USD"])
PAYMENTS: Final = st.sampled_from(["1", "2", "3"])


@st.composite
def operations(draw: st.DrawFn) -> object:
    """Draws an operation of any kind and state, of any payment, hold and order."""
    kind = draw(st.sampled_from([each for each in Kind if each is not Kind.CANCEL]))
    token = draw(st.sampled_from(["a", "b"]))
    return op(
        kind,
        draw(st.integers(1, 9)),
        state=draw(st.sampled_from(State)),
        payment_id=draw(PAYMENTS | st.none()),
        amount_minor=draw(MONEY | st.none()),
        currency=draw(CURRENCIES | st.none()),
        order_id=draw(st.sampled_from(["A-1", "A-1", "B-1", None])),
        subject=f"authorization/{token}" if kind in {Kind.CAPTURE, Kind.VOID} else "order/A-1",
        result_ref=token if kind is Kind.AUTHORIZATION else None,
        created_at_ms=draw(MOMENTS),
        updated_at_ms=draw(MOMENTS),
    )


@st.composite
def pages(draw: st.DrawFn) -> object:
    """Draws a page of any kind and state."""
    amount_minor = draw(MONEY)
    return page(
        draw(st.sampled_from(CheckoutKind)),
        draw(st.sampled_from(CheckoutState)),
        draw(st.integers(1, 99)),
        amount_minor=amount_minor,
        first_minor=draw(MONEY | st.none()),
        currency=draw(CURRENCIES),
        payment_id=draw(PAYMENTS | st.none()),
        order_id=draw(st.sampled_from(["A-1", "A-1", "B-1"])),
    )


def _records(draw: st.DrawFn) -> list[object]:
    """Draws what else may be known of one payment: at most one of each."""
    number = draw(PAYMENTS)
    money = {"payment_id": number, "amount_minor": draw(MONEY), "currency": draw(CURRENCIES)}
    status, at_ms = draw(st.sampled_from(PaymentStatus)), draw(MOMENTS)
    given = [PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK]
    return [
        seen(status, at_ms, **money),
        imported(draw(st.sampled_from(given)), **money),
        msgspec.structs.replace(returned(draw(st.sampled_from(given[1:])), draw(MOMENTS)), payment_id=number),
        msgspec.structs.replace(again(draw(MOMENTS)), payment_id=number),
        msgspec.structs.replace(failed(op(Kind.REFUND, draw(st.integers(1, 9)))), payment_id=number),
        told(draw(MONEY | st.none()), payment_id=number),
        chargeback(draw(MOMENTS), **money, part_minor=draw(MONEY | st.none())),
        installment(str(number), draw(MONEY | st.none())),
        installment("ntf:1"),
        hold(),
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[object]:
    """Draws a history: operations and pages, and some records of some payments."""
    found = [*draw(st.lists(operations(), max_size=6)), *draw(st.lists(pages(), max_size=3))]
    for _ in range(draw(st.integers(0, 2))):
        found += draw(st.lists(st.sampled_from(_records(draw)), max_size=4, unique=True))
    return _each_once(found)


def _each_once(found: list[object]) -> list[object]:
    """Leaves one fact of each key, as the store gives them."""
    keys = ("id", "payment_id", "payment", "token_hash")
    named = {}
    for each in found:
        key = next(getattr(each, name) for name in keys if hasattr(each, name))
        named[type(each), key, getattr(each, "status", None) if "Return" in type(each).__name__ else None] = each
    return list(named.values())


@given(history=histories())
@settings(max_examples=examples(300))
def test_what_was_paid_is_what_went_back_and_what_is_left(history: list[object]) -> None:
    """No money appears or is lost, and nothing is negative: of each payment, and of each currency."""
    balance = balance_of(facts_of(*history), now_ms=NOW_MS)
    figures: tuple[PaymentBalance | CurrencyBalance, ...] = (*balance.payments, *balance.currencies)
    for each in figures:
        assert min(each.held_minor, each.given_back_minor, each.charged_back_minor) >= 0
        if each.paid_minor is None or each.left_minor is None:
            assert each.paid_minor is each.left_minor
            continue
        assert each.left_minor >= 0
        assert each.paid_minor == each.given_back_minor + each.charged_back_minor + each.left_minor


@given(history=histories(), data=st.data())
@settings(max_examples=examples(200))
def test_the_order_of_facts_and_a_fact_given_twice_make_no_difference(
    history: list[object], data: st.DataObject
) -> None:
    """Two servers that read the same rows in another order must not tell two balances."""
    again = data.draw(st.permutations([*history, *history]))
    assert balance_of(facts_of(*again), now_ms=NOW_MS) == balance_of(facts_of(*history), now_ms=NOW_MS)


@given(history=histories(), others=histories())
@settings(max_examples=examples(200))
def test_facts_about_one_payment_change_no_other(history: list[object], others: list[object]) -> None:
    """A refund of one payment must not be held against another one of the order."""
    elsewhere = _renamed(others)
    before = balance_of(facts_of(*history), now_ms=NOW_MS).payments
    after = balance_of(facts_of(*history, *elsewhere), now_ms=NOW_MS).payments
    assert {each.id: each for each in before}.items() <= {each.id: each for each in after}.items()


@given(history=histories())
@settings(max_examples=examples(200))
def test_no_sum_has_an_amount_of_another_currency(history: list[object]) -> None:
    """What is counted of a payment is of its currency; what isn't is a doubt."""
    balance = balance_of(facts_of(*history), now_ms=NOW_MS)
    for each in balance.currencies:
        own = [one for one in balance.payments if one.currency == each.currency]
        assert each.paid_minor == sum(one.paid_minor or 0 for one in own)
    for payment in balance.payments:
        strangers = [one for one in payment.origins if one.currency not in {None, payment.currency}]
        named = {one.id for one in payment.doubts}
        assert all(one.id in named or not payment.held_minor for one in strangers)


@given(history=histories())
@settings(max_examples=examples(200))
def test_each_open_thing_is_a_doubt(history: list[object]) -> None:
    """What has no outcome may still move money, so no balance that has one is certain."""
    facts = facts_of(*history)
    balance = balance_of(facts, now_ms=NOW_MS)
    named = {each.id for each in balance.doubts if each.kind is DoubtKind.OPEN_OPERATION}
    assert _open_of_order(facts) <= named


def _open_of_order(facts: OrderFacts) -> set[str]:
    states = {State.ACCEPTED, State.SENDING, State.PENDING, State.UNKNOWN, State.NEEDS_ATTENTION, State.HELD}
    return {each.id for each in facts.operations if each.state in states and each.order_id == facts.order_id}


def _renamed(history: list[object]) -> list[object]:
    """Gives facts of other payments: no number, token or id is one of the first histories'.

    The one hold that was reported for an order is of the first; nobody could tell of which page it is otherwise.
    """
    renamed: list[object] = []
    for each in history:
        is_of_hold = isinstance(each, Checkout) and each.kind is CheckoutKind.AUTHORIZATION
        if is_of_hold or type(each).__name__ == "AcceptedHold":
            continue
        names = {"payment_id": "9{}", "id": "other_{}", "payment": "9{}", "result_ref": "x{}", "subject": "{}x"}
        names |= {"notification_id": "other_{}", "place": "other {}"}
        changes = {
            name: form.format(getattr(each, name))
            for name, form in names.items()
            if getattr(each, name, None) is not None
        }
        renamed.append(msgspec.structs.replace(each, **changes))  # type: ignore[type-var]  # each is a struct
    return renamed
