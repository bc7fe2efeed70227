"""An order is paid in one way at a time: a charge keeps a page out, and a page keeps a charge out, however they meet.

Neither the gateway nor a customer can tell that the other way is open. So without this a customer pays twice.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import pytest
from tests.flows.access.test_ownership import Deed, meeting
from tests.flows.hosted import LIFE_S, current, hosting, new, opened, told
from tests.flows.world import CHARGE, World, asked, outcome_of

from payrelay.core.checkouts.checkout import CheckoutEvent, CheckoutKind, CheckoutState, Result, advance
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.idempotency import fingerprint_of
from payrelay.core.payments.operation import OPEN_STATES, Operation, State
from payrelay.core.payments.proof import AUTHORIZATION_LAPSES_MS
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.finish_checkout import withdraw
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.operations.answer_repeat import RETRY_AFTER_S_MAX
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Relay

ENDS: Final = {
    CheckoutState.OPEN: None,
    CheckoutState.NOTIFIED: CheckoutEvent.NOTIFIED,
    CheckoutState.COMPLETED: CheckoutEvent.COMPLETED,
    CheckoutState.FAILED: CheckoutEvent.FAILED,
    CheckoutState.CANCELLED: CheckoutEvent.CANCELLED,
    CheckoutState.EXPIRED: CheckoutEvent.EXPIRED,
}
KINDS: Final = {
    "payment": new(),
    "authorization": new(kind=CheckoutKind.AUTHORIZATION),
    "approval with an amount": new(kind=CheckoutKind.PREAPPROVAL),
    "approval": new(kind=CheckoutKind.PREAPPROVAL, amount_minor=None),
}
CHARGED: Final = {
    OutcomeKind.SUCCEEDED: None,
    OutcomeKind.DECLINED: None,
    OutcomeKind.NOT_SENT: None,
    OutcomeKind.PENDING: Code.IN_PROGRESS,
    OutcomeKind.UNKNOWN: Code.IN_PROGRESS,
    OutcomeKind.DIFFERED: Code.IN_PROGRESS,
}
"""The outcome of a charge, and how a page of its order is refused then."""


async def ended(relay: Relay, checkout_id: str, event: CheckoutEvent | None) -> None:
    """Gives a checkout its outcome, as a notification or the end of its time would."""
    checkout = await current(relay, checkout_id)
    if event is not None:
        changed = advance(checkout, event, at_ms=relay.clock.now_ms(), result=Result(payment_id="320025000009"))
        assert changed is not None
        await relay.checkouts.change(changed, has_event=True)


async def refusal_of_charge(world: World, relay: Relay, **members: object) -> Refusal | None:
    """Charges the order of the tea; None where that goes out."""
    sent = len(world.account.ledger)
    try:
        answer = await charge(relay, asked("k-9", **members), CHARGE)
    except Refusal as refusal:
        assert len(world.account.ledger) == sent
        return refusal
    assert answer.http_status == 200
    assert len(world.account.ledger) == sent + 1
    return None


async def refusal_of_page(_: World, relay: Relay, key: str = "k-8", name: str = "payment") -> Refusal | None:
    """Opens a page of the order of the tea; None where it is open."""
    try:
        await open_checkout(relay, asked(key), KINDS[name])
    except Refusal as refusal:
        return refusal
    return None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ENDS, ids=str)
async def test_a_charge_waits_for_a_page_that_may_be_paid(world: World, kind: str, state: CheckoutState) -> None:
    """An open page and a reported hold are in the way; what has ended isn't, nor is an approval that takes nothing."""
    relay = hosting(world)
    page = await opened(relay, KINDS[kind])
    await ended(relay, page.id, ENDS[state])
    refusal = await refusal_of_charge(world, relay)

    is_in_the_way = kind != "approval" and state in {CheckoutState.OPEN, CheckoutState.NOTIFIED}
    assert (refusal is not None) is is_in_the_way
    if refusal is not None:
        assert (refusal.code, refusal.checkout_id) == (Code.IN_PROGRESS, page.id)
        assert "another order id is another order" in refusal.msg
        way_out = "DELETE checkouts/" if state is CheckoutState.OPEN else "capture or void"
        assert way_out in refusal.msg


