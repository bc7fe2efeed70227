"""Refunds beside what is left of their payment: what came between, what is a person's, and never more than was paid."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.draws import examples
from tests.flows.inbox_world import payment_of
from tests.flows.world import CHARGE, Inline, World, asked, opened, outcome_of
from tests.samples import NOTIFICATION

from payrelay.clock import Clock
from payrelay.core.calls import Refund
from payrelay.core.notifications.notification import (
    NotificationKind,
    NotificationReason,
    NotificationState,
    ReportedStatus,
    advance,
    step_of,
)
from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.orders.refunding import standing_of
from payrelay.core.outcomes import OutcomeKind, Reading
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.operations.intent import Intent
from payrelay.flows.operators.held.decide_held import decide_held
from payrelay.flows.order_balance import read_balance
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.refunds.limits import RefundByPerson
from payrelay.flows.refunds.refundable_money import all_of, read_money
from payrelay.recovery.flows.hold import hold
from payrelay.store import open_database
from payrelay.store.orders.facts import Orders

P: Final = "320025000001"
PAID: Final = 100_000
"""Of CHARGE, in hundredths."""
WHOLE: Final = Refund(payment_id=P, description="late")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of an empty database of each kind."""
    is_shared = request.param == "postgresql"
    return str(request.getfixturevalue("postgresql_url")) if is_shared else sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def world(url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay on it: what is compared when the intent is stored rests on the guards of the database."""
    world = World(await open_database(url, clock=Clock(), owner=True), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


def part(amount_minor: int | None) -> Refund:
    """A refund of a part; None is no amount."""
    return msgspec.structs.replace(WHOLE, amount_minor=amount_minor)


async def charged(world: World) -> str:
    """Charges an order with payment P; gives the merchant."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=P))
    await charge(world.relay, asked("charge"), CHARGE)
    return world.account.merchant


async def shows(world: World, status: PaymentStatus) -> None:
    """Has the gateway's record of the payment been read just now; a moment passes."""
    seen = (payment_of(payment_id=P, status=status),)
    await world.relay.read_cache.note_payments(world.account.merchant, seen, seen_at_ms=world.clock.now_ms())
    world.clock.passed_ms += 1


def refunds(world: World) -> list[Refund]:
    """Gives the refunds that really happened."""
    return [each for each in world.account.ledger if isinstance(each, Refund)]


async def refused(world: World, key: str, call: Refund, person: RefundByPerson | None = None) -> Refusal:
    """Asks for a refund that is refused."""
    with pytest.raises(Refusal) as caught:
        await refund(world.relay, asked(key), call, person=person)
    return caught.value


async def test_a_refund_in_the_midst_of_a_look_is_known_as_ours(world: World) -> None:
    """The gateway is asked, gives the money back, and answers: support must not read that somebody else did."""
    merchant = await charged(world)
    asked_ms = world.clock.now_ms()
    world.clock.passed_ms += 1
    await refund(world.relay, asked("k-1"), WHOLE)
    world.clock.passed_ms += 1
    shown = (payment_of(payment_id=P, status=PaymentStatus.REFUNDED),)
    await world.relay.read_cache.note_payments(merchant, shown, seen_at_ms=asked_ms)

    assert (await read_balance(world.relay, merchant, CHARGE.order_id)).is_certain


async def test_a_refund_counts_whatever_currency_its_payment_turns_out_to_have(world: World) -> None:
    """The gateway's record names another one than our charge. With either, the refund might be in neither later."""
    merchant = await charged(world)
    shown = (payment_of(payment_id=P, status=PaymentStatus.RECEIVED, currency="USD"),)
    await world.relay.read_cache.note_payments(merchant, shown, seen_at_ms=world.clock.now_ms())
    await refund(world.relay, asked("k-1"), WHOLE)

    assert (await world.operation()).currency is None
    assert (await refused(world, "k-2", part(325))).code is Code.CONFLICT
    world.clock.passed_ms += 1
    refunded = (payment_of(payment_id=P, status=PaymentStatus.REFUNDED, currency="LKR"),)
    await world.relay.read_cache.note_payments(merchant, refunded, seen_at_ms=world.clock.now_ms())
    assert (await read_balance(world.relay, merchant, CHARGE.order_id)).is_certain


async def test_all_that_is_left_is_sent_with_its_amount(world: World) -> None:
    """No gateway documents what it gives back without an amount once a part went back: it might be the whole again."""
    await charged(world)
    await refund(world.relay, asked("k-1"), part(40_000))
    await refund(world.relay, asked("k-2"), WHOLE)
    operation = await world.operation()

    assert refunds(world) == [part(40_000), part(60_000)]
    assert (operation.amount_minor, await world.journal.call_of(operation.id)) == (60_000, WHOLE)


@pytest.mark.parametrize("first", [WHOLE, part(PAID), part(60_000)])
@pytest.mark.parametrize("between", [WHOLE, part(PAID), part(50_000)])
async def test_a_refund_that_came_between_the_look_and_the_storing_counts(
    world: World, first: Refund, between: Refund
) -> None:
    """Two that are asked for at once see the same figures; the later one is refused, and leaves no row."""
    await charged(world)

    async def other() -> None:
        await refund(world.relay, asked("between"), between)

    world.steps.put("accept", other, first=world.steps.passed.count("accept") + 1)
    error = await refused(world, "first", first)

    assert refunds(world) == [between]
    assert error.code is (Code.IN_PROGRESS if (first, between) == (WHOLE, part(50_000)) else Code.CONFLICT)
    assert [each.kind for each in await world.operations()] == [Kind.REFUND, Kind.CHARGE]
    if error.code is Code.IN_PROGRESS:  # the same request again is of what is left by now
        await refund(world.relay, asked("first"), first)
        assert refunds(world) == [between, part(50_000)]


async def test_a_chargeback_that_came_between_counts(world: World) -> None:
    """The bank has the money by the time the refund would go out."""
    await charged(world)

    async def taken_back() -> None:
        await shows(world, PaymentStatus.CHARGED_BACK)

    world.steps.put("accept", taken_back, first=world.steps.passed.count("accept") + 1)
    error = await refused(world, "k-1", WHOLE)
    assert (error.code, refunds(world)) == (Code.CONFLICT, [])
    assert error.msg.startswith("this payment was charged back")


async def test_refunds_of_the_rest_at_once_give_it_back_once(world: World) -> None:
    """Each with a key of its own: those that are stored later wait for the first one's guard, or see what it did."""
    await charged(world)

    async def one(number: int) -> Code | None:
        try:
            await refund(world.relay, asked(f"k-{number}"), part([None, PAID, 60_000][number % 3]))
        except Refusal as error:
            return error.code
        return None

    codes = set(await asyncio.gather(*(one(number) for number in range(24))))
    assert {None} < codes <= {None, Code.CONFLICT, Code.IN_PROGRESS}
    assert sum(PAID if each.amount_minor is None else each.amount_minor for each in refunds(world)) <= PAID


@pytest.mark.parametrize("key", ["k-1", None])
async def test_a_repeat_is_answered_whatever_became_of_the_payment(world: World, key: str | None) -> None:
    """Byte for byte: the client asks what became of its refund, and not whether another one is possible."""
    await charged(world)
    first = await refund(world.relay, asked(key), WHOLE)
    await shows(world, PaymentStatus.CHARGED_BACK)
    again = await refund(world.relay, asked(key), WHOLE)
    assert (again.body, refunds(world)) == (first.body, [WHOLE])


async def test_an_open_refund_is_in_the_way_as_before(world: World) -> None:
    """Nobody knows yet whether it gave anything back: the guard answers, and no figure does."""
    await charged(world)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await refund(world.relay, asked("k-1"), part(50_000))
    assert (await refused(world, "k-2", part(60_000))).code is Code.IN_PROGRESS


async def test_a_person_sees_the_figures_and_insists_against_these_alone(world: World) -> None:
    """What they were shown must still be so when the intent is stored."""
    merchant = await charged(world)
    await refund(world.relay, asked("k-1"), WHOLE)
    seen = standing_of((await read_money(world.relay, merchant, P)).payment)
    by = RefundByPerson(seen=seen)
    assert "already refunded" in (await refused(world, "k-2", WHOLE, by)).msg
    insisting = RefundByPerson(seen=seen, insists="they say they got nothing; the gateway's record shows no refund")

    async def other() -> None:
        await refund(world.relay, asked("between"), part(1), person=insisting)

    world.steps.put("accept", other, first=world.steps.passed.count("accept") + 1)
    assert "no more as it was shown" in (await refused(world, "k-3", WHOLE, insisting)).msg
    assert "no more as it was shown" in (await refused(world, "k-4", WHOLE, insisting)).msg
    now = standing_of((await read_money(world.relay, merchant, P)).payment)
    await refund(world.relay, asked("k-5"), WHOLE, person=msgspec.structs.replace(insisting, seen=now))

    assert refunds(world) == [WHOLE, part(1), WHOLE]
    [first, *_] = await world.journal.history((await world.operation()).id)
    assert first.evidence.insisted == insisting.insists


@pytest.mark.parametrize("status", [PaymentStatus.REFUND_REQUESTED, PaymentStatus.REFUNDED])
async def test_what_was_refunded_elsewhere_is_not_refunded_by_a_key(world: World, status: PaymentStatus) -> None:
    """The record doesn't say how much went back in the portal: a part beside the whole would be the customer's twice.

    A refund on which a person insists doesn't explain what the record showed before it.
    """
    merchant = await charged(world)
    await shows(world, status)
    for number, amount_minor in enumerate([1_000, PAID, None]):
        error = await refused(world, f"k-{number}", part(amount_minor))
        assert (error.code, "a refund that the service didn't make" in error.msg) == (Code.CONFLICT, True)
    seen = standing_of((await read_money(world.relay, merchant, P)).payment)
    insisting = RefundByPerson(seen=seen, insists="the portal's refund was of a part; the record shows no parts")
    await refund(world.relay, asked("k-3"), part(1_000), person=insisting)
    await shows(world, PaymentStatus.REFUNDED)
    money = (await read_money(world.relay, merchant, P)).payment

    assert money is not None
    assert (money.given_back_minor, money.is_certain) == (PAID, False)
    for number, amount_minor in enumerate([None, 1]):
        assert (await refused(world, f"l-{number}", part(amount_minor))).code is Code.CONFLICT
    assert refunds(world) == [part(1_000)]


async def test_a_part_made_here_leaves_the_rest(world: World) -> None:
    """While the record shows no refund, nothing but that part has gone, and the rest is the customer's."""
    await charged(world)
    await refund(world.relay, asked("k-1"), part(1_000))
    await shows(world, PaymentStatus.RECEIVED)
    await refund(world.relay, asked("k-2"), WHOLE)
    assert refunds(world) == [part(1_000), part(99_000)]


@pytest.mark.parametrize("status", [PaymentStatus.REFUND_REQUESTED, PaymentStatus.REFUNDED])
async def test_the_rest_may_have_gone_back_in_the_portal_after_a_part_made_here(
    world: World, status: PaymentStatus
) -> None:
    """The record looks the same by the part alone and by the whole: only a person who looked there knows."""
    merchant = await charged(world)
    await refund(world.relay, asked("k-1"), part(1_000))
    await shows(world, status)
    for number, amount_minor in enumerate([None, 1, 99_000]):
        error = await refused(world, f"l-{number}", part(amount_minor))
        assert (error.code, "of more than the parts given back here" in error.msg) == (Code.CONFLICT, True)
    seen = standing_of((await read_money(world.relay, merchant, P)).payment)
    insisting = RefundByPerson(seen=seen, insists="the portal shows the part alone")
    await refund(world.relay, asked("k-2"), part(99_000), person=insisting)
    assert refunds(world) == [part(1_000), part(99_000)]
    assert (await read_balance(world.relay, merchant, CHARGE.order_id)).is_certain


@pytest.mark.parametrize("before", [PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK])
async def test_one_look_gives_nothing_free_again(world: World, before: PaymentStatus) -> None:
    """A copy at the gateway that lags behind shows what was given back as received: the customer would get it twice."""
    merchant = await charged(world)
    await shows(world, before)
    await shows(world, PaymentStatus.RECEIVED)
    for number, amount_minor in enumerate([None, 1, PAID]):
        error = await refused(world, f"k-{number}", part(amount_minor))
        assert (error.code, error.retry_after_s) == (Code.IN_PROGRESS, 600)
    held_one = await held(world, WHOLE)
    with pytest.raises(Refusal, match="not known yet"):
        await decide_held(world.relay, held_one, HeldDecision.SEND, operator="ann", reason="send it")
    await decide_held(world.relay, held_one, HeldDecision.REFUSE, operator="ann", reason="later")
    world.clock.passed_ms += SECOND_LOOK_MS
    await shows(world, PaymentStatus.RECEIVED)
    await refund(world.relay, asked("k-3"), WHOLE)

    assert refunds(world) == [WHOLE]
    assert (await read_balance(world.relay, merchant, CHARGE.order_id)).is_certain


async def test_a_refused_refund_has_the_record_read(world: World) -> None:
    """Otherwise nobody might look a second time, and each repeat would be told to come again."""
    await charged(world)
    await shows(world, PaymentStatus.REFUNDED)
    await shows(world, PaymentStatus.RECEIVED)
    world.account.readings.append(Reading(code=Code.GATEWAY_UNREACHABLE, msg="not now"))
    await refused(world, "k-1", WHOLE)
    await world.relay.background.finish(1)
    assert not world.account.readings


async def test_a_person_may_insist_where_a_look_says_nothing_yet(world: World) -> None:
    """What a lagging copy may have shown proves no later refund to be this one."""
    merchant = await charged(world)
    await shows(world, PaymentStatus.REFUNDED)
    await shows(world, PaymentStatus.RECEIVED)
    seen = standing_of((await read_money(world.relay, merchant, P)).payment)
    insisting = RefundByPerson(seen=seen, insists="the portal shows it as received")
    await refund(world.relay, asked("k-1"), WHOLE, person=insisting)
    [first, *_] = await world.journal.history((await world.operation()).id)
    assert (refunds(world), first.evidence.seen, first.evidence.insisted) == ([WHOLE], None, insisting.insists)


@pytest.mark.parametrize("first", ["k-1", None])
async def test_a_refund_that_failed_is_made_again(world: World, first: str | None) -> None:
    """Its success must not be the answer to the second one: the customer would never get the money.

    The same request with the same key is a question about the first one, and gets its answer.
    """
    merchant = await charged(world)
    told = await refund(world.relay, asked(first), WHOLE)
    await shows(world, PaymentStatus.REFUNDED)
    await shows(world, PaymentStatus.RECEIVED)
    again = await refund(world.relay, asked(first), WHOLE)
    world.clock.passed_ms += SECOND_LOOK_MS
    await shows(world, PaymentStatus.RECEIVED)
    if first is not None:
        assert (await refund(world.relay, asked(first), WHOLE)).body == told.body
    anew = await refund(world.relay, asked(None), WHOLE)
    await shows(world, PaymentStatus.REFUNDED)

    assert (again.body, anew.headers == told.headers, refunds(world)) == (told.body, False, [WHOLE, WHOLE])
    balance = await read_balance(world.relay, merchant, CHARGE.order_id)
    assert ([each.given_back_minor for each in balance.payments], balance.is_certain) == ([PAID], True)


async def test_what_a_bank_may_have_taken_is_not_refunded_by_a_key(world: World) -> None:
    """The customer would have the money twice: from the bank, and from the shop."""
    merchant = await charged(world)
    kind, reported = NotificationKind.CHARGEBACK, ReportedStatus.CHARGED_BACK
    notification = msgspec.structs.replace(NOTIFICATION, kind=kind, reported=reported, merchant=merchant)
    assert await world.relay.inbox.put(notification, b"")
    for number, amount_minor in enumerate([None, 1, PAID + 1]):
        error = await refused(world, f"k-{number}", part(amount_minor))
        assert (error.code, "notified a chargeback" in error.msg) == (Code.IN_PROGRESS, True)
    seen = standing_of((await read_money(world.relay, merchant, P)).payment)
    assert (await refused(world, "k-3", WHOLE, RefundByPerson(seen=seen))).code is Code.IN_PROGRESS
    insisting = RefundByPerson(seen=seen, insists="the bank withdrew it, says its letter")
    await refund(world.relay, asked("k-4"), part(1_000), person=insisting)
    step = step_of(NotificationReason.CHARGEBACK_NOT_SHOWN)
    waited = advance(notification, step, at_ms=notification.gives_up_at_ms)
    await world.relay.inbox.record(waited)
    await refund(world.relay, asked("k-5"), WHOLE)

    assert waited.state is NotificationState.NEEDS_ATTENTION
    assert refunds(world) == [part(1_000), part(99_000)]


def adds_up(world: World, rows_max: int) -> None:
    """Has so many rows of one kind be added up, at most."""
    world.relay = replace(
        world.relay, money=replace(world.relay.money, orders=Orders(digests_of(world.database), rows_max=rows_max))
    )


async def test_what_is_not_added_up_is_not_refunded_by_a_key(world: World) -> None:
    """A payment with hundreds of operations has limits as any other; a person is told so, and may insist."""
    merchant = await charged(world)
    await refund(world.relay, asked("k-1"), part(1_000))
    adds_up(world, 1)
    for number, amount_minor in enumerate([None, 1, PAID]):
        error = await refused(world, f"l-{number}", part(amount_minor))
        assert (error.code, "more is stored of this payment" in error.msg) == (Code.CONFLICT, True)
    money = await read_money(world.relay, merchant, P)
    assert all_of(money) == "more is stored of this payment than the service adds up at once"
    person = RefundByPerson(seen=standing_of(money.payment))
    assert "nothing says what is left" in (await refused(world, "k-2", part(1), person)).msg
    insisting = msgspec.structs.replace(person, insists="added up by hand: 990.00 is left")
    await refund(world.relay, asked("k-3"), part(1), person=insisting)
    assert refunds(world) == [part(1_000), part(1)]


async def test_what_is_not_added_up_any_more_is_not_refunded(world: World) -> None:
    """Another refund came between, and is one too many. The one that is stored is not one too many itself."""
    await charged(world)
    adds_up(world, 1)
    await refund(world.relay, asked("k-1"), part(1))
    adds_up(world, 2)

    async def other() -> None:
        await refund(world.relay, asked("between"), part(2))

    world.steps.put("accept", other, first=world.steps.passed.count("accept") + 1)
    error = await refused(world, "k-2", part(3))
    assert (error.code, "nothing says what is left" in error.msg) == (Code.CONFLICT, True)
    assert refunds(world) == [part(1), part(2)]


async def held(world: World, call: Refund) -> Operation:
    """Holds a refund, as a recovery does."""
    intent = Intent(
        kind=Kind.REFUND,
        call=call,
        subject=f"payment/{P}",
        order_id=CHARGE.order_id,
        payment_id=P,
        amount_minor=call.amount_minor,
        currency=CHARGE.currency,
    )
    await hold(world.relay, asked("held"), intent, "f" * 64, "key/held")
    return await world.operation()


async def test_a_held_refund_is_sent_within_what_is_left(world: World) -> None:
    """A part went back before the loss: what is held without an amount is the rest."""
    await charged(world)
    await refund(world.relay, asked("k-1"), part(40_000))
    sent = await decide_held(
        world.relay, await held(world, WHOLE), HeldDecision.SEND, operator="ann", reason="nothing of it was done"
    )
    assert (sent.state, refunds(world)) == (State.SUCCEEDED, [part(40_000), part(60_000)])


async def test_a_held_refund_of_what_was_charged_back_stays_held(world: World) -> None:
    """Whoever decides learns what happened to the payment since."""
    await charged(world)
    operation = await held(world, WHOLE)
    await shows(world, PaymentStatus.CHARGED_BACK)
    with pytest.raises(Refusal, match="this payment was charged back"):
        await decide_held(world.relay, operation, HeldDecision.SEND, operator="ann", reason="send it")
    assert ((await world.operation()).state, refunds(world)) == (State.HELD, [])


class Asking(msgspec.Struct, frozen=True):
    """A refund of a plan: its amount, its key, what the gateway does, and how long after the others it begins."""

    amount_minor: int | None
    key: str | None
    kind: OutcomeKind
    begins_after: int


ASKINGS: Final = st.builds(
    Asking,
    st.none() | st.sampled_from([1, 40_000, 60_000, PAID, PAID + 1]) | st.integers(1, PAID),
    st.sampled_from(["k-1", "k-2", "k-3", None]),
    st.sampled_from([OutcomeKind.SUCCEEDED, OutcomeKind.SUCCEEDED, OutcomeKind.UNKNOWN, OutcomeKind.REFUSED]),
    st.integers(0, 20),
)


async def ask(world: World, asking: Asking) -> None:
    """Makes one request."""
    for _ in range(asking.begins_after):
        await asyncio.sleep(0)
    with contextlib.suppress(Refusal):
        await refund(world.relay, asked(asking.key), part(asking.amount_minor))


async def given_back(rounds: list[list[Asking]]) -> list[int]:
    """Carries out rounds of requests, those of a round at once; gives what the gateway gave back.

    A lost reply becomes known after its round.
    """
    with tempfile.TemporaryDirectory() as name:
        world = World(await opened(Path(name) / "payrelay.db", Inline()), Path(name) / "payrelay.db")
        await charged(world)
        for some in rounds:
            world.account.script.extend(outcome_of(each.kind) for each in some)
            await asyncio.gather(*(ask(world, each) for each in some))
            world.account.script.clear()
            for row in await world.operations():
                if row.state is State.UNKNOWN:
                    await world.resolve(OutcomeKind.SUCCEEDED, row)
        await world.relay.background.finish(1)
        await world.database.close()
    return [PAID if each.amount_minor is None else each.amount_minor for each in refunds(world)]


@pytest.mark.deep
@given(rounds=st.lists(st.lists(ASKINGS, min_size=1, max_size=3), min_size=1, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_no_sequence_of_refunds_gives_back_more_than_was_paid(rounds: list[list[Asking]]) -> None:
    """In parts or whole, with keys or without, one after the other or at once, with replies that are lost."""
    assert sum(asyncio.run(given_back(rounds))) <= PAID
