"""What a client hears of an id that the database doesn't know, while that may have been lost with commits."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

import pytest
from tests.flows.hosted import hosting
from tests.flows.losing import MINUTE_MS, Losing
from tests.flows.vault import approved_in, charge_by
from tests.flows.world import START_MS, asked

from payrelay.core.payments.operation import Kind
from payrelay.errors import Code, Refusal
from payrelay.flows.access.issue_client_token import ClientTokenRequest, issue_client_token
from payrelay.flows.alerts.alert_messages import MESSAGES
from payrelay.flows.checkouts.show_checkout import show_checkout
from payrelay.flows.checkouts.visit_checkout import visit_checkout
from payrelay.flows.customers.erase_customer import erase_customer, remove_customer
from payrelay.flows.customers.show_customer import show_customer
from payrelay.flows.events.read_events import follow_events
from payrelay.flows.operations.intent import Intent
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.find_operations import show_operation, show_operation_by_key
from payrelay.flows.payments.stored_customer import with_token
from payrelay.flows.relay import Relay, Request
from payrelay.flows.subscriptions.show_subscription_states import show_subscription_state
from payrelay.store.alerts import Alerts, AlertSubject

FAR_MS: Final = 10**13


def _id(prefix: str, at_ms: int) -> str:
    return f"{prefix}_{at_ms:012x}{'0' * 20}"


async def _visit(relay: Relay, at_ms: int) -> object:
    visited = await visit_checkout(relay, "gateway", _id("chk", at_ms), "secret")
    if visited is None:
        raise Refusal(Code.NOT_FOUND, "the page says so")
    return visited


Ask = Callable[[Relay, int], Awaitable[object]]
Leave = Callable[[Relay, Request, str], Awaitable[object]]
ASK: Final[dict[str, Ask]] = {
    "a checkout": lambda relay, at_ms: show_checkout(relay, asked(), _id("chk", at_ms)),
    "the page of a checkout": _visit,
    "an operation": lambda relay, at_ms: show_operation(relay, asked(), _id("op", at_ms)),
    "the events of an operation": lambda relay, at_ms: follow_events(
        relay, asked(), f"operation:{_id('op', at_ms)}", after=0
    ),
    "a customer": lambda relay, at_ms: show_customer(relay, asked(), _id("cus", at_ms)),
    "an erasure": lambda relay, at_ms: erase_customer(relay, asked(), _id("cus", at_ms)),
    "a token for a customer": lambda relay, at_ms: issue_client_token(
        relay, asked(), ClientTokenRequest(customer_id=_id("cus", at_ms))
    ),
}
TIMELESS: Final[dict[str, Callable[[Relay], Awaitable[object]]]] = {
    "an operation by its key": lambda relay: show_operation_by_key(relay, asked(), "k-lost"),
    "a subscription": lambda relay: show_subscription_state(relay, asked(), "420075044317"),
}


async def _code(asking: Awaitable[object]) -> Code:
    with pytest.raises(Refusal) as refused:
        await asking
    return refused.value.code


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
async def test_an_id_of_the_lost_window_is_not_known_here_until_the_recovery_ends(losing: Losing, ask: Ask) -> None:
    """404 is final: the shop would open another page for an order that was paid on the lost one."""
    relay = replace(
        hosting(losing.world),
        database=replace(hosting(losing.world).database, lost_commits=losing.world.relay.database.lost_commits),
    )
    assert await _code(ask(relay, START_MS)) is Code.NOT_FOUND
    losing.lose()
    assert await _code(ask(relay, START_MS)) is Code.UNAVAILABLE
    assert await _code(ask(relay, START_MS - 60 * MINUTE_MS)) is Code.NOT_FOUND
    losing.end()
    assert await _code(ask(relay, START_MS)) is Code.NOT_FOUND


@pytest.mark.parametrize("ask", TIMELESS.values(), ids=TIMELESS)
async def test_what_tells_no_time_is_not_known_here_either(
    losing: Losing, ask: Callable[[Relay], Awaitable[object]]
) -> None:
    """An app that was killed before its answer asks by its key: a final no would have it pay again."""
    relay = losing.world.relay
    losing.lose()
    assert await _code(ask(relay)) is Code.UNAVAILABLE
    losing.end()
    assert await _code(ask(relay)) is Code.NOT_FOUND


async def test_while_the_database_is_behind_no_id_is_denied(losing: Losing) -> None:
    """The operator hasn't begun the recovery yet, and nobody knows what is lost."""
    losing.world.relay.database.lost_commits.fall_behind(1, "operation op_1 is missing")
    assert await _code(show_operation(losing.world.relay, asked(), _id("op", 1))) is Code.UNAVAILABLE


