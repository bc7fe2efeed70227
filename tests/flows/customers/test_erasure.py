"""What was erased can't be had again, by somebody who has the store's key and every byte of the database's files."""

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import pytest
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.flows.customers.test_customers import NOTIFICATION
from tests.flows.hosted import data_of, hosting, new
from tests.flows.vault import MERCHANT, SEAL, TOKEN, approved_in, charge_by
from tests.flows.world import World, asked
from tests.postgresql_server import PostgresqlServer

from payrelay.clock import Clock
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.customers.customer import Customer
from payrelay.core.outcomes import Reading
from payrelay.core.seal_keys import KEY_BYTES
from payrelay.core.secret import Secret
from payrelay.errors import StoreUnusable
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.customers.erase_customer import clear_residues, erase_customer, remove_customer
from payrelay.flows.payments.charge import charge
from payrelay.store import open_database
from payrelay.store.data_keys.keys import key_context
from payrelay.store.engine.database import Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import FORMAT, DataKey, Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.tables.seals import SEALED, SealedColumn, Seals

ENGINES: Final = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))
CANARY: Final = b"CANARY"
"""In everything that names the person."""
SEALED_KEY_BYTES: Final = len(SEAL.seal(b"k" * KEY_BYTES, b""))
OTHERS: Final = 100
NEW: Final = b"n" * 32


class Captured:
    """What somebody copied from the database before the erasure: sealed values, and the names of the keys' owners."""

    def __init__(self) -> None:
        self.values: list[tuple[bytes, bytes]] = []
        self.owners: set[str] = set()

    def opened_with(self, seal: Seal, files: bytes) -> list[bytes]:
        """Gives what can be opened with the store's key, and with every data key that lies anywhere in the files."""
        keys: list[Seal | DataKey] = [seal]
        for found in re.finditer(re.escape(FORMAT + seal.key_id), files):
            sealed_key = files[found.start() : found.start() + SEALED_KEY_BYTES]
            keys += [DataKey(key) for owner in self.owners for key in _opened(seal, sealed_key, key_context(owner))]
        return [plain for value, context in self.values for key in keys for plain in _opened(key, value, context)]


def _opened(key: Seal | DataKey, value: bytes, context: bytes) -> list[bytes]:
    try:
        return [key.open(value, context)]
    except StoreUnusable:
        return []


class Disk:
    """The files of a database of either kind."""

    def __init__(self, folder: Path, server: PostgresqlServer | None) -> None:
        self._folder = folder
        self._server = server

    async def bytes(self, *, with_log: bool = False) -> bytes:
        """Reads all of them: of PostgreSQL without its write-ahead log, unless ``with_log``."""
        if self._server is not None:
            connection = await asyncpg.connect(self._server.url())
            await connection.execute("CHECKPOINT")
            await connection.close()
        return b"".join(
            path.read_bytes()
            for path in sorted(self._folder.rglob("*"))
            if path.is_file() and (with_log or "pg_wal" not in path.parts)
        )

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Reads the table of the keys for as long as the context is open, as a backup does."""
        if self._server is None:
            connection = sqlite3.connect(self._folder / "payrelay.db", isolation_level=None)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM data_keys").fetchall()
            yield
            connection.close()
            return
        server = await asyncpg.connect(self._server.url())
        async with server.transaction(isolation="repeatable_read"):
            await server.fetchval("SELECT count(*) FROM pg_class")
            yield
        await server.close()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Names the engine of this run of the test."""
    return str(request.param)


