"""How new a read is, and what is told when the gateway is down."""

from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Reply
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh

DOWN = payhere.says("<html>502</html>", 502, kind="text/html")
NO_CACHE = (("Cache-Control", "no-cache"),)


def paid(gateway: GatewayDouble) -> str:
    """Gives an order that the gateway shows a payment of."""
    order_id = fresh("order")
    gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(payhere.payment(order_id))))
    return order_id


def heads(reply: Reply) -> tuple[int, bool, str | None]:
    """Gives the status, whether it has an age, and whether it is stale."""
    return reply.status, reply.header("age") is not None, reply.header("payrelay-stale")


def test_the_same_question_costs_the_gateway_one_call(scene: Scene) -> None:
    """Until somebody insists; the bodies are the same, byte for byte."""
    order_id = paid(scene.gateway)
    first, second = (scene.client.get(f"payments/{order_id}") for _ in range(2))
    assert (heads(first), heads(second)) == ((200, False, None), (200, True, None))
    assert first.body == second.body
    assert heads(scene.client.get(f"payments/{order_id}", NO_CACHE)) == (200, False, None)
    assert scene.gateway.count(payhere.SEARCH, order_id) == 2


def test_after_a_charge_the_order_is_read_anew(scene: Scene) -> None:
    """Who was told of a charge must see it."""
    order_id = paid(scene.gateway)
    scene.client.get(f"payments/{order_id}")
    assert scene.client.charge(charge_body(order_id)).status == 200
    assert heads(scene.client.get(f"payments/{order_id}")) == (200, False, None)
    assert scene.gateway.count(payhere.SEARCH, order_id) == 2


def test_what_is_known_outlives_the_program_and_the_gateway(own: Scene) -> None:
    """A shop shows what it knew, marked as such; who insists hears that the gateway is down."""
    order_id = paid(own.gateway)
    known = own.client.get(f"payments/{order_id}")
    own.program.stop()
    own.gateway.always(payhere.SEARCH, order_id, DOWN)
    own.program.start()
    client = own.program.client(own.client.key)
    told = client.get(f"payments/{order_id}")
    assert heads(told) == (200, True, "true")
    assert told.body == known.body
    assert_refused(client.get(f"payments/{order_id}", NO_CACHE), 502, "gateway_bad_reply")
