import io
import json

from tests.api.fakes import MovableClock

from payrelay.api.http.request_log import json_log
from payrelay.api.http.sampled_lines import KINDS_MAX, LINES_OF_A_KIND, LineKind, SampledLines


async def test_each_interval_begins_anew(clock: MovableClock) -> None:
    """An attack that goes on is seen in each interval, with its number."""
    stream = io.BytesIO()
    lines, kind = SampledLines(json_log(stream, clock)), LineKind("request", "192.0.2.7", status=401)
    taken = [lines.takes(kind) for _ in range(LINES_OF_A_KIND + 3)]
    lines.log_counts()

    assert taken == [True] * LINES_OF_A_KIND + [False] * 3
    assert lines.takes(kind)
    lines.log_counts()
    (counted,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (counted["event"], counted["client"], counted["status"], counted["count"]) == (
        "lines_left_out",
        "192.0.2.7",
        401,
        3,
    )


async def test_many_addresses_count_as_others(clock: MovableClock) -> None:
    """Whoever asks from ever new addresses gets no more lines than those that one interval has."""
    stream = io.BytesIO()
    lines = SampledLines(json_log(stream, clock))
    taken = sum(lines.takes(LineKind("request", f"192.0.2.{number}")) for number in range(KINDS_MAX + 100))
    lines.log_counts()

    assert taken == KINDS_MAX + LINES_OF_A_KIND
    assert b'"client":"others"' in stream.getvalue()
    assert b'"count":90' in stream.getvalue()
