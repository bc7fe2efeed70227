"""A gateway that fails at everything is not called more than it is asked for: it has trouble enough."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.scenarios.gateway_double import CHARGE, SEARCH, GatewayDouble, says
from tests.scenarios.http_client import Reply
from tests.scenarios.program import Program, account
from tests.scenarios.stories import Scene, charge_body, fresh

pytestmark = pytest.mark.integration

REQUESTS = 120
OF_EACH_MAX = 1.1
"""Calls at the gateway for each request that a client made."""


@pytest.fixture
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A service without a budget, so that nothing else holds calls back, and a gateway that answers with errors."""
    with GatewayDouble() as double:
        broken = says("<html>Bad Gateway</html>", 502, kind="text/html")
        for path in (CHARGE, SEARCH):
            double.always(path, "", broken)
        program = Program(tmp_path_factory.mktemp("failing"), account("gateway", double.base_url))
        key = program.new_key("shop")
        program.start()
        yield Scene(program=program, gateway=double, client=program.client(key))
        program.stop()


def read(scene: Scene) -> Reply:
    """Asks for the payments of an order that nobody asked for before."""
    return scene.client.get(f"payments/{fresh('order')}")


def charge(scene: Scene) -> Reply:
    """Charges an order of its own."""
    return scene.client.charge(charge_body(), key=fresh("key"))


@pytest.mark.parametrize("ask", [read, charge])
def test_a_failing_gateway_is_left_alone(
    failing: Scene, ask: Callable[[Scene], Reply], record_property: Callable[[str, object], None]
) -> None:
    """After some 20 failures the rest is refused before anything is stored, and settling doesn't call instead."""
    replies = [ask(failing) for _ in range(REQUESTS)]
    calls = sum(asked.path in {CHARGE, SEARCH} for asked in failing.gateway.asked)
    record_property("calls", calls)
    told = Counter(reply.error["code"] for reply in replies)
    assert told.keys() <= {"unavailable", "outcome_unknown", "gateway_bad_reply"}, told
    assert told["unavailable"] > REQUESTS / 2, told
    assert calls <= REQUESTS * OF_EACH_MAX, (calls, told)
