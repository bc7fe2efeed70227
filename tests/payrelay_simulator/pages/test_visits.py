from datetime import UTC, datetime
from urllib.parse import urlencode

from tests.payrelay_simulator.shop import a_form

from payrelay_simulator import DEFAULT_MERCHANT, Switches
from payrelay_simulator.pages.forms import read_form
from payrelay_simulator.pages.visits import VISITS_KEPT_MAX, Visit, Visits

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def test_oldest_visits_are_forgotten_first() -> None:
    """A simulator that runs for weeks does not fill its memory with pages that nobody looks at."""
    form = read_form(
        "checkout",
        urlencode(a_form()).encode(),
        content_type="application/x-www-form-urlencoded",
        referer="http://shop.example/",
        merchants=(DEFAULT_MERCHANT,),
        switches=Switches(),
        now=NOW,
    )
    visits = Visits()
    for number in range(VISITS_KEPT_MAX + 1):
        visits.put(Visit(visit_id=str(number), form=form, opened_at=NOW))

    assert (visits.find("0"), visits.find("1") is None) == (None, False)
