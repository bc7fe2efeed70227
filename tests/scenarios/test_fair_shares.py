"""Fair shares of the gateway's budget, over sockets: whoever asks for all of it takes nothing from others."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.phones import token_for
from tests.scenarios.program import Program, account
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh

CALLS = 20
NO_CACHE = [("Cache-Control", "no-cache")]


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A service with a budget of twenty calls, none of which is free again while a test lasts."""
    with GatewayDouble() as double:
        settings = account("gateway", double.base_url, RATE_LIMIT=f"{CALLS}/600s", QUEUE_S="0.5")
        program = Program(tmp_path_factory.mktemp("shared"), settings)
        key = program.new_key("shop")
        program.start()
        yield Scene(program=program, gateway=double, client=program.client(key))
        program.stop()


def test_phones_that_insist_leave_a_till_its_permits(shared: Scene) -> None:
    """Five phones read over fifty connections, at ten times the budget; the charges of their shop are not refused."""
    charge(shared.client, 3)
    phones = [token_for(shared.client, order_id=fresh("order"), scopes=["payments:read"]) for _ in range(5)]
    insist(phones)
    charge(shared.client, 3)


def test_one_phone_gets_a_fifth_of_the_budget(shared: Scene) -> None:
    """Though nobody else asks for anything: a token that can only read must not use it up."""
    phone = token_for(shared.client, order_id=fresh("order"), scopes=["payments:read"])
    insist([phone])
    assert shared.gateway.count(payhere.SEARCH, "") == CALLS // 5
    charge(shared.client, 3)


def test_a_principal_that_insists_leaves_others_their_permits(shared: Scene) -> None:
    """A report reads at ten times the budget. The shop charges as much as before, and a newcomer charges at once."""
    charge(shared.client, 3)
    report, newcomer = shared.another(), shared.another()
    insist([report])
    charge(shared.client, 3)
    charge(newcomer, 1)
    assert_refused(report.get(f"payments/{fresh('order')}", NO_CACHE), 503, "gateway_busy")


def charge(client: Client, count: int) -> None:
    """Charges so many orders, none of which is refused."""
    assert [client.charge(charge_body()).status for _ in range(count)] == [200] * count


def insist(readers: list[Client]) -> None:
    """Reads two hundred times over fifty connections, always anew."""
    with ThreadPoolExecutor(50) as pool:
        for reader in readers * (10 * CALLS // len(readers)):
            pool.submit(reader.get, f"payments/{order_of(reader)}", NO_CACHE)


def order_of(reader: Client) -> str:
    """Gives the order of a token, or a new one for a key."""
    _, _, token = (reader.key or "").partition("prt_")
    if not token:
        return fresh("order")
    claims = token.split(".")[1]
    return str(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["order"])
