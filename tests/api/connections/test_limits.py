import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.connections.connection import Connection, ConnectionOwner, owner_at
from payrelay.api.connections.limits import Closing, ClosingReason, ConnectionLimits, closings, limits_within

SHOP = ConnectionOwner("shop", is_principal=True)
LIMITS = ConnectionLimits(
    address_connections_max=3,
    principal_connections_max=4,
    strangers_max=5,
    unread_max_s=60,
    address_unread_max=100,
    principal_unread_max=200,
    strangers_unread_max=250,
)


def made(
    port: int,
    owner: ConnectionOwner | None = None,
    *,
    active_s: float = 0,
    under_way: int = 0,
    unread: int = 0,
    unread_since_s: float | None = None,
) -> Connection:
    """Makes a connection, of one address where no owner is given."""
    connection = Connection(("192.0.2.1", port), owner or owner_at("192.0.2.1"), active_s)
    connection.under_way = under_way
    connection.unread_bytes = unread
    connection.unread_since_s = unread_since_s
    return connection


def closed(connections: list[Connection], now_s: float = 0) -> list[tuple[int, ClosingReason]]:
    """Gives the ports of the connections that are closed, and why."""
    return [(each.connection.peer[1], each.reason) for each in closings(connections, LIMITS, now_s)]


def test_an_address_keeps_its_newest_connections() -> None:
    """A new connection may bring a valid credential: the one that is idle for longest goes in its place."""
    many = [made(port, active_s=port) for port in range(5)]

    assert closed(many) == [(0, ClosingReason.TOO_MANY_OF_ADDRESS), (1, ClosingReason.TOO_MANY_OF_ADDRESS)]


def test_a_request_under_way_goes_last() -> None:
    """A customer whose page is being made loses nothing to a connection that says nothing."""
    many = [made(1, active_s=1, under_way=1), *(made(port, active_s=port) for port in (2, 3, 4))]

    assert closed(many) == [(2, ClosingReason.TOO_MANY_OF_ADDRESS)]


def test_half_requests_end_each_other() -> None:
    """Requests whose bodies never come take no place for longer than the newer ones leave them."""
    many = [made(port, active_s=port, under_way=1) for port in range(4)]

    assert closed(many) == [(0, ClosingReason.TOO_MANY_OF_ADDRESS)]


def test_a_principal_is_not_its_address() -> None:
    """Whatever strangers do at an address, connections that showed a credential there stay."""
    shop = [made(port, SHOP) for port in range(4)]
    strangers = [made(port, active_s=1) for port in range(10, 14)]

    assert closed(shop + strangers) == [(10, ClosingReason.TOO_MANY_OF_ADDRESS)]


def test_a_principal_loses_idle_connections_only() -> None:
    """A charge that is under way is never cut off from its answer."""
    busy = [made(port, SHOP, under_way=1) for port in range(4)]
    idle = [made(10, SHOP, active_s=5), made(11, SHOP, active_s=3)]

    assert closed(busy + idle) == [
        (11, ClosingReason.TOO_MANY_OF_PRINCIPAL),
        (10, ClosingReason.TOO_MANY_OF_PRINCIPAL),
    ]


def test_all_strangers_together_leave_room() -> None:
    """Many addresses, too, leave places for those who have a credential."""
    many = [made(port, owner_at(f"192.0.2.{port}"), active_s=port) for port in range(7)]

    assert closed(many) == [
        (0, ClosingReason.TOO_MANY_WITHOUT_CREDENTIAL),
        (1, ClosingReason.TOO_MANY_WITHOUT_CREDENTIAL),
    ]


@pytest.mark.parametrize(("owner", "unread"), [(owner_at("192.0.2.1"), 60), (SHOP, 110)])
def test_who_leaves_too_much_unread_loses_the_largest(owner: ConnectionOwner, unread: int) -> None:
    """Answers that nobody reads lie in memory: there is a maximum of them for each owner."""
    assert closed([made(1, owner, unread=unread + 1), made(2, owner, unread=unread)]) == [
        (1, ClosingReason.TOO_MUCH_UNREAD)
    ]


def test_all_strangers_together_fill_no_memory() -> None:
    """Each of a thousand addresses may leave little unread: the largest answers go, and none of a principal."""
    many = [made(port, owner_at(f"192.0.2.{port}"), unread=unread) for port, unread in enumerate((60, 90, 80, 70))]

    assert closed([*many, made(10, SHOP, unread=200)]) == [(1, ClosingReason.TOO_MUCH_UNREAD)]


def test_what_is_not_read_in_time_is_dropped() -> None:
    """Whoever asked: an answer waits for its reader until its time is over."""
    late, early = made(1, SHOP, unread_since_s=0.0), made(2, SHOP, unread_since_s=1.0)

    assert closings([late, early], LIMITS, 60) == [Closing(late, ClosingReason.NOT_READ_IN_TIME)]


def test_an_idle_connection_of_a_proxy_is_nobodys() -> None:
    """A proxy keeps connections open for all of its callers."""
    proxy = [Connection(("10.0.0.1", port), None, 0, is_shared=True) for port in range(9)]

    assert closed(proxy) == []


@pytest.mark.parametrize(
    ("places", "address", "principal", "strangers"), [(4096, 256, 512, 2048), (768, 96, 96, 384), (64, 16, 16, 32)]
)
def test_few_places_are_divided(places: int, address: int, principal: int, strangers: int) -> None:
    """A process that may open few files still leaves places to the others."""
    limits = limits_within(places, address_max=256, principal_max=512)

    assert limits.address_connections_max == address
    assert limits.principal_connections_max == principal
    assert limits.strangers_max == strangers


def test_who_sets_more_for_a_principal_gets_it() -> None:
    """An app with thousands of phones has one principal; a quarter of the places is left to others in any case."""
    for places, wanted, gets in ((16_384, 12_000, 12_000), (16_384, 12_288, 12_288), (4_096, 12_000, 3_072)):
        limits = limits_within(places, address_max=256, principal_max=wanted)
        assert limits.principal_connections_max == gets


def test_many_places_are_not_for_strangers() -> None:
    """Each of their connections takes memory, and needs no credential."""
    assert limits_within(16_384, address_max=256, principal_max=512).strangers_max == 2_048


class TestQueue:
    """What the socket shows of a connection."""

    def test_progress_begins_a_new_time(self) -> None:
        """A slow reader that goes on reading is none that doesn't read."""
        connection = made(1)
        connection.note_queue(100, 0, now_s=1)
        connection.note_queue(80, 20, now_s=30)
        assert connection.unread_since_s == 1
        connection.note_queue(50, 100, now_s=50)
        assert connection.unread_since_s == 50
        connection.note_queue(0, 0, now_s=51)
        assert connection.unread_since_s is None

    def test_an_empty_socket_right_after_the_answer_proves_nothing(self) -> None:
        """The server's other thread may not have written it yet."""
        connection = made(1, under_way=1)
        connection.note_answer(500, now_s=10)
        connection.note_queue(0, 0, now_s=10.1)
        assert connection.unread_bytes == 500
        connection.note_queue(0, 0, now_s=10.5)
        assert connection.unread_bytes == 0

    @given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 300))))
    def test_what_was_read_is_not_counted(self, answers: list[tuple[int, int]]) -> None:
        """The law of a connection that goes on: the newest answer, and what the socket still has of all before it."""
        connection = made(1)
        for size, waiting in answers:
            connection.note_answer(size, now_s=1)
            connection.note_queue(waiting, 0, now_s=1)
            assert connection.unread_bytes == size + waiting
