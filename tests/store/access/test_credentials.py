import msgspec
import pytest
from tests.digests import digests_of

from payrelay.core.access.credential import DEFAULT_SCOPES, Credential, Rate, Scope
from payrelay.errors import StoreError
from payrelay.store.access.credentials import Credentials
from payrelay.store.engine.database import Database

PLAIN = Credential(
    id="AAAAAAAAAAAA",
    principal="shop",
    key_hash=b"\x00" * 32,
    scopes=DEFAULT_SCOPES,
    accounts=None,
    amount_max_minor=None,
    rate=None,
    created_at_ms=1_000,
    expires_at_ms=None,
    revoked_at_ms=None,
)
NARROW = Credential(
    id="BBBBBBBBBBBB",
    principal="till",
    key_hash=b"\xff" * 32,
    scopes=frozenset({Scope.PAYMENTS_CHARGE}),
    accounts=frozenset({"gateway", "second"}),
    amount_max_minor=10**15,
    rate=Rate(count=10, window_s=60),
    created_at_ms=2_000,
    expires_at_ms=3_000,
    revoked_at_ms=None,
)


@pytest.mark.parametrize("credential", [PLAIN, NARROW], ids=["plain", "narrow"])
async def test_a_credential_is_read_back_whole(database: Database, credential: Credential) -> None:
    """A limit that gets lost on the way to the disk would let somebody do what nobody allowed."""
    credentials = Credentials(database, digests_of(database))
    await credentials.add(credential)

    assert await credentials.get(credential.id) == credential


async def test_no_accounts_are_not_all_accounts(database: Database) -> None:
    """An empty set allows nothing, None allows everything."""
    credentials = Credentials(database, digests_of(database))
    await credentials.add(msgspec.structs.replace(PLAIN, accounts=frozenset()))

    assert await credentials.get(PLAIN.id) == msgspec.structs.replace(PLAIN, accounts=frozenset())


async def test_an_unknown_credential_is_none(database: Database) -> None:
    """Anybody can write a well-formed key."""
    assert await Credentials(database, digests_of(database)).get(PLAIN.id) is None


async def test_an_id_is_given_once(database: Database) -> None:
    """A second key of the same id would replace somebody's."""
    credentials = Credentials(database, digests_of(database))
    await credentials.add(PLAIN)

    with pytest.raises(StoreError, match=PLAIN.id):
        await credentials.add(msgspec.structs.replace(NARROW, id=PLAIN.id))
    assert await credentials.get(PLAIN.id) == PLAIN


async def test_all_are_listed_oldest_first(database: Database) -> None:
    """An operator looks for keys that nobody needs any more, revoked ones included."""
    credentials = Credentials(database, digests_of(database))
    await credentials.add(NARROW)
    await credentials.add(PLAIN)

    assert await credentials.list() == [PLAIN, NARROW]


async def test_the_first_revocation_stands(database: Database) -> None:
    """When a key was revoked is evidence after a leak."""
    credentials = Credentials(database, digests_of(database))
    await credentials.add(PLAIN)

    assert await credentials.revoke(PLAIN.id, 5_000)
    assert not await credentials.revoke(PLAIN.id, 6_000)
    assert not await credentials.revoke("unknown", 6_000)
    assert await credentials.list() == [msgspec.structs.replace(PLAIN, revoked_at_ms=5_000)]
