import asyncio
import io
import json

import aiohttp
import pytest
from aiohttp import ClientSession

from payrelay_simulator import Arguments, Match, Rule, Running, World

CHARGE = "/merchant/v1/payment/charge"
Body = dict[str, object]


def kinds(world: World, order_id: str = "Order12345") -> list[str]:
    """Return what really happened to an order."""
    return [entry.kind for entry in world.ledger.entries() if entry.order_id == order_id]


async def fail(session: ClientSession, body: Body) -> type[Exception]:
    """Charge, expecting no readable answer, and return what the client met."""
    with pytest.raises((aiohttp.ClientError, TimeoutError)) as failure:
        async with session.post(CHARGE, json=body) as response:
            await response.read()
    return failure.type


async def test_good_charge_over_a_socket(session: ClientSession, charge_body: Body) -> None:
    """A real client gets the envelope as JSON."""
    async with session.post(CHARGE, json=charge_body) as response:
        document = await response.json()

        assert (response.status, document["status"], document["data"]["amount"]) == (200, 1, 345.67)
        assert response.headers["Content-Type"] == "application/json;charset=UTF-8"


@pytest.mark.parametrize("args", [Arguments(is_reset=True), Arguments()])
@pytest.mark.parametrize("fault", ["cut_before", "cut_after"])
async def test_cut_leaves_the_client_without_a_byte(
    session: ClientSession, world: World, charge_body: Body, fault: str, args: Arguments
) -> None:
    """Both cuts look the same to the client, with and without the money moved."""
    world.faults.add_rules(Rule(fault=fault, args=args))

    assert issubclass(await fail(session, charge_body), aiohttp.ClientConnectionError)
    assert kinds(world) == (["charge"] if fault == "cut_after" else [])


@pytest.mark.parametrize(("fault", "happened"), [("hang_before", []), ("hang_after", ["charge"])])
async def test_hang_outlasts_the_client(
    session: ClientSession, world: World, charge_body: Body, fault: str, happened: list[str]
) -> None:
    """The client gives up by itself; whether money moved it cannot know."""
    world.faults.add_rules(Rule(fault=fault))
    with pytest.raises(TimeoutError):
        await session.post(CHARGE, json=charge_body, timeout=aiohttp.ClientTimeout(total=0.1))

    assert kinds(world) == happened


async def test_hang_with_an_end_answers_late(session: ClientSession, world: World, charge_body: Body) -> None:
    """A slow gateway's answer is good when it comes."""
    world.faults.add_rules(Rule(fault="hang_after", args=Arguments(wait_s=0.01)))
    async with session.post(CHARGE, json=charge_body) as response:
        assert (await response.json())["data"]["status_code"] == 2


async def test_half_a_body_is_seen_as_incomplete(session: ClientSession, world: World, charge_body: Body) -> None:
    """The head announces more than comes."""
    world.faults.add_rules(Rule(fault="half_body"))

    assert await fail(session, charge_body) is aiohttp.ClientPayloadError
    assert kinds(world) == ["charge"]


async def test_drip_arrives_byte_by_byte_and_whole(session: ClientSession, world: World, charge_body: Body) -> None:
    """A client that waits long enough gets everything."""
    world.faults.add_rules(Rule(fault="drip", args=Arguments(pause_s=0)))
    async with session.post(CHARGE, json=charge_body) as response:
        assert (await response.json())["status"] == 1


async def test_drip_can_outlast_the_client(session: ClientSession, world: World, charge_body: Body) -> None:
    """Bytes that keep coming keep no promise; only a limit on the whole helps."""
    world.faults.add_rules(Rule(fault="drip", args=Arguments(pause_s=5)))
    session_timeout = aiohttp.ClientTimeout(total=0.1)
    with pytest.raises(TimeoutError):
        async with session.post(CHARGE, json=charge_body, timeout=session_timeout) as response:
            await response.read()

    assert kinds(world) == ["charge"]


async def test_enormous_body_is_good_json_of_that_size(session: ClientSession, world: World, charge_body: Body) -> None:
    """Only a limit on the size protects from it."""
    world.faults.add_rules(Rule(fault="enormous_body", args=Arguments(bytes=1_000_000)))
    async with session.post(CHARGE, json=charge_body) as response:
        body = await response.read()

    assert len(body) > 1_000_000
    assert json.loads(body)["status"] == 1


async def test_bad_gateway_is_a_page(session: ClientSession, world: World, charge_body: Body) -> None:
    """What comes is HTML with its own content type."""
    world.faults.add_rules(Rule(fault="html_502_after"))
    async with session.post(CHARGE, json=charge_body) as response:
        assert (response.status, response.content_type) == (502, "text/html")


async def test_shortened_json_is_a_complete_body(session: ClientSession, world: World, charge_body: Body) -> None:
    """The transfer is whole, its content is not."""
    world.faults.add_rules(Rule(fault="truncated_json"))
    async with session.post(CHARGE, json=charge_body) as response:
        body = await response.read()

    with pytest.raises(json.JSONDecodeError):
        json.loads(body)


async def test_refusing_fault_closes_the_socket(
    running: Running, session: ClientSession, world: World, charge_body: Body
) -> None:
    """First a cut, then nobody listens, then all is well again."""
    world.faults.add_rules(Rule(fault="refuse", match=Match(endpoint="charge"), args=Arguments(wait_s=60)))
    await fail(session, charge_body)
    assert issubclass(await fail(session, charge_body), aiohttp.ClientConnectorError)
    assert kinds(world) == []

    await running.listener.open()

    async with session.post(CHARGE, json=charge_body) as response:
        assert response.status == 200


async def test_budget_can_drop_the_connection(session: ClientSession, world: World, charge_body: Body) -> None:
    """One of the ways in which a limit may show."""
    world.faults.add_rules(Rule(fault="budget_block", args=Arguments(answer="drop")))

    assert issubclass(await fail(session, charge_body), aiohttp.ClientConnectionError)
    assert kinds(world) == []


async def test_body_beyond_the_limit_is_refused(session: ClientSession) -> None:
    """Nobody fills the simulator's memory."""
    async with session.post(CHARGE, data=io.BytesIO(b" " * 1_100_000)) as response:
        assert response.status == 413


async def test_header_that_is_no_text_is_answered(running: Running) -> None:
    """A refusal echoes the token, whatever bytes it was."""
    reader, writer = await asyncio.open_connection(*running.listener.address)
    writer.write(b"GET /merchant/v1/subscription HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
    writer.write(b"Authorization: Bearer \xff\xfe\r\n\r\n")
    answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b'"Invalid access token: ??"' in answer


async def test_encoded_order_is_found(session: ClientSession, charge_body: Body) -> None:
    """An order id may hold any character, as long as it is encoded."""
    async with session.post(CHARGE, json={**charge_body, "order_id": "A&b=c/ü d"}) as response:
        assert response.status == 200
    async with session.get("/merchant/v1/payment/search", params={"order_id": "A&b=c/ü d"}) as response:
        assert len((await response.json())["data"]) == 1
