"""What was taken back stays so on a database that has lost it: keys, client tokens, customers, pauses."""

from typing import Final

import msgspec
import pytest
from tests.flows.losing import MINUTE_MS, Losing
from tests.flows.vault import approved_in
from tests.flows.world import START_MS, asked

from payrelay.core.access.client_token import LIFE_MAX_S
from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.core.customers.customer import CustomerState
from payrelay.core.gateways.pauses import Pause
from payrelay.errors import StoreUnusable
from payrelay.flows.access.issue_client_token import ClientTokenRequest, issue_client_token
from payrelay.flows.access.issue_key import KeyRequest, issue_key, revoke_key
from payrelay.flows.access.revoke_client_token import revoke_client_token, revoke_client_tokens
from payrelay.flows.customers.erase_customer import erase_customer, remove_customer
from payrelay.flows.operators.pause_account import pause_account, resume_account
from payrelay.flows.relay import Request
from payrelay.flows.revocations.reapply import (
    PAUSE_REASON,
    begin_reapplying,
    reapply_in_new_incarnation,
    reapply_revocations,
)

PAUSE: Final = Pause(account="gateway", since_ms=START_MS - 1, reason="Mr Perera asked for it", operator="dana")


async def _new_key(losing: Losing) -> str:
    wanted = KeyRequest(principal="shop", environment="sandbox")
    return (await issue_key(losing.world.relay.access.credentials, losing.world.clock, wanted)).credential.id


async def _new_token(losing: Losing, customer_id: str, key_id: str) -> str:
    request = _asked_by(key_id)
    await issue_client_token(losing.world.relay, request, ClientTokenRequest(customer_id=customer_id))
    page = await losing.world.relay.access.client_tokens.list("shop", "gateway", customer_id=None, before=None, limit=1)
    return page[0].token.id


def _asked_by(key_id: str) -> Request:
    request = asked()
    return msgspec.structs.replace(request, credential=msgspec.structs.replace(request.credential, id=key_id))


async def _is_revoked(losing: Losing, token_id: str) -> bool:
    parentage = await losing.world.relay.access.client_tokens.parentage(token_id)
    return parentage is not None and parentage.revoked_at_ms is not None


async def _listed(losing: Losing) -> list[Revocation]:
    return (await losing.world.relay.database.revocations.read()).revocations


async def test_whatever_is_taken_back_is_listed_outside_by_its_ids_alone(losing: Losing) -> None:
    """What is not in the list works again after a restore; and no erasure reaches the list, so it names nobody."""
    relay, clock = losing.world.relay, losing.world.clock
    key_id, customer = await _new_key(losing), await approved_in(losing.world)
    token_id = await _new_token(losing, customer.id, key_id)
    await revoke_client_token(relay, _asked_by(key_id), token_id)
    await revoke_client_tokens(relay, _asked_by(key_id), customer_id=customer.id, credential_id=None)
    await remove_customer(relay, asked(), customer.id)
    await erase_customer(relay, asked(), customer.id)
    await revoke_key(relay.access.credentials, relay.database.revocations, clock, key_id)
    await pause_account(relay.pauses, relay.database.revocations, PAUSE)
    await resume_account(relay.pauses, relay.database.revocations, "gateway", clock.now_ms())

    assert [(each.kind.value, each.id or each.account or each.customer_id) for each in await _listed(losing)] == [
        ("client_token", token_id),
        ("client_tokens", customer.id),
        ("customer_removed", customer.id),
        ("customer_erased", customer.id),
        ("key", key_id),
        ("pause", "gateway"),
        ("resume", "gateway"),
    ]
    folder = relay.database.revocations.folder
    assert folder is not None
    [file] = folder.iterdir()
    written = file.read_bytes()
    assert not [name for name in (b"PERERA", b"Perera", b"person-7", b"dana", b"CANARY") if name in written]


