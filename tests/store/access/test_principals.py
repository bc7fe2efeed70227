import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import pytest
from tests.digests import digests_of
from tests.store.access.test_credentials import PLAIN

from payrelay.errors import Outdated, StoreError
from payrelay.store.access.credentials import Credentials
from payrelay.store.access.principals import Principals
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.engine.database import Database, Statement, Unit, Value
from payrelay.store.engine.queries import query

NOW_MS: Final = 1_700_000_000_000


@pytest.fixture
def principals(database: Database) -> Principals:
    """Gives the principals of an empty database."""
    return Principals(database, digests_of(database))


def _run(text: str, parameters: Sequence[Value]) -> Unit[None]:
    yield Statement(query(text), tuple(parameters))


async def test_a_principal_alone_acts_for_nobody(principals: Principals) -> None:
    """As every principal of a fresh database."""
    assert await principals.acts_for("web") == frozenset()


async def test_a_group_acts_for_its_members(principals: Principals) -> None:
    """Each for each other, and none for a principal outside."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)

    assert await principals.acts_for("web") == {"support"}
    assert await principals.acts_for("support") == {"web"}
    assert await principals.acts_for("kiosk") == frozenset()


async def test_a_principal_leaves_its_group_for_another(principals: Principals) -> None:
    """In two groups at once it would join both; and it leaves the one for the other only when that is asked for."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)
    with pytest.raises(Outdated, match="'support' is in another group"):
        await principals.put_into_group("desk", ["kiosk", "support"], now_ms=NOW_MS)
    assert await principals.acts_for("web") == {"support"}
    assert await principals.acts_for("kiosk") == frozenset()
    await principals.put_into_group("desk", ["kiosk", "support"], now_ms=NOW_MS, may_move=True)

    assert await principals.acts_for("web") == frozenset()
    assert await principals.acts_for("support") == {"kiosk"}
    assert await principals.take_out_of_group(["support", "web", "nobody"]) == ["support", "web"]
    assert await principals.groups() == [each for each in await principals.groups() if each.id == "kiosk"]


async def test_a_member_that_was_written_without_the_secret_counts_for_nothing(
    principals: Principals, database: Database
) -> None:
    """Whoever can write to the database would otherwise give themselves the payments of all shops."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)
    add = "INSERT INTO principal_groups VALUES ($1, 'shop', $2, $3)"
    await database.write(_run(add, ("thief", NOW_MS, "")))
    copied = "INSERT INTO principal_groups SELECT 'robber', name, since_ms, row_digest FROM principal_groups"
    await database.write(_run(f"{copied} WHERE id = $1", ("web",)))
    moved = "UPDATE principal_groups SET name = 'other' WHERE id = $1"
    await database.write(_run(moved, ("support",)))

    for name in ("thief", "robber", "support"):
        assert await principals.acts_for(name) == frozenset(), name
    assert await principals.acts_for("web") == frozenset()


async def test_a_name_is_a_keys_or_another_principals_also_at_one_moment(
    principals: Principals, database: Database
) -> None:
    """Two commands at once: else a key would have a name of its own that leads to somebody else's things."""
    credentials = Credentials(database, digests_of(database))
    for number in range(10):
        name = f"shop-{number}"
        key = msgspec.structs.replace(PLAIN, id=f"{number:012d}", principal=name)
        found = await asyncio.gather(
            principals.add_name("web", name, now_ms=NOW_MS), credentials.add(key), return_exceptions=True
        )
        is_named = found[0] is True
        assert isinstance(found[1], Outdated) is is_named, found

    assert {each.id for each in await principals.names()}.isdisjoint(await principals.known())


async def test_another_name_is_found_by_everyone(principals: Principals, database: Database) -> None:
    """New keys under the new name act as the principal; a name that was forged makes no key of another's."""
    assert await principals.add_name("web", "shop", now_ms=NOW_MS)
    assert not await principals.add_name("kiosk", "shop", now_ms=NOW_MS)
    assert await principals.stored_name("shop") == "web"
    assert await principals.stored_name("web") == "web"
    assert [(each.id, each.principal) for each in await principals.names()] == [("shop", "web")]

    await database.write(_run("INSERT INTO principal_names VALUES ('evil', 'web', $1, '')", (NOW_MS,)))
    with pytest.raises(StoreError, match="not written by this program"):
        await principals.stored_name("evil")


async def test_a_forged_row_is_an_alert(principals: Principals, database: Database) -> None:
    """Somebody who can write to the database tried to be let in: an operator must learn of it."""
    await database.write(_run("INSERT INTO principal_groups VALUES ('thief', 'shop', $1, '')", (NOW_MS,)))
    assert await principals.acts_for("thief") == frozenset()
    due = await Alerts(database, AlertSubject.ROW).lease_due(2**60, leased_until_ms=2**61, limit=10)

    assert [alert.subject_id for alert in due] == ["principal_groups/thief"]
