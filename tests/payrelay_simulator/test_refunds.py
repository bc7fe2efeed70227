from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator import (
    Caller,
    Clock,
    ControlError,
    DemoWorld,
    PaymentSeed,
    Seed,
    Simulator,
    Switches,
    World,
    demo_world,
    plant,
)
from payrelay_simulator.chargebacks import charge_back, fail_refund
from payrelay_simulator.money import cents_of

Body = dict[str, object]

REFUSED = "Error processing refund"


def refund_body(demo: DemoWorld, **change: object) -> Body:
    """Return a refund of the demonstration's payment of a thousand rupees."""
    return {"payment_id": str(demo.paid_payment_id), "description": "Item is out of stock", **change}


def record_status(caller: Caller, demo: DemoWorld) -> object:
    """Return the payment's status as a search shows it."""
    return caller.get("payment/search", order_id=demo.paid_order_id).document["data"][0]["status"]


def test_whole_refund_answers_with_its_number(caller: Caller, demo: DemoWorld) -> None:
    """The answer's data is the refund number itself, not an object."""
    document = caller.post("payment/refund", refund_body(demo)).document

    assert document == {"status": 1, "msg": "Successfully processed the refund", "data": 560034000001}
    assert record_status(caller, demo) == "REFUNDED"


def test_hold_is_given_back_by_its_token(caller: Caller, demo: DemoWorld) -> None:
    """Refunding an authorization has no number and releases the whole."""
    outcome = caller.post("payment/refund", {"authorization_token": demo.authorization_token, "description": "x"})

    assert outcome.document == {"status": 1, "msg": "Successfully processed the authorization refund", "data": None}
    assert [(entry.kind, entry.amount_cents) for entry in outcome.entries] == [("release", 10_000)]


@given(st.lists(st.integers(min_value=1, max_value=60_000), min_size=1, max_size=6))
def test_never_more_is_refunded_than_was_paid(amounts_cents: list[int]) -> None:
    """Parts add up at most to the whole, and ledger and record agree on how much went back."""
    simulator = Simulator(clock=Clock.standing())
    demo, caller = demo_world(simulator), Caller(simulator.world)
    for cents in amounts_cents:
        caller.post("payment/refund", refund_body(demo, amount=f"{cents // 100}.{cents % 100:02d}"))

    refunded = sum(entry.amount_cents for entry in simulator.ledger() if entry.kind == "refund")
    assert refunded == simulator.world.state.payments[demo.paid_payment_id].refunded_cents
    assert refunded <= 100_000


def test_partial_refund_leaves_the_record_by_default(caller: Caller, demo: DemoWorld) -> None:
    """What a search shows after a part went back is undocumented; the default shows nothing of it."""
    assert caller.post("payment/refund", refund_body(demo, amount="100.50")).document["status"] == 1
    assert record_status(caller, demo) == "RECEIVED"


def test_partial_refund_shows_by_switch(world: World, caller: Caller, demo: DemoWorld) -> None:
    """The other thing that a search might show."""
    world.switches = Switches(partial_refund_record="REFUND REQUESTED")
    caller.post("payment/refund", refund_body(demo, amount="100.50"))

    assert record_status(caller, demo) == "REFUND REQUESTED"


@pytest.mark.parametrize(
    ("change", "msg"),
    [
        ({"payment_id": "1"}, REFUSED),
        ({"payment_id": "x"}, "Simulator: payment_id must be a number"),
        ({"payment_id": ["1"]}, "Simulator: payment_id must be a number"),
        ({"payment_id": None}, "Simulator: exactly one of payment_id and authorization_token must be given"),
        ({"authorization_token": "x"}, "Simulator: exactly one of payment_id and authorization_token must be given"),
        ({"payment_id": None, "authorization_token": "x"}, REFUSED),
        ({"description": None}, "Simulator: description is missing"),
        ({"amount": "1000.01"}, REFUSED),
        ({"amount": "0.00"}, "Simulator: amount must be a positive amount of whole cents"),
    ],
)
def test_wrong_refund_is_refused(caller: Caller, demo: DemoWorld, change: Body, msg: str) -> None:
    """A refusal gives nothing back."""
    outcome = caller.post("payment/refund", refund_body(demo, **change))

    assert outcome.document == {"status": -1, "msg": msg, "data": None}
    assert outcome.entries == ()


