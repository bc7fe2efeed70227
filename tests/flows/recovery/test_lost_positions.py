"""What a reader of the feed hears whose position is of events that the database has lost."""

import json

import msgspec
import pytest
from tests.flows.losing import Losing
from tests.flows.world import CHARGE, START_MS, asked

from payrelay.core.calls import Charge
from payrelay.errors import Code, Refusal
from payrelay.flows.events.read_events import EventFilter, follow_events, list_events
from payrelay.flows.payments.charge import charge
from payrelay.runtime.event_delivery import publish_events

FIRST_OF_SECOND = 10**13 + 1


async def _charge(losing: Losing, key: str) -> str:
    """Charges, publishes the event, and gives the operation's subject."""
    world = losing.world
    await charge(world.relay, asked(key), _call(key))
    world.relay.dispatch.incarnation = world.relay.database.lost_commits.incarnation
    await publish_events(world.relay.dispatch)
    return f"operation:{(await world.operation()).id}"


def _call(key: str) -> Charge:
    """Gives a charge of another order for each key."""
    return msgspec.structs.replace(CHARGE, order_id=f"A-{key}")


async def _positions(losing: Losing, after: int) -> list[int]:
    answer = await list_events(losing.world.relay, asked(), EventFilter(after=after, limit=10), None)
    return [event["position"] for event in json.loads(answer.body)["data"]["events"]]


async def _code(losing: Losing, after: int, subject: str) -> tuple[Code, Code]:
    with pytest.raises(Refusal) as listed:
        await _positions(losing, after)
    with pytest.raises(Refusal) as followed:
        await follow_events(losing.world.relay, asked(), subject, after=after)
    return listed.value.code, followed.value.code


async def test_a_position_behind_all_events_is_lost(losing: Losing) -> None:
    """A reader who waited there would miss every event until the positions have grown so far again."""
    subject = await _charge(losing, "1")
    assert await _positions(losing, 1) == []
    assert await _code(losing, 2, subject) == (Code.POSITION_LOST, Code.POSITION_LOST)


async def test_a_position_of_lost_events_is_lost_for_good_and_one_from_before_goes_on(losing: Losing) -> None:
    """The reader must look again at what it knows: operations that it has heard of may be gone."""
    await _charge(losing, "1")
    losing.lose(since_ms=START_MS + 1, until_ms=START_MS + 2)
    losing.acknowledge("shop")
    subject = await _charge(losing, "2")

    assert await _positions(losing, 0) == [1, FIRST_OF_SECOND]
    assert await _positions(losing, 1) == [FIRST_OF_SECOND]
    assert await _code(losing, 2, subject) == (Code.POSITION_LOST, Code.POSITION_LOST)
    assert await _positions(losing, FIRST_OF_SECOND) == []
    assert await _code(losing, FIRST_OF_SECOND + 1, subject) == (Code.POSITION_LOST, Code.POSITION_LOST)
    losing.end()
    assert await _code(losing, 2, subject) == (Code.POSITION_LOST, Code.POSITION_LOST)
    stream = await follow_events(losing.world.relay, asked(), subject, after=1)
    stream.close()
