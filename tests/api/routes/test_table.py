import re

from payrelay.api.requests.route import ALWAYS
from payrelay.api.routes.table import ROUTES
from payrelay.errors import Code


def test_every_operation_of_the_interface_has_its_route() -> None:
    """The nine operations stand at the method and path that clients know; ours stand beside them."""
    assert {(route.method, route.path) for route in ROUTES} >= {
        ("GET", "/payments/{id}"),
        ("POST", "/payments/charge"),
        ("POST", "/payments/capture"),
        ("POST", "/payments/refund"),
        ("GET", "/subscriptions"),
        ("GET", "/subscriptions/{id}"),
        ("GET", "/subscriptions/{id}/payments"),
        ("POST", "/subscriptions/{id}/retry"),
        ("DELETE", "/subscriptions/{id}"),
        ("GET", "/operations"),
        ("GET", "/operations/{id}"),
        ("GET", "/operations/by-key/{idempotency_key}"),
    }


def test_routes_that_change_something_are_marked() -> None:
    """What changes something at the gateway takes an Idempotency-Key, and its outcome may be unknown; a GET's never."""
    for route in ROUTES:
        assert route.is_effect == (Code.OUTCOME_UNKNOWN in route.codes)
        assert not (route.method == "GET" and (route.is_effect or route.takes_key or route.body is not None))
        assert (route.body is not None) or not route.is_effect
        assert not set(route.codes) & set(ALWAYS)


def test_only_what_asks_for_money_is_declined_or_pending() -> None:
    """The gateway has no such answer to the others; a client need not be written for it."""
    codes = {route.name: set(route.codes) for route in ROUTES}
    assert {name for name in codes if Code.PENDING in codes[name]} == {"charge"}
    assert {name for name in codes if Code.DECLINED in codes[name]} == {"charge", "capture"}


def test_names_are_unique() -> None:
    """Clients are generated from the names."""
    assert len({route.name for route in ROUTES}) == len(ROUTES)


def test_an_action_has_one_name_from_the_description_to_its_flow() -> None:
    """Whoever reads an operation's id in the description finds the flow by that name."""
    other = {
        route.name
        for route in ROUTES
        if re.sub("([A-Z])", r"_\1", route.name).lower() not in route.handler.__code__.co_names
    }

    assert other == set()
