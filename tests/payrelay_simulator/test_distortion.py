import pytest

from payrelay_simulator import Arguments, Caller, DemoWorld, Match, Rule, World

Body = dict[str, object]


@pytest.mark.parametrize(
    ("rule", "member"),
    [
        (Rule(fault="other_amount", args=Arguments(amount=9.5)), {"amount": 9.5}),
        (Rule(fault="other_order", match=Match(endpoint="charge")), {"order_id": "another-order"}),
        (Rule(fault="other_currency"), {"currency": "USD"}),
    ],
)
def test_answer_can_speak_of_something_else(
    world: World, caller: Caller, charge_body: Body, rule: Rule, member: Body
) -> None:
    """A client must compare what comes back with what it asked; the money moved as asked."""
    caller.sign_in()
    world.faults.add_rules(rule)
    outcome = caller.post("payment/charge", charge_body)
    (entry,) = outcome.entries

    assert member.items() <= outcome.document["data"].items()
    assert (entry.amount_cents, entry.currency, entry.order_id) == (34567, "LKR", "Order12345")


def test_every_row_of_a_list_is_changed(world: World, caller: Caller, demo: DemoWorld) -> None:
    """A search can be made to show other amounts too."""
    world.faults.add_rules(Rule(fault="other_amount", match=Match(endpoint="search")))
    rows = caller.get("payment/search", order_id=demo.twice_paid_order_id).document["data"]

    assert [row["amount"] for row in rows] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("html_502_before", (502, 0)),
        ("html_502_after", (502, 1)),
        ("envelope_500_before", (500, 0)),
        ("envelope_500_after", (500, 1)),
    ],
)
def test_failing_gateway_may_or_may_not_have_charged(
    world: World, caller: Caller, charge_body: Body, fault: str, expected: tuple[int, int]
) -> None:
    """A 5xx says nothing about the money: the same answer comes with and without the effect."""
    caller.sign_in()
    world.faults.add_rules(Rule(fault=fault))
    outcome = caller.post("payment/charge", charge_body)

    assert outcome.reply is not None
    assert (outcome.reply.http_status, len(outcome.entries)) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(fault="domain_denied"), (401, "Access denied for the domain")),
        (Rule(fault="domain_denied", args=Arguments(http_status=403)), (403, "Access denied for the domain")),
        (Rule(fault="authentication_error"), (200, "Authentication error")),
    ],
)
def test_gateway_can_refuse_the_merchant(
    world: World, caller: Caller, charge_body: Body, rule: Rule, expected: tuple[int, str]
) -> None:
    """Access trouble has the documented bodies and no effect."""
    world.faults.add_rules(rule)
    outcome = caller.post("payment/charge", charge_body)

    assert outcome.reply is not None
    assert (outcome.reply.http_status, outcome.document["msg"]) == expected
    assert outcome.entries == ()


@pytest.mark.parametrize(("body", "encoded"), [([], b"[]"), ("text", b'"text"'), ({"status": "1"}, b'{"status": "1"}')])
def test_answer_can_have_another_shape(
    world: World, caller: Caller, charge_body: Body, body: object, encoded: bytes
) -> None:
    """Good JSON that is no envelope leaves the outcome unknown, though the money moved."""
    caller.sign_in()
    world.faults.add_rules(Rule(fault="wrong_shape", args=Arguments(body=body)))
    outcome = caller.post("payment/charge", charge_body)

    assert outcome.reply is not None
    assert outcome.reply.encoded() == encoded
    assert len(outcome.entries) == 1


def test_shortened_answer_is_complete_on_the_wire(world: World, caller: Caller, charge_body: Body) -> None:
    """JSON that stops in the middle, with a length that agrees with it."""
    caller.sign_in()
    world.faults.add_rules(Rule(fault="truncated_json"))
    reply = caller.post("payment/charge", charge_body).reply

    assert reply is not None
    assert reply.encoded().startswith(b'{"status":1,')
    assert not reply.encoded().endswith(b"}")


def test_refusal_has_nothing_to_change(world: World, caller: Caller) -> None:
    """A fault that changes amounts leaves an answer without data as it is."""
    world.faults.add_rules(Rule(fault="other_amount", match=Match(endpoint="search")))

    assert caller.get("payment/search", order_id="nothing").document["msg"] == "No payments found"
