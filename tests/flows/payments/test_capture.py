import msgspec
import pytest
from tests.flows.world import CHARGE, KEYED_MS, World, asked, outcome_of

from payrelay.core.calls import Capture, Void
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State, captured_guard
from payrelay.core.secret import secret_hash
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.gateways.gateway import ExpectedReply

UUID = "e34f3059-7b7d-4b62-a57c-784beaa169f4"
CAPTURE = Capture(authorization_token="hold-token", amount_minor=50_000, description="shipped")


async def authorization(world: World) -> None:
    """Makes the authorization that is captured below, through Payrelay."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token"))
    await charge(world.relay, asked(world.relay, "k-0"), msgspec.structs.replace(CHARGE, authorize=True))


async def refused(world: World, key: str, **members: object) -> Refusal:
    """Gives the refusal that a capture gets."""
    with pytest.raises(Refusal) as caught:
        await capture(world.relay, asked(world.relay, key, **members), CAPTURE)
    return caught.value


async def test_the_reply_to_a_capture_is_compared_with_its_authorization(world: World) -> None:
    """Payrelay knows order, amount and currency of its authorization; a reply for others is no success."""
    await authorization(world)
    await capture(world.relay, asked(world.relay), CAPTURE)
    row = await world.operation()
    assert world.account.expected[-1] == ExpectedReply(order_id="A-1", currency="LKR", amount_minor=CHARGE.amount_minor)
    assert (row.order_id, row.currency, row.amount_minor) == ("A-1", "LKR", 50_000)


async def test_an_authorization_that_was_made_elsewhere_is_captured(world: World) -> None:
    """A merchant may have made it before Payrelay, or beside it; then the reply names the order."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, order_id="B-1", currency="USD"))
    await capture(world.relay, asked(world.relay), CAPTURE)
    row = await world.operation()
    assert world.account.expected == [ExpectedReply()]
    assert (row.order_id, row.currency) == ("B-1", "USD")


async def test_a_reply_does_not_change_what_is_known_of_the_authorization(world: World) -> None:
    """A capture that was answered for another order is found under its own order."""
    await authorization(world)
    world.account.script.append(outcome_of(OutcomeKind.DIFFERED, order_id="B-2", currency="USD"))
    await capture(world.relay, asked(world.relay), CAPTURE)
    row = await world.operation()
    assert (row.state, row.order_id, row.currency) == (State.NEEDS_ATTENTION, "A-1", "LKR")


async def test_a_captured_authorization_is_never_captured_again(world: World) -> None:
    """Any principal, with any key and after every claim has lapsed, is refused without a call to the gateway."""
    await capture(world.relay, asked(world.relay, "k-1"), CAPTURE)
    world.clock.passed_ms = KEYED_MS + 1
    refusals = [await refused(world, "k-1"), await refused(world, "k-2"), await refused(world, "k-3", principal="x")]
    assert [refusal.code for refusal in refusals] == [Code.CONFLICT] * 3
    assert [refusal.operation_id is None for refusal in refusals] == [False, False, True]
    assert world.account.ledger == [CAPTURE]


@pytest.mark.parametrize(
    "kind", [OutcomeKind.DECLINED, OutcomeKind.REFUSED, OutcomeKind.NOT_SENT, OutcomeKind.NOT_EXECUTED]
)
async def test_a_capture_that_failed_may_be_tried_again(world: World, kind: OutcomeKind) -> None:
    """Only a success uses the authorization up."""
    world.account.script.append(outcome_of(kind))
    await capture(world.relay, asked(world.relay, "k-1"), CAPTURE)
    assert (await capture(world.relay, asked(world.relay, "k-2"), CAPTURE)).http_status == 200
    assert (await world.operation()).guard == captured_guard(f"authorization/{secret_hash('hold-token')}")


async def test_capture_and_void_of_one_authorization_exclude_each_other_while_open(world: World) -> None:
    """Which came first at the gateway is not known, and must not be guessed."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await capture(world.relay, asked(world.relay, "k-1"), CAPTURE)
    with pytest.raises(Refusal, match="same authorization"):
        await refund(world.relay, asked(world.relay, "k-2"), Void(authorization_token="hold-token", description="d"))
    assert (await world.operation()).state is State.UNKNOWN


VOID = Void(authorization_token="hold-token", description="no stock")


@pytest.mark.parametrize("principal", ["shop", "x"])
async def test_a_voided_authorization_is_never_captured(world: World, principal: str) -> None:
    """What a gateway does with the capture of a released hold is its own affair: nobody asks for it."""
    await refund(world.relay, asked(world.relay, "k-1"), VOID)
    world.clock.passed_ms = KEYED_MS + 1
    refusal = await refused(world, "k-2", principal=principal)

    assert (refusal.code, refusal.msg) == (Code.CONFLICT, "this authorization is already voided")
    assert world.account.ledger == [VOID]


async def test_a_voided_authorization_is_not_voided_again(world: World) -> None:
    """A repeat with its key gets the first answer; another request learns that nothing is left to void."""
    first = await refund(world.relay, asked(world.relay, "k-1"), VOID)
    assert (await refund(world.relay, asked(world.relay, "k-1"), VOID)).body == first.body
    with pytest.raises(Refusal, match="already voided"):
        await refund(world.relay, asked(world.relay, "k-2"), VOID)
    assert world.account.ledger == [VOID]


@pytest.mark.parametrize("kind", [OutcomeKind.DECLINED, OutcomeKind.REFUSED, OutcomeKind.NOT_SENT])
async def test_after_a_void_that_failed_a_capture_goes_out(world: World, kind: OutcomeKind) -> None:
    """Only a success uses the authorization up."""
    world.account.script.append(outcome_of(kind))
    await refund(world.relay, asked(world.relay, "k-1"), VOID)
    assert (await capture(world.relay, asked(world.relay, "k-2"), CAPTURE)).http_status == 200


async def test_a_void_is_not_taken_for_the_capture_of_its_authorization(world: World) -> None:
    """Both hold one lock; a checkout that was authorized is completed by a capture alone."""
    await authorization(world)
    await refund(world.relay, asked(world.relay, "k-1"), VOID)
    token_hash, merchant = secret_hash("hold-token"), (await world.operation()).merchant
    assert await world.journal.capture_of(token_hash, merchant) is None


async def test_a_capture_over_the_credentials_limit_is_forbidden(world: World) -> None:
    """Capturing is when the money moves."""
    assert (await refused(world, "k-1", amount_max_minor=49_999)).code is Code.FORBIDDEN
    assert world.account.sent == []


async def test_letters_of_the_other_case_name_the_same_authorization(world: World) -> None:
    """A gateway may ignore the case: nobody captures twice, nor what is another's, by writing a token differently."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token=UUID))
    await charge(world.relay, asked(world.relay, "k-0"), msgspec.structs.replace(CHARGE, authorize=True))
    loud = msgspec.structs.replace(CAPTURE, authorization_token=UUID.upper())
    with pytest.raises(Refusal) as foreign:
        await capture(world.relay, asked(world.relay, "k-1", principal="x"), loud)
    await capture(world.relay, asked(world.relay, "k-1"), loud)
    with pytest.raises(Refusal) as again:
        await capture(
            world.relay, asked(world.relay, "k-2"), msgspec.structs.replace(CAPTURE, authorization_token=UUID)
        )

    assert [each.value.code for each in (foreign, again)] == [Code.NOT_FOUND, Code.CONFLICT]
    assert world.account.ledger[1:] == [loud]
