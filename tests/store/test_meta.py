from pathlib import Path

import pytest

from payrelay.errors import StoreUnusable
from payrelay.store import meta
from payrelay.store.database import Database
from payrelay.store.migrations import shipped
from payrelay.store.sealing import Seal

FIRST = b"1" * 32
SECOND = b"2" * 32


async def test_the_key_of_the_first_start_is_right_ever_after(database: Database) -> None:
    """The first start notes the key, the next ones compare it."""
    await meta.verify_key(database, Seal((FIRST,)))
    await meta.verify_key(database, Seal((FIRST,)))


async def test_another_key_is_refused_at_the_start(database: Database) -> None:
    """Otherwise half of the answers would be sealed with one key, and half with another."""
    await meta.verify_key(database, Seal((FIRST,)))

    with pytest.raises(StoreUnusable, match="PAYRELAY_ENCRYPTION_KEY is not the key"):
        await meta.verify_key(database, Seal((SECOND,)))


async def test_a_new_key_may_stand_before_the_old_one(database: Database) -> None:
    """That is how a key is rotated: new values with the new one, old values still open."""
    await meta.verify_key(database, Seal((FIRST,)))
    await meta.verify_key(database, Seal((SECOND, FIRST)))


async def test_the_embedded_key_is_made_once(database: Database, tmp_path: Path) -> None:
    """The first start makes it, the next ones read it."""
    keys = await meta.embedded_keys(database, tmp_path / "key")
    await meta.verify_key(database, Seal(keys))

    assert await meta.embedded_keys(database, tmp_path / "key") == keys


async def test_the_version_of_the_schema_is_known(database: Database) -> None:
    """An operator compares it with the program's before an update."""
    assert await meta.schema_version(database) == shipped("sqlite")[-1].number


async def test_a_lost_key_is_not_replaced_by_a_new_one(database: Database, tmp_path: Path) -> None:
    """A new key would open nothing, and hide that the file must come back from a backup."""
    await meta.verify_key(database, Seal((FIRST,)))

    with pytest.raises(StoreUnusable, match="missing"):
        await meta.embedded_keys(database, tmp_path / "key")
    assert not (tmp_path / "key").exists()
