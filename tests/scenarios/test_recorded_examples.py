"""The examples of the description are a demo's: its requests work as they stand, and its answers are the ones shown."""

import json
from typing import Any

import pytest
from tests.scenarios.demo import running_demo
from tests.scenarios.recording import CALLS, DAY, EXAMPLES, NOT_IN_A_DEMO, recorded

pytestmark = pytest.mark.integration

SHOWN: dict[str, Any] = json.loads(EXAMPLES.read_text())


def test_every_example_is_sent_or_named() -> None:
    """An example that nobody sends, or that nobody can get, may be a claim."""
    sent = {(step.route, step.example) for step in DAY if step.example is not None}
    named = {(route, name) for route, examples in SHOWN["requests"].items() for name in examples}
    assert sent | NOT_IN_A_DEMO.keys() == named
    assert CALLS.keys() == SHOWN["failures"].keys()


def test_what_is_shown_is_what_a_demo_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Who presses "Execute" gets what stands beside it; `make examples` records it anew where that has changed."""
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        told = recorded(demo)
    assert told.refused == {}
    assert told.answers == SHOWN["answers"]
    assert told.failures == {name: failure["value"] for name, failure in SHOWN["failures"].items()}
