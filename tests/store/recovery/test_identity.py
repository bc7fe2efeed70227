"""The identity of a database: made once, changed by one process at a time, and readable by nobody without the key."""

import asyncio
from typing import Final

import msgspec
import pytest

from payrelay.clock import Clock
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.errors import StoreUnusable
from payrelay.store import open_database
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.upgrades.begin import begin_store

SEAL: Final = Seal((b"1" * 32,))
LOST: Final = LostWindow(since_ms=10, until_ms=20)


def _recovering(identity: DatabaseIdentity) -> DatabaseIdentity:
    began = Incarnation(number=identity.current.number + 1, reason=Beginning.RECOVERED, began_at_ms=20, lost=LOST)
    return msgspec.structs.replace(identity, incarnations=(*identity.incarnations, began))


async def test_a_new_database_has_an_identity_that_stays(database: Database) -> None:
    """Whoever restores a backup must find the same database, and never one that takes itself for new."""
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    first = await identities.read()
    assert not await begin_store(database, SEAL, Clock())

    assert await identities.read() == first
    assert (first.current.number, first.current.reason, first.current.is_recovering) == (
        1,
        Beginning.CREATED,
        False,
    )


async def test_changes_at_once_are_all_kept(database: Database) -> None:
    """Two operators who begin a recovery at once begin two incarnations, and none disappears."""
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    await asyncio.gather(*(identities.change(_recovering) for _ in range(4)))

    stored = await identities.read()
    assert [each.number for each in stored.incarnations] == [1, 2, 3, 4, 5]
    assert stored.current.is_recovering


async def test_what_a_change_raises_changes_nothing(database: Database) -> None:
    """A command that refuses must leave the database as it was."""
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    before = await identities.read()

    def refuse(_: DatabaseIdentity) -> DatabaseIdentity:
        raise LookupError("no")

    with pytest.raises(LookupError):
        await identities.change(refuse)
    assert await identities.read() == before


async def test_a_missing_identity_ends_the_start(database: Database) -> None:
    """Somebody who removes it could otherwise have a database taken for one that lost nothing."""
    await begin_store(database, SEAL, Clock())
    removed = Statement(query("DELETE FROM meta WHERE name = 'database_identity'"), (), is_whole=True)
    await database.write(all_rows(removed))

    with pytest.raises(StoreUnusable, match="identity of the database is missing"):
        await IdentityStore(database, SEAL).read()


@pytest.mark.postgresql
async def test_a_restored_dump_is_behind_until_a_recovery_begins_in_it(postgresql_url: str) -> None:
    """It has the identity of its origin, and nothing that was charged since: a repeat of that would charge again."""
    database = await open_database(postgresql_url, clock=Clock(), owner=False)
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    before = await identities.read()
    for text in ("ALTER TABLE schema_version RENAME TO origin", "CREATE TABLE schema_version AS TABLE origin"):
        await database.write(all_rows(Statement(query(text), ())))
    copied = await identities.read()
    ended = await identities.change(lambda identity: identity)

    assert (before.current.behind, copied.current.is_moved, copied.id) == ("", True, before.id)
    assert ended.current.place == before.current.place, "only an incarnation that begins there is there"
    await identities.change(_recovering)
    assert (await identities.read()).current.behind == ""
    await database.close()


@pytest.mark.postgresql
async def test_tables_that_were_replaced_tell_which_numbers_were_given(postgresql_url: str) -> None:
    """A dump that is brought back once more would number its recovery as the first one was, and positions again."""
    database = await open_database(postgresql_url, clock=Clock(), owner=False)
    await begin_store(database, SEAL, Clock())
    identities = IdentityStore(database, SEAL)
    assert await identities.newest_elsewhere() == 0
    for text in (
        "CREATE SCHEMA another",
        "CREATE TABLE another.meta (name text, value text)",
        "CREATE SCHEMA empty",
        "CREATE TABLE empty.meta (name text, value bytea)",
        "CREATE SCHEMA strange",
        "CREATE TABLE strange.meta AS SELECT 'database_identity' AS name, 'x'::bytea AS value",
    ):
        await database.write(all_rows(Statement(query(text), ())))
    assert await identities.newest_elsewhere() == 0
    await identities.change(_recovering)
    for text in ("CREATE SCHEMA replaced", "CREATE TABLE replaced.meta AS TABLE meta"):
        await database.write(all_rows(Statement(query(text), ())))

    assert await identities.newest_elsewhere() == (await identities.read()).current.number
    await database.close()
