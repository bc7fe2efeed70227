"""Client tokens and the keys that sign them, as both engines keep them."""

import msgspec
import pytest
from tests.core.access.test_client_token import NOW_MS, PARENT, TOKEN
from tests.digests import digests_of

from payrelay.core.access.client_token import ClientToken
from payrelay.core.access.credential import Scope
from payrelay.errors import StoreError
from payrelay.store.access.client_tokens import ClientTokens, StoredClientToken
from payrelay.store.access.credentials import Credentials
from payrelay.store.engine.database import Database


def token(number: int, **members: object) -> ClientToken:
    """Gives a token with an id by its number, but for what is named."""
    return msgspec.structs.replace(TOKEN, id=f"ct_{number:032x}", **members)


@pytest.fixture
async def tokens(database: Database) -> ClientTokens:
    """Gives the stored tokens, with the key that issues them."""
    await Credentials(database, digests_of(database)).add(PARENT)
    return ClientTokens(database, digests_of(database))


async def test_a_token_is_stored_as_it_was_issued(tokens: ClientTokens) -> None:
    """What is listed is what was given away; a second one of its id is refused."""
    bare = token(2, order_id=None, allowance=None, scopes=frozenset({Scope.PAYMENTS_READ}))
    await tokens.add(TOKEN)
    await tokens.add(bare)

    listed = await tokens.list("shop", "gateway", customer_id=None, before=None, limit=10)
    assert listed == [
        StoredClientToken(token=bare, revoked_at_ms=None),
        StoredClientToken(token=TOKEN, revoked_at_ms=None),
    ]
    with pytest.raises(StoreError, match="already"):
        await tokens.add(TOKEN)


async def test_a_token_leads_to_its_parent(tokens: ClientTokens, database: Database) -> None:
    """A key's end is its tokens' end, so both are read at once."""
    await tokens.add(TOKEN)
    found = await tokens.parentage(TOKEN.id)
    assert found is not None
    assert (found.revoked_at_ms, found.parent) == (None, PARENT)

    await Credentials(database, digests_of(database)).revoke(PARENT.id, NOW_MS)
    again = await tokens.parentage(TOKEN.id)
    assert again is not None
    assert again.parent.revoked_at_ms == NOW_MS
    assert await tokens.parentage("ct_" + "f" * 32) is None


async def test_a_page_is_of_one_principal_account_and_customer(tokens: ClientTokens) -> None:
    """Nobody sees who else's phones are out there; a page goes on where the last one ended."""
    other = "cus_" + "b" * 32
    for number in range(5):
        await tokens.add(token(number, customer_id=other if number == 3 else TOKEN.customer_id))
    await tokens.add(token(7, principal="other"))
    await tokens.add(token(8, account="second"))

    async def numbers(customer_id: str | None, before: str | None, limit: int) -> list[int]:
        page = await tokens.list("shop", "gateway", customer_id=customer_id, before=before, limit=limit)
        return [int(issued.token.id[3:], 16) for issued in page]

    assert await numbers(None, None, 3) == [4, 3, 2]
    assert await numbers(None, token(2).id, 3) == [1, 0]
    assert await numbers(other, None, 10) == [3]


async def test_a_revocation_is_its_principals_alone_and_stands(tokens: ClientTokens) -> None:
    """Another principal, or another account, can't end an app's session; a repeat changes nothing."""
    await tokens.add(TOKEN)

    assert not await tokens.revoke(TOKEN.id, "other", "gateway", NOW_MS)
    assert not await tokens.revoke(TOKEN.id, "shop", "second", NOW_MS)
    assert not await tokens.revoke("ct_" + "f" * 32, "shop", "gateway", NOW_MS)
    assert await tokens.revoke(TOKEN.id, "shop", "gateway", NOW_MS)
    assert await tokens.revoke(TOKEN.id, "shop", "gateway", NOW_MS + 5)
    found = await tokens.parentage(TOKEN.id)
    assert found is not None
    assert found.revoked_at_ms == NOW_MS


async def test_all_of_a_customer_or_of_a_key_are_revoked_at_once(tokens: ClientTokens) -> None:
    """A lost device, or a server that was broken into; what isn't theirs goes on."""
    other = "cus_" + "b" * 32
    await tokens.add(token(1))
    await tokens.add(token(2, account="second"))
    await tokens.add(token(3, customer_id=other))
    await tokens.add(token(4, principal="other"))

    assert await tokens.revoke_of_customer(str(TOKEN.customer_id), "shop", NOW_MS) == 2
    assert await tokens.revoke_of_customer(str(TOKEN.customer_id), "shop", NOW_MS) == 0
    assert await tokens.revoke_some("shop", NOW_MS, customer_id=None, credential_id=PARENT.id) == 1
    assert await tokens.revoke_some("shop", NOW_MS, customer_id=None, credential_id=PARENT.id) == 0
    assert await tokens.revoke_some("shop", NOW_MS, customer_id=None, credential_id=None) == 0
    assert await tokens.revoke_some("other", NOW_MS, customer_id=other, credential_id=None) == 0
    last = await tokens.parentage(token(4).id)
    assert last is not None
    assert last.revoked_at_ms is None
    assert await tokens.revoke_some("other", NOW_MS, customer_id=None, credential_id=PARENT.id) == 1


async def test_what_has_ended_is_forgotten(tokens: ClientTokens) -> None:
    """Some at a time, and nothing that an app still holds."""
    for number in range(4):
        await tokens.add(token(number, expires_at_ms=NOW_MS + number * 1000))

    assert await tokens.prune(NOW_MS + 2000, 2) == 2
    assert await tokens.prune(NOW_MS + 2000, 2) == 1
    assert await tokens.prune(NOW_MS + 2000, 2) == 0
    assert await tokens.parentage(token(3).id) is not None
