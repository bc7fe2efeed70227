import io
import json
import logging

import pytest
from tests.api.fakes import MovableClock

from payrelay.api.request_log import CAUSES_MAX, describe, json_log


def test_a_line_is_one_json_object(clock: MovableClock) -> None:
    """Time first, in UTC and to the millisecond, then level, event and what was given."""
    stream = io.BytesIO()
    log = json_log(stream, clock)
    log.info("started", port=8080, text="a\nb")
    clock.at_s += 0.25
    log.warning("slow")
    first, second = stream.getvalue().splitlines()
    assert first == b'{"at":"2027-01-15T08:00:00.000Z","level":"info","event":"started","port":8080,"text":"a\\nb"}'
    assert json.loads(second) == {"at": "2027-01-15T08:00:00.250Z", "level": "warning", "event": "slow"}


def test_the_level_is_kept(clock: MovableClock) -> None:
    """What is below the level costs nothing and writes nothing."""
    stream = io.BytesIO()
    json_log(stream, clock, logging.WARNING).info("request")
    assert stream.getvalue() == b""


def test_an_exception_is_told_without_its_text() -> None:
    """Types and places of it and its causes are enough to mend it; texts may repeat what a client sent."""
    with pytest.raises(RuntimeError) as raised:
        _fail()
    described = describe(raised.value)
    assert [each["type"] for each in described] == ["RuntimeError", "ValueError"]
    assert "secret" not in json.dumps(described)
    assert "_fail" in json.dumps(described)


def test_an_endless_chain_of_causes_has_an_end() -> None:
    """A line in the log stays a line."""
    error = ValueError("0")
    for _ in range(20):
        following = ValueError("n")
        following.__cause__ = error
        error = following
    assert len(describe(error)) == CAUSES_MAX


def _fail() -> None:
    try:
        int("secret-1")
    except ValueError as error:
        raise RuntimeError("secret-2") from error
