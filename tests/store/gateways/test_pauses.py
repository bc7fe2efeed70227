import msgspec

from payrelay.core.gateways.pauses import Pause
from payrelay.store.engine.database import Database
from payrelay.store.gateways.pauses import Pauses

PAUSE = Pause(account="gateway", since_ms=1_000, reason="wrong prices in the shop", operator="ann")


async def test_a_pause_is_read_back_whole(database: Database) -> None:
    """Who comes after finds since when, why and by whom."""
    assert await Pauses(database).add(PAUSE)

    assert await Pauses(database).list() == [PAUSE]


async def test_the_first_pause_stands(database: Database) -> None:
    """Its reason is the one that must be gone before the account goes on."""
    await Pauses(database).add(PAUSE)

    assert not await Pauses(database).add(msgspec.structs.replace(PAUSE, reason="another", since_ms=2_000))
    assert await Pauses(database).list() == [PAUSE]


async def test_a_pause_ends_once(database: Database) -> None:
    """The account can be paused again afterwards; whoever decided about the pause before doesn't end this one."""
    pauses = Pauses(database)
    await pauses.add(PAUSE)

    assert await pauses.remove("gateway", PAUSE.since_ms)
    assert not await pauses.remove("gateway", PAUSE.since_ms)
    assert await pauses.list() == []
    anew = msgspec.structs.replace(PAUSE, since_ms=2_000)
    assert await pauses.add(anew)
    assert not await pauses.remove("gateway", PAUSE.since_ms)
    assert await pauses.list() == [anew]
