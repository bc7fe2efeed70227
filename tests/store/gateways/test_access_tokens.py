from payrelay.clock import Clock
from payrelay.core.secret import Secret
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.access_tokens import AccessTokens

TOKEN = Secret("3bd5d5a1-741c-489a-b69e-fd73155ca34e").reveal()
OTHER = Secret("4bd5d5a1-741c-489a-b69e-fd73155ca34e").reveal()


def access_tokens(database: Database, *, key: bytes = b"k" * 32, account: str = "merchant/app") -> AccessTokens:
    """Gives the token store as a process has it."""
    return AccessTokens(database, Seal((key,)), Clock(), account)


def _everything() -> Unit[list[Row]]:
    rows = yield Statement(query("SELECT * FROM access_tokens"), ())
    return rows


async def test_what_one_process_puts_there_another_finds(database: Database) -> None:
    """One token for all: each of their own would cost each a call every ten minutes."""
    await access_tokens(database).put(TOKEN, 599.0)
    kept = await access_tokens(database).read()
    assert kept is not None
    assert kept.text == TOKEN
    assert -1 < kept.age_s < 60
    assert 500 < kept.left_s < 600


async def test_an_empty_token_store(database: Database) -> None:
    """At the first start there is nothing."""
    assert await access_tokens(database).read() is None


async def test_every_account_has_its_own(database: Database) -> None:
    """The token of one app is of no use to another."""
    await access_tokens(database).put(TOKEN, 599.0)
    assert await access_tokens(database, account="merchant/other").read() is None


async def test_one_process_at_a_time_fetches(database: Database) -> None:
    """The others wait for it; each lease ends with the token."""
    assert [await access_tokens(database).lease(10.0) for _ in range(2)] == [True, False]
    await access_tokens(database).put(TOKEN, 599.0)
    assert await access_tokens(database).lease(10.0)


async def test_a_lease_ends_by_itself(database: Database) -> None:
    """The process that fetched may have died."""
    tokens = access_tokens(database)
    await tokens.lease(0.0)
    assert await tokens.lease(10.0)


async def test_who_gives_up_lets_others_try(database: Database) -> None:
    """At once, or after a while; what lies there stays."""
    tokens = access_tokens(database)
    await tokens.put(TOKEN, 599.0)
    await tokens.lease(10.0)
    await tokens.give_up(60.0)
    assert not await tokens.lease(10.0)
    await tokens.give_up(0.0)
    assert await tokens.lease(10.0)
    assert await tokens.read() is not None


async def test_only_the_token_that_is_there_is_dropped(database: Database) -> None:
    """Of two processes that find the old one invalid, the second must not drop what the first has fetched."""
    await access_tokens(database).put(TOKEN, 599.0)
    await access_tokens(database).drop(OTHER)
    assert await access_tokens(database).read() is not None
    await access_tokens(database).drop(TOKEN)
    assert await access_tokens(database).read() is None
    await access_tokens(database).drop(TOKEN)


async def test_it_does_not_lie_there_in_clear(database: Database) -> None:
    """Who reads the database can't call the gateway."""
    await access_tokens(database).put(TOKEN, 599.0)
    assert TOKEN not in repr(await database.read(_everything()))


async def test_what_another_key_has_sealed_is_not_there(database: Database) -> None:
    """After a key was lost another token is fetched, and no call fails."""
    await access_tokens(database).put(TOKEN, 599.0)
    assert await access_tokens(database, key=b"o" * 32).read() is None
