from payrelay_simulator import Call, Caller, World


def test_every_arrival_is_logged_the_rejected_ones_too(world: World, caller: Caller) -> None:
    """A test can count what a client really sent, also what was turned away."""
    caller.get("subscription")
    caller.get("payment/void")
    world.handle(Call(method="GET", path="/merchant/v1/payment/charge"))

    logged = [(record.endpoint, record.http_status) for record in world.calls.records()]
    assert logged == [("token", 200), ("subscriptions", 200), (None, 404), (None, 405)]


def test_log_holds_no_secret(world: World, caller: Caller, charge_body: dict[str, object]) -> None:
    """A log may be shown to anybody."""
    caller.post("payment/charge", charge_body)
    logged = repr(world.calls.records())

    assert str(charge_body["customer_token"]) not in logged
    assert caller.authorization.removeprefix("Bearer ") not in logged
    assert world.merchants[0].app_secret not in logged


def test_record_tells_order_and_effect(world: World, caller: Caller, charge_body: dict[str, object]) -> None:
    """Arrivals can be matched with what they were about and what they did."""
    caller.post("payment/charge", charge_body)
    record = world.calls.records()[-1]

    assert (record.endpoint, record.order_id, record.ledger_entries) == ("charge", "Order12345", 1)


def test_records_are_paged_by_number(world: World, caller: Caller) -> None:
    """A reader can ask for what is new since it last looked."""
    for _ in range(3):
        caller.get("subscription")

    assert [record.number for record in world.calls.records(after=1, count=2)] == [2, 3]
