import pytest

from payrelay.api.requests.router import Router
from payrelay.api.routes.table import ROUTES
from payrelay.errors import Code, Refusal

MATCHER = Router(ROUTES)


def found(path: str) -> tuple[dict[str, str], str] | None:
    """Gives the route names of a raw path by method, and the segment that varies."""
    result = MATCHER.find(path.encode().split(b"/"))
    if result is None:
        return None
    return {method: route.name for method, route in result.methods.items()}, result.segment


def test_a_literal_path_keeps_the_methods_of_the_template() -> None:
    """An order may be called "charge": reading it is a read, posting there is a charge."""
    assert found("payments/charge") == ({"GET": "retrievePayments", "POST": "charge"}, "charge")


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
