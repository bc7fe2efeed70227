"""Fair shares of the gateway's budget, over sockets: whoever asks without end takes nothing from others."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.phones import token_for
from tests.scenarios.program import Program, account
from tests.scenarios.stories import Scene, charge_body, fresh

CALLS, WINDOW_S = 20, 2.0
EVERY_S = 0.4
"""How often a till charges: five times in a window, which is half of its share."""
NO_CACHE = [("Cache-Control", "no-cache")]


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A service with a budget of twenty calls in two seconds, and half a second to wait for one."""
    with GatewayDouble() as double:
        settings = account("gateway", double.base_url, RATE_LIMIT=f"{CALLS}/{WINDOW_S:.0f}s", QUEUE_S="0.5")
        program = Program(tmp_path_factory.mktemp("shared"), settings)
        key = program.new_key("shop")
        program.start()
        yield Scene(program=program, gateway=double, client=program.client(key))
        program.stop()


def test_phones_that_insist_leave_a_till_its_permits(shared: Scene) -> None:
    """Five phones read their orders over a hundred connections, all the time, and no charge of a till is refused."""
    phones = [token_for(shared.client, order_id=fresh("order"), scopes=["payments:read"]) for _ in range(5)]
    assert statuses_beside(shared.client, phones) == {200}


def test_a_principal_that_insists_leaves_others_their_permits(shared: Scene) -> None:
    """A report reads over a hundred connections, at many times the budget; no charge of the shop is refused."""
    assert statuses_beside(shared.client, [shared.another()]) == {200}


def statuses_beside(till: Client, crowd: list[Client]) -> set[int]:
    """Charges orders at a steady pace, for a while alone and then beside a crowd; gives the statuses."""
    is_over = Event()

    def charge() -> int:
        is_over.wait(EVERY_S)
        return till.charge(charge_body()).status

    statuses = {charge() for _ in range(6)}
    with ThreadPoolExecutor(100) as pool:
        asking = [pool.submit(insist, crowd[number % len(crowd)], is_over) for number in range(100)]
        statuses |= {charge() for _ in range(15)}
        is_over.set()
        asked = sum(map(Future.result, asking))
    assert asked > CALLS
    return statuses


def insist(reader: Client, is_over: Event) -> int:
    """Reads new records until it is over; gives how often."""
    asked = 0
    while not is_over.is_set():
        reader.get(f"payments/{order_of(reader)}", NO_CACHE)
        asked += 1
    return asked


def order_of(reader: Client) -> str:
    """Gives the order of a token, or a new one for a key."""
    _, _, token = (reader.key or "").partition("prt_")
    if not token:
        return fresh("order")
    claims = token.split(".")[1]
    return str(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["order"])
