from collections.abc import Sequence
from typing import Final

import pytest

from payrelay.core.access.ownership import ActsFor
from payrelay.errors import StoreError
from payrelay.store.access.principals import (
    GrandfatheredPair,
    GrandfatherReason,
    PrincipalDigests,
    Principals,
    sign_grandfathered,
)
from payrelay.store.engine.database import Database, Statement, Unit, Value
from payrelay.store.engine.queries import query

SECRET: Final = b"s" * 32
NOW_MS: Final = 1_700_000_000_000


@pytest.fixture
def principals(database: Database) -> Principals:
    """Gives the principals of an empty database."""
    return Principals(database, SECRET)


def _run(text: str, parameters: Sequence[Value]) -> Unit[None]:
    yield Statement(query(text), tuple(parameters))


async def found_by_migration(database: Database, principal: str, owner: str) -> None:
    """Stores a pair as the migration does: without a digest."""
    text = "INSERT INTO grandfathered VALUES ($1, $2, 'acted', 2, $3, '')"
    await database.write(_run(text, (principal, owner, NOW_MS)))


async def test_a_principal_alone_acts_for_nobody(principals: Principals) -> None:
    """As every principal of a fresh database."""
    assert await principals.acts_for("web") == ActsFor()


async def test_a_group_acts_for_its_members(principals: Principals) -> None:
    """Each for each other, and none for a principal outside."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)

    assert (await principals.acts_for("web")).all == {"support"}
    assert (await principals.acts_for("support")).all == {"web"}
    assert (await principals.acts_for("kiosk")).all == frozenset()


async def test_a_principal_leaves_its_group_for_another(principals: Principals) -> None:
    """In two groups at once it would join both, and nobody would have said so."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)
    await principals.put_into_group("desk", ["kiosk", "support"], now_ms=NOW_MS)

    assert (await principals.acts_for("web")).all == frozenset()
    assert (await principals.acts_for("support")).all == {"kiosk"}
    assert await principals.take_out_of_group(["support", "web", "nobody"]) == ["support", "web"]
    assert await principals.groups() == [each for each in await principals.groups() if each.principal == "kiosk"]


async def test_a_member_that_was_written_without_the_secret_counts_for_nothing(
    principals: Principals, database: Database
) -> None:
    """Whoever can write to the database would otherwise give themselves the payments of all shops."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)
    add = "INSERT INTO principal_groups VALUES ($1, 'shop', $2, $3)"
    await database.write(_run(add, ("thief", NOW_MS, "")))
    copied = "INSERT INTO principal_groups SELECT 'robber', name, since_ms, digest FROM principal_groups"
    await database.write(_run(f"{copied} WHERE principal = $1", ("web",)))
    moved = "UPDATE principal_groups SET name = 'other' WHERE principal = $1"
    await database.write(_run(moved, ("support",)))

    for name in ("thief", "robber", "support"):
        assert (await principals.acts_for(name)).all == frozenset(), name
    assert (await principals.acts_for("web")).all == frozenset()


async def test_a_pair_of_the_migration_counts_once_it_is_signed(principals: Principals, database: Database) -> None:
    """The migration is SQL alone; the upgrade step after it signs what it found, and nothing later."""
    await found_by_migration(database, "support", "web")
    assert (await principals.acts_for("support")).all == frozenset()
    await sign_grandfathered(database, SECRET)
    await sign_grandfathered(database, SECRET)

    assert await principals.acts_for("support") == ActsFor(grandfathered=frozenset({"web"}))
    assert (await principals.acts_for("web")).all == frozenset()
    [pair] = await principals.grandfathered()
    assert (pair.reason, pair.actions, pair.last_at_ms) == (GrandfatherReason.ACTED, 2, NOW_MS)


async def test_a_forged_pair_counts_for_nothing(principals: Principals, database: Database) -> None:
    """After the upgrade no pair is ever signed: one that is written then opens nothing."""
    await found_by_migration(database, "support", "web")
    await sign_grandfathered(database, SECRET)
    changed = "UPDATE grandfathered SET owner = 'kiosk' WHERE principal = $1"
    await database.write(_run(changed, ("support",)))

    assert (await principals.acts_for("support")).all == frozenset()
    assert await principals.grandfathered() == []


@pytest.mark.parametrize("is_grouped", [True, False])
async def test_an_operators_decision_ends_a_pair(
    principals: Principals, database: Database, *, is_grouped: bool
) -> None:
    """Whether the two are made one or kept apart: nothing is left to be decided, and nobody else's pair ends."""
    for principal, owner in (("support", "web"), ("web", "support"), ("support", "kiosk")):
        await found_by_migration(database, principal, owner)
    await sign_grandfathered(database, SECRET)
    if is_grouped:
        await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)
    else:
        assert await principals.separate(["web", "support"]) == 2

    assert [(each.principal, each.owner) for each in await principals.grandfathered()] == [("support", "kiosk")]
    assert (await principals.acts_for("web")).all == ({"support"} if is_grouped else frozenset())


async def test_another_name_is_found_by_everyone(principals: Principals, database: Database) -> None:
    """New keys under the new name act as the principal; a name that was forged makes no key of another's."""
    assert await principals.add_name("web", "shop", now_ms=NOW_MS)
    assert not await principals.add_name("kiosk", "shop", now_ms=NOW_MS)
    assert await principals.stored_name("shop") == "web"
    assert await principals.stored_name("web") == "web"
    assert [(each.name, each.principal) for each in await principals.names()] == [("shop", "web")]

    await database.write(_run("INSERT INTO principal_names VALUES ('evil', 'web', $1, '')", (NOW_MS,)))
    with pytest.raises(StoreError, match="not written by this program"):
        await principals.stored_name("evil")


def test_a_digest_is_of_one_kind_of_row() -> None:
    """A signed pair must not pass for a member of a group with the same words."""
    digests = PrincipalDigests(SECRET)
    pair = GrandfatheredPair(
        principal="support", owner="web", reason=GrandfatherReason.ACTED, actions=1, last_at_ms=NOW_MS
    )
    signed = digests.signed(pair)

    assert digests.proved([signed]) == [signed]
    assert digests.proved([pair]) == []
    assert PrincipalDigests(b"o" * 32).proved([signed]) == []


async def test_rows_that_were_written_without_the_secret_are_named(principals: Principals, database: Database) -> None:
    """They count for nothing; that somebody wrote them is found by the audit."""
    await principals.put_into_group("shop", ["web", "support"], now_ms=NOW_MS)
    await principals.add_name("web", "site", now_ms=NOW_MS)
    assert await principals.forged() == []
    await database.write(_run("INSERT INTO principal_groups VALUES ('thief', 'shop', $1, '')", (NOW_MS,)))
    await database.write(_run("UPDATE principal_names SET principal = $1", ("kiosk",)))
    await found_by_migration(database, "kiosk", "web")

    assert await principals.forged() == ["principal_names/site", "principal_groups/thief", "grandfathered/kiosk"]
