"""Starts the service as its command does, but watched, or with a promise left out, to see what the promise costs.

    python bench/experiment.py [--without digests,seals] [--samples FILE] serve --host 127.0.0.1 --port 8080

What is left out is replaced in memory, for a measurement. The product has no such option: each of these is a promise.
"""

import argparse
import ctypes
import faulthandler
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, GeneratorType
from typing import Final, Protocol

from payrelay.api.auth.quota import Quota
from payrelay.api.connections.connection import Connection
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.http import sampled_lines
from payrelay.api.metrics.counters import Metrics
from payrelay.cli.main import main as command
from payrelay.core.access.ownership import OrderOwners
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.flows.payments.carry_out import Attempt
from payrelay.runtime.event_delivery import Dispatch
from payrelay.store.access.owners import Owners
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Row, Statement
from payrelay.store.engine.queries import Query, SqliteStep
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.sqlite import Sqlite
from payrelay.store.payments import operation_rows
from payrelay.store.payments.journal import Journal
from payrelay.store.statements.payments import operations as statements

EVERY_S: Final = 0.001
"""Of the event loop's own processor time; the kernel looks at its ticks only, some 250 or 1,000 times a second."""
UNIT_PREFIX: Final = "unit "
"""Begins the name of the function that stands in the samples for a unit of work on SQLite."""
_THREAD_CPUTIME: Final = 3
_TO_THREAD: Final = 4
_NAME_THREAD: Final = 15
_HASH: Final = "0" * 64
_PLAIN: Final = b"\x00"
"""Begins a value that was to be sealed; no sealed value begins so."""
_INSERT_HISTORY: Final = re.compile(r"INSERT INTO history \([^)]*\)")
_NEWEST_HASH: Final = re.compile(
    r"AND \(SELECT hash FROM history WHERE \S+ = \S+ ORDER BY version DESC LIMIT 1\) = \S+"
)
_OF_HISTORY: Final = re.compile(r"\b(?:FROM|INTO) history\b")
_STATEMENTS: Final = "payrelay.store.statements."
_NO_STEP: Final = SqliteStep("SELECT 1", lambda _: ())

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Changes the program as it is told, and runs its command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", default="", help=f"what is left out, by comma ({', '.join(LEAVE_OUT)})")
    parser.add_argument("--samples", type=Path, help="where the stacks of the event loop's thread are written")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what is typed behind `payrelay`")
    wanted = parser.parse_args()
    for name in filter(None, wanted.without.split(",")):
        LEAVE_OUT[name]()
    _name_threads()
    if wanted.samples is not None:
        _name_units()
        _sample(wanted.samples)
    command(wanted.command)


# What shows where the time goes.


