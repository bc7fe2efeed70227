"""Visits: one payer's way through a hosted page, from the form that was posted to where it ended."""

from typing import Literal

import msgspec

from payrelay_simulator.pages.forms import HostedForm

# The oldest go first; a page that was left open for so many payers is not come back to.
VISITS_KEPT_MAX = 10_000

VisitState = Literal["open", "paid", "cancelled"]


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened on the page so far. A paid or cancelled visit takes nothing more.

    `refusal` is why the last card was refused, `notifications` the numbers of those that the visit's end led to.
    """

    visit_id: str
    form: HostedForm
    state: VisitState = "open"
    refusal: str | None = None
    refusals: int = 0
    method: str = ""
    payment_id: int | None = None
    is_pending: bool = False
    notifications: tuple[int, ...] = ()


class Visits:
    """All visits of a world, by their id."""

    def __init__(self) -> None:
        self._visits: dict[str, Visit] = {}

    def put(self, visit: Visit) -> None:
        """Keep a visit, new or changed."""
        self._visits[visit.visit_id] = visit
        while len(self._visits) > VISITS_KEPT_MAX:
            del self._visits[next(iter(self._visits))]

    def find(self, visit_id: str) -> Visit | None:
        """Return the visit of that id, None where there is none."""
        return self._visits.get(visit_id)
