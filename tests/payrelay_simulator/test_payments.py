import pytest

from payrelay_simulator import Caller, CustomerSeed, DemoWorld, Rule, Seed, Switches, World, plant
from payrelay_simulator.faults import Arguments
from payrelay_simulator.signature import md5sig

Body = dict[str, object]


def test_charge_answers_as_documented(caller: Caller, charge_body: Body) -> None:
    """Every documented member is there, in the documented order, with the documented texts."""
    document = caller.post("payment/charge", charge_body).document

    assert (document["status"], document["msg"]) == (1, "Automatic payment charged successfully")
    assert list(document["data"]) == [
        "order_id",
        "items",
        "currency",
        "amount",
        "custom_1",
        "custom_2",
        "payment_id",
        "status_code",
        "status_message",
        "md5sig",
        "authorization_token",
    ]
    assert document["data"]["status_code"] == 2
    assert document["data"]["amount"] == 345.67
    assert document["data"]["authorization_token"] is None


def test_charge_is_signed_over_the_two_decimal_amount(world: World, caller: Caller, charge_body: Body) -> None:
    """A client that verifies the signature finds it right."""
    data = caller.post("payment/charge", {**charge_body, "amount": 100}).document["data"]
    secret = world.merchants[0].merchant_secret

    assert data["md5sig"] == md5sig("1200001", "Order12345", "100.00", "LKR", "2", merchant_secret=secret)


def test_signature_can_be_made_wrong(world: World, caller: Caller, charge_body: Body) -> None:
    """The signature of an answer is undocumented; a client may not depend on it."""
    right = caller.post("payment/charge", charge_body).document["data"]["md5sig"]
    world.switches = Switches(rate_limit_calls=0, rest_md5sig="wrong")

    assert caller.post("payment/charge", charge_body).document["data"]["md5sig"] != right


def test_same_order_is_charged_twice(world: World, caller: Caller, charge_body: Body) -> None:
    """The gateway holds no order unique: what protects from a double charge must be the client."""
    ids = {caller.post("payment/charge", charge_body).document["data"]["payment_id"] for _ in range(2)}

    assert len(ids) == 2
    assert [entry.amount_cents for entry in world.ledger.entries()[-2:]] == [34567, 34567]


@pytest.mark.parametrize(
    ("change", "msg"),
    [
        ({"customer_token": "F" * 32}, "Invalid token"),
        ({"customer_token": None}, "Invalid token"),
        ({"customer_token": 5}, "Invalid token"),
        ({"currency": "XXX"}, "Invalid currency"),
        ({"currency": ["LKR"]}, "Invalid currency"),
        ({"amount": 0}, "Invalid amount"),
        ({"amount": "ten"}, "Invalid amount"),
        ({"amount": None}, "Invalid amount"),
        ({"order_id": None}, "Simulator: order_id is missing"),
        ({"order_id": 5}, "Simulator: order_id must be a text"),
        ({"items": ""}, "Simulator: items is missing"),
        ({"type": "GIFT"}, "Simulator: type must be PAYMENT or AUTHORIZE"),
        ({"itemList": {}}, "Simulator: itemList must be a list"),
        ({"custom_1": 5}, "Simulator: custom_1 must be a text"),
    ],
)
def test_wrong_charge_is_refused(world: World, caller: Caller, charge_body: Body, change: Body, msg: str) -> None:
    """A refusal has the documented text, or one that says it is the simulator's, and moves nothing."""
    before = len(world.ledger)
    document = caller.post("payment/charge", {**charge_body, **change}).document

    assert document == {"status": -1, "msg": msg, "data": None}
    assert len(world.ledger) == before


def test_declining_card_is_told_in_the_data(caller: Caller, demo: DemoWorld, charge_body: Body) -> None:
    """Envelope status 1 is not success: the second check is data.status_code."""
    outcome = caller.post("payment/charge", {**charge_body, "customer_token": demo.declining_customer_token})

    assert (outcome.document["status"], outcome.document["data"]["status_code"]) == (1, -2)
    assert outcome.document["data"]["status_message"] == "Simulator: insufficient funds"
    assert outcome.entries == ()


def test_declining_card_is_told_in_the_envelope_by_switch(
    world: World, caller: Caller, demo: DemoWorld, charge_body: Body
) -> None:
    """The other form that a decline may have."""
    world.switches = Switches(charge_decline="envelope")
    document = caller.post("payment/charge", {**charge_body, "customer_token": demo.declining_customer_token}).document

    assert document == {"status": -1, "msg": "Simulator: insufficient funds", "data": None}


def test_cancelled_preapproval_is_an_invalid_token(
    world: World, caller: Caller, demo: DemoWorld, charge_body: Body
) -> None:
    """A customer whose preapproval was cancelled cannot be charged."""
    plant(world, Seed(customers=[CustomerSeed(customer_token=demo.customer_token, is_cancelled=True)]))

    assert caller.post("payment/charge", charge_body).document["msg"] == "Invalid token"


@pytest.mark.parametrize("kinds", [["charge"], []])
def test_pending_charge_may_or_may_not_settle(
    world: World,
    caller: Caller,
    charge_body: Body,
    kinds: list[str],
) -> None:
    """A pending answer tells nothing about the end; both ends can be made, and look the same at first."""
    world.faults.add_rules(Rule(fault="pending", args=Arguments(settles=bool(kinds), wait_s=30)))
    outcome = caller.post("payment/charge", charge_body)
    assert outcome.document["data"]["status_code"] == 0
    assert caller.get("payment/search", order_id="Order12345").document["msg"] == "No payments found"

    world.clock.advance(30)

    assert [entry.kind for entry in outcome.entries] == kinds
    assert caller.get("payment/search", order_id="Order12345").document["status"] == (1 if kinds else -1)


def test_search_returns_newest_first(caller: Caller, demo: DemoWorld) -> None:
    """Retrieval shows the last payment of an order first, opposite to a subscription's payments."""
    document = caller.get("payment/search", order_id=demo.twice_paid_order_id).document

    assert document["msg"] == f"Payments with order_id:{demo.twice_paid_order_id}"
    assert [row["payment_id"] for row in document["data"]] == sorted(demo.twice_paid_payment_ids, reverse=True)


def test_search_returns_oldest_first_by_switch(world: World, caller: Caller, demo: DemoWorld) -> None:
    """The order is undocumented, so a client may not count on it."""
    world.switches = Switches(retrieval_order="oldest_first")
    rows = caller.get("payment/search", order_id=demo.twice_paid_order_id).document["data"]

    assert [row["payment_id"] for row in rows] == list(demo.twice_paid_payment_ids)


def test_unknown_order_has_no_payments(caller: Caller) -> None:
    """Not yet and never look the same."""
    assert caller.get("payment/search", order_id="nothing").document == {
        "status": -1,
        "msg": "No payments found",
        "data": None,
    }


def test_search_without_order_says_so(caller: Caller) -> None:
    """The query's only parameter is needed."""
    assert caller.get("payment/search").document["msg"] == "Simulator: order_id is missing"


def test_fields_echoed_or_not_by_switch(world: World, caller: Caller, charge_body: Body) -> None:
    """The documents contradict themselves about two members; a client lives with either."""
    first = caller.post("payment/charge", {**charge_body, "custom_1": "C"}).document["data"]
    world.switches = Switches(charge_custom="null", payment_authorization_tokens="present")
    second = caller.post("payment/charge", {**charge_body, "custom_1": "C"}).document["data"]

    assert (first["custom_1"], first["authorization_token"]) == ("C", None)
    assert second["custom_1"] is None
    assert second["authorization_token"] is not None
