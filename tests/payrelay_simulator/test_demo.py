from payrelay_simulator import Caller, DemoWorld, Simulator, demo_world


def test_demo_is_always_the_same() -> None:
    """Calls printed for copying work in every new demonstration."""
    assert demo_world(Simulator()) == demo_world(Simulator(seed=1))


def test_demo_subscriptions_are_in_their_states(caller: Caller, demo: DemoWorld) -> None:
    """One of each kind: to be cancelled, to be retried, and done."""
    statuses = [
        caller.get(f"subscription/{number}").document["data"]["status"]
        for number in (demo.active_subscription_id, demo.failed_subscription_id, demo.completed_subscription_id)
    ]

    assert statuses == ["ACTIVE", "FAILED", "COMPLETED"]


def test_demo_hold_can_be_captured_whole(caller: Caller, demo: DemoWorld) -> None:
    """The amount that is announced is the amount that is held."""
    body = {"authorization_token": demo.authorization_token, "amount": demo.held_amount}

    assert caller.post("payment/capture", body).document["data"]["captured_amount"] == 100.0