async def test_keys_and_tokens_that_the_database_has_valid_again_are_revoked_again(losing: Losing) -> None:
    """A key was revoked because somebody had stolen it: a restored backup must not serve the thief once."""
    relay, now_ms = losing.world.relay, losing.world.clock.now_ms()
    key_id, customer = await _new_key(losing), await approved_in(losing.world)
    one, many = await _new_token(losing, customer.id, key_id), await _new_token(losing, customer.id, key_id)
    await relay.database.revocations.add(
        Revocation(kind=RevocationKind.CLIENT_TOKEN, at_ms=now_ms, id=one, principal="shop", account="gateway")
    )
    assert await reapply_revocations(relay) == 1
    assert [await _is_revoked(losing, each) for each in (one, many)] == [True, False]

    await relay.database.revocations.add(Revocation(kind=RevocationKind.CLIENT_TOKENS, at_ms=now_ms, principal="shop"))
    await relay.database.revocations.add(Revocation(kind=RevocationKind.KEY, at_ms=now_ms, id=key_id))
    assert await reapply_revocations(relay) == 2
    assert await _is_revoked(losing, many)
    key = await relay.access.credentials.get(key_id)
    assert key is not None
    assert key.revoked_at_ms == now_ms
    assert await reapply_revocations(relay) == 0


async def test_tokens_that_were_issued_after_a_revocation_of_many_stay_valid(losing: Losing) -> None:
    """At every start the list is done again: an app that signed in since must not be signed out by it."""
    relay = losing.world.relay
    key_id, customer = await _new_key(losing), await approved_in(losing.world)
    await revoke_client_tokens(relay, _asked_by(key_id), customer_id=None, credential_id=None)
    losing.world.clock.passed_ms += 1_000
    token_id = await _new_token(losing, customer.id, key_id)
    assert await reapply_revocations(relay) == 0
    assert not await _is_revoked(losing, token_id)

    losing.world.clock.passed_ms += LIFE_MAX_S * 1000  # every token of before has ended by itself
    assert await reapply_revocations(relay) == 0


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (RevocationKind.CUSTOMER_REMOVED, CustomerState.REMOVED),
        (RevocationKind.CUSTOMER_ERASED, CustomerState.ERASED),
    ],
)
async def test_customers_that_came_back_are_removed_and_erased_again(
    losing: Losing, kind: RevocationKind, state: CustomerState
) -> None:
    """A person who asked to be forgotten is forgotten, and one who was removed is charged no more."""
    relay, customer = losing.world.relay, await approved_in(losing.world)
    await relay.database.revocations.add(
        Revocation(kind=kind, at_ms=losing.world.clock.now_ms(), id=customer.id),
        Revocation(kind=kind, at_ms=losing.world.clock.now_ms(), id="cus_of_the_lost_window"),
    )

    assert await reapply_revocations(relay) == 1
    left = await relay.customers.left_of(customer.id)
    assert left is not None
    assert left.state is state
    assert await relay.customers.token_of(customer.id) is None
    assert await reapply_revocations(relay) == 0


async def test_an_account_is_paused_again_whose_pause_was_lost(losing: Losing) -> None:
    """Somebody stopped it for a reason that still holds: nobody has said that it may go on."""
    relay = losing.world.relay
    await pause_account(relay.pauses, relay.database.revocations, PAUSE)
    await relay.pauses.remove("gateway", PAUSE.since_ms)  # as a backup from before has it
    losing.lose()

    assert await reapply_revocations(relay) == 1
    assert [(each.account, each.reason) for each in await relay.pauses.list()] == [("gateway", PAUSE_REASON)]


