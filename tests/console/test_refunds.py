"""Refunds in the console: the figures that a confirmation rests on, and an operator who insists against them."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.console.browsing import Window
from tests.console.counter import Counter, confirmation_in, seen_in, sent
from tests.flows.inbox_world import payment_of
from tests.flows.world import asked, outcome_of

from payrelay.core.calls import Refund
from payrelay.core.operators.roles import Act
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.outcomes import OutcomeKind, Reading
from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Code
from payrelay.flows.payments.refund import refund

WHY = "the customer sent it back"
RECORD = {"payment_id": 320, "order_id": "A-1", "date": "2023-11-14 22:00:00", "description": "Tea", "currency": "LKR"}


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console where one person is enough."""
    counter = await Counter.opened(tmp_path)
    yield counter
    await counter.close()


@pytest.fixture
async def paired(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console where a second person confirms refunds."""
    counter = await Counter.opened(tmp_path, frozenset({Act.REFUND}))
    yield counter
    await counter.close()


async def by_key(counter: Counter, amount_minor: int | None, key: str = "shop") -> None:
    """Has the shop refund the payment by the API."""
    call = Refund(payment_id="320", description="late", amount_minor=amount_minor)
    await refund(counter.world.relay, asked(key), call)


def amounts(counter: Counter) -> list[int | None]:
    """Gives what really was refunded."""
    return [each.amount_minor for each in counter.world.account.ledger if isinstance(each, Refund)]


async def confirmed_page(counter: Counter, window: Window, **fields: str) -> str:
    """Fills the form of a refund in; gives the address of the confirmation."""
    [*_, charged] = await counter.world.operations()
    await sent(
        window, f"/console/act/operation/{charged.id}", "refund", **{"description": "Refund", "amount": "", **fields}
    )
    return f"/console/confirmations/{confirmation_in(window)}"


def shows(counter: Counter, status: PaymentStatus) -> None:
    """Has the gateway's record show the payment at the next look."""
    record = RECORD | {"status": status.value, "amount": 1000.0}
    counter.world.account.readings.append(Reading(code=None, msg="ok", raw_data=json.dumps([record]).encode()))


@pytest.mark.parametrize("asked_amount", ["400.00", ""])
@pytest.mark.parametrize("by_shop", [40_000, None])
async def test_a_confirmation_is_stale_once_a_key_refunded(
    counter: Counter, asked_amount: str, by_shop: int | None
) -> None:
    """Two refunds of 400, one by a page and one by the API, gave back 800: now the page says what came between."""
    await counter.charged()
    ada = await counter.window("ada")
    address = await confirmed_page(counter, ada, amount=asked_amount)
    token = ada.token
    await by_key(counter, by_shop)
    answer = await ada.send("POST", address, {"token": token, "reason": WHY})

    assert (answer.status, amounts(counter)) == (409, [by_shop])
    assert "Of its money: LKR 1,000.00 was paid" in ada.text
    assert "was given back by op_" in ada.text


async def test_a_refund_that_became_open_makes_it_stale(counter: Counter) -> None:
    """What nobody knows yet may have gone out."""
    await counter.charged()
    ada = await counter.window("ada")
    address = await confirmed_page(counter, ada, amount="400.00")
    token = ada.token
    counter.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await by_key(counter, 40_000)
    assert (await ada.send("POST", address, {"token": token, "reason": WHY})).status == 409
    assert amounts(counter) == [40_000]


async def test_a_chargeback_makes_it_stale(counter: Counter) -> None:
    """The bank was quicker."""
    await counter.charged()
    ada = await counter.window("ada")
    address = await confirmed_page(counter, ada)
    token = ada.token
    seen = (payment_of(payment_id="320", status=PaymentStatus.CHARGED_BACK),)
    await counter.world.relay.read_cache.note_payments(counter.world.account.merchant, seen, seen_at_ms=1)
    assert (await ada.send("POST", address, {"token": token, "reason": WHY})).status == 409
    assert amounts(counter) == []


async def test_what_came_between_the_click_and_the_storing_stops_it(counter: Counter) -> None:
    """The form was fresh when it arrived; the figures are compared once more when the intent is stored."""
    await counter.charged()
    ada = await counter.window("ada")
    address = await confirmed_page(counter, ada, amount="400.00")

    async def other() -> None:
        await by_key(counter, 40_000)

    steps = counter.world.steps
    steps.put("accept", other, first=steps.passed.count("accept") + 1)
    await ada.post(address, reason=WHY)

    assert "<strong>Refused.</strong> The payment&#39;s money is no more as it was shown to you" in ada.text
    assert amounts(counter) == [40_000]


async def test_a_second_person_confirms_the_figures_that_the_first_one_saw(paired: Counter) -> None:
    """Days may lie between the two."""
    await paired.charged()
    ada, bob = await paired.window("ada"), await paired.window("bob")
    address = await confirmed_page(paired, ada, amount="400.00")
    await ada.post(address, reason=WHY)
    await by_key(paired, 40_000)
    await bob.get(address)
    answer = await bob.send("POST", address, {"token": bob.token, "reason": WHY})
    assert (answer.status, amounts(paired)) == (409, [40_000])


async def test_somebody_who_only_looks_makes_nothing_stale(counter: Counter) -> None:
    """The record shows what was known."""
    await counter.charged()
    ada = await counter.window("ada")
    address = await confirmed_page(counter, ada)
    await counter.world.relay.read_cache.note_payments(
        counter.world.account.merchant, (payment_of(payment_id="320"),), seen_at_ms=1
    )
    await ada.post(address, reason=WHY)
    assert amounts(counter) == [None]


async def test_the_confirmation_names_what_is_left(counter: Counter) -> None:
    """An empty field is no empty promise: it is of the rest, and the gateway gets that amount."""
    await counter.charged()
    ada = await counter.window("ada")
    await confirmed_page(counter, ada)
    assert "<dd>what is left: LKR 1,000.00</dd>" in ada.text
    await by_key(counter, 40_000)
    address = await confirmed_page(counter, ada)
    assert "<dd>what is left: LKR 600.00</dd>" in ada.text
    await ada.post(address, reason=WHY)
    assert amounts(counter) == [40_000, 60_000]


async def test_the_confirmation_says_where_no_figure_is_known(counter: Counter) -> None:
    """The record has a word that nobody here knows: it doesn't say that anything was paid, and no figure is made up."""
    await counter.charged()
    world = counter.world
    seen = (payment_of(payment_id="999", order_id="B-1", status=PaymentStatus.OTHER),)
    await world.relay.read_cache.note_payments(world.account.merchant, seen, seen_at_ms=1)
    ada = await counter.window("ada")
    form = {"description": "Refund", "amount": "", "client": "shop"}
    await sent(ada, "/console/act/payment/gateway~999", "refund", **form)
    assert "<dd>the whole payment; nothing here says how much that is</dd>" in ada.text
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)
    assert amounts(counter) == [None]