@pytest.fixture
def disk(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Disk:
    """Gives the files of the database."""
    server = request.getfixturevalue("postgresql_server") if engine == "postgresql" else None
    return Disk(tmp_path if server is None else server.folder / "data", server)


@pytest.fixture
def url(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Gives the address of an empty database."""
    if engine == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def world(url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay over a database of either kind."""
    world = World(await open_database(url, clock=Clock(), owner=True), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


async def known_customer(world: World) -> Customer:
    """Makes a customer who approved a card, was told of, opened a checkout, was charged by handle, and was read of."""
    customer = await approved_in(world, reference="CANARY-7", label="CANARY LABEL", card_holder="CANARY PERERA")
    await world.relay.inbox.put(NOTIFICATION, b"card_holder_name=CANARY+PERERA&customer_token=" + TOKEN.encode())
    world.relay = hosting(world)
    data_of(await open_checkout(world.relay, asked(world.relay), new(order_id="A-2", customer_reference="CANARY-7")))
    await charge(world.relay, asked(world.relay, "k-1"), charge_by(customer.id, order_id="A-3"))
    reading = Reading(code=None, msg="", raw_msg=b'""', raw_data=b'[{"customer":{"fist_name":"CANARY"}}]')
    await ReadingStore(world.database, SEAL, digests_of(world.database)).keep(
        MERCHANT, PaymentsOfOrder(order_id="A-3"), reading, (), read_at_ms=1, answered_at_ms=1
    )
    return customer


async def another_customer(world: World, number: int = 0) -> Customer:
    """Makes a customer with another token."""
    return await approved_in(world, token=Secret(f"another-{number}"), order_id=f"B-{number}", reference="other")


def _rows(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)


async def captured_in(world: World) -> Captured:
    """Copies every sealed value that can be erased, and the names of all keys."""
    captured = Captured()
    for column in (each for each in SEALED if each.owner is not None):
        captured.values += await _values_of(world, column)
    rows = await world.database.read(_rows(Statement(query("SELECT owner FROM data_keys"), ())))
    captured.owners = {str(owner) for (owner,) in rows}
    return captured


async def _values_of(world: World, column: SealedColumn) -> list[tuple[bytes, bytes]]:
    text = f"SELECT {column.column}, {', '.join(column.keys)} FROM {column.table} WHERE {column.column} IS NOT NULL"  # noqa: S608
    rows = await world.database.read(_rows(Statement(query(text), ())))
    return [(bytes(sealed), column.context(*keys)) for sealed, *keys in rows]  # type: ignore[arg-type]


async def test_the_attack_opens_everything_before_the_erasure(world: World, disk: Disk) -> None:
    """Otherwise the next tests would prove nothing: the attacker is able to read what is there."""
    await known_customer(world)
    captured = await captured_in(world)

    opened = captured.opened_with(SEAL, await disk.bytes())
    assert len(set(opened)) == len(captured.values)
    assert all(CANARY in plain or b"tea" in plain.lower() for plain in opened)


async def test_nothing_opens_what_was_erased(world: World, disk: Disk) -> None:
    """The database forgets a value long before its bytes are gone: no copy of them may open to anybody."""
    for number in range(OTHERS):  # whose keys stay, and so keep the pages of the destroyed ones in use
        await another_customer(world, number)
    others = await captured_in(world)
    customer = await known_customer(world)
    captured = await captured_in(world)
    captured.values = [value for value in captured.values if value not in others.values]
    answer = await erase_customer(world.relay, asked(world.relay), customer.id)

    assert data_of(answer)["files_cleared"] is True
    assert captured.opened_with(SEAL, await disk.bytes()) == []


async def test_no_byte_of_it_is_left_in_the_files_of_an_embedded_database(tmp_path: Path) -> None:
    """In the file or in its log: SQLite is made to overwrite what it deletes. In clear it never was there."""
    disk = Disk(tmp_path, None)
    world = World(
        await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True), tmp_path / "payrelay.db"
    )
    customer = await known_customer(world)
    captured = await captured_in(world)
    before = await disk.bytes()
    await erase_customer(world.relay, asked(world.relay), customer.id)
    after = await disk.bytes()
    await world.database.close()

    assert [value in before for value, _ in captured.values] == [True] * len(captured.values)
    assert [value in after for value, _ in captured.values] == [False] * len(captured.values)
    assert (CANARY in before, CANARY in after) == (False, False)


async def test_a_removed_token_can_not_be_opened_once_the_worker_has_cleared_the_files(
    world: World, disk: Disk
) -> None:
    """The names of a removed customer stay, under another key; its token is as good as erased."""
    customer = await known_customer(world)
    captured = await captured_in(world)
    await remove_customer(world.relay, asked(world.relay), customer.id)
    await clear_residues(world.relay)

    opened = captured.opened_with(SEAL, await disk.bytes())
    assert [plain for plain in opened if TOKEN.encode() in plain] == []
    left = await world.relay.customers.get(customer.id)
    assert left is not None
    assert (left.reference, left.card_no_masked) == ("CANARY-7", customer.card_no_masked)


async def test_what_could_not_be_cleared_is_told_and_cleared_later(world: World, disk: Disk) -> None:
    """A backup that reads the table meanwhile holds its deleted rows; an erasure must not say that they are gone."""
    customer = await known_customer(world)
    captured = await captured_in(world)
    async with disk.reading():
        answer = await erase_customer(world.relay, asked(world.relay), customer.id)
        assert data_of(answer)["files_cleared"] is False

    await clear_residues(world.relay)
    assert captured.opened_with(SEAL, await disk.bytes()) == []


async def test_after_a_rotation_not_even_a_copy_of_the_log_opens_anything(world: World, disk: Disk) -> None:
    """PostgreSQL's log and backups keep destroyed keys, sealed: the one that sealed them is destroyed in its turn."""
    customer = await known_customer(world)
    captured = await captured_in(world)
    await erase_customer(world.relay, asked(world.relay), customer.id)
    await another_customer(world)
    async for _ in Seals(world.database, Seal((NEW, b"k" * 32))).rotate():
        pass

    assert captured.opened_with(Seal((NEW,)), await disk.bytes(with_log=True)) == []


async def test_another_customer_is_not_touched(world: World) -> None:
    """Keys are destroyed one by one, and their table is written anew: the others must be there still."""
    customer = await known_customer(world)
    other = await another_customer(world)
    await erase_customer(world.relay, asked(world.relay), customer.id)

    assert await world.relay.customers.get(other.id) == other
    token = await world.relay.customers.token_of(other.id)
    assert token is not None
    assert token.reveal() == "another-0"
