"""The server that took the writes last."""

from payrelay.store.database.last_server import LastServer
from payrelay.store.engine.database import Database


async def test_the_last_server_is_remembered_and_replaced(database: Database) -> None:
    """Each start compares it with the server that it finds."""
    servers = LastServer(database)
    assert await servers.read() is None

    await servers.put("system 1, timeline 1")
    await servers.put("system 1, timeline 2")
    assert await servers.read() == "system 1, timeline 2"
