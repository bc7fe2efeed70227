"""Says for which step of a request the event loop's thread works, from a stack that was sampled. Pure.

A stack is read from its innermost frame outwards. The first frame that names a step decides. A frame that names none,
such as one of a library or of the clock, counts for whoever called it.
"""

import re
from collections import Counter
from typing import Final, NamedTuple

STACK_HEAD: Final = "Stack (most recent call first):"
"""Begins each stack that the service writes (``faulthandler``)."""
_FRAME: Final = re.compile(r'^  File "(.*)", line \d+ in (.*)$', re.MULTILINE)
_OURS: Final = "/payrelay/"
_LIBRARIES: Final = "/site-packages/"

OTHER: Final = "other"
"""What no row names."""
ITSELF: Final = "the event loop itself: waiting, reading sockets, waking tasks"

DOOR: Final = "door: Granian's calls, the body in, the answer out"
REQUEST: Final = "reading and checking the request"
CREDENTIAL: Final = "credential and permission"
LIMITS: Final = "limits: connections, shares, quota"
LOG: Final = "log line"
METRICS: Final = "metrics"
CLAIM: Final = "claim: fingerprint, and whether it is a repeat"
OWNERS: Final = "owners of the order"
PERMIT: Final = "permit: the budget of calls"
DIGESTS: Final = "digests of rows"
HISTORY: Final = "the history's hashes"
SEALS: Final = "seals"
ROWS: Final = "operation: decided, made into rows"
FLOW: Final = "flow: one step after the other, tasks"
UNITS: Final = "units of work: queue, batch, way to the commit"
SEND: Final = "call: token, request, connection"
WRITE: Final = "call: written to the socket"
PARSE: Final = "reply: HTTP read"
CLASSIFY: Final = "reply: understood and classified"
CACHE: Final = "cache of reads"
ANSWER: Final = "answer: made"
EVENTS: Final = "events: made, published"
MEMORY: Final = "memory of commits: marks, remembered rows"
WORKER: Final = "background jobs"
POSTGRESQL: Final = "PostgreSQL: statements, batches, protocol"
SQLITE: Final = "SQLite: "
"""Begins the steps of what SQLite itself does."""
ORDER: Final = (
    *(DOOR, REQUEST, LIMITS, CREDENTIAL, CLAIM, OWNERS, PERMIT, FLOW, ROWS, DIGESTS, HISTORY, SEALS, UNITS, SQLITE),
    *(POSTGRESQL, SEND, WRITE, PARSE, CLASSIFY, CACHE, ANSWER, EVENTS, MEMORY, METRICS, LOG, WORKER, ITSELF, OTHER),
)
"""The steps in the table's order, which is about a request's."""


class Frame(NamedTuple):
    """One frame: its file, from the package on, and its function."""

    file: str
    function: str


STATEMENT: Final = Frame("store/engine/sqlite.py", "rows_of")
"""Runs one statement on SQLite. Whose it is, the frames around it say."""
_ENGINE: Final = "store/engine/sqlite.py"

STATEMENTS: Final = {
    "find_claim": "claim",
    "of_order": "owners",
    "of_order_and_payments": "owners",
    "unit _accept": "intent",
    "unit _record": "outcome",
    "unit _publish": "events published",
}
"""Whose statement it is, by a function around it; all others are in one row."""
OTHER_STATEMENTS: Final = "others"
TRANSACTION: Final = "beginning a transaction"

FUNCTIONS: Final = {
    Frame("api/http/outgoing.py", "note_answer"): LOG,
    Frame("api/http/incoming_request.py", "read_body"): DOOR,
    Frame("api/http/incoming_request.py", "begin"): DOOR,
    Frame("api/http/incoming_request.py", "end"): DOOR,
    Frame("api/http/incoming_request.py", "_rest"): DOOR,
    Frame("gateways/http/connection.py", "write"): WRITE,
    Frame("gateways/http/connection.py", "data_received"): PARSE,
    Frame("store/payments/journal.py", "find_claim"): CLAIM,
    Frame("store/payments/journal.py", "_claimed"): CLAIM,
    Frame("store/payments/journal.py", "_note"): MEMORY,
    Frame("store/payments/operation_rows.py", "_link"): HISTORY,
    Frame("store/payments/operation_rows.py", "answer"): CLAIM,
    Frame(_ENGINE, "_begin"): SQLITE + TRANSACTION,
}
"""Functions that name another step than their file does."""

