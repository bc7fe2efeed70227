import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator import Caller, Clock, DemoWorld, Simulator, Switches, World, demo_world

Body = dict[str, object]


def capture_body(demo: DemoWorld, amount: object = 80.0) -> Body:
    """Return a capture of the demonstration's hold."""
    return {"authorization_token": demo.authorization_token, "amount": amount, "deduction_details": "out of stock"}


def test_capture_answers_as_documented(caller: Caller, demo: DemoWorld) -> None:
    """Every documented member is there, in the documented order; amount is what was authorized."""
    document = caller.post("payment/capture", capture_body(demo)).document
    data = document["data"]

    assert (document["status"], document["msg"]) == (1, "Successfully captured payment")
    assert list(data)[:6] == ["status_code", "status_message", "payment_id", "currency", "amount", "captured_amount"]
    assert list(data)[6:] == ["items", "order_id", "md5sig", "custom_1", "custom_2"]
    assert (data["status_code"], data["amount"], data["captured_amount"]) == (2, 100.0, 80.0)


def test_captured_amount_can_be_searched(caller: Caller, demo: DemoWorld) -> None:
    """What was taken shows as a payment of the order; before that there is none."""
    assert caller.get("payment/search", order_id=demo.held_order_id).document["status"] == -1
    caller.post("payment/capture", capture_body(demo))

    rows = caller.get("payment/search", order_id=demo.held_order_id).document["data"]
    assert [(row["amount"], row["status"]) for row in rows] == [(80.0, "RECEIVED")]


@given(st.lists(st.integers(min_value=1, max_value=12_000), min_size=1, max_size=5))
def test_hold_is_captured_at_most_once_and_never_above(amounts_cents: list[int]) -> None:
    """Whatever is tried, in whatever order, money comes from a hold once and within its limit."""
    simulator = Simulator(clock=Clock.standing())
    demo, caller = demo_world(simulator), Caller(simulator.world)
    for cents in amounts_cents:
        caller.post("payment/capture", capture_body(demo, cents / 100))

    captured = [entry.amount_cents for entry in simulator.ledger() if entry.kind == "capture"]
    assert captured == [cents for cents in amounts_cents if cents <= 10_000][:1]


def test_second_capture_says_already_captured(caller: Caller, demo: DemoWorld) -> None:
    """Repeating a capture is how a client learns that the first one was done."""
    caller.post("payment/capture", capture_body(demo))
    document = caller.post("payment/capture", capture_body(demo)).document

    assert document == {"status": -2, "msg": "Authorization is already CAPTURED", "data": None}


def test_capture_after_refund_says_already_refunded(caller: Caller, demo: DemoWorld) -> None:
    """A hold that was given back cannot be taken."""
    caller.post("payment/refund", {"authorization_token": demo.authorization_token, "description": "x"})

    assert caller.post("payment/capture", capture_body(demo)).document["msg"] == "Authorization is already REFUNDED"


@pytest.mark.parametrize(
    ("change", "msg"),
    [
        ({"authorization_token": "nonsense"}, "Invalid token"),
        ({"authorization_token": None}, "Invalid token"),
        ({"amount": 100.01}, "Capture amount must be less than or equal to the authorized amount"),
        ({"amount": None}, "Simulator: amount is missing"),
        ({"amount": 0}, "Simulator: amount must be a positive amount of whole cents"),
    ],
)
def test_wrong_capture_is_refused(caller: Caller, demo: DemoWorld, change: Body, msg: str) -> None:
    """A refusal leaves the hold as it was."""
    document = caller.post("payment/capture", {**capture_body(demo), **change}).document

    assert document == {"status": -1, "msg": msg, "data": None}
    assert caller.post("payment/capture", capture_body(demo)).document["status"] == 1


@pytest.mark.parametrize(("authorize_status_code", "expected"), [(3, 3), (2, 2)])
def test_authorize_sets_aside(
    world: World, caller: Caller, charge_body: Body, authorize_status_code: int, expected: int
) -> None:
    """An AUTHORIZE charge moves no money and gives a token for the capture."""
    world.switches = Switches(authorize_status_code=3 if authorize_status_code == 3 else 2)
    outcome = caller.post("payment/charge", {**charge_body, "type": "AUTHORIZE"})

    assert outcome.document["data"]["status_code"] == expected
    assert [entry.kind for entry in outcome.entries] == ["authorization"]
    assert outcome.entries[0].authorization_token == outcome.document["data"]["authorization_token"]


def test_authorize_is_refused_by_switch_as_in_the_sandbox(world: World, caller: Caller, charge_body: Body) -> None:
    """The real sandbox cannot authorize; a client must be able to see that before it goes live."""
    world.switches = Switches(authorize="refused")
    document = caller.post("payment/charge", {**charge_body, "type": "AUTHORIZE"}).document

    assert document["msg"] == "Simulator: AUTHORIZE is not supported in the sandbox"


@pytest.mark.parametrize(("amount", "released_cents"), [(None, 10_000), (80.0, 2_000), (100.0, None)])
def test_what_was_not_captured_is_released_after_seven_days(
    world: World, caller: Caller, demo: DemoWorld, amount: float | None, released_cents: int | None
) -> None:
    """Authorized equals captured plus released: the ledger accounts for every cent of a hold."""
    if amount is not None:
        caller.post("payment/capture", capture_body(demo, amount))
    world.clock.advance(7 * 86_400)
    world.elapse()

    of_hold = [entry for entry in world.ledger.entries() if entry.order_id == demo.held_order_id]
    released = [entry.amount_cents for entry in of_hold if entry.kind == "release"]
    assert released == ([] if released_cents is None else [released_cents])


@pytest.mark.parametrize(("status", "msg"), [(-1, "Invalid token"), (-2, "Simulator: Authorization is EXPIRED")])
def test_expired_hold_cannot_be_captured(caller: Caller, demo: DemoWorld, world: World, status: int, msg: str) -> None:
    """After seven days there is nothing left to take."""
    world.switches = Switches(expired_hold="expired" if status == -2 else "invalid_token")
    world.clock.advance(7 * 86_400)
    caller.sign_in()

    assert caller.post("payment/capture", capture_body(demo)).document == {"status": status, "msg": msg, "data": None}