@pytest.mark.parametrize("kind", ["payment", "approval"])
@pytest.mark.parametrize("outcome", CHARGED, ids=str)
async def test_a_page_waits_for_a_charge_without_an_outcome(world: World, outcome: OutcomeKind, kind: str) -> None:
    """Else the customer, who sees an error, pays on the page what was charged already."""
    world.account.script.append(outcome_of(outcome))
    await charge(world.relay, asked("k-1"), CHARGE)
    operation = await world.operation()
    refusal = await refusal_of_page(world, hosting(world), name=kind)

    expected = CHARGED[outcome] if kind == "payment" else None
    assert (None if refusal is None else refusal.code) == expected
    assert (operation.state in OPEN_STATES) is (CHARGED[outcome] is not None)
    if refusal is not None:
        assert refusal.operation_id == operation.id
        way_out = "a person decides" if operation.state is State.NEEDS_ATTENTION else "with its Idempotency-Key"
        assert way_out in refusal.msg


@pytest.mark.parametrize("refusal_of", [refusal_of_charge, refusal_of_page], ids=["charge", "page"])
async def test_a_hold_that_has_lapsed_is_no_longer_in_the_way(
    world: World, refusal_of: Callable[[World, Relay], Awaitable[Refusal | None]]
) -> None:
    """The customer has the money again, and may pay another way. The shop hears that the page has ended."""
    relay = hosting(world)
    page = await opened(relay, KINDS["authorization"])
    await ended(relay, page.id, CheckoutEvent.NOTIFIED)
    assert await refusal_of(world, relay) is not None

    world.clock.passed_ms += AUTHORIZATION_LAPSES_MS
    assert await refusal_of(world, relay) is None
    assert (await current(relay, page.id)).reason == "closed"
    assert (await told(world)).count("checkout.cancelled") == 1


async def test_a_reported_hold_is_waited_for_patiently(world: World) -> None:
    """Nothing is looked at for it at the gateway: a capture or a void ends it, and no request each second."""
    relay = hosting(world)
    page = await opened(relay, KINDS["authorization"])
    await ended(relay, page.id, CheckoutEvent.NOTIFIED)
    world.clock.passed_ms += LIFE_S * 1000
    refusal = await refusal_of_charge(world, relay)
    assert refusal is not None
    assert refusal.retry_after_s == RETRY_AFTER_S_MAX