@pytest.mark.parametrize("status", [-1, 0])
def test_second_refund_is_refused_with_either_number(
    world: World, caller: Caller, demo: DemoWorld, status: int
) -> None:
    """The number for a refund that cannot be begun is undocumented; nothing goes back twice with either."""
    world.switches = Switches(refused_refund_status=0 if status == 0 else -1)
    caller.post("payment/refund", refund_body(demo))
    outcome = caller.post("payment/refund", refund_body(demo))

    assert outcome.document == {"status": status, "msg": REFUSED, "data": None}
    assert outcome.entries == ()


@pytest.mark.parametrize("amounts", [(None, None), ("400.00", None), ("400.00", "700.00"), ("1000.01",)])
@pytest.mark.parametrize("over_refund", ["refused", "accepted"])
def test_refund_of_more_than_is_left(
    world: World, caller: Caller, demo: DemoWorld, amounts: tuple[str | None, ...], over_refund: str
) -> None:
    """The gateway documents no answer. Where it takes the refund the money is gone twice, and the ledger shows it."""
    world.switches = msgspec.structs.replace(world.switches, over_refund=over_refund)
    bodies = [refund_body(demo) if amount is None else refund_body(demo, amount=amount) for amount in amounts]
    *earlier, last = [caller.post("payment/refund", body) for body in bodies]

    assert [each.document["status"] for each in earlier] == [1] * len(earlier)
    assert last.document["status"] == (1 if over_refund == "accepted" else -1)
    refunds = [entry for entry in world.ledger.entries() if entry.kind == "refund"]
    asked = [100_000 if amount is None else cents_of(amount) for amount in amounts]
    assert [entry.amount_cents for entry in refunds] == (asked if over_refund == "accepted" else asked[:-1])
    assert len({entry.refund_id for entry in refunds}) == len(refunds)


@pytest.mark.parametrize("charged_back_refund", ["refused", "accepted"])
def test_refund_of_what_a_bank_took_back(
    world: World, caller: Caller, demo: DemoWorld, charged_back_refund: str
) -> None:
    """The gateway documents no answer. Where it takes the refund, payer and bank have the money twice."""
    world.switches = msgspec.structs.replace(world.switches, charged_back_refund=charged_back_refund)
    charge_back(world, demo.paid_payment_id)
    outcome = caller.post("payment/refund", refund_body(demo))

    is_taken = charged_back_refund == "accepted"
    assert outcome.document["status"] == (1 if is_taken else -1)
    assert [entry.kind for entry in outcome.entries] == (["refund"] if is_taken else [])


@pytest.mark.parametrize(("amount", "is_taken"), [("600.00", True), ("600.01", False), (None, False)])
def test_the_rest_of_a_payment_charged_back_in_part_is_refunded(
    world: World, caller: Caller, demo: DemoWorld, amount: str | None, *, is_taken: bool
) -> None:
    """What the bank did not take is still the merchant's to give."""
    charge_back(world, demo.paid_payment_id, amount_cents=40_000)
    body = refund_body(demo) if amount is None else refund_body(demo, amount=amount)

    assert caller.post("payment/refund", body).document["status"] == (1 if is_taken else -1)


def test_the_switches_for_refunds_are_two(world: World, caller: Caller, demo: DemoWorld) -> None:
    """Who tries the one must not be given the other with it."""
    charge_back(world, demo.paid_payment_id, amount_cents=40_000)
    world.switches = msgspec.structs.replace(world.switches, over_refund="accepted")
    assert caller.post("payment/refund", refund_body(demo)).document["status"] == -1
    world.switches = msgspec.structs.replace(world.switches, over_refund="refused", charged_back_refund="accepted")

    assert caller.post("payment/refund", refund_body(demo, amount="1000.01")).document["status"] == -1
    assert caller.post("payment/refund", refund_body(demo)).document["status"] == 1


