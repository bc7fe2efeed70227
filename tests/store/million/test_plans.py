"""Every statement and every offered filter beside a million operations: none reads what grows.

One that did would make charges wait: on SQLite each statement of a charge waits for the one before, on PostgreSQL for
the disk.
"""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import asyncpg
import pytest
from tests.databases import Schemas, sqlite_url
from tests.store.million.declared import declared
from tests.store.million.filling import fill_postgresql, fill_sqlite
from tests.store.million.offered import LIMIT, offered
from tests.store.million.plans import faults_in_postgresql, faults_in_sqlite, rows_read

from payrelay.clock import Clock
from payrelay.store import open_database

pytestmark = pytest.mark.integration

STEPS_MAX: Final = 400_000
"""Steps of SQLite's machine for one page: some 30 ms. A scan of a million rows takes five million and more."""
ROWS_MAX: Final = 80_000
"""Rows that PostgreSQL may take for one page, of which the filling has some three million."""

_UPGRADE: Final = "an upgrade, once"
_FIRST: Final = "stops at the first row of each table"
_STEP: Final = "one step in an index for each value"
_AUDIT: Final = "the audit, or its preparation, which reads all there is page by page, in a process of its own"
ALLOWED: Final = {
    "access.client_tokens.REVOKE_SOME": "revokes all of a principal's tokens, which it changes row by row anyway",
    "access.owners.KNOWN_PRINCIPALS": _STEP,
    "events.feed.FORGET_DELIVERIES": "removes what it reads, as many rows as events of one batch have",
    "events.feed.PRUNABLE": "stops at its limit",
    "events.feed.IS_ANY_PRUNABLE": "stops at its limit",
    "events.feed.READ_BETWEEN": "between two positions that are a batch apart",
    "gateways.budget.BLOCK_ALL_PERMITS": "a recovery, once, before anything is sent",
    "meta.ANY_STORED": _FIRST,
    "payments.audit.AUDIT_ENTRIES_BY_TIME": _AUDIT,
    "payments.audit.COUNT_OPERATIONS": _AUDIT,
    "payments.audit.LAST_ANCHOR": "one step from the end",
    "payments.audit.MISCOUNTED": _AUDIT,
    "payments.known_payments.MERCHANTS_OF_PAYMENTS": _STEP,
    "payments.marks.NEWEST_ENTRY_AT": "one step from the end",
    "retention.clearing.CLEAR_NOTIFICATIONS": "between two ids that are a batch apart",
    "retention.clearing.COUNT_SKIPPED": "counts what is to be tried again, which is little",
    "retention.clearing.FIRST_EVENT": "stops at its limit",
}
"""What may read much all the same, and why."""
SAMPLES: Final = {
    "events.feed.FORGET_DELIVERIES": {1: "200"},
    "events.feed.FORGET_EVENTS": {1: "200"},
    "events.feed.READ_BETWEEN": {3: "100", 4: "200"},
    "events.feed.READ_TYPES": {3: "100", 4: "200"},
    "events.feed.LAST_KEPT": {1: "100", 2: "200"},
    "orders.facts.FACTS": {4: "501"},
}
"""Parameters that aren't usual ones of their types."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Fills a file, in about a minute."""
    path: Path = tmp_path_factory.mktemp("million") / "payrelay.db"
    sqlite_url(path)
    connection = sqlite3.connect(path, cached_statements=1_000)
    fill_sqlite(connection)
    yield connection
    connection.close()
    path.unlink()


@pytest.mark.postgresql
async def test_no_plan_of_postgresql_reads_what_grows(postgresql_schemas: Schemas) -> None:
    """Neither those of the statements nor those of the pages, which are carried out; a filled schema serves both."""
    name = await postgresql_schemas.new()
    url = postgresql_schemas.url(name)
    await (await open_database(url, clock=Clock(), owner=True)).close()
    connection = await asyncpg.connect(url, statement_cache_size=0, command_timeout=600)
    try:
        await fill_postgresql(connection)
        await connection.execute("SET plan_cache_mode = force_custom_plan; SET jit = off")
        found = {}
        for statement, query in declared().items():
            if faults := await faults_in_postgresql(connection, query, SAMPLES.get(statement, {})):
                found[statement] = faults
        assert {statement: faults for statement, faults in found.items() if statement not in ALLOWED} == {}
        slow = [words async for words in _slow_pages(connection)]
        assert slow == []
    finally:
        await connection.close()
        await postgresql_schemas.drop(name)


async def _slow_pages(connection: asyncpg.Connection) -> AsyncIterator[str]:
    for words, statement in offered():
        text = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement.query.postgresql}"
        plan = json.loads(await connection.fetchval(text, *statement.parameters))[0]["Plan"]
        if rows_read(plan) > ROWS_MAX:
            yield f"{words}: {rows_read(plan)} rows"


def test_no_plan_of_sqlite_reads_what_grows(file: sqlite3.Connection) -> None:
    """Only the plans are looked at: what a statement would do."""
    found = {name: list(faults_in_sqlite(file, query)) for name, query in declared().items()}

    assert {name: faults for name, faults in found.items() if faults and name not in ALLOWED} == {}


def test_no_page_of_a_list_takes_long_on_sqlite(file: sqlite3.Connection) -> None:
    """Each offered combination is carried out, with usual, rare and absent values, and its steps are counted."""
    looks = []
    file.set_progress_handler(lambda: looks.append(1), 1_000)
    slow, pages = [], 0
    for words, statement in offered():
        looks.clear()
        [step] = statement.query.sqlite
        rows = file.execute(step.text, step.pick(statement.parameters)).fetchall()
        assert len(rows) <= LIMIT
        pages += 1
        if len(looks) * 1_000 > STEPS_MAX:
            slow.append(f"{words}: {len(looks) * 1_000} steps")
    file.set_progress_handler(None, 0)

    assert slow == []
    assert pages > 10_000


def test_no_statement_of_sqlite_is_prepared_anew_for_other_values(tmp_path: Path) -> None:
    """It would be where SQLite compares a value with those in the condition of a partial index: ten times the price."""
    sqlite_url(tmp_path / "payrelay.db")
    connection = sqlite3.connect(tmp_path / "payrelay.db")
    names = {step.text: words for words, statement in offered() for step in statement.query.sqlite}
    names |= {step.text: name for name, query in declared().items() for step in query.sqlite}
    prepared: list[int] = []

    def allow(*_: object) -> int:
        """Is asked whenever a statement is prepared."""
        prepared.append(1)
        return sqlite3.SQLITE_OK

    connection.set_authorizer(allow)
    anew = []
    for text, name in names.items():
        if not text.lstrip().startswith(("SELECT", "WITH")):
            continue
        for value in (1, 2):
            prepared.clear()
            connection.execute(text, [value] * text.count("?")).fetchall()
        if prepared:
            anew.append(name)
    connection.close()

    assert anew == []


def test_what_is_allowed_exists() -> None:
    """A statement that goes takes its permission along."""
    assert (ALLOWED.keys() | SAMPLES.keys()) - declared().keys() == set()
