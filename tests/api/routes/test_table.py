import pytest

from payrelay.api.routes.table import ALWAYS, ROUTES, Matcher
from payrelay.errors import Code, Refusal

MATCHER = Matcher(ROUTES)


def found(path: str) -> tuple[dict[str, str], str] | None:
    """Gives the route names of a raw path by method, and the segment that varies."""
    result = MATCHER.find(path.encode().split(b"/"))
    if result is None:
        return None
    return {method: route.name for method, route in result.methods.items()}, result.segment


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


def test_a_literal_path_keeps_the_methods_of_the_template() -> None:
    """An order may be called "charge": reading it is a read, posting there is a charge."""
    assert found("payments/charge") == ({"GET": "retrievePayments", "POST": "chargePayment"}, "charge")


def test_an_encoded_slash_stays_in_its_segment() -> None:
    """Order ids hold slashes; decoded too early, they would read another order."""
    assert found("payments/2026%2F11%2Fa") == ({"GET": "retrievePayments"}, "2026/11/a")
    assert found("payments/2026/11") is None


def test_an_encoded_letter_is_that_letter() -> None:
    """Two spellings of one address must not differ in what they may do."""
    assert found("p%61yments/ch%61rge") == found("payments/charge")


@pytest.mark.parametrize(
    "path",
    ["", "payments", "payments/", "payments//", "subscriptions/", "subscriptions/1/", "subscriptions/1/retry/x",
     "operations/by-key/", "Payments/1", "refunds"],
)  # fmt: skip
def test_nothing_else_is_there(path: str) -> None:
    """An empty segment is no id, and a trailing slash is another address."""
    assert found(path) is None


@pytest.mark.parametrize(
    ("path", "name", "segment"),
    [
        ("payments/Order%2012345", "retrievePayments", "Order 12345"),
        ("payments/..", "retrievePayments", ".."),
        ("payments/%E0%B6%B1", "retrievePayments", "න"),
        ("operations/by-key", "showOperation", "by-key"),
        ("operations/by-key/a%2Fb", "showOperationByKey", "a/b"),
        ("subscriptions/420075032251/payments", "listSubscriptionPayments", "420075032251"),
    ],
)
def test_the_variable_segment_is_decoded_once(path: str, name: str, segment: str) -> None:
    """The id arrives as the client meant it, whatever it is made of."""
    assert found(path) == ({"GET": name}, segment)


@pytest.mark.parametrize("segment", ["%", "%4", "%zz", "a%00b", "%ff", "%C3%28", "%ED%A0%80"])
def test_what_can_not_be_decoded_is_malformed(segment: str) -> None:
    """It isn't some other id: it is none, and the caller is told so."""
    with pytest.raises(Refusal) as raised:
        found(f"payments/{segment}")
    assert raised.value.code is Code.MALFORMED_REQUEST


def test_what_changes_something_says_so() -> None:
    """What changes something at the gateway takes an Idempotency-Key, and its outcome may be unknown; a GET's never."""
    for route in ROUTES:
        assert route.is_effect == (Code.OUTCOME_UNKNOWN in route.codes)
        assert not (route.method == "GET" and (route.is_effect or route.takes_key or route.body is not None))
        assert (route.body is not None) or not route.is_effect
        assert not set(route.codes) & set(ALWAYS)


def test_only_what_asks_for_money_is_declined_or_pending() -> None:
    """The gateway has no such answer to the others; a client need not be written for it."""
    codes = {route.name: set(route.codes) for route in ROUTES}
    assert {name for name in codes if Code.PENDING in codes[name]} == {"chargePayment"}
    assert {name for name in codes if Code.DECLINED in codes[name]} == {"chargePayment", "capturePayment"}


def test_names_are_unique() -> None:
    """Clients are generated from the names."""
    assert len({route.name for route in ROUTES}) == len(ROUTES)
