import asyncio
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.fakes import MovableClock

from payrelay.api.connections.connection import Connection, Peer, owner_at
from payrelay.api.connections.limits import ClosingReason, ConnectionLimits
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.connections.shares import Share, shares_of
from payrelay.api.connections.sockets import SocketState
from payrelay.core.access.credential import Bound, Credential
from payrelay.errors import Code, Refusal

PROXY = "10.0.0.1"
HERE: Peer = ("192.0.2.1", 5000)
SHOP = (Share("shop", 2, "this principal"),)
ANOTHER = (Share("another", 2, "this principal"),)


@pytest.fixture
def connections(clock: MovableClock) -> OpenConnections:
    """Gives connections of which an address may have one, and a principal two."""
    limits = ConnectionLimits(
        address_connections_max=1, principal_connections_max=2, address_unread_max=1_000, strangers_unread_max=1_500
    )
    return OpenConnections(limits, clock, lambda host: host == PROXY)


def seen(*peers: Peer, is_new: bool = False, waiting: int = 0) -> list[SocketState]:
    """Gives sockets as the kernel shows them."""
    return [SocketState(peer=peer, is_new=is_new, waiting=waiting, taken=0) for peer in peers]


def test_who_shows_a_credential_stays(connections: OpenConnections, clock: MovableClock) -> None:
    """The limit of an address binds those connections alone that showed no credential."""
    shop = connections.begin(HERE, HERE[0])
    connections.admit(shop, SHOP)
    connections.end(shop, 100, SHOP)
    clock.at_s += 1

    found = connections.look(seen(HERE, ("192.0.2.1", 5001), ("192.0.2.1", 5002)))

    assert [each.reason for each in found] == [ClosingReason.TOO_MANY_OF_ADDRESS]
    assert found[0].connection.peer != HERE


def test_a_request_too_many_of_a_principal_waits(connections: OpenConnections) -> None:
    """It is refused before its body is read, and told when to try again; others are served."""
    for port in (1, 2):
        connections.admit(connections.begin(("192.0.2.1", port), "192.0.2.1"), SHOP)
    third = connections.begin(("192.0.2.1", 3), "192.0.2.1")
    with pytest.raises(Refusal, match="2 requests of this principal") as refused:
        connections.admit(third, SHOP)
    connections.end(third, 0, SHOP)
    assert (refused.value.code, refused.value.retry_after_s) == (Code.RATE_LIMITED, 1)
    connections.admit(connections.begin(("192.0.2.1", 4), "192.0.2.1"), ANOTHER)


def is_admitted(connections: OpenConnections, credential: Credential, order: int) -> bool:
    """Has the app of an order begin a request, and tells whether it goes on; whatever is refused has ended."""
    shares = shares_of(msgspec.structs.replace(credential, bound=Bound(order_id=f"A-{order}")), 64)
    connection = connections.begin(("192.0.2.1", order), "192.0.2.1")
    try:
        connections.admit(connection, shares)
    except Refusal:
        connections.end(connection, 0, shares)
        return False
    return True


def test_a_few_orders_of_one_person_keep_no_other_phone_out(
    connections: OpenConnections, credential: Credential
) -> None:
    """Two orders of a guest hold all that the phones of a small shop share; others still wait for their payments."""
    held = [is_admitted(connections, credential, order) for order in (1, 2) for _ in range(17)]
    others = [[is_admitted(connections, credential, order) for _ in range(3)] for order in range(3, 19)]

    assert held.count(True) == 32
    assert others == [[True, True, False]] * 16
    assert not is_admitted(connections, credential, 19)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=150))
def test_the_first_requests_of_a_phone_wait_only_for_those_of_many_others(acts: list[tuple[int, bool]]) -> None:
    """The law of what phones share at one moment: however requests begin and end, only many can fill all of it."""
    whole, part, own_max, first = 10, 6, 4, 2
    limits = ConnectionLimits(address_connections_max=1, principal_connections_max=2, address_unread_max=1_000)
    connections, under_way = OpenConnections(limits, MovableClock(), lambda _: True), Counter[int]()
    apps = Share("apps", part, "the apps", first_max=first, whole_max=whole)
    for person, begins in acts:
        shares = (apps, Share(f"apps for {person}", own_max, "this customer"))
        connection = connections.begin(("192.0.2.1", person), "192.0.2.1")
        if not begins:
            connections.end(connection, 0, shares if under_way[person] else ())
            under_way[person] -= under_way[person] > 0
            continue
        own, total = under_way[person], under_way.total()
        try:
            connections.admit(connection, shares)
        except Refusal:
            connections.end(connection, 0, shares)
            assert own >= own_max or total >= (whole if own < first else part)
            assert own >= first or sum(each > 0 for each in under_way.values()) >= (whole - part) / first
        else:
            assert total < (whole if own < first else part)
            under_way[person] += 1


