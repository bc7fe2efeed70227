"""The keys of client tokens: made once, sealed, and changed without anybody noticing."""

import asyncio

import pytest
from tests.flows.world import HandClock

from payrelay.core.access.signatures import SECRET_BYTES
from payrelay.errors import StoreUnusable
from payrelay.store.access.signing_keys import ASKED_AGAIN_S, KEPT_S, KEYS_MAX, SigningKeys
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements import meta


class Counting:
    """A database that counts what is read of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reads = 0

    async def read(self, unit: Unit[object]) -> object:
        """Reads, and counts."""
        self.reads += 1
        return await self._database.read(unit)

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)


@pytest.fixture
def clock() -> HandClock:
    """Gives a clock that stands still."""
    return HandClock()


def keys_of(database: Database, clock: HandClock, seal: bytes = b"k" * 32) -> SigningKeys:
    """Gives the keys as another process sees them."""
    return SigningKeys(database, Seal((seal,)), clock)


async def test_one_key_is_made_for_a_store(database: Database, clock: HandClock) -> None:
    """Of many processes that start at once, one makes it and all sign with it."""
    made = await asyncio.gather(*(keys_of(database, clock).newest() for _ in range(4)))

    assert len({key.id for key in made}) == 1
    assert len(made[0].secret) == SECRET_BYTES
    assert await keys_of(database, clock).find(made[0].id) == made[0]


async def test_it_lies_sealed(database: Database, clock: HandClock) -> None:
    """Whoever reads the database can't sign; with another encryption key nobody can."""
    key = await keys_of(database, clock).newest()

    def stored() -> Unit[list[Row]]:
        return (yield Statement(meta.GET_META, ("client_token_keys",)))

    value = (await database.read(stored()))[0][0]
    assert isinstance(value, bytes)
    assert key.secret not in value
    with pytest.raises(StoreUnusable):
        await keys_of(database, clock, b"o" * 32).newest()


async def test_two_keys_are_good_while_one_is_changed(database: Database, clock: HandClock) -> None:
    """Tokens that are out there live on; those of the key before the last one have ended."""
    keys = keys_of(database, clock)
    first, second, third = await keys.newest(), await keys.rotate(), await keys.rotate()

    assert await keys.newest() == third
    assert len({first.id, second.id, third.id}) == 3
    for reader in (keys, keys_of(database, clock)):
        assert [await reader.find(key.id) is not None for key in (first, second, third)] == [False, True, True]
    assert KEYS_MAX == 2


async def test_another_process_learns_of_a_new_key_at_once(database: Database, clock: HandClock) -> None:
    """By the first token that was signed with it; and it signs with it itself soon after."""
    here, there = keys_of(database, clock), keys_of(database, clock)
    old = await there.newest()
    new = await here.rotate()

    assert await there.find(new.id) == new
    fresh = keys_of(database, clock)
    assert await fresh.newest() == new
    newest = await here.rotate()
    clock.passed_ms += int(KEPT_S * 1000)
    assert await there.newest() == newest
    assert await there.find(old.id) is None


async def test_ids_that_are_made_up_do_not_keep_the_store_busy(database: Database, clock: HandClock) -> None:
    """Whoever sends noise causes one query a second, however much of it."""
    counting = Counting(database)
    keys = SigningKeys(counting, Seal((b"k" * 32,)), clock)  # type: ignore[arg-type]  # a database in all but name
    await keys.newest()
    counting.reads = 0

    for number in range(100):
        assert await keys.find(f"made-up-{number}") is None
    assert counting.reads == 1
    clock.passed_ms += int(ASKED_AGAIN_S * 1000)
    assert await keys.find("made-up") is None
    assert counting.reads == 2
