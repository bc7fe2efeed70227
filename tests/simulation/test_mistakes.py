"""The simulation can fail: each of these mistakes is found, by the kind of failure that it is."""

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.simulation.fate import Fate
from tests.simulation.mistakes import MISTAKES
from tests.simulation.template import Template
from tests.simulation.universe import run

SEEDS_MAX: Final = 300
SIGNS: Final = {
    "no guard": "while",
    "no claim": "times",
    "sent before it is stored": "is sent while its row says",
    "second sending not journaled": "is sent while its row says",
    "answer not kept": "and later",
    "silence means not sent": "took effect",
    "what was sending was not sent": "took effect all the same",
    "another's payment is proof": "took no effect",
    "nothing found is proof": "took effect all the same",
    "places free at once": "over the gateway's budget",
}
BENT: Final[dict[str, dict[str, Any]]] = {
    "another's payment is proof": {"is_narrow": True, "fault_share": 0.5, "spares_reads": True, "clients": 4},
    "nothing found is proof": {"blind_s": (50.0, 864_000.0), "fault_share": 0.5, "spares_reads": True, "clients": 4},
}


def bent(seed: int, mistake: str) -> Fate:
    """Gives a seed's fate, made more likely to show the mistake where that takes a rare coincidence."""
    return replace(Fate.of(seed), **BENT.get(mistake, {}))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    """A simulation that never fails proves nothing; this one fails where it must."""
    parts = MISTAKES[mistake]()
    with Template() as template:
        found = (
            failure
            for seed in range(1, SEEDS_MAX + 1)
            for failure in run(seed, template, parts, bent(seed, mistake)).failures
            if SIGNS[mistake] in failure
        )
        assert next(found, None) is not None