def test_a_proxys_connection_is_its_callers_while_it_calls(connections: OpenConnections, clock: MovableClock) -> None:
    """Behind a trusted proxy the forwarded address counts, for as long as the request takes."""
    connection = connections.begin((PROXY, 1), "198.51.100.7")
    assert connection.owner == owner_at("198.51.100.7")
    connections.end(connection, 10, ())
    clock.at_s += 1
    connections.look(seen((PROXY, 1)))
    assert connection.owner is None


def test_half_a_request_behind_a_proxy_counts_for_its_caller(connections: OpenConnections, clock: MovableClock) -> None:
    """Two slow bodies of one forwarded address: the older one makes room, and another address's stays."""
    older = connections.begin((PROXY, 1), "198.51.100.7")
    clock.at_s += 1
    for port, client in ((2, "198.51.100.7"), (3, "198.51.100.8")):
        connections.begin((PROXY, port), client)

    assert [each.connection for each in connections.look(seen(*((PROXY, port) for port in (1, 2, 3))))] == [older]


async def test_strangers_get_no_more_between_two_looks_than_they_may_leave_unread() -> None:
    """A burst of seven thousand large answers took 3 GB before anybody looked; who shows a credential isn't held up."""
    limits = ConnectionLimits(address_unread_max=200_000, strangers_unread_max=300_000)
    connections = OpenConnections(limits, MovableClock(), lambda _: False)
    there = ("192.0.2.7", 5001)
    shop, here, other = (connections.begin(peer, peer[0]) for peer in (("192.0.2.9", 1), HERE, there))
    connections.admit(shop, SHOP)

    async def sent(connection: Connection, size: int) -> int:
        await connections.room(connection, size)
        return size

    async with asyncio.TaskGroup() as group:
        for _ in range(9):
            group.create_task(sent(shop, 100_000))
    asked = [asyncio.create_task(sent(each, 100_000)) for each in (here, here, here, other, other)]
    small = asyncio.create_task(sent(here, 1_000))
    for expected in ([True, True, False, True, False], [True] * 5):
        await asyncio.wait(asked, timeout=0)
        await asyncio.sleep(0)
        assert ([each.done() for each in asked], small.done()) == (expected, True)
        assert connections.is_crowded.is_set() is not all(expected)
        connections.look(seen(HERE, there))


async def test_one_answer_that_is_larger_than_all_of_it_is_sent() -> None:
    """Else whoever sets a small limit gets no description of the API at all."""
    limits = ConnectionLimits(address_unread_max=1_000, strangers_unread_max=1_000)
    connections = OpenConnections(limits, MovableClock(), lambda _: False)
    await connections.room(connections.begin(HERE, HERE[0]), 100_000)


def test_what_is_closed_is_closed_once(connections: OpenConnections) -> None:
    """A socket that the server has not closed yet is not counted again."""
    two = seen(HERE, ("192.0.2.1", 5001))
    assert len(connections.look(two)) == 1
    assert connections.look(two) == []


def test_another_connection_from_the_same_port_is_another(connections: OpenConnections, clock: MovableClock) -> None:
    """A port that a principal used before shows no credential by itself."""
    shop = connections.begin(HERE, HERE[0])
    connections.admit(shop, SHOP)
    connections.end(shop, 0, SHOP)
    clock.at_s += 1
    connections.look(seen(HERE))
    clock.at_s += 1
    connections.look(seen(HERE, is_new=True))
    again = connections.begin(HERE, HERE[0])
    assert again.owner == owner_at(HERE[0])


def test_much_unread_is_looked_at_now(connections: OpenConnections) -> None:
    """The next look doesn't wait for its time where an owner may have filled the memory."""
    connection = connections.begin(HERE, HERE[0])
    connections.end(connection, 1_001, ())
    assert connections.is_crowded.is_set()
    assert [each.reason for each in connections.look(seen(HERE, waiting=900))] == [ClosingReason.TOO_MUCH_UNREAD]
    assert not connections.is_crowded.is_set()


def test_what_many_strangers_leave_unread_is_looked_at_now(connections: OpenConnections) -> None:
    """A thousand addresses with one answer each fill the memory as one address with a thousand does."""
    peers = [(f"192.0.2.{number}", 1) for number in range(1, 4)]
    for peer in peers:
        assert not connections.is_crowded.is_set()
        connections.end(connections.begin(peer, peer[0]), 600, ())
    assert connections.is_crowded.is_set()
    assert [each.reason for each in connections.look(seen(*peers))] == [ClosingReason.TOO_MUCH_UNREAD]
    connections.end(connections.begin(peers[0], peers[0][0]), 600, ())
    assert not connections.is_crowded.is_set()
