"""`payrelay resolve`: an operator asks now what became of what is open, with the service running or not."""

from tests.scenarios import gateway_double as payhere
from tests.scenarios.stories import Scene, charge_body, fresh, state_of
from tests.scenarios.waiting import until


def lose_the_reply(own: Scene) -> tuple[str, str]:
    """Charges an order whose reply is lost, while its payment does not show yet; gives the order and the key."""
    order_id, key = fresh("order"), fresh("key")
    own.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    own.gateway.always(payhere.SEARCH, order_id, payhere.refuses("No payments found"))
    assert own.client.charge(charge_body(order_id), key=key).status == 202
    until(lambda: own.gateway.count(payhere.SEARCH, order_id) > 0, "the service has looked once")
    return order_id, key


def test_it_resolves_what_the_service_would_look_for_later(own: Scene) -> None:
    """The payment shows now, and the person at the counter doesn't want to wait for the schedule."""
    order_id, key = lose_the_reply(own)
    own.program.stop()
    own.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(payhere.payment_now(order_id, "345.67"))))
    ran = own.program.run("resolve")
    assert ran.returncode == 0, ran.stderr
    assert f"charge of order/{order_id}: succeeded" in ran.stdout
    own.program.start()
    client = own.program.client(own.client.key)
    assert state_of(client, key) == "succeeded"
    assert own.gateway.count(payhere.CHARGE, order_id) == 1


def test_it_tells_what_stays_open_and_when_the_next_inquiry_is(own: Scene) -> None:
    """Nothing shows: that is told, and not taken for a failure."""
    order_id, _ = lose_the_reply(own)
    ran = own.program.run("resolve")
    assert ran.returncode == 0, ran.stderr
    assert f"charge of order/{order_id}: unknown, next inquiry at " in ran.stdout


def test_it_says_that_nothing_is_open(own: Scene) -> None:
    """No news is said, not left to be guessed from an empty screen."""
    said = "No operation is unknown or pending: there is nothing to inquire about.\n"
    assert own.program.run("resolve").stdout == said


def test_an_operation_that_is_not_there_is_named(own: Scene) -> None:
    """A mistyped id must not look like a success."""
    ran = own.program.run("resolve", "op_nope")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "payrelay: there is no operation op_nope\n"
