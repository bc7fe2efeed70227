import dataclasses
import json

import msgspec
import pytest
from tests.flows.world import CHARGE, World, asked, outcome_of

from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Kind, State
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.charge import charge


async def test_a_charge_is_answered_in_the_gateways_words(world: World) -> None:
    """One call, one answer, and the money moved once."""
    answer = await charge(world.relay, asked(), CHARGE)
    assert answer.body == b'{"status":1,"msg":"gateway says","data":{"amount":1000.0}}'
    assert world.account.ledger == [CHARGE]


@pytest.mark.parametrize(("authorize", "kind"), [(False, Kind.CHARGE), (True, Kind.AUTHORIZATION)])
async def test_the_row_has_the_members_of_the_request(world: World, *, authorize: bool, kind: Kind) -> None:
    """The resolution, support and the list of operations all go by the row."""
    await charge(world.relay, asked(), msgspec.structs.replace(CHARGE, authorize=authorize))
    row = await world.operation()
    assert (row.kind, row.subject, row.order_id, row.amount_minor, row.currency) == (
        kind, "order/A-1", "A-1", 100_000, "LKR",
    )  # fmt: skip
    assert (row.principal, row.account, row.request_id, row.idempotency_key) == ("shop", "gateway", "req_1", "k-1")


async def test_the_stored_call_is_the_one_that_was_sent(world: World) -> None:
    """The resolution after a crash must compare with exactly this call."""
    await charge(world.relay, asked(), CHARGE)
    assert await world.journal.call_of((await world.operation()).id) == CHARGE


async def test_a_charge_over_the_credentials_limit_leaves_no_trace(world: World) -> None:
    """Forbidden is decided before anything is stored or sent."""
    with pytest.raises(Refusal) as caught:
        await charge(world.relay, asked(amount_max_minor=99_999), CHARGE)
    assert caught.value.code is Code.FORBIDDEN
    assert (await world.operations(), world.account.ledger) == ([], [])


async def test_a_charge_and_an_authorization_of_one_order_exclude_each_other(world: World) -> None:
    """Both take from the same customer for the same thing."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked("k-1"), CHARGE)
    with pytest.raises(Refusal, match="same order"):
        await charge(world.relay, asked("k-2"), msgspec.structs.replace(CHARGE, authorize=True))


async def test_an_authorization_token_is_stored_as_a_hash_only(world: World) -> None:
    """A capture must find its authorization; a reader of the database must not find the token."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token", payment_id="320"))
    await charge(world.relay, asked(), msgspec.structs.replace(CHARGE, authorize=True))
    row = await world.operation()
    assert row.result_ref is not None
    assert row.payment_id == "320"
    assert not [file for file in world.path.parent.iterdir() if b"hold-token" in file.read_bytes()]


async def test_a_reply_does_not_change_the_order_of_the_request(world: World) -> None:
    """A reply for another order would else hide the operation from a search for the order of the request."""
    world.account.script.append(outcome_of(OutcomeKind.DIFFERED, order_id="B-2", currency="USD", payment_id="320"))
    answer = await charge(world.relay, asked(), CHARGE)
    row = await world.operation()
    assert (row.state, row.order_id, row.currency) == (State.NEEDS_ATTENTION, "A-1", "LKR")
    assert (row.payment_id, json.loads(answer.body)["data"]) == ("320", None)


@pytest.mark.parametrize(
    ("public_url", "expected"), [(None, None), ("https://pay.example", "https://pay.example/gateway/notifications")]
)
async def test_the_address_for_notifications_is_sent_along(
    world: World, public_url: str | None, expected: str | None
) -> None:
    """A notification is the best evidence there is; without an address the gateway sends none."""
    await charge(
        dataclasses.replace(world.relay, settings=dataclasses.replace(world.relay.settings, public_url=public_url)),
        asked(),
        CHARGE,
    )
    assert world.account.sent[0].notify_url == expected
