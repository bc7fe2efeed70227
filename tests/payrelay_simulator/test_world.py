import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator import (
    Arguments,
    Call,
    Caller,
    Clock,
    DemoWorld,
    Rule,
    Schedule,
    Simulator,
    Switches,
    World,
    demo_world,
)

Body = dict[str, object]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)

MEMBERS = ["order_id", "items", "currency", "amount", "customer_token", "payment_id", "authorization_token", "type"]

WRITES = ["payment/charge", "payment/capture", "payment/refund", "subscription/retry", "subscription/cancel"]


@given(st.sampled_from(WRITES), st.dictionaries(st.sampled_from([*MEMBERS, "subscription_id", "description"]), JSON))
def test_any_body_gets_an_envelope_and_nothing_moves(path: str, body: Body) -> None:
    """Whatever a client sends by mistake is answered as a refusal, never with a crash."""
    outcome = Caller(Simulator().world).post(path, body)

    assert set(outcome.document) == {"status", "msg", "data"}
    assert outcome.document["status"] != 1
    assert outcome.entries == ()


@given(st.text(), st.text(), st.binary(), st.none() | st.text(), st.sampled_from(["GET", "POST", "PUT"]))
def test_any_request_gets_an_answer(path: str, query: str, body: bytes, authorization: str | None, method: str) -> None:
    """Nothing that arrives over HTTP can bring the world down."""
    outcome = Simulator().world.handle(
        Call(
            method=method,
            path=f"/merchant/v1/{path}",
            query=query,
            authorization=authorization,
            content_type="application/json",
            body=body,
        )
    )

    assert outcome.reply is not None
    assert outcome.reply.http_status in {401, 404, 405}


def test_same_seed_and_calls_give_the_same_world() -> None:
    """A run can be repeated, to the last identifier and fault."""
    ledgers = []
    for _ in range(2):
        simulator = Simulator(clock=Clock.standing(), switches=Switches(rate_limit_calls=0), seed=5)
        demo, caller = demo_world(simulator), Caller(simulator.world)
        simulator.world.faults.set_schedule(Schedule(seed=9, probabilities={"html_502_before": 0.5}))
        for order in range(20):
            members = {"order_id": str(order), "items": "I", "currency": "LKR", "customer_token": demo.customer_token}
            caller.post("payment/charge", {**members, "amount": 5, "type": "AUTHORIZE"})
        ledgers.append(simulator.ledger())

    assert ledgers[0] == ledgers[1]


@pytest.mark.parametrize("http_status", [200, 400, 422])
def test_status_of_business_errors_is_switchable(world: World, caller: Caller, http_status: int) -> None:
    """The status that goes with a refusal is undocumented; the body stays the same."""
    world.switches = Switches(business_error_http=422 if http_status == 422 else 400 if http_status == 400 else 200)
    outcome = caller.get("payment/search", order_id="nothing")

    assert outcome.reply is not None
    assert (outcome.reply.http_status, outcome.document["msg"]) == (http_status, "No payments found")


@pytest.mark.parametrize("http_status", [429, 403, None])
def test_twenty_first_call_in_ten_seconds_is_turned_away(caller: Caller, world: World, http_status: int | None) -> None:
    """The budget counts token calls too, and how it refuses is undocumented."""
    answers = {429: Switches(), 403: Switches(rate_limit_answer="403"), None: Switches(rate_limit_answer="drop")}
    world.switches = answers[http_status]
    for _ in range(19):
        assert caller.get("subscription").document["status"] == 1
    refused = caller.get("subscription")
    world.clock.advance(10)

    assert (None if refused.reply is None else refused.reply.http_status) == http_status
    assert refused.how == ("cut" if http_status is None else "whole")
    assert caller.get("subscription").document["status"] == 1
    assert [record.number for record in world.calls.records() if record.is_budget_blocked] == [21]


def test_blocked_call_uses_up_no_fault(world: World, caller: Caller, charge_body: Body) -> None:
    """A script strikes the calls that get through."""
    caller.sign_in()
    world.faults.add_rules(Rule(fault="budget_block", args=Arguments(answer="403")), Rule(fault="decline"))
    blocked = caller.post("payment/charge", charge_body)

    assert blocked.reply is not None
    assert blocked.reply.http_status == 403
    assert caller.post("payment/charge", charge_body).document["data"]["status_code"] == -2


