from payrelay_simulator import Caller, World


def test_caller_signs_in_once(world: World) -> None:
    """A test that only charges need not think of tokens."""
    caller = Caller(world)
    caller.get("subscription")
    caller.get("subscription")

    assert [record.endpoint for record in world.calls.records()] == ["token", "subscriptions", "subscriptions"]


def test_caller_keeps_its_token_until_told(world: World, caller: Caller) -> None:
    """Expiry is met by the test, not hidden from it."""
    caller.sign_in()
    world.clock.advance(600)
    assert caller.get("subscription").document["error"] == "invalid_token"

    caller.sign_in()

    assert caller.get("subscription").document["status"] == 1