def test_refund_that_fails_is_the_merchants_again(world: World, caller: Caller, demo: DemoWorld) -> None:
    """Status 1 says accepted: the card may refuse the money days later, and then it can be given back once more."""
    refund_id = caller.post("payment/refund", refund_body(demo)).document["data"]
    fail_refund(world, refund_id)

    entry = world.ledger.entries()[-1]
    assert (entry.kind, entry.amount_cents, entry.refund_id) == ("refund_reversal", 100_000, refund_id)
    assert record_status(caller, demo) == "RECEIVED"
    assert caller.post("payment/refund", refund_body(demo)).document["status"] == 1


def test_refund_fails_once(world: World, caller: Caller, demo: DemoWorld) -> None:
    """The money comes back once; a number that no refund has brings none."""
    refund_id = caller.post("payment/refund", refund_body(demo)).document["data"]
    fail_refund(world, refund_id)
    for number in (refund_id, 1):
        with pytest.raises(ControlError, match="refund_id"):
            fail_refund(world, number)

    assert [entry.kind for entry in world.ledger.entries()].count("refund_reversal") == 1


def test_whole_refund_after_a_part_is_refused(caller: Caller, demo: DemoWorld) -> None:
    """A refund without an amount asks for everything, which is more than is left."""
    caller.post("payment/refund", refund_body(demo, amount="1.00"))

    assert caller.post("payment/refund", refund_body(demo)).document["msg"] == REFUSED


def test_captured_hold_is_not_refunded_by_its_token(caller: Caller, demo: DemoWorld) -> None:
    """After the capture the payment id is what names the money."""
    caller.post("payment/capture", {"authorization_token": demo.authorization_token, "amount": 80})
    outcome = caller.post("payment/refund", {"authorization_token": demo.authorization_token, "description": "x"})

    assert outcome.document["msg"] == REFUSED


def test_part_of_a_hold_is_not_refunded(caller: Caller, demo: DemoWorld) -> None:
    """What a partial release would mean is undocumented, so it is refused in the simulator's own words."""
    body = {"authorization_token": demo.authorization_token, "description": "x", "amount": "1.00"}

    assert caller.post("payment/refund", body).document["msg"].startswith("Simulator: ")


def test_partial_refund_is_refused_by_switch(world: World, caller: Caller, demo: DemoWorld) -> None:
    """One of the gateway's pages knows no partial refunds."""
    world.switches = Switches(partial_refund="refused")

    assert caller.post("payment/refund", refund_body(demo, amount="1.00")).document["status"] == -1


def test_staged_refund_passes_through_its_states(world: World, caller: Caller, demo: DemoWorld) -> None:
    """Status 1 means accepted, not returned: the record tells how far it is."""
    world.switches = Switches(refund_progress="staged")
    caller.post("payment/refund", refund_body(demo))
    statuses = []
    for _ in range(3):
        statuses.append(record_status(caller, demo))
        world.clock.advance(86_400)
        caller.sign_in()

    assert statuses == ["REFUND REQUESTED", "REFUND PROCESSING", "REFUNDED"]


def test_charged_back_payment_is_not_refunded(world: World, caller: Caller) -> None:
    """The money is gone already."""
    charged_back = PaymentSeed(order_id="Back", amount=Decimal(5), is_charged_back=True)
    planted = plant(world, Seed(payments=[charged_back]))

    body = {"payment_id": planted.payment_ids[0], "description": "x"}
    assert caller.post("payment/refund", body).document["msg"] == REFUSED
    assert caller.get("payment/search", order_id="Back").document["data"][0]["status"] == "CHARGEBACKED"
    assert [entry.kind for entry in world.ledger.entries()] == ["charge", "chargeback"]
