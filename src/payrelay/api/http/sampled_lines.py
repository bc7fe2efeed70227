"""Logs callers without a credential, or over their rate, in part, so that nobody fills the disk.

The first lines of each kind are logged, then their number.

A kind is what an operator tells apart: the address, or the credential that asked too often, with the route and the
answer. Each interval begins anew. The metrics count every request.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from payrelay.api.http.outgoing import PlainAnswer, note_answer
from payrelay.api.http.request_log import request_writer
from payrelay.api.http.visit import Visit
from payrelay.api.metrics.counters import Metrics
from payrelay.core.answers import Answer
from payrelay.errors import Code

INTERVAL_S: Final = 60.0
LINES_OF_A_KIND: Final = 10
"""Lines of one kind that are logged in an interval; enough to find a mistake in a client."""
KINDS_MAX: Final = 200
"""Kinds that are told apart in an interval. All others count as one: some 2,000 lines, 0.7 MB, in the worst minute."""


class LineKind(NamedTuple):
    """What lines of one kind have in common; the fields of the line that counts them."""

    of: str
    client: str = ""
    credential_id: str | None = None
    route: str = ""
    status: int = 0
    code: str | None = None
    reason: str | None = None


class SampledLines:
    """Says which lines are logged, and logs the number of the others."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self.log = log
        self._counts: dict[LineKind, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def takes(self, kind: LineKind, count: int = 1) -> bool:
        """Counts a line, or ``count`` of them; True where it is to be logged."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self.log_counts)
        if kind not in self._counts and len(self._counts) >= KINDS_MAX:
            kind = LineKind(of=kind.of, client="others")
        before = self._counts.get(kind, 0)
        self._counts[kind] = before + count
        return before < LINES_OF_A_KIND

    def log_counts(self) -> None:
        """Ends the interval: logs how many lines of each kind were left out."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._counts = self._counts, {}
        for kind, count in counts.items():
            if count > LINES_OF_A_KIND:
                self.log.warning("lines_left_out", count=count - LINES_OF_A_KIND, **kind._asdict())


class RequestLines(SampledLines):
    """Logs what was answered, and which connections were closed.

    Args:
        log: gets the lines.
        count_closed: is told how many connections were closed, and why.
        metrics: count what was answered; None for a program without such metrics.
    """

    def __init__(
        self, log: FilteringBoundLogger, count_closed: Callable[[str, int], None], metrics: Metrics | None = None
    ) -> None:
        super().__init__(log)
        self._write = request_writer(log)
        self._count_closed = count_closed
        self._metrics = metrics

    def answered(self, visit: Visit, answer: Answer | PlainAnswer, duration_s: float) -> None:
        """Counts a request that has its answer, and logs it unless there are too many of its kind."""
        record = visit.log_record
        note_answer(record, answer, duration_s)
        if self._metrics is not None:
            self._metrics.seen(record.route, record.method, record.status, duration_s, is_replayed=record.is_replayed)
            self._metrics.answered(record.principal, record.status, record.code)
        kind = _kind(visit)
        if kind is None or self.takes(kind):
            self._write(record)

    def closed(self, reason: str, owner: str, count: int) -> None:
        """Counts and logs connections of an address or a principal that were closed to keep to the limits."""
        self._count_closed(reason, count)
        if self.takes(LineKind("connections_closed", owner, reason=reason)):
            self.log.warning("connections_closed", reason=reason, owner=owner, count=count)


def _kind(visit: Visit) -> LineKind | None:
    """Gives the kind of a line that may be left out: of a caller without a credential, or over its rate.

    A notification or the page of a checkout proves itself, but has no rate: it can be sent again without end.
    """
    record = visit.log_record
    if not visit.admitted:
        return LineKind("request", record.client, None, record.route, record.status, record.code)
    if record.code is Code.RATE_LIMITED:
        return LineKind("request", "", record.credential_id, record.route, record.status, record.code)
    return None