@pytest.mark.parametrize("is_resumed_here", [True, False])
async def test_no_pause_comes_back_that_ended_or_that_no_loss_can_have_taken(
    losing: Losing, *, is_resumed_here: bool
) -> None:
    """A restart, or a command on another machine, must never stop an account that an operator let go on."""
    relay = losing.world.relay
    await pause_account(relay.pauses, relay.database.revocations, PAUSE)
    if is_resumed_here:
        await resume_account(relay.pauses, relay.database.revocations, "gateway", losing.world.clock.now_ms())
        losing.lose()
    else:
        await resume_account(relay.pauses, None, "gateway", losing.world.clock.now_ms())
        losing.lose(since_ms=START_MS - 2 * MINUTE_MS, until_ms=START_MS - MINUTE_MS)

    assert await reapply_revocations(relay) == 0
    assert await relay.pauses.list() == []


async def test_a_running_process_does_the_list_again_in_each_new_incarnation(losing: Losing) -> None:
    """A standby is promoted under a running service, which reads no list at a start."""
    relay, key_id = losing.world.relay, await _new_key(losing)
    await reapply_in_new_incarnation(relay)
    await relay.database.revocations.add(Revocation(kind=RevocationKind.KEY, at_ms=START_MS, id=key_id))
    await reapply_in_new_incarnation(relay)
    key = await relay.access.credentials.get(key_id)
    assert key is not None
    assert key.revoked_at_ms is None  # nothing was lost: whoever revokes a key has the database too
    losing.lose()
    await reapply_in_new_incarnation(relay)
    key = await relay.access.credentials.get(key_id)
    assert key is not None
    assert key.revoked_at_ms == START_MS


async def test_the_worker_only_begins_it(losing: Losing) -> None:
    """A long list, or a folder that hangs, delays no other job. It is begun once, and again where it failed."""
    relay, key_id = losing.world.relay, await _new_key(losing)
    await relay.database.revocations.add(Revocation(kind=RevocationKind.KEY, at_ms=START_MS, id=key_id))
    losing.lose()
    await begin_reapplying(relay)
    assert relay.database.revocations.is_reapplying
    await begin_reapplying(relay)
    await relay.background.finish(30)
    key = await relay.access.credentials.get(key_id)
    assert key is not None
    assert (key.revoked_at_ms, relay.database.revocations.is_reapplying) == (START_MS, False)
    folder = relay.database.revocations.folder
    assert folder is not None
    (folder / "revocations-1971").mkdir()
    losing.lose()
    await begin_reapplying(relay)
    await relay.background.finish(30)
    assert "job_failed" in losing.world.log_events
    assert not relay.database.revocations.is_reapplying


async def test_a_key_that_was_revoked_before_there_was_a_list_gets_into_it(losing: Losing) -> None:
    """And so does one whose command died, or could not write, before it was listed."""
    relay, key_id = losing.world.relay, await _new_key(losing)
    await relay.access.credentials.revoke(key_id, START_MS)
    assert await reapply_revocations(relay) == 0
    assert await _listed(losing) == [Revocation(kind=RevocationKind.KEY, at_ms=START_MS, id=key_id)]


async def test_lines_that_nobody_with_the_key_wrote_are_told_and_count_for_nothing(losing: Losing) -> None:
    """Else whoever can write to the folder erases every customer."""
    relay, key_id = losing.world.relay, await _new_key(losing)
    await relay.database.revocations.add(Revocation(kind=RevocationKind.KEY, at_ms=START_MS, id=key_id))
    assert relay.database.revocations.folder is not None
    [file] = relay.database.revocations.folder.iterdir()
    file.write_bytes(file.read_bytes().replace(b'"key"', b'"kez"'))

    assert await reapply_revocations(relay) == 0
    assert losing.world.log_events == ["revocations_unreadable"]


async def test_nothing_is_served_where_the_list_can_not_be_read(losing: Losing) -> None:
    """A key that was revoked could be served: nobody knows."""
    relay = losing.world.relay
    assert relay.database.revocations.folder is not None
    (relay.database.revocations.folder / "revocations-2026").mkdir(parents=True)
    with pytest.raises(StoreUnusable, match="can't be read"):
        await reapply_revocations(relay)
