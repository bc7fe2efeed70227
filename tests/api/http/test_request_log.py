import asyncio
import io
import json
import logging
from pathlib import Path

import pytest
import structlog
from tests.api.fakes import MovableClock

from payrelay.api.http.request_log import (
    CAUSES_MAX,
    FLUSH_WITHIN_S,
    RequestLogRecord,
    describe,
    json_log,
    request_writer,
)


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


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING])
def test_the_line_of_a_request_is_the_usual_one(clock: MovableClock, level: int) -> None:
    """It has a shorter way than other lines, and nobody who reads the log can tell."""
    usual, short = io.BytesIO(), io.BytesIO()
    record = RequestLogRecord(request_id="req_1", method="GET", client="192.0.2.7", route="/", status=200)
    json_log(usual, clock, level).info("request", record=record)
    request_writer(json_log(short, clock, level))(record)
    assert short.getvalue() == usual.getvalue()
    assert short.getvalue().count(b"\n") == (1 if level <= logging.INFO else 0)


def test_another_log_gets_the_line_of_a_request_too(clock: MovableClock) -> None:
    """A log that something stands before, such as tracing, has no short way."""
    stream = io.BytesIO()
    log = structlog.wrap_logger(json_log(stream, clock), processors=[]).bind()
    request_writer(log)(RequestLogRecord(request_id="req_1", method="GET", client="192.0.2.7"))
    assert json.loads(stream.getvalue())["request_id"] == "req_1"


class Stream(io.BytesIO):
    """Counts the flushes, and signals each."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes = 0
        self.has_flushed = asyncio.Event()

    def flush(self) -> None:
        """Takes a note of it."""
        self.flushes += 1
        self.has_flushed.set()


async def test_lines_go_out_together_and_soon(clock: MovableClock) -> None:
    """Many requests cost one push, and none waits for the next request."""
    stream = Stream()
    log = json_log(stream, clock)
    for _ in range(100):
        log.info("request")
    assert stream.flushes == 0
    await stream.has_flushed.wait()
    assert (stream.flushes, len(stream.getvalue().splitlines())) == (1, 100)


async def test_a_stream_that_was_closed_meanwhile_is_left_alone(clock: MovableClock) -> None:
    """The last request's line waits when the program ends and closes its log: that must not be an error."""
    faults: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    stream = io.BytesIO()
    json_log(stream, clock).info("request")
    stream.close()
    has_passed = asyncio.Event()
    loop.call_later(2 * FLUSH_WITHIN_S, has_passed.set)
    await has_passed.wait()
    assert faults == []


async def test_a_warning_does_not_wait(clock: MovableClock) -> None:
    """What may be the last line of a process is flushed when the call returns, with all before it."""
    for level in ("warning", "error", "critical"):
        stream = Stream()
        log = json_log(stream, clock)
        log.info("request")
        getattr(log, level)("failing")
        assert stream.flushes == 1


def test_without_a_loop_nothing_waits(clock: MovableClock) -> None:
    """A command has no event loop that would flush its lines later."""
    stream = Stream()
    json_log(stream, clock).info("done")
    assert stream.flushes == 1


def test_an_exception_is_logged_without_its_message() -> None:
    """Types and frames of it and its causes are enough to repair it; messages may repeat what a client sent."""
    with pytest.raises(RuntimeError) as raised:
        _fail()
    described = describe(raised.value)
    assert [each["type"] for each in described] == ["RuntimeError", "ValueError"]
    assert "secret" not in json.dumps(described)
    assert "_fail" in json.dumps(described)


def test_an_exception_that_is_logged_is_described(clock: MovableClock) -> None:
    """The log of an unexpected exception has its frames, and not its message."""
    stream = io.BytesIO()
    try:
        _fail()
    except RuntimeError:
        json_log(stream, clock).exception("job_failed")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["event"]) == ("error", "job_failed")
    assert [each["type"] for each in line["errors"]] == ["RuntimeError", "ValueError"]
    assert b"secret" not in stream.getvalue()


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


def test_every_field_of_a_request_is_described() -> None:
    """Who writes a rule for a collector of logs reads the page, and never the code."""
    page = (Path(__file__).parents[3] / "docs" / "production" / "logs.md").read_text()
    assert [name for name in RequestLogRecord.__struct_fields__ if f"`{name}`" not in page] == []