class _Event(ctypes.Structure):
    """The kernel's ``struct sigevent``: which signal a timer sends, and to which thread."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("room", ctypes.c_int * 11),
    )


class _Times(ctypes.Structure):
    """The kernel's ``struct itimerspec``: a timer's interval and its first end, in seconds and nanoseconds."""

    _fields_ = (("every", ctypes.c_long * 2), ("first", ctypes.c_long * 2))


def _sample(path: Path) -> None:
    """Writes the stack of this thread to a file, again and again, by the time that it has of a processor.

    So a thread that waits isn't sampled. A sampler from outside (py-spy) also counts one that has just begun to wait,
    which made a quarter of a charge out of a twentieth.
    """
    faulthandler.register(signal.SIGPROF, file=path.open("ab", buffering=0), all_threads=False)
    timer = ctypes.c_void_p()
    event = _Event(None, signal.SIGPROF, _TO_THREAD, threading.get_native_id())
    _call("timer_create", _THREAD_CPUTIME, ctypes.byref(event), ctypes.byref(timer))
    each = (ctypes.c_long * 2)(0, round(EVERY_S * 1e9))
    _call("timer_settime", timer, 0, ctypes.byref(_Times(each, each)), None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name} failed")


def _name_threads() -> None:
    """Gives threads of Python the names for the kernel that they have in Python."""
    run = threading.Thread.run

    def named(thread: threading.Thread) -> None:
        _libc.prctl(_NAME_THREAD, thread.name.encode())
        run(thread)

    _put(threading.Thread, "run", named)


def _name_units() -> None:
    """Puts a function behind the execution of each unit of work that is named as the unit is."""
    carry_out = Sqlite._carry_out  # noqa: SLF001, a stack can't show otherwise whose statements run
    named: dict[str, FunctionType] = {}

    def in_its_name(engine: Sqlite, job: HasUnit) -> object:
        name = job.unit.__name__
        function = named.get(name)
        if function is None:
            function = named[name] = _named_as(f"{UNIT_PREFIX}{name}", carry_out)
        return function(engine, job)

    _put(Sqlite, "_carry_out", in_its_name)


class HasUnit(Protocol):
    """Something that waits for the database: it has a unit of work."""

    @property
    def unit(self) -> "GeneratorType[Statement, list[Row], object]":
        """The unit, which is a generator."""


def _named_as(name: str, carry_out: Callable[..., object]) -> FunctionType:
    """Makes a function that does the same and is called so in a stack."""

    def call(engine: Sqlite, job: HasUnit) -> object:
        return carry_out(engine, job)

    return FunctionType(call.__code__.replace(co_name=name), globals(), name, None, call.__closure__)


# What is left out.


def _without_digests() -> None:
    _put(RowKey, "of", lambda *_: _HASH)
    _put(RowKey, "fits", lambda *_: True)


def _without_history() -> None:
    """No entry is written, hashed or compared; on PostgreSQL the same parameters go there."""
    _put(operation_rows, "row_digest", lambda _: _HASH)
    _put(ChainKey, "entry", lambda *_: _HASH)
    _put(ChainKey, "answer", lambda *_: _HASH)
    for name, module in list(sys.modules.items()):
        if name.startswith(_STATEMENTS):
            for constant, value in list(vars(module).items()):
                if isinstance(value, Query):
                    setattr(module, constant, _rewritten(value, _uncompared))
    statements.ACCEPT = _unwritten(statements.ACCEPT)  # type: ignore[misc]
    for choice, record in list(statements.RECORDS.items()):
        statements.RECORDS[choice] = _unwritten(record)
    for query in (statements.ACCEPT, *statements.RECORDS.values(), statements.FIND_CLAIM, statements.GET):
        for text in (query.postgresql, query.batch or "", *(step.text for step in query.sqlite)):
            if _OF_HISTORY.search(text):
                raise ValueError(f"a statement about the history is written otherwise by now: {text}")


def _uncompared(text: str) -> str:
    return text.replace(statements.CHAINED_DIGEST, "operations.row_digest")


def _unwritten(query: Query) -> Query:
    """Takes the writing and the comparing of history out of a statement that stores or changes an operation."""

    def uncompared(step: SqliteStep) -> SqliteStep:
        text, compared = _NEWEST_HASH.subn("", step.text)
        # The comparison is the end of its statement, and has the last two parameters.
        return SqliteStep(text, lambda given: step.pick(given)[:-2]) if compared else step

    # A query of one step would have to give rows: so there is one in the place of the writing, which does nothing.
    steps = tuple(_NO_STEP if _INSERT_HISTORY.search(step.text) else uncompared(step) for step in query.sqlite)
    without = _rewritten(query, lambda text: _NEWEST_HASH.sub("", _INSERT_HISTORY.sub("", text)))
    return without._replace(sqlite=steps)


def _rewritten(query: Query, rewrite: Callable[[str], str]) -> Query:
    steps = tuple(step._replace(text=rewrite(step.text)) for step in query.sqlite)
    return Query(rewrite(query.postgresql), steps, None if query.batch is None else rewrite(query.batch))


def _without_seals() -> None:
    opened = Seal.open

    def opened_or_plain(seal: Seal, sealed: bytes, context: bytes) -> bytes:
        return sealed[1:] if sealed[:1] == _PLAIN else opened(seal, sealed, context)

    _put(Seal, "seal", lambda _seal, plain, _context: _PLAIN + plain)
    _put(Seal, "open", opened_or_plain)


def _without_owners() -> None:
    async def nobody(*_: object, **__: object) -> OrderOwners:
        return OrderOwners()

    async def nobody_and_nothing(*_: object) -> tuple[OrderOwners, dict[str, frozenset[str]]]:
        return OrderOwners(), {}

    _put(Owners, "of_order", nobody)
    _put(Owners, "of_order_and_payments", nobody_and_nothing)


def _without_second_look() -> None:
    async def trusting(*_: object) -> None:
        """Doesn't look again."""

    _put(Attempt, "_look_again", trusting)


def _without_events() -> None:
    _put(operation_rows, "of_operation", lambda *_: None)
    _put(Dispatch, "wake", _nothing)


def _without_memory() -> None:
    _put(Journal, "_note", _nothing)


def _without_limits() -> None:
    anybodys = Connection(("", 0), None, 0.0, is_shared=False)
    _put(OpenConnections, "begin", lambda *_: anybodys)
    _put(OpenConnections, "admit", _nothing)
    _put(OpenConnections, "end", _nothing)
    _put(Quota, "take", lambda *_: ())


def _without_metrics() -> None:
    for name in ("seen", "answered", "_operation_changed", "_call_made"):
        _put(Metrics, name, _nothing)


def _without_log() -> None:
    _put(sampled_lines, "request_writer", lambda _: _nothing)


def _nothing(*_: object, **__: object) -> None:
    """Does nothing."""


def _put(owner: object, name: str, value: object) -> None:
    """Replaces what is there; raises AttributeError where the program has it no more."""
    getattr(owner, name)
    setattr(owner, name, value)


LEAVE_OUT: Final[dict[str, Callable[[], None]]] = {
    "digests": _without_digests,
    "history": _without_history,
    "seals": _without_seals,
    "owners": _without_owners,
    "second-look": _without_second_look,
    "events": _without_events,
    "memory": _without_memory,
    "limits": _without_limits,
    "metrics": _without_metrics,
    "log": _without_log,
}
"""What can be left out, and what replaces it."""


if __name__ == "__main__":
    main()
