"""The interface of tracing that the rest of the program knows; ``opentelemetry_spans`` implements it.

Rules:

1. Where tracing is off there is no ``Spans``, but None. Each place that would record a span makes that one check.
2. No attribute of a span is personal data or a secret: no address of a caller, no query, no body, no name.
3. Nothing here raises because of what a collector does, or waits for one.
"""

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from structlog.typing import FilteringBoundLogger

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

Attribute: TypeAlias = str | int | bool | None
"""A value of an attribute; None leaves the attribute out."""


class Span(Protocol):
    """A span that has begun."""

    @property
    def traceparent(self) -> str:
        """The span's W3C trace context, for those who continue the trace."""

    def note(self, name: str | None = None, *, has_failed: bool = False, **attributes: Attribute) -> None:
        """Adds attributes, whose names have ``__`` in place of dots here, and perhaps gives the span its name.

        ``has_failed`` marks the span as failed.
        """


class CallSpan(Protocol):
    """A span of an HTTP call that has begun. No method raises."""

    @property
    def traceparent(self) -> str:
        """The span's W3C trace context, which is sent with the call."""

    def end(self, *, http_status: int | None = None, error: str | None = None) -> None:
        """Ends the span, by the reply's status or by an error's name."""


class Spans(Protocol):
    """Records spans. Each method's context manager makes its span the current one of the task while it is open."""

    def of_request(self, traceparent: str | None, tracestate: str | None) -> AbstractContextManager[Span]:
        """Begins the span of a request, in the caller's trace where a valid ``traceparent`` came with the request."""

    def inside(self, name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
        """Begins a span below the current one."""

    def after(self, traceparent: str | None, name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
        """Begins a span in the trace of an earlier one, named by what was stored of it; a new trace for None.

        Where another span is the current one, the new span links to it.
        """

    def traceparent(self) -> str | None:
        """Gives the trace context of the current span, to be stored; None where there is none."""

    def on_lines(self, log: FilteringBoundLogger) -> FilteringBoundLogger:
        """Makes a log whose lines name the current span."""

    def note(self, point: str | None = None, **attributes: Attribute) -> None:
        """Adds attributes to the current span, and perhaps the time at which a point was reached."""

    async def around(self, name: str, work: Awaitable[T]) -> T:
        """Waits for work inside of a span below the current one."""

    def client(self) -> "aiohttp.TraceConfig":
        """Makes what records each request of aiohttp's client as a span, and sends ``traceparent`` with it.

        The span has no path, which may be a secret of the receiver.
        """

    def call(self, method: str, host: str, port: int, path: str) -> CallSpan | None:
        """Begins a span of an HTTP call below the current one; ``path`` is without a query. Raises nothing.

        Gives None where no span can be begun.
        """

    async def close(self) -> None:
        """Sends what is waiting, but no longer than a few seconds; spans are lost from then on."""
