from payrelay_simulator import DEFAULT_MERCHANT, Clock, DemoWorld, Simulator


def test_default_credentials_have_the_documented_form() -> None:
    """Clients that check the form of their settings accept them."""
    assert (len(DEFAULT_MERCHANT.app_id), len(DEFAULT_MERCHANT.app_secret)) == (25, 44)
    assert (DEFAULT_MERCHANT.app_id + DEFAULT_MERCHANT.app_secret).isalnum()
    assert DEFAULT_MERCHANT.merchant_id.startswith("12")
    assert len(DEFAULT_MERCHANT.merchant_id) == 7


def test_ledger_is_up_to_date_with_the_clock(simulator: Simulator, demo: DemoWorld) -> None:
    """Whoever reads the ledger sees what time has brought about, without a call."""
    simulator.world.clock.advance(60)

    assert simulator.ledger()[-1].subscription_id == demo.active_subscription_id


def test_reset_begins_anew_and_keeps_the_time() -> None:
    """The clock never goes back, so nothing that was dated lies in the future."""
    simulator = Simulator(clock=Clock.standing())
    simulator.world.clock.advance(60)
    before = simulator.world
    simulator.stage.reset()

    assert simulator.world is not before
    assert simulator.world.clock.now() == before.clock.now()