FILES: Final = (
    ("granian/", DOOR),
    ("asyncpg/", POSTGRESQL),
    ("api/http/outgoing.py", DOOR),
    ("api/http/request_log.py", LOG),
    ("api/http/sampled_lines.py", LOG),
    ("api/metrics/", METRICS),
    ("api/connections/", LIMITS),
    ("api/auth/quota.py", LIMITS),
    ("api/auth/", CREDENTIAL),
    ("core/access/ownership.py", OWNERS),
    ("core/access/", CREDENTIAL),
    ("api/", REQUEST),
    ("core/calls.py", REQUEST),
    ("core/payments/idempotency.py", CLAIM),
    ("flows/operations/answer_repeat.py", CLAIM),
    ("flows/access/", OWNERS),
    ("store/access/owners.py", OWNERS),
    ("store/access/", CREDENTIAL),
    ("gateways/pacing/", PERMIT),
    ("gateways/payhere/permits.py", PERMIT),
    ("core/gateways/", PERMIT),
    ("store/gateways/budget.py", PERMIT),
    ("store/digests/", DIGESTS),
    ("core/payments/audit_chain.py", HISTORY),
    ("store/engine/sealing.py", SEALS),
    ("store/data_keys/", SEALS),
    ("core/payments/", ROWS),
    ("flows/operations/", ROWS),
    ("flows/apply_change.py", ROWS),
    ("store/signed_texts.py", ROWS),
    ("store/payments/remembered.py", MEMORY),
    ("store/payments/", ROWS),
    ("runtime/ids.py", ROWS),
    ("core/recovery/", MEMORY),
    ("runtime/recovery/", MEMORY),
    ("flows/recovery/", MEMORY),
    ("store/recovery/", MEMORY),
    ("store/engine/postgresql/", POSTGRESQL),
    ("store/engine/rows.py", ROWS),
    ("store/engine/", UNITS),
    ("gateways/http/reply_reader.py", PARSE),
    ("gateways/http/", SEND),
    ("gateways/payhere/wire/requests.py", SEND),
    ("gateways/payhere/wire/", CLASSIFY),
    ("core/outcomes.py", CLASSIFY),
    ("gateways/", SEND),
    ("runtime/read_cache.py", CACHE),
    ("store/gateways/readings.py", CACHE),
    ("core/answers.py", ANSWER),
    ("core/views.py", ANSWER),
    ("core/events/", EVENTS),
    ("store/events/", EVENTS),
    ("flows/events/", EVENTS),
    ("runtime/event_delivery.py", EVENTS),
    ("runtime/followers.py", EVENTS),
    ("flows/payments/", FLOW),
    ("flows/relay.py", FLOW),
    ("runtime/", FLOW),
    ("worker.py", WORKER),
    ("flows/", WORKER),
    ("store/", WORKER),
    ("uvloop/", ITSELF),
    ("asyncio/runners.py", ITSELF),
)
"""Files and folders, by how their paths begin; the first that fits counts."""


def stacks_in(text: str) -> list[list[Frame]]:
    """Reads stacks, each with its innermost frame first."""
    return [[_frame(*found) for found in _FRAME.findall(stack)] for stack in text.split(STACK_HEAD)[1:]]


def _frame(path: str, function: str) -> Frame:
    for mark in (_LIBRARIES, _OURS):
        if mark in path:
            return Frame(path.rsplit(mark, 1)[1].removeprefix(_OURS[1:]), function)
    return Frame("/".join(path.rsplit("/", 2)[-2:]), function)


def step_of(stack: list[Frame]) -> str:
    """Names the step that a stack is in; OTHER where no frame names one."""
    for place, frame in enumerate(stack):
        if frame == STATEMENT:
            return SQLITE + _statement_of(stack[place:])
        step = _step_of_frame(frame)
        if step is not None:
            return step
    return OTHER


def _statement_of(around: list[Frame]) -> str:
    for frame in around:
        if frame.function in STATEMENTS:
            return STATEMENTS[frame.function]
    return OTHER_STATEMENTS


def _step_of_frame(frame: Frame) -> str | None:
    named = FUNCTIONS.get(frame)
    if named is not None:
        return named
    for beginning, step in FILES:
        if frame.file.startswith(beginning):
            return step
    return None


def counted(stacks: list[list[Frame]]) -> Counter[str]:
    """Counts the stacks of each step."""
    return Counter(map(step_of, stacks))


def unnamed(stacks: list[list[Frame]]) -> Counter[Frame]:
    """Counts the innermost frames of stacks in which nothing names a step: for whoever keeps the tables above."""
    return Counter(stack[0] if stack else Frame("", "") for stack in stacks if step_of(stack) == OTHER)
