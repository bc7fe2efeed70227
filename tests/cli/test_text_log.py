"""Log lines for people: what stands in them, and that nobody outside can make a terminal obey."""

import io
import re
from typing import Final

import pytest

from payrelay.api.http.request_log import RequestLogRecord
from payrelay.cli.terminal.text_log import shown, text_log
from payrelay.clock import Clock

HOSTILE: Final = "a\x1b[2Jb\x9b31m\r\nforged line\u202e"


class StillClock(Clock):
    """Stands at one moment."""

    def now_ms(self) -> int:
        """Gives it."""
        return 1_700_000_000_123


class Written(io.TextIOWrapper):
    """What the log writes on; no terminal, so that there are no colours."""

    def __init__(self) -> None:
        self.raw_bytes = io.BytesIO()
        super().__init__(self.raw_bytes, encoding="utf-8")

    def entries(self) -> list[str]:
        """Gives what was written."""
        return self.raw_bytes.getvalue().decode().splitlines()


@pytest.fixture
def stream() -> Written:
    """Gives a stream for one log."""
    return Written()


def test_a_request_is_told_in_the_order_in_which_it_is_read(stream: Written) -> None:
    """Nothing is shortened, and what is not known is left out."""
    line = RequestLogRecord(
        request_id="req_1", method="POST", client="10.0.0.1", route="/{account}/api", status=200, duration_ms=12.34
    )
    text_log(stream, StillClock()).info("request", record=line)

    assert stream.entries() == [
        "2023-11-14 22:13:20.123Z [info     ] POST /{account}/api 200 12.3 ms request_id=req_1 client=10.0.0.1"
    ]


def test_a_hostile_text_is_shown_and_not_obeyed(stream: Written) -> None:
    """A client chooses an order's id, and the gateway its words; neither may erase the line or forge another."""
    log = text_log(stream, StillClock())
    log.warning("alert_not_given", reason=HOSTILE, ids=[HOSTILE])
    log.info("request", record=RequestLogRecord(request_id=HOSTILE, method="GET", client="x", route=HOSTILE))

    assert len(stream.entries()) == 2
    assert [text for text in stream.entries() if not text.isprintable()] == []
    assert all("a\\x1b[2Jb\\x9b31m\\x0d\\x0aforged line\\x202e" in text for text in stream.entries())


def test_an_exception_is_told_by_its_places(stream: Written) -> None:
    """Never by its text, which may repeat what a client sent; one place a line."""
    log = text_log(stream, StillClock())
    try:
        int("hush-hush")
    except ValueError:
        log.exception("delivering_failed", endpoint_id="end_1")

    first, kind, place = stream.entries()
    assert (
        first.endswith("[error    ] delivering_failed              endpoint_id=end_1") or "delivering_failed" in first
    )
    assert kind == "    ValueError"
    assert re.fullmatch(r"      \S+test_text_log\.py:\d+ test_an_exception_is_told_by_its_places", place)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("two words", '"two words"'),
        ("", '""'),
        ("a=b", '"a=b"'),
        (["a"], '["a"]'),
        (True, "true"),
        (7, "7"),
    ],
)
def test_the_end_of_a_value_can_be_seen(value: object, text: str) -> None:
    """Otherwise a value with a blank in it could pass for two members."""
    assert shown(value) == text
