"""The judge of the drills finds each thing that must not be: one that never fails proves nothing."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.drills.intentions import Deed, Intention
from tests.drills.judge import BookEntry, Evidence, Verdict, judge
from tests.drills.restores import unrecovered_embedded
from tests.drills.told import Told

WISH = Intention(
    name="thing", deed=Deed.CHARGE, order_id="thing", method="POST", path="payments/charge", body=dict, key="key-thing"
)
EFFECT = {"kind": "charge", "order_id": "thing", "payment_id": 320}
DONE = Told(status=200, data={"payment_id": 320}, operation_id="op_1")
NEVER = Told(status=409, code="conflict", retry="never")
NOT_NOW = Told(status=503, code="unavailable", retry="after")
HELD = Told(status=202, code="needs_attention", retry="after", operation_id="op_1")
BOOKED = BookEntry(
    id="op_1", kind="charge", key="key-thing", order_id="thing", states=("accepted", "sending", "succeeded")
)


def judged(told: Sequence[Told], effects: int = 1, books: Sequence[BookEntry] = (BOOKED,), **more: Any) -> Verdict:  # noqa: ANN401 - any evidence
    """Judges one wish with so many effects."""
    return judge(Evidence(intentions=[WISH], ledger=[EFFECT] * effects, told={"thing": told}, books=books, **more))


@pytest.mark.unit
def test_what_was_done_once_and_told_so_is_right() -> None:
    """The judge complains of nothing that is as promised, whatever came before the answer."""
    verdict = judged([Told(status=0), NOT_NOW, HELD, DONE])
    assert (verdict.is_right, verdict.effects, verdict.persons, verdict.unanswered) == (True, 1, 1, [])


@pytest.mark.unit
def test_what_was_done_twice_is_a_double_effect() -> None:
    """Somebody was charged again, also where the clients and the books know of one charge alone."""
    assert len(judged([DONE], effects=3).doubles) == 2


@pytest.mark.unit
@pytest.mark.parametrize(
    ("told", "effects"),
    [([DONE], 0), ([NEVER], 1), ([DONE, NEVER], 1), ([Told(status=200, data={"payment_id": 321})], 1)],
    ids=["done", "not done", "both", "another payment"],
)
def test_what_the_ledger_contradicts_is_a_false_answer(told: Sequence[Told], effects: int) -> None:
    """A client acts on what it was told: it ships, or asks the customer to pay in another way."""
    assert len(judged(told, effects=effects).false_answers) == 1


@pytest.mark.unit
def test_what_is_not_found_any_more_is_a_false_answer() -> None:
    """A client was told of the operation, and takes a 404 for the word that it never was."""
    assert len(judged([DONE], unknown_reads=["op_1"]).false_answers) == 1


@pytest.mark.unit
@pytest.mark.parametrize("told", [[DONE], [HELD], []], ids=["told", "held", "silent"])
def test_what_no_book_has_is_a_lost_intent(told: Sequence[Told]) -> None:
    """It took effect, or was accepted, and nobody could ever find out."""
    assert len(judged(told, books=()).lost) == 1


@pytest.mark.unit
def test_who_has_no_answer_in_the_end_is_counted() -> None:
    """A service that answers nobody for ever would do nothing wrong otherwise."""
    assert len(judged([NOT_NOW]).unanswered) == 1


def test_books_that_go_back_without_a_recovery_charge_again() -> None:
    """The drill itself can fail: with the recovery left out, the same clients are charged twice."""
    verdict = unrecovered_embedded(30, 1).verdict
    assert verdict is not None
    assert verdict.doubles != []
