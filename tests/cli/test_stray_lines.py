"""Tests that what libraries and Python itself write becomes lines of the log."""

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from payrelay.api.http.request_log import json_log
from payrelay.cli.terminal.messages import logs_json
from payrelay.cli.terminal.stray_lines import in_one_log
from payrelay.clock import Clock


def written(act: Callable[[], None]) -> list[dict[str, Any]]:
    """What the log got while something was done."""
    stream = io.BytesIO()
    before = sys.excepthook
    try:
        with in_one_log(json_log(stream, Clock())):
            act()
    finally:
        sys.excepthook = before
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    """Fails, with words that must not be logged."""
    raise ValueError("CANARY")


def test_a_librarys_line_is_logged_without_what_it_fills_in() -> None:
    """A library may repeat what a client sent; the words of its code, and its name, lead a developer to the place."""
    [line] = written(lambda: logging.getLogger("some.library").warning("no luck with %s\nand more", "CANARY"))
    told = {name: line[name] for name in ("level", "event", "logger", "text")}
    assert told == {"level": "warning", "event": "library", "logger": "some.library", "text": "no luck with %s"}


def test_what_is_below_a_warning_is_not_logged() -> None:
    """Libraries tell their own developers much."""
    assert written(lambda: logging.getLogger("some.library").info("hello")) == []


def test_the_export_of_traces_is_logged_whole() -> None:
    """What is wrong with a collector stands in what is filled in, and no client has a part in it."""
    [line] = written(lambda: logging.getLogger("opentelemetry.x").error("Failed to export: %s", "refused"))
    assert (line["level"], line["text"]) == ("error", "Failed to export: refused")


def test_an_exception_in_a_librarys_line_is_described() -> None:
    """By type and place, as all exceptions are, and without its words."""

    def act() -> None:
        try:
            fail()
        except ValueError:
            logging.getLogger("asyncio").exception("it failed")

    [line] = written(act)
    assert (line["errors"][0]["type"], "CANARY" in json.dumps(line)) == ("ValueError", False)
    assert "test_stray_lines.py" in line["errors"][0]["frames"][-1]


def test_a_warning_is_a_line() -> None:
    """Python would write two lines of text for each."""

    def act() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(capture=True)  # catch_warnings has put the old way of showing them back
            warnings.warn("this goes away", stacklevel=1)

    [line] = written(act)
    assert (line["event"], line["logger"], "this goes away" in line["text"]) == ("library", "py.warnings", True)


def test_an_exception_that_nobody_catches_is_a_line() -> None:
    """The last thing that a service says must not be the one that nobody can read."""

    def act() -> None:
        try:
            fail()
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)

    [line] = written(act)
    assert (line["level"], line["event"], line["errors"][0]["type"]) == ("critical", "crashed", "ValueError")
    assert "CANARY" not in json.dumps(line)


def test_a_thread_that_fails_is_a_line() -> None:
    """Libraries have threads of their own."""

    def act() -> None:
        thread = threading.Thread(target=fail, name="its-name")
        thread.start()
        thread.join()

    [line] = written(act)
    assert (line["event"], line["thread"], line["errors"][0]["type"]) == ("thread_failed", "its-name", "ValueError")


def test_an_exception_that_cannot_be_raised_is_a_line() -> None:
    """As from a finalizer."""

    class Finalized:
        def __del__(self) -> None:
            fail()

    def act() -> None:
        held = [Finalized()]
        held.clear()

    [line] = written(act)
    assert (line["event"], line["errors"][0]["type"]) == ("unraisable", "ValueError")


@pytest.mark.parametrize(
    ("typed", "is_json"),
    [
        ("serve", True),
        ("serve --port 80", True),
        ("serve --log-format text", False),
        ("serve --log-format=text", False),
        ("serve --log-format auto", True),
        ("serve --log-format", True),
        ("serve --help", False),
        ("check", False),
        ("", False),
    ],
)
def test_only_a_service_without_a_terminal_fails_in_json(typed: str, *, is_json: bool) -> None:
    """A person at a terminal reads a sentence; whoever collects a log gets lines of it."""
    assert logs_json(typed.split()) is is_json
