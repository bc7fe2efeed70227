import msgspec
import pytest
from tests.flows.world import CHARGE, World, asked, outcome_of

from payrelay.core.calls import Capture, Refund, Void
from payrelay.core.events.event import of_operation
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Kind
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund

PART = Refund(payment_id="320027150501", description="late", amount_minor=10_000)
WHOLE = Refund(payment_id="320027150501", description="late")
CAPTURE = Capture(authorization_token="hold-token", amount_minor=8_000, description="all but the box")
VOID = Void(authorization_token="hold-token", description="not needed")


@pytest.mark.parametrize(("call", "kind"), [(PART, Kind.REFUND), (WHOLE, Kind.REFUND), (VOID, Kind.VOID)])
async def test_a_refund_or_a_void_is_sent_once(world: World, call: Refund | Void, kind: Kind) -> None:
    """A payment that is refunded twice is a loss as well."""
    first = await refund(world.relay, asked(world.relay), call)
    again = await refund(world.relay, asked(world.relay), call)
    assert (first.body, world.account.ledger) == (again.body, [call])
    assert (await world.operation()).kind is kind


async def test_the_row_names_the_payment_and_hides_the_token(world: World) -> None:
    """Support searches for the payment; an authorization token is a secret."""
    await refund(world.relay, asked(world.relay, "k-1"), PART)
    assert ((await world.operation()).subject, (await world.operation()).payment_id) == (
        "payment/320027150501",
        "320027150501",
    )
    await refund(world.relay, asked(world.relay, "k-2"), VOID)
    assert "hold-token" not in (await world.operation()).subject


@pytest.mark.parametrize("payment_id", ["320027150501", "0320027150501"])
async def test_two_refunds_of_one_payment_exclude_each_other_while_open(world: World, payment_id: str) -> None:
    """A part while another part is unknown could give back more than was paid; a zero in front is no way around."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await refund(world.relay, asked(world.relay, "k-1"), PART)
    with pytest.raises(Refusal, match="same payment"):
        await refund(world.relay, asked(world.relay, "k-2"), Refund(payment_id=payment_id, description="late"))


async def test_a_number_of_zeros_alone_is_still_a_number(world: World) -> None:
    """A client that mistypes a number finds the refund under that number, and not under an empty text."""
    await refund(world.relay, asked(world.relay, "k-1"), Refund(payment_id="000", description="late"))
    operation = await world.operation()
    assert (operation.subject, operation.payment_id) == ("payment/0", "0")


async def test_a_captured_authorization_is_not_voided(world: World) -> None:
    """The gateway doesn't document what a void does then; it might return money beside a refund of the payment."""
    await capture(world.relay, asked(world.relay, "k-1"), CAPTURE)
    with pytest.raises(Refusal, match=r"already captured: 80\.00$") as caught:
        await refund(world.relay, asked(world.relay, "k-2"), VOID)
    assert (caught.value.code, world.account.ledger) == (Code.CONFLICT, [CAPTURE])


async def test_a_second_part_may_follow_the_first(world: World) -> None:
    """Once the first is done, another one with a key of its own is meant."""
    await refund(world.relay, asked(world.relay, "k-1"), PART)
    await refund(world.relay, asked(world.relay, "k-2"), PART)
    assert world.account.ledger == [PART, PART]


@pytest.mark.parametrize("call", [WHOLE, PART, Void(authorization_token="t", description="d", amount_minor=10_000)])
async def test_a_refund_is_compared_with_the_credentials_limit(world: World, call: Refund | Void) -> None:
    """One of the whole names no amount, so that with a limit it is refused as well."""
    with pytest.raises(Refusal) as caught:
        await refund(world.relay, asked(world.relay, amount_max_minor=9_999), call)
    assert (caught.value.code, world.account.sent) == (Code.FORBIDDEN, [])


async def test_a_void_without_an_amount_moves_no_money(world: World) -> None:
    """A void is allowed under any limit."""
    assert (await refund(world.relay, asked(world.relay, amount_max_minor=1), VOID)).http_status == 200


@pytest.mark.parametrize("amount_minor", [None, 10_000])
async def test_a_refund_carries_the_order_and_currency_of_its_payment(world: World, amount_minor: int | None) -> None:
    """Whoever reads a list of refunds, or hears of one, knows what was given back and for which order."""
    paid = "320027150501"
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=paid))
    await charge(world.relay, asked(world.relay, "k-1"), CHARGE)
    await refund(
        world.relay, asked(world.relay, "k-2"), Refund(payment_id=paid, description="late", amount_minor=amount_minor)
    )

    refunded = await world.operation()
    assert (refunded.kind, refunded.order_id, refunded.currency) == (Kind.REFUND, CHARGE.order_id, CHARGE.currency)
    event = of_operation(refunded, (await world.journal.history(refunded.id))[-1])
    assert event is not None
    assert (event.data["order_id"], event.data["currency"]) == (CHARGE.order_id, CHARGE.currency)


async def test_a_void_carries_the_order_and_currency_of_its_authorization(world: World) -> None:
    """A void is a refund to whoever asked for it by the same route."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token"))
    await charge(world.relay, asked(world.relay, "k-1"), msgspec.structs.replace(CHARGE, authorize=True))
    await refund(world.relay, asked(world.relay, "k-2"), VOID)
    voided = await world.operation()
    assert (voided.kind, voided.order_id, voided.currency) == (Kind.VOID, CHARGE.order_id, CHARGE.currency)


async def test_a_refund_of_a_payment_that_is_not_known_has_no_order(world: World) -> None:
    """Payrelay asks nobody before it refunds, and makes nothing up."""
    await refund(world.relay, asked(world.relay), PART)
    assert ((await world.operation()).order_id, (await world.operation()).currency) == (None, None)
