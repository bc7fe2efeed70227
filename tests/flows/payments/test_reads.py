import json
from collections.abc import Awaitable, Callable

import pytest
from tests.flows.world import World, asked

from payrelay.core.answers import Answer
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.outcomes import Reading
from payrelay.errors import Code
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.flows.subscriptions.read_subscriptions import (
    list_subscription_payments,
    list_subscriptions,
    retrieve_subscription,
)

ONE = OneSubscription(subscription_id=7)
MISSING = Reading(code=Code.NOT_FOUND, msg="No payments found", raw_msg=b'"No payments found"')
FAILED = Reading(code=Code.GATEWAY_BAD_REPLY, msg="unreadable")
READS: list[Callable[[World], Awaitable[Answer]]] = [
    lambda world: retrieve_payments(world.relay, asked(world.relay), PaymentsOfOrder(order_id="A-1")),
    lambda world: list_subscriptions(world.relay, asked(world.relay), AllSubscriptions()),
    lambda world: list_subscription_payments(
        world.relay, asked(world.relay), PaymentsOfSubscription(subscription_id=7)
    ),
    lambda world: retrieve_subscription(world.relay, asked(world.relay), ONE, with_payments=False),
    lambda world: retrieve_subscription(world.relay, asked(world.relay), ONE, with_payments=True),
]


def found(raw_data: bytes | None) -> Reading:
    """Gives what the gateway says of something that is there."""
    return Reading(code=None, msg="ours", raw_msg=b'"theirs"', raw_data=raw_data)


@pytest.mark.parametrize("read", READS[:4])
async def test_a_read_passes_on_what_the_gateway_said(world: World, read: Callable[[World], Awaitable[Answer]]) -> None:
    """Byte for byte; and it leaves no operation behind."""
    world.account.readings.append(found(b'[{"amount":1000.0}]'))
    assert (await read(world)).body == b'{"status":1,"msg":"theirs","data":[{"amount":1000.0}]}'
    assert await world.operations() == []


@pytest.mark.parametrize("read", READS)
async def test_a_read_that_failed_says_so(world: World, read: Callable[[World], Awaitable[Answer]]) -> None:
    """An unreadable reply is never an empty list."""
    world.account.readings.append(FAILED)
    answer = await read(world)
    assert (answer.http_status, json.loads(answer.body)["data"]) == (502, None)


@pytest.mark.parametrize(("number", "data"), [(0, []), (2, []), (3, None), (4, None)])
async def test_nothing_found_is_404(world: World, number: int, data: list[object] | None) -> None:
    """With an empty list where the route has a list, null where it has an object."""
    world.account.readings.append(MISSING)
    answer = await READS[number](world)
    body = json.loads(answer.body)
    assert (answer.http_status, body["msg"], body["data"]) == (404, "No payments found", data)


@pytest.mark.parametrize(
    ("payments", "raw_payments"),
    [(found(b'[{"amount":2.50}]'), b'[{"amount":2.50}]'), (MISSING, b"[]"), (found(None), b"[]")],
)
async def test_the_payments_of_a_subscription_are_added_on_demand(
    world: World, payments: Reading, raw_payments: bytes
) -> None:
    """Both as the gateway wrote them; none is an empty list and not an error."""
    world.account.readings += [found(b'{"amount":1000.0}'), payments]
    answer = await READS[4](world)
    assert answer.body == b'{"status":1,"msg":"theirs","data":{"amount":1000.0,"payments":%b}}' % raw_payments


async def test_where_the_payments_can_not_be_read_there_is_no_half_an_answer(world: World) -> None:
    """A subscription without payments would be believed."""
    world.account.readings += [found(b"{}"), FAILED]
    assert (await READS[4](world)).http_status == 502


async def test_a_subscription_without_words_is_answered_in_ours(world: World) -> None:
    """With its payments as without them."""
    world.account.readings += [Reading(code=None, msg="ours", raw_data=b"{}"), MISSING]
    assert json.loads((await READS[4](world)).body)["msg"] == "ours"
