"""Hostile lives find what this version believes and allows, though it shouldn't: each weakness by a seed that shows it.

A weakness that is mended leaves this list: its hostility is switched on for all lives (`hostility.SWITCHED_ON`), and
what mended it is planted as a mistake (`mistakes.py`).
"""

from dataclasses import dataclass, replace
from typing import Final

import pytest
from tests.simulation.fate import Fate, PageFate
from tests.simulation.hostility import ALL, DISGUISES, FORMS, PRINCIPALS, SWITCHED_ON, HostileFate
from tests.simulation.template import Template
from tests.simulation.universe import run

pytestmark = pytest.mark.integration

BANKS_AND_NEWS: Final = PageFate(
    buyers=2,
    loss_share=0.0,
    late_share=0.3,
    copy_share=0.3,
    forged_share=0.0,
    retries=3,
    retry_s=60.0,
    has_endpoint=False,
    endpoint_fault_share=0.0,
    are_orders_shared=False,
    chargeback_share=0.5,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Weakness:
    """What a hostile life shows.

    Attributes:
        kind: the hostility.
        hostile: how hostile the life is.
        seed: a seed that shows it.
        sign: what the judge says.
        pages: how it goes with the gateway's pages; None for the seed's own.
    """

    kind: str
    hostile: HostileFate
    seed: int
    sign: str
    pages: PageFate | None = None


CUSTOMER: Final = HostileFate(customers=1)
WEAKNESSES: Final = {
    "a split text proves an authorization of the API": Weakness(
        kind=FORMS, hostile=CUSTOMER, seed=34, pages=BANKS_AND_NEWS, sign="(succeeded): took no effect"
    ),
    "a split text completes an authorization on the page": Weakness(
        kind=FORMS, hostile=CUSTOMER, seed=14, pages=BANKS_AND_NEWS, sign="and the ledger has nothing like it"
    ),
    "a split text takes an approval over": Weakness(
        kind=FORMS, hostile=CUSTOMER, seed=41, pages=BANKS_AND_NEWS, sign="for which nobody approved anything"
    ),
    "a split text marks a payment as charged back": Weakness(
        kind=FORMS, hostile=CUSTOMER, seed=8, pages=BANKS_AND_NEWS, sign="no bank took it back"
    ),
    "each disguise is searched for": Weakness(
        kind=DISGUISES, hostile=HostileFate(disguises=30), seed=3, sign="was searched for"
    ),
    "another principal's payment is given back": Weakness(
        kind=PRINCIPALS, hostile=HostileFate(meddlers=1), seed=9, sign="payments/refund of another principal"
    ),
    "another principal's payments are shown": Weakness(
        kind=PRINCIPALS, hostile=HostileFate(meddlers=1), seed=8, sign="GET payments/A-1 of another principal"
    ),
}


@pytest.mark.parametrize("name", WEAKNESSES)
def test_a_weakness_of_this_version_is_found(name: str) -> None:
    """A judge that finds what is wrong today can be believed when it finds nothing tomorrow."""
    weakness = WEAKNESSES[name]
    fate = replace(Fate.of(weakness.seed), hostile=weakness.hostile)
    if weakness.pages is not None:
        fate = replace(fate, pages=weakness.pages)
    with Template() as template:
        failures = run(weakness.seed, template, fate=fate).failures

    assert any(weakness.sign in failure for failure in failures), failures


def test_every_hostility_is_switched_on_or_shows_a_weakness() -> None:
    """None is forgotten: it is withstood in every life, or listed as a weakness."""
    assert {weakness.kind for weakness in WEAKNESSES.values()} == ALL - SWITCHED_ON