@pytest.mark.parametrize(
    ("status", "before", "refusal", "again"),
    [
        (PaymentStatus.CHARGED_BACK, (), "This payment was charged back: LKR 1,000.00 was paid", [None]),
        (PaymentStatus.REFUNDED, (None,), "This payment is already refunded: LKR 1,000.00 was paid", [None, None]),
    ],
)
async def test_an_operator_insists_after_a_look_at_the_record(
    counter: Counter, status: PaymentStatus, before: tuple[None, ...], refusal: str, again: list[None]
) -> None:
    """The page says what is in the way; the gateway is asked before anybody can confirm, and the journal has both."""
    await counter.charged()
    for each in before:
        await by_key(counter, each)
    world = counter.world
    seen = (payment_of(payment_id="320", status=status),)
    await world.relay.read_cache.note_payments(world.account.merchant, seen, seen_at_ms=world.clock.now_ms())
    [*_, charged] = await world.operations()
    ada = await counter.window("ada")
    form = {"description": "Refund", "amount": ""}
    await sent(ada, f"/console/act/operation/{charged.id}", "refund", **form)
    assert refusal in ada.text
    assert 'name="insist"' in ada.text
    shows(counter, status)
    await ada.post(f"/console/act/operation/{charged.id}/refund", seen=seen_in(ada), insist="yes", **form)
    assert "the whole payment once more: LKR 1,000.00" in ada.text
    assert f"the gateway&#39;s record shows the payment as {status}, LKR 1,000.00" in ada.text
    assert amounts(counter) == list(before)
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert ("<strong>Done.</strong>" in ada.text, amounts(counter)) == (True, again)
    [first, *_] = await world.journal.history((await world.operation()).id)
    told = first.evidence.insisted or ""
    assert told.startswith(refusal.replace("This", "this"))
    assert f"the gateway's record shows the payment as {status}" in told
    assert (first.evidence.operator, first.evidence.reason) == ("Ada <ada@shop.example>", WHY)
    assert await counter.acts() == [("ask_gateway", ""), ("refund", WHY)]


async def test_nobody_insists_while_the_gateway_cannot_be_asked(counter: Counter) -> None:
    """Without a look at the record the figures here are all that anybody has."""
    await counter.charged()
    await by_key(counter, None)
    [*_, charged] = await counter.world.operations()
    ada = await counter.window("ada")
    counter.world.account.readings.append(Reading(code=Code.GATEWAY_BUSY, msg="the gateway's budget is used up"))
    page, form = f"/console/act/operation/{charged.id}", {"description": "Refund", "amount": "", "insist": "yes"}
    await sent(ada, page, "refund", **form)

    assert "Nobody can insist on this refund before the gateway was asked for its record" in ada.text
    assert "budget is used up" in ada.text
    assert (amounts(counter), "/console/confirmations/cnf_" in ada.text) == ([None], False)


async def test_a_look_that_shows_nothing_in_the_way_needs_no_insisting(counter: Counter) -> None:
    """The bank lost the dispute, and a second look confirms it: the refund is one like any other."""
    await counter.charged()
    world = counter.world
    for status, passed_ms in ((PaymentStatus.CHARGED_BACK, 1), (PaymentStatus.RECEIVED, SECOND_LOOK_MS)):
        seen = (payment_of(payment_id="320", status=status),)
        await world.relay.read_cache.note_payments(world.account.merchant, seen, seen_at_ms=world.clock.now_ms())
        world.clock.passed_ms += passed_ms
    [charged] = await world.operations()
    ada = await counter.window("ada")
    shows(counter, PaymentStatus.RECEIVED)
    form = {"description": "Refund", "amount": "", "insist": "yes"}
    await sent(ada, f"/console/act/operation/{charged.id}", "refund", **form)
    assert "what is left: LKR 1,000.00" in ada.text
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    [first, *_] = await world.journal.history((await world.operation()).id)
    assert (amounts(counter), first.evidence.insisted) == ([None], None)
