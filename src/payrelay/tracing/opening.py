"""Begins tracing at the start, where a setting says so, and ends it at the stop."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final

from payrelay.errors import SettingsError
from payrelay.tracing.spans import Spans

IMPLEMENTATION: Final = "payrelay.tracing.opentelemetry_spans"
"""Loaded by its name, and only where tracing is on: it needs libraries that are an extra of the package."""
EXTRA_IS_MISSING: Final = "PAYRELAY_TRACING needs OpenTelemetry's libraries: pip install 'payrelay[tracing]'"


@asynccontextmanager
async def opened_spans(*, is_on: bool) -> AsyncIterator[Spans | None]:
    """Gives what records spans while the context is open; None where tracing is off, and then loads nothing.

    Raises SettingsError where the libraries are missing.
    """
    if not is_on:
        yield None
        return
    try:
        exporting_spans: Callable[[], Spans] = import_module(IMPLEMENTATION).exporting_spans
    except ModuleNotFoundError as error:
        raise SettingsError(EXTRA_IS_MISSING) from error
    spans = exporting_spans()
    try:
        yield spans
    finally:
        await spans.close()
