"""Puts what would be plain text on the streams of a service into its log: lines of one schema, whoever writes them.

Libraries, warnings, threads and Python itself write where they like. What a library says may repeat what a client sent,
so that its words are taken from its code, without what it fills in; ``LOGGED_WHOLE`` names those that never see a
client. Only an interpreter that dies, and the kernel, still write past the log.
"""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.api.http.request_log import describe, json_log
from payrelay.clock import Clock

LIBRARY: Final = "library"
LOGGED_WHOLE: Final = ("opentelemetry", "py.warnings", "granian", "_granian")
"""The beginnings of names of loggers whose texts say nothing of a client."""
TEXT_MAX: Final = 500
"""Characters of a library's text that are logged."""


class LibraryLines(logging.Handler):
    """Writes what libraries log as lines of ours, from warnings on."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line; raises nothing, as ``logging`` asks of a handler."""
        try:
            is_whole = record.name.startswith(LOGGED_WHOLE)
            text = record.getMessage() if is_whole else str(record.msg).partition("\n")[0]
            members: dict[str, object] = {"logger": record.name, "text": text[:TEXT_MAX]}
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                members["errors"] = describe(error)
            is_error = record.levelno >= logging.ERROR
            (self._log.error if is_error else self._log.warning)(LIBRARY, **members)
        except Exception:  # noqa: BLE001 - whatever a library has put into its line
            self.handleError(record)


@contextmanager
def service_log(*, is_text: bool, level: int) -> Iterator[FilteringBoundLogger]:
    """Gives the log of a service on standard output: text for people, or JSON, into which everything goes.

    ``level`` is the least level of a line that is written, one of ``logging``.
    """
    if is_text:
        from payrelay.cli.terminal.text_log import text_log

        yield text_log(sys.stdout, Clock(), level)
        return
    log = json_log(sys.stdout.buffer, Clock(), level)
    with in_one_log(log):
        yield log


@contextmanager
def in_one_log(log: FilteringBoundLogger) -> Iterator[None]:
    """Sends into ``log``, while the context is open, what libraries, warnings and failing threads would write.

    An exception that nobody catches is logged as ``crashed``. That hook stays when the context ends, because such an
    exception ends it.
    """

    def crashed(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        log.critical("crashed", errors=describe(error.with_traceback(at) if at else error), kind=kind.__qualname__)

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        name = failure.thread.name if failure.thread else ""
        log.error("thread_failed", thread=name, errors=_described(failure.exc_value))

    def unraisable(failure: "sys.UnraisableHookArgs") -> None:
        log.error("unraisable", errors=_described(failure.exc_value))

    handler, root, before = LibraryLines(log), logging.getLogger(), (threading.excepthook, sys.unraisablehook)
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    sys.excepthook, threading.excepthook, sys.unraisablehook = crashed, thread_failed, unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)


def tell_failed_start(text: str) -> None:
    """Writes why a service could not start, as a line of its log on standard error."""
    json_log(sys.stderr.buffer, Clock()).error("start_failed", reason=text)


def _described(error: BaseException | None) -> list[dict[str, object]]:
    return [] if error is None else describe(error)
