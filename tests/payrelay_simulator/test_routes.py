import pytest

from payrelay_simulator.reply import Reply
from payrelay_simulator.routes import ENDPOINT_NAMES, FIXED, PREFIX, Route, find


def test_every_endpoint_has_a_path() -> None:
    """What can be matched by a fault can be called; a payer pays on a page and not by a call."""
    named = {endpoint for _, endpoint in FIXED.values()}

    assert named | {"subscription", "subscription_payments", "pay", "installment"} == ENDPOINT_NAMES


def test_subscription_paths_name_their_subscription() -> None:
    """The id is read from the path, encoded or not."""
    assert find("GET", f"{PREFIX}subscription/42%30") == Route(endpoint="subscription", subscription_id="420")
    assert find("GET", f"{PREFIX}subscription/7/payments") == Route(
        endpoint="subscription_payments", subscription_id="7"
    )


@pytest.mark.parametrize("path", ["subscriptions", "payment/void", "subscription/", "subscription/1/2", "", "x"])
def test_unknown_path_is_not_found(path: str) -> None:
    """A slip in a path is told as such, never taken for a neighbour."""
    reply = find("GET", PREFIX + path)

    assert isinstance(reply, Reply)
    assert reply.http_status == 404


def test_wrong_method_is_told_the_right_one() -> None:
    """A GET on an operation that moves money does nothing."""
    reply = find("GET", f"{PREFIX}payment/charge")

    assert isinstance(reply, Reply)
    assert (reply.http_status, reply.headers["Allow"]) == (405, "POST")


def test_path_outside_the_merchant_api_is_not_found() -> None:
    """A simulation without sockets may hand over anything."""
    reply = find("GET", "/pay/checkout")

    assert isinstance(reply, Reply)
    assert reply.http_status == 404
