"""Lives whose ledger is compared with our books by the flows of an accountant: what was planted is found, no more."""

from datetime import date
from typing import Final

from tests.simulation.reconcile_lives import Reconciled, Row, plants, reconcile_many

LIVES: Final = range(1, 41)
"""Half of these seeds have books that must agree; ``make reconcile-lives`` compares a thousand."""


def test_every_planted_difference_is_found_and_none_is_invented() -> None:
    """A difference that is overlooked is lost money, and one that is invented is a morning of somebody's."""
    made = reconcile_many(LIVES)
    assert made.failures == []
    assert made.lives >= len(LIVES) // 3
    assert made.planted.total() > 0
    assert made.agreed > 0


def test_a_life_that_fails_names_how_to_live_it_again() -> None:
    """A failure that can't be repeated can't be mended; sums of lives keep all of them."""
    made, other = Reconciled(lives=1), Reconciled(lives=2, failures=["seed 3"], agreed=4)
    made.add(other)
    assert (made.lives, made.failures, made.agreed) == (3, ["seed 3"], 4)


def test_each_plant_changes_the_file() -> None:
    """A plant that leaves the line as it was would count as found without being there."""
    row = Row(
        movement="payment",
        payment="320025000001",
        reference="charge 1",
        order="A-1",
        cents=5,
        currency="LKR",
        state="taken",
        day=date(2026, 9, 1),
        time="12:00:00",
    )
    assert all(instead != [row] for instead, _, _ in plants(row, 1).values())
    assert str(row) == "payment,320025000001,charge 1,A-1,0.05,LKR,taken,2026-09-01 12:00:00\n"
