from datetime import UTC, datetime

from tests.payrelay_simulator.shop import a_form

from payrelay_simulator import Payer, World
from payrelay_simulator.pages.visits import VISITS_KEPT_MAX, Visit, Visits

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def test_oldest_visits_are_forgotten_first(world: World) -> None:
    """A simulator that runs for weeks does not fill its memory with pages that nobody looks at."""
    form = Payer(world).enter("checkout", a_form()).form
    visits = Visits()
    for number in range(VISITS_KEPT_MAX + 1):
        visits.put(Visit(visit_id=str(number), form=form))

    assert (visits.find("0"), visits.find("1") is None) == (None, False)
