import asyncio
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.databases import PassingDatabase

from payrelay.clock import Clock
from payrelay.errors import DatabaseNotReady, StoreUnusable
from payrelay.store import meta
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.migrations import shipped
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements.meta import ANY_STORED
from payrelay.store.tables.digested import DIGESTED
from payrelay.store.upgrades.begin import begin_store

T = TypeVar("T")


class CountingUnits(PassingDatabase):
    """A database that counts the units of work."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.reads = self.writes = 0

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a reading unit."""
        self.reads += 1
        return await super().read(unit)

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit of work."""
        self.writes += 1
        return await super().write(unit, is_patient=is_patient)


class Noon(Clock):
    """Stands at one moment."""

    def now_ms(self) -> int:
        """Gives it."""
        return 43_200_000


Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported
FIRST = b"1" * 32
SECOND = b"2" * 32


async def _first_start(database: Database, keys: tuple[bytes, ...] = (FIRST,)) -> None:
    await begin_store(database, Seal(keys), Clock())
    await meta.verify_key(database, Seal(keys))


async def test_the_key_of_the_first_start_is_right_ever_after(database: Database) -> None:
    """The first start notes the key, the next ones compare it."""
    await _first_start(database)
    await meta.verify_key(database, Seal((FIRST,)))


async def test_a_database_without_a_check_of_its_key_is_not_ready(database: Database) -> None:
    """A command that only reads must not be what begins a store, under whatever key it was given."""
    with pytest.raises(DatabaseNotReady):
        await meta.verify_key(database, Seal((FIRST,)))


async def test_of_two_processes_that_begin_at_once_one_does(database: Database) -> None:
    """With the check of one and the chain's key of the other, no later start would open both."""
    first, second = Seal((FIRST,)), Seal((SECOND,))
    begun = await asyncio.gather(*(begin_store(database, each, Clock()) for each in (first, second)))
    right = first if begun[0] else second

    assert sorted(begun) == [False, True]
    await meta.verify_key(database, right)
    await meta.chain_key(database, right)


def test_every_table_that_grants_something_is_looked_into() -> None:
    """A database that holds a forged key alone must not be taken for a new one, which trusts what lies in it."""
    [step] = ANY_STORED.sqlite
    unseen = {table.name for table in DIGESTED if f"FROM {table.name})" not in step.text}

    assert unseen == set()


async def test_another_key_is_refused_at_the_start(database: Database) -> None:
    """Otherwise half of the answers would be sealed with one key, and half with another."""
    await _first_start(database)

    with pytest.raises(StoreUnusable, match="PAYRELAY_ENCRYPTION_KEY is not the key"):
        await meta.verify_key(database, Seal((SECOND,)))


async def test_a_new_key_may_stand_before_the_old_one(database: Database) -> None:
    """That is how a key is rotated: new values with the new one, old values still open."""
    await _first_start(database)
    await meta.verify_key(database, Seal((SECOND, FIRST)))


async def test_the_embedded_key_is_made_once(database: Database, tmp_path: Path) -> None:
    """The first start makes it, the next ones read it."""
    keys = await meta.embedded_keys(database, tmp_path / "key")
    await _first_start(database, keys)

    assert await meta.embedded_keys(database, tmp_path / "key") == keys


async def test_an_app_stays_the_merchants_that_it_was_first(database: Database) -> None:
    """Its orders would be free, its customers gone, as soon as the merchant's number is added to the settings."""
    seal = Seal((FIRST,))
    assert await meta.merchants_of_apps(database, seal, {"app-1": "merchant-1"}) == {"app-1": "merchant-1"}
    later = {"app-1": "merchant-2", "app-2": "merchant-2"}
    first = {"app-1": "merchant-1", "app-2": "merchant-2"}
    assert await meta.merchants_of_apps(database, seal, later) == first
    assert await meta.merchants_of_apps(database, seal, later) == first


async def test_two_processes_that_start_at_once_know_the_same_merchants(database: Database) -> None:
    """Whoever was second would otherwise guard the orders of the same app under another merchant."""
    seal, names = Seal((FIRST,)), [f"app-{number}" for number in range(50)]
    one, other = dict.fromkeys(names, "merchant-1"), dict.fromkeys(reversed(names), "merchant-2")
    found = await asyncio.gather(
        meta.merchants_of_apps(database, seal, one), meta.merchants_of_apps(database, seal, other)
    )
    assert found[0] == found[1]


async def test_a_start_with_many_accounts_stores_their_merchants_at_once(database: Database) -> None:
    """Each would otherwise wait for a commit: a thousand accounts took seven seconds on PostgreSQL."""
    counting, merchants = CountingUnits(database), {f"app-{number}": "merchant" for number in range(100)}
    for _ in range(2):
        await meta.merchants_of_apps(counting, Seal((FIRST,)), merchants)

    assert (counting.reads, counting.writes) == (2, 1)


async def test_the_version_of_the_schema_is_known(database: Database) -> None:
    """An operator compares it with the program's before an update."""
    assert await meta.schema_version(database) == shipped("sqlite")[-1].number


async def test_a_lost_key_is_not_replaced_by_a_new_one(database: Database, tmp_path: Path) -> None:
    """A new key would open nothing, and hide that the file must come back from a backup."""
    await _first_start(database)

    with pytest.raises(StoreUnusable, match="missing"):
        await meta.embedded_keys(database, tmp_path / "key")
    assert not (tmp_path / "key").exists()


def _run(sql: str) -> Unit[None]:
    yield Statement(query(sql), ())


async def test_the_key_of_the_chain_is_made_once(database: Database) -> None:
    """All processes, now and later, chain with the same key; and since when there is one can't be made older."""
    await begin_store(database, Seal((FIRST,)), Noon())
    key = await meta.chain_key(database, Seal((FIRST,)))
    await begin_store(database, Seal((FIRST,)), Clock())

    assert (len(key.secret), key.since_ms) == (32, 43_200_000)
    assert await meta.chain_key(database, Seal((SECOND, FIRST))) == key


async def test_the_key_of_the_chain_lies_sealed(database: Database) -> None:
    """Whoever has the database alone can't make a chain that holds."""
    await begin_store(database, Seal((FIRST,)), Noon())

    with pytest.raises(StoreUnusable):
        await meta.chain_key(database, Seal((SECOND,)))


async def test_a_lost_key_of_the_chain_is_not_replaced(database: Database) -> None:
    """Whoever removes the key together with all hashes must not get a new key, under which everything looks right."""
    await begin_store(database, Seal((FIRST,)), Noon())
    await database.write(_run("DELETE FROM meta WHERE name = 'chain_key'"))

    with pytest.raises(StoreUnusable, match="key of the audit chain is missing"):
        await meta.chain_key(database, Seal((FIRST,)))