def test_token_can_expire_on_the_way(world: World, caller: Caller, charge_body: Body) -> None:
    """A token that was good when it was sent is refused as expired; the charge has not happened."""
    caller.sign_in()
    world.faults.add_rules(Rule(fault="token_expired"))
    outcome = caller.post("payment/charge", charge_body)

    assert outcome.document["error_description"].startswith("Access token expired: ")
    assert outcome.entries == ()


def test_payment_can_become_visible_late(world: World, caller: Caller, charge_body: Body) -> None:
    """No payments found does not mean never: the money has moved already."""
    world.faults.add_rules(Rule(fault="late_visibility", args=Arguments(wait_s=30)))
    assert caller.post("payment/charge", charge_body).document["data"]["status_code"] == 2
    assert caller.get("payment/search", order_id="Order12345").document["msg"] == "No payments found"

    world.clock.advance(30)

    assert caller.get("payment/search", order_id="Order12345").document["status"] == 1


def test_captured_payment_can_become_visible_late(world: World, caller: Caller, demo: DemoWorld) -> None:
    """A capture too can be done and not yet be found."""
    world.faults.add_rules(Rule(fault="late_visibility"))
    caller.post("payment/capture", {"authorization_token": demo.authorization_token, "amount": 1})
    assert caller.get("payment/search", order_id=demo.held_order_id).document["status"] == -1

    world.clock.advance(60)

    assert caller.get("payment/search", order_id=demo.held_order_id).document["status"] == 1


def test_retried_payment_can_become_visible_late(world: World, caller: Caller, demo: DemoWorld) -> None:
    """A retry's payment may be missing from the list for a while."""
    path = f"subscription/{demo.failed_subscription_id}/payments"
    world.faults.add_rules(Rule(fault="late_visibility", args=Arguments(wait_s=30)))
    caller.post("subscription/retry", {"subscription_id": demo.failed_subscription_id})
    assert caller.get(path).document["msg"] == "Found 2 payments"

    world.clock.advance(30)

    assert caller.get(path).document["msg"] == "Found 3 payments"


def test_authorization_can_be_pending_too(world: World, caller: Caller, charge_body: Body) -> None:
    """The amount is set aside and the answer tells no token: without a notification nobody can capture it."""
    world.faults.add_rules(Rule(fault="pending"))
    outcome = caller.post("payment/charge", {**charge_body, "type": "AUTHORIZE"})

    assert (outcome.document["data"]["status_code"], outcome.document["data"]["authorization_token"]) == (0, None)
    assert [entry.kind for entry in outcome.entries] == ["authorization"]


@pytest.mark.parametrize("shape", ["data", "envelope"])
def test_scripted_decline_has_both_shapes(world: World, caller: Caller, charge_body: Body, shape: str) -> None:
    """The next charge fails though the card is good, in either form."""
    arguments = Arguments(reason="do_not_honor", shape="data" if shape == "data" else "envelope")
    world.faults.add_rules(Rule(fault="decline", args=arguments))
    document = caller.post("payment/charge", charge_body).document

    assert (document["status"], document["data"] is None) == ((1, False) if shape == "data" else (-1, True))


def test_fault_can_be_aimed_at_the_order_of_a_capture(world: World, caller: Caller, demo: DemoWorld) -> None:
    """Captures, refunds and subscriptions are matched by the order that they are about."""
    world.faults.add_rules(Rule(fault="html_502_before", times=None))
    bodies: list[tuple[str, Body]] = [
        ("payment/capture", {"authorization_token": demo.authorization_token, "amount": 1}),
        ("payment/refund", {"payment_id": demo.paid_payment_id}),
        ("subscription/cancel", {"subscription_id": demo.active_subscription_id}),
    ]
    for path, body in bodies:
        caller.post(path, body)
    caller.get(f"subscription/{demo.failed_subscription_id}")

    orders = [record.order_id for record in world.calls.records()[-4:]]
    assert orders == [demo.held_order_id, demo.paid_order_id, "DemoSubscription1", "DemoSubscription2"]


def test_body_that_is_no_json_is_refused_and_logged(world: World, caller: Caller) -> None:
    """A call that cannot be read is still a call that arrived."""
    caller.sign_in()
    outcome = world.handle(
        Call(
            method="POST",
            path="/merchant/v1/payment/charge",
            authorization=caller.authorization,
            content_type="application/json",
            body=b"{",
        )
    )

    assert outcome.document["msg"] == "Simulator: the body is not JSON"
    assert (world.calls.records()[-1].endpoint, world.calls.records()[-1].http_status) == ("charge", 400)