async def test_a_charge_by_a_handle_that_may_be_lost_is_no_final_refusal_and_calls_an_operator(losing: Losing) -> None:
    """The customer approved, and the token is gone: the operator must hear of it, and the shop must not drop them."""
    world = losing.world
    losing.lose()
    assert await _code(charge(world.relay, asked(), charge_by(_id("cus", START_MS)))) is Code.UNAVAILABLE
    assert await _code(charge(world.relay, asked("k-2"), charge_by(_id("cus", START_MS + 1)))) is Code.UNAVAILABLE
    assert world.log_events.count("customer_may_be_lost") == 2
    [alert] = await Alerts(world.database, AlertSubject.ROW).lease_due(FAR_MS, leased_until_ms=FAR_MS, limit=9)
    message = json.loads(await MESSAGES[AlertSubject.ROW](world.relay, alert) or b"")
    assert (message["kind"], message["merchant"], message["incarnation"]) == (
        "customers_may_be_lost",
        world.account.merchant,
        2,
    )
    assert await world.operations() == []
    losing.end()
    assert await _code(charge(world.relay, asked(), charge_by(_id("cus", START_MS)))) is Code.INVALID_REQUEST


@pytest.mark.parametrize("leave", [remove_customer, erase_customer])
@pytest.mark.parametrize("settle", [Losing.end, partial(Losing.acknowledge, principal="shop")])
async def test_a_charge_of_a_customer_who_left_is_not_denied_while_its_first_try_may_be_lost(
    losing: Losing, leave: Leave, settle: Callable[[Losing], None]
) -> None:
    """The lost try charged the customer before: a final no would have the shop take the money from another card."""
    relay = losing.world.relay
    customer = await approved_in(losing.world)
    losing.lose()
    await leave(relay, asked(), customer.id)
    assert await _code(charge(relay, asked("k-1"), charge_by(customer.id))) is Code.UNAVAILABLE
    settle(losing)
    assert await _code(charge(relay, asked("k-1"), charge_by(customer.id))) is Code.INVALID_REQUEST
    assert losing.world.account.sent == []


async def test_a_charge_of_a_customer_who_left_before_anything_was_lost_is_refused(losing: Losing) -> None:
    """No try of the lost window can have charged it, so the shop is told at once and for good."""
    relay = losing.world.relay
    customer = await approved_in(losing.world)
    await remove_customer(relay, asked(), customer.id)
    losing.lose(START_MS + 60 * MINUTE_MS, START_MS + 61 * MINUTE_MS)
    assert await _code(charge(relay, asked(), charge_by(customer.id))) is Code.INVALID_REQUEST


async def test_while_the_database_is_behind_no_charge_of_a_customer_who_left_is_denied(losing: Losing) -> None:
    """Nobody knows yet since when commits are lost, so any charge may have been carried out."""
    relay = losing.world.relay
    customer = await approved_in(losing.world)
    await remove_customer(relay, asked(), customer.id)
    relay.database.lost_commits.fall_behind(1, "operation op_1 is missing")
    assert await _code(charge(relay, asked(), charge_by(customer.id))) is Code.UNAVAILABLE


async def test_a_customer_who_leaves_during_the_look_for_the_first_try_is_not_denied_either(losing: Losing) -> None:
    """The look may show the charge a moment after the removal, and its answer must not be a final no."""
    world = losing.world
    customer = await approved_in(world)
    call = charge_by(customer.id)
    intent = Intent(kind=Kind.CHARGE, call=call, subject="order/A-1")
    prepared = await with_token(world.relay, asked(), call, intent, lost_since_ms=START_MS)
    await remove_customer(world.relay, asked(), customer.id)
    assert prepared.condition is not None
    assert await _code(world.database.read(prepared.condition("op_1"))) is Code.UNAVAILABLE
