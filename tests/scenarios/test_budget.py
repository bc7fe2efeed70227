"""The gateway's budget: whatever the callers want at once, the gateway never gets more than it bears."""

import base64
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.draws import drawn_uuid
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client
from tests.scenarios.program import Program, account
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

CALLS, WINDOW_S = 5, 1.0
SEALING_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A service with a small budget at a gateway of its own: a patient account, and one that doesn't queue."""
    with GatewayDouble() as double:
        limit = f"{CALLS}/{WINDOW_S:.0f}s"
        settings = account("gateway", double.base_url, RATE_LIMIT=limit, QUEUE_S="30")
        settings |= account("hurried", double.base_url, RATE_LIMIT="3/60s", QUEUE_S="0.2")
        program = Program(tmp_path_factory.mktemp("limited"), settings)
        key = program.new_key("shop")
        program.start()
        yield Scene(program=program, gateway=double, client=program.client(key))
        program.stop()


def test_no_window_holds_more_calls_than_the_budget(limited: Scene) -> None:
    """Fifteen charges at once, the token's call included: never more than five calls in any second, and all succeed."""
    with ThreadPoolExecutor(15) as pool:
        replies = list(pool.map(limited.client.charge, [charge_body() for _ in range(15)]))
    assert {reply.status for reply in replies} == {200}, [str(reply) for reply in replies if reply.status != 200]
    times = sorted(asked.at_s for asked in limited.gateway.asked)
    assert len(times) == 16
    gaps = [later - earlier for earlier, later in zip(times, times[CALLS:], strict=False)]
    assert min(gaps) >= WINDOW_S, gaps


def test_no_room_in_time_is_busy_and_nothing_is_sent(limited: Scene) -> None:
    """503 gateway_busy: the intent wasn't sent, so nothing is guarded and the same key may come again."""
    hurried = limited.client.at("hurried")
    bodies = [charge_body() for _ in range(4)]
    replies = [hurried.charge(body, key=fresh("key")) for body in bodies]
    refused = [(reply, body) for reply, body in zip(replies, bodies, strict=True) if reply.status != 200]
    assert len(refused) == 2, [str(reply) for reply in replies]
    for reply, body in refused:
        assert_refused(reply, 503, "gateway_busy")
        assert reply.error["retry"] in {"after", "same_key"}
        assert limited.gateway.count(payhere.CHARGE, str(body["order_id"])) == 0


@pytest.fixture
def two_services(tmp_path: Path, postgresql_server: "PostgresqlServer") -> Iterator[tuple[Scene, Scene]]:
    """Two services with one small budget at one gateway, on one database."""
    name = f"budget_{drawn_uuid().hex}"
    postgresql_server.run("createdb", "-h", str(postgresql_server.folder), "-U", "payrelay", name)
    with GatewayDouble() as double:
        settings = account("gateway", double.base_url, RATE_LIMIT=f"{CALLS}/{WINDOW_S:.0f}s", QUEUE_S="30")
        settings |= {"PAYRELAY_DATABASE_URL": postgresql_server.url(name), "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY}
        folders = [tmp_path / "one", tmp_path / "other"]
        for folder in folders:
            folder.mkdir()
        one, other = (Program(folder, settings) for folder in folders)
        upgraded = one.run("db", "upgrade")
        assert upgraded.returncode == 0, upgraded.stderr
        key = one.new_key("shop")
        programs = [one.start(), other.start()]
        scenes = [Scene(program=program, gateway=double, client=program.client(key)) for program in programs]
        yield scenes[0], scenes[1]
        for program in programs:
            program.kill()


@pytest.mark.postgresql
@pytest.mark.integration
def test_two_services_and_one_that_was_killed_keep_to_one_budget(two_services: tuple[Scene, Scene]) -> None:
    """One token for both, every charge made, and by the gateway's own clock never one call too many in a second."""
    one, other = two_services
    charge_at_once([one.client, other.client] * 8)
    other.program.kill()
    charge_at_once([one.client] * 4)
    other.program.start()
    charge_at_once([one.client, other.program.client(other.client.key)] * 4)
    times = sorted(asked.at_s for asked in one.gateway.asked)
    assert Counter(asked.target.partition("/v1/")[2] for asked in one.gateway.asked) == {
        payhere.TOKEN: 1,
        payhere.CHARGE: 16 + 4 + 8,
    }
    gaps = [later - earlier for earlier, later in zip(times, times[CALLS:], strict=False)]
    assert min(gaps) >= WINDOW_S, gaps


def charge_at_once(clients: list[Client]) -> None:
    """Has each client charge an order of its own, all at the same moment."""
    with ThreadPoolExecutor(len(clients)) as pool:
        replies = list(pool.map(lambda client: client.charge(charge_body()), clients))
    assert {reply.status for reply in replies} == {200}, [str(reply) for reply in replies if reply.status != 200]
