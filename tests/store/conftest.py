"""The store's suite is written once and run on each engine: SQLite, SQLite inline, and PostgreSQL."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import msgspec
import pytest
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.samples import OPERATION

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import Charge, Effect
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Operation, Retention, advance
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay.store.payments.journal import Acceptance, AcceptedOperation, Journal

CHAIN_KEY = b"c" * 32
ENGINES = ("sqlite", "inline", pytest.param("postgresql", marks=pytest.mark.postgresql))

CHARGE = Charge(
    authorize=False,
    order_id="A-1",
    items="Toy car",
    currency="LKR",
    amount_minor=100_000,
    customer_token="CANARY59AFEE022CC69CA39D325E1B59",
)
Tamper = Callable[[str], Awaitable[None]]
RETENTION = Retention(keyed_ms=30_000, unkeyed_ms=10_000)
EVIDENCE = Evidence(http_status=200, gateway_msg="Successfully completed", elapsed_ms=31)


class Book:
    """A journal, and short words for what tests do with it over and over."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.journal = Journal(database, Seal((b"k" * 32,)), digests_of(database), chain_key=CHAIN_KEY)
        self._chains: dict[tuple[str, int], str] = {}

    def new(self, number: int, **members: object) -> Operation:
        """Gives a charge with an id, a claim and a guard by its number, but for what is named."""
        own = {
            "id": f"op_{number:026d}",
            "claim": f"key/k-{number}",
            "idempotency_key": f"k-{number}",
            "guard": f"order/A-{number}",
            "subject": f"order/A-{number}",
            "order_id": f"A-{number}",
        }
        return msgspec.structs.replace(OPERATION, **(own | members))

    async def accept(
        self, operation: Operation, *, call: Effect = CHARGE, conflicts_with: str | None = None, now_ms: int = 1_000
    ) -> Acceptance:
        """Stores an operation with a fitting first journal entry."""
        entry = JournalEntry(
            version=operation.version, at_ms=1_000, event=None, state=operation.state, evidence=Evidence()
        )
        acceptance = await self.journal.accept(operation, entry, call, conflicts_with=conflicts_with, now_ms=now_ms)
        if isinstance(acceptance, AcceptedOperation):
            self._keep_chain(acceptance.operation)
        return acceptance

    async def advance(self, operation: Operation, event: Event, answer: Answer | None = None) -> Operation:
        """Takes an operation through an event, and stores that."""
        changed, entry = advance(self.stored(operation), event, at_ms=2_000, retention=RETENTION, evidence=EVIDENCE)
        changed = await self.journal.record(changed, entry, answer)
        self._keep_chain(changed)
        return changed

    def stored(self, operation: Operation) -> Operation:
        """Gives an operation with the chain that its version was stored with."""
        chain = self._chains.get((operation.id, operation.version), operation.chain)
        return msgspec.structs.replace(operation, chain=chain)

    def _keep_chain(self, operation: Operation) -> None:
        self._chains[operation.id, operation.version] = operation.chain


OpenBook = Callable[[], "AsyncIterator[Book]"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Names the engine of this run of the test."""
    return str(request.param)


@pytest.fixture
def url(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Gives the address of an empty database."""
    if engine == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def database(engine: str, url: str) -> AsyncIterator[Database]:
    """Opens an empty database, and closes it."""
    executor = InlineExecutor() if engine == "inline" else None
    opened = await open_database(url, clock=Clock(), owner=True, executor=executor)
    yield opened
    await opened.close()


@pytest.fixture
def book(database: Database) -> Book:
    """Gives a journal in an empty database."""
    return Book(database)


@pytest.fixture
def answer() -> Answer:
    """Gives an answer as it is stored."""
    return Answer(http_status=200, body=b'{"status":1,"msg":"OK","data":{"amount":1000.0}}')


@pytest.fixture
def tamper(url: str) -> Tamper:
    """Runs SQL as somebody does who owns the database: no trigger or foreign key stops them. Bytes are ``X'00'``."""

    async def run(sql: str) -> None:
        if url.startswith("postgresql"):
            connection = await asyncpg.connect(url)
            await connection.execute(f"SET session_replication_role = replica; {sql}".replace("X'00'", r"'\x00'"))
            await connection.close()
            return
        file = sqlite3.connect(url.removeprefix("sqlite:///"))
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {name}")
        file.executescript(sql)
        file.close()

    return run
