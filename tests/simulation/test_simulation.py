"""Hundreds of lives of the whole program, each from one seed: nothing twice, no false answer, nothing left open."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.simulation.process import ALARMING
from tests.simulation.simulate_faults import run_many
from tests.simulation.template import Template
from tests.simulation.universe import run

SEEDS: Final = 50
PARTS: Final = 10
AT_PUSH: Final = 5
"""So many parts are lived at every push, the others at every landing."""
REPEATED: Final = (3, 8, 13, 22)
DIGESTS: Final = """
from tests.simulation.template import Template
from tests.simulation.universe import run
with Template() as template:
    for seed in {seeds}:
        print(run(seed, template).digest)
"""


SOURCES: Final = Path(__file__).parents[2] / "src" / "payrelay"


@pytest.mark.unit
def test_every_unexpected_exception_in_the_log_ends_a_life() -> None:
    """A renamed event of the log would otherwise disarm the simulation without a sign."""
    logged = re.compile(r'log\.exception\(\s*"(\w+)"')
    unexpected = {event for path in SOURCES.rglob("*.py") for event in logged.findall(path.read_text())}

    assert unexpected | {"request_failed"} == ALARMING


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(0, marks=pytest.mark.smoke),
        *range(1, AT_PUSH),
        *(pytest.param(part, marks=pytest.mark.integration) for part in range(AT_PUSH, PARTS)),
    ],
)
def test_no_seed_breaks_a_promise(part: int) -> None:
    """Whatever is lost, refused, late or dies: the ledger, our books and every answer agree in the end."""
    summary = run_many(range(1 + part * SEEDS, 1 + part * SEEDS + SEEDS))
    failures = [f"make simulate-faults SEEDS=1 FROM={each.seed}: {each.failures[0]}" for each in summary.failed]
    assert failures == []
    assert summary.counts["replays"] > 0
    assert any(name.startswith("crash") for name in summary.counts)


def test_a_seed_makes_the_same_story_each_time() -> None:
    """A failure is found again by its seed alone, in another process and with other hashes of texts."""
    with Template() as template:
        here = [run(seed, template).digest for seed in REPEATED]
    program = [sys.executable, "-c", DIGESTS.format(seeds=REPEATED)]
    there = subprocess.run(
        program, env={**os.environ, "PYTHONHASHSEED": "4711"}, capture_output=True, text=True, check=True
    )
    assert there.stdout.split() == here


def test_different_seeds_make_different_stories() -> None:
    """A thousand seeds are worth a thousand runs."""
    with Template() as template:
        digests = {run(seed, template).digest for seed in range(1, 21)}
    assert len(digests) == 20