async def test_each_refusal_says_when_the_gateway_is_looked_at_next(world: World) -> None:
    """To come earlier is of no use, and to come later keeps the customer waiting."""
    relay = hosting(world)
    page = await opened(relay)
    refusal = await refusal_of_charge(world, relay)
    assert refusal is not None
    assert refusal.retry_after_s == -(-(page.inquire_at_ms - world.clock.now_ms()) // 1000)
    world.clock.passed_ms = page.inquire_at_ms - world.clock.now_ms()  # nobody asked for it
    refusal = await refusal_of_charge(world, relay)
    assert refusal is not None
    assert refusal.retry_after_s == -(-(page.ends_at_ms - world.clock.now_ms()) // 1000)

    await ended(relay, page.id, CheckoutEvent.CANCELLED)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(relay, asked("k-1"), CHARGE)
    operation = await world.operation()
    refusal = await refusal_of_page(world, relay)
    assert refusal is not None
    assert operation.inquire_at_ms is not None
    assert refusal.retry_after_s == -(-(operation.inquire_at_ms - world.clock.now_ms()) // 1000)


async def test_nobody_learns_of_anothers_page_or_charge(world: World) -> None:
    """A principal that may act for the order's owner gets no id of what that one has."""
    relay = hosting(world)
    await relay.access.principals.put_into_group("till", ["shop", "kiosk"], now_ms=world.clock.now_ms())
    page = await opened(relay)
    refusal = await refusal_of_charge(world, relay, principal="kiosk")
    assert refusal is not None
    with pytest.raises(Refusal, match=r"wait until it has ended$") as beside:
        await open_checkout(relay, asked("k-3", principal="kiosk"), new())
    for each in (refusal, beside.value):
        assert (each.code, each.checkout_id) == (Code.IN_PROGRESS, None)
        assert page.id not in each.msg

    await ended(relay, page.id, CheckoutEvent.CANCELLED)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(relay, asked("k-1"), CHARGE)
    with pytest.raises(Refusal, match="is not final yet") as caught:
        await open_checkout(relay, asked("k-3", principal="kiosk"), new())
    assert (caught.value.code, caught.value.operation_id) == (Code.IN_PROGRESS, None)
    assert (await world.operation()).id not in caught.value.msg


async def test_a_page_whose_time_is_over_is_ended_for_a_charge(world: World) -> None:
    """The worker may be late; an order isn't lost to a page that nobody can pay any more."""
    relay = hosting(world)
    page = await opened(relay)
    world.clock.passed_ms += LIFE_S * 1000
    assert await refusal_of_charge(world, relay) is None
    assert (await current(relay, page.id)).state is CheckoutState.EXPIRED


def opens(world: World, key: str) -> Deed:
    """Has the shop open a page of the order."""

    async def deed() -> None:
        await opened(hosting(world), key=key)

    return deed


def charges(world: World) -> Deed:
    """Has the shop charge the order, without an outcome."""

    async def deed() -> None:
        world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
        await charge(world.relay, asked("k-1"), CHARGE)

    return deed


async def test_a_page_that_was_opened_meanwhile_keeps_the_charge_back(world: World) -> None:
    """It came after the charge's first look: the second look, beside the stored intent, finds it."""
    refusal = await refusal_of_charge(world, meeting(world, hosting(world), after_1=opens(world, "k-2")))

    assert refusal is not None
    assert refusal.code is Code.IN_PROGRESS
    operation = await world.operation()
    assert (operation.state, operation.guard, operation.claim) == (State.NOT_SENT, None, None)


async def test_a_charge_that_was_stored_meanwhile_takes_the_page_back(world: World) -> None:
    """Nobody has seen the page, so no event tells of it, and its key begins anew once the charge has ended."""
    relay = meeting(world, hosting(world), after_1=charges(world))
    refusal = await refusal_of_page(world, relay)
    assert refusal is not None
    assert refusal.code is Code.IN_PROGRESS
    [page] = await relay.checkouts.of_order(world.account.merchant, "A-1")
    assert (page.state, page.guard) == (CheckoutState.EXPIRED, None)

    await world.resolve(OutcomeKind.DECLINED)
    again = await opened(hosting(world), KINDS["payment"], key="k-8")
    assert again.id != page.id
    assert again.is_open


async def test_a_charge_that_came_and_succeeded_meanwhile_takes_the_page_back_too(world: World) -> None:
    """It was begun beside the page, although its guard is free again. The page may be asked for once more."""

    async def deed() -> None:
        assert (await charge(world.relay, asked("k-1"), CHARGE)).http_status == 200

    relay = meeting(world, hosting(world), after_1=deed)
    refusal = await refusal_of_page(world, relay)
    assert refusal is not None
    assert refusal.code is Code.IN_PROGRESS
    assert await refusal_of_page(world, hosting(world)) is None


async def test_a_page_whose_form_a_repeat_got_meanwhile_stays(world: World) -> None:
    """Whoever has the form may pay by it: the page keeps its order, so that a charge finds it."""
    relay = hosting(world)
    page = await opened(relay, key="k-7")
    text = SignedText(order_id="A-1", amount_minor=100_000, currency="LKR")
    assert await relay.signed_texts.keep_form(page, [text], at_ms=world.clock.now_ms())
    await withdraw(relay, page)
    assert (await current(relay, page.id)).is_open


async def test_an_approval_that_takes_nothing_is_opened_beside_a_charge(world: World) -> None:
    """However they meet: nobody pays twice by it."""
    relay = meeting(world, hosting(world), after_1=charges(world))
    assert await refusal_of_page(world, relay, name="approval") is None


async def test_a_page_whose_opening_ended_in_a_crash_is_looked_at_when_it_is_asked_for_again(world: World) -> None:
    """The process died between storing the page and looking for a charge: a repeat must not give the form out."""
    relay = hosting(world)
    page = await opened(relay, key="k-8")
    operation = await charged_beside(world)
    refusal = await refusal_of_page(world, relay)
    assert refusal is not None
    assert (refusal.code, refusal.operation_id) == (Code.IN_PROGRESS, operation.id)
    assert (await current(relay, page.id)).is_open


async def charged_beside(world: World) -> Operation:
    """Stores an open charge of the order beside its page, as two processes do that see neither of the two."""
    await charge(world.relay, asked("k-0"), world.charge_of(2))
    other = await world.operation()
    call = await world.journal.call_of(other.id)
    stored = msgspec.structs.replace(
        other,
        id="op_ffffffffffff00000000000000000001",
        version=1,
        state=State.SENDING,
        order_id="A-1",
        subject="order/A-1",
        guard="order/A-1",
        claim="key/k-1",
        idempotency_key="k-1",
        fingerprint=fingerprint_of("gateway", CHARGE),
        claim_ends_at_ms=None,
        chain="",
    )
    [first, *_] = await world.journal.history(other.id)
    await world.journal.accept(stored, first, call, conflicts_with=None, now_ms=world.clock.now_ms())
    return stored
