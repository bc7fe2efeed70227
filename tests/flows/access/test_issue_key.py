from tests.digests import digests_of
from tests.flows.world import START_MS, World

from payrelay.core.access.credential import DEFAULT_SCOPES, Scope, hash_of, id_of_key
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.store.access.credentials import Credentials


async def test_a_new_key_is_found_by_its_own_id_and_kept_as_a_hash(world: World) -> None:
    """Its text exists once, in the hands of who asked for it."""
    credentials = Credentials(world.database, digests_of(world.database))
    issued = await issue_key(credentials, world.clock, KeyRequest(principal="shop", environment="sandbox"))
    kept = await credentials.get(id_of_key(issued.key) or "")
    assert kept == issued.credential
    assert (kept.key_hash, kept.principal, kept.scopes) == (hash_of(issued.key), "shop", DEFAULT_SCOPES)
    assert not [file for file in world.path.parent.iterdir() if issued.key.encode() in file.read_bytes()]


async def test_a_key_is_made_with_the_limits_that_are_wanted(world: World) -> None:
    """What is not wanted is not limited; a life counts from now."""
    wanted = KeyRequest(
        principal="till", environment="live", scopes=frozenset({Scope.PAYMENTS_READ}), amount_max_minor=5, life_s=60
    )
    issued = await issue_key(Credentials(world.database, digests_of(world.database)), world.clock, wanted)
    assert issued.key.startswith("prk_live_")
    assert (issued.credential.amount_max_minor, issued.credential.accounts) == (5, None)
    assert (issued.credential.created_at_ms, issued.credential.expires_at_ms) == (START_MS, START_MS + 60_000)


async def test_a_printed_key_does_not_show_its_text(world: World) -> None:
    """A traceback or a log line must not give it away."""
    issued = await issue_key(
        Credentials(world.database, digests_of(world.database)),
        world.clock,
        KeyRequest(principal="shop", environment="sandbox"),
    )
    assert issued.key not in f"{issued} {issued!r}"
    assert issued.credential.id in repr(issued)
