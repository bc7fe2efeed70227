from decimal import Decimal

from payrelay_simulator.reply import Reply, failure, marked_failure, oauth_failure, protocol_failure, success


def test_envelope_has_exactly_three_members() -> None:
    """The order of the members is the gateway's."""
    assert success("done", []).encoded() == b'{"status":1,"msg":"done","data":[]}'
    assert failure("no", status=-2).encoded() == b'{"status":-2,"msg":"no","data":null}'


def test_decimals_are_numbers_on_the_wire() -> None:
    """An amount as given keeps its digits and is no text."""
    assert Reply(http_status=200, document=Decimal("50.00")).encoded() == b"50.00"


def test_own_wording_is_marked() -> None:
    """Nobody takes for the gateway's what the simulator made up."""
    assert marked_failure("x").document == {"status": -1, "msg": "Simulator: x", "data": None}
    assert protocol_failure(405, "x").document == marked_failure("x").document


def test_oauth_refusal_challenges_with_a_401_only() -> None:
    """The header belongs to that status."""
    assert "WWW-Authenticate" in oauth_failure(401, "invalid_token", "x").headers
    assert not oauth_failure(400, "invalid_request", "x").headers
