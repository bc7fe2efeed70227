from collections.abc import Callable
from typing import Any

import pytest
from tests.payrelay_simulator.shop import AMEX, MASTER, POOR_VISA, VISA

from payrelay_simulator import Arguments, Caller, Match, Rule, Switches, World
from payrelay_simulator.pages.cards import Means, Typed, means_of
from payrelay_simulator.pages.hosted import cancel, pay
from payrelay_simulator.pages.visits import Visit

Opens = Callable[..., Visit]
MONTHLY = {"recurrence": "1 Month", "duration": "3 Month"}


def means(visit: Visit, number: str = VISA) -> Means:
    """Return what a card of that number comes to."""
    typed = Typed(holder_name="S Perera", number=number, expiry="12/29", security_code="123")
    found = means_of(typed, visit.form.methods)
    assert isinstance(found, Means)
    return found


def paid(world: World, visit: Visit, number: str = VISA) -> Visit:
    """Pay with a card."""
    return pay(world, visit, means(visit, number), arrival=7)


def told(world: World) -> list[dict[str, str]]:
    """Return the fields of all notifications."""
    return [each.fields for each in world.notifications.records()]


def kinds(world: World) -> list[tuple[str, int]]:
    """Return what happened to the money."""
    return [(entry.kind, entry.amount_cents) for entry in world.ledger.entries()]


def search(caller: Caller, order_id: str = "Order12345") -> Any:  # noqa: ANN401 - JSON
    """Return the order's payments as the merchant API shows them."""
    return caller.get("payment/search", order_id=order_id).document["data"]


def test_payment_is_received_found_and_told(world: World, caller: Caller, opened: Opens) -> None:
    """Page, ledger, search and notification tell one story."""
    visit = paid(world, opened(custom_1="a", custom_2="b"), MASTER)

    (entry,), (row,), (fields,) = world.ledger.entries(), search(caller), told(world)
    assert (visit.state, entry.kind, entry.amount_cents, entry.arrival) == ("paid", "charge", 100_000, 7)
    assert (row["payment_id"], row["amount"], row["customer"]["fist_name"]) == (visit.payment_id, 1000.0, "Saman")
    assert list(fields) == [
        "merchant_id",
        "order_id",
        "payment_id",
        "captured_amount",
        "payhere_amount",
        "payhere_currency",
        "status_code",
        "md5sig",
        "custom_1",
        "custom_2",
        "status_message",
        "method",
        "card_holder_name",
        "card_no",
        "card_expiry",
        "recurring",
    ]
    assert (fields["payment_id"], fields["payhere_amount"]) == (str(visit.payment_id), "1000.00")
    assert (fields["status_code"], fields["method"], fields["custom_2"]) == ("2", "MASTER", "b")
    assert (fields["card_no"], fields["card_expiry"], fields["recurring"]) == ("************1191", "1229", "0")


def test_visit_pays_once(world: World, opened: Opens) -> None:
    """A double click, whatever the second one does, takes the money once."""
    visit = paid(world, opened())
    again = paid(world, visit, POOR_VISA)

    assert (again, cancel(world, visit)) == (visit, visit)
    assert kinds(world) == [("charge", 100_000)]
    assert len(told(world)) == 1


def test_refused_card_takes_nothing_and_leaves_the_page_open(world: World, opened: Opens) -> None:
    """The payer tries another card; both attempts are told of."""
    visit = paid(world, opened(), POOR_VISA)
    assert (visit.state, visit.refusal, kinds(world)) == ("open", "insufficient funds", [])

    visit = paid(world, visit)

    assert (visit.state, [fields["status_code"] for fields in told(world)]) == ("paid", ["-2", "2"])
    assert told(world)[0]["status_message"] == "Simulator: insufficient funds"


def test_refusals_are_not_told_where_the_switch_says_so(world: World, opened: Opens) -> None:
    """Nobody knows whether the real gateway tells each of them."""
    world.switches = Switches(refusal_notification="none")
    paid(world, opened(), POOR_VISA)

    assert told(world) == []


@pytest.mark.parametrize(("switch", "codes"), [("none", []), ("sent", ["-1"])])
def test_cancelling_takes_nothing(world: World, opened: Opens, switch: Any, codes: list[str]) -> None:  # noqa: ANN401 - a literal
    """A cancelled visit is over; whether it is told of is a switch."""
    world.switches = Switches(cancel_notification=switch)
    visit = cancel(world, opened())

    assert paid(world, visit).state == "cancelled"
    assert (kinds(world), [fields["status_code"] for fields in told(world)]) == ([], codes)


def test_wallets_and_amex_show_no_card(world: World, caller: Caller, opened: Opens) -> None:
    """The documents name card fields for Visa and MasterCard only."""
    paid(world, opened(), AMEX)
    visit = opened(order_id="Wallet")
    wallet = means_of(Typed(method="HELAPAY"), visit.form.methods)
    assert isinstance(wallet, Means)
    pay(world, visit, wallet)

    assert [(fields["method"], "card_no" in fields) for fields in told(world)] == [("AMEX", False), ("HELAPAY", False)]
    assert search(caller, "Wallet")[0]["payment_method"]["card_no"] == ""


def test_preapproval_gives_a_token_and_the_money_back(world: World, caller: Caller, opened: Opens) -> None:
    """The token can be charged, and trying the card cost nothing."""
    paid(world, opened("preapprove", "10.00", amount=""))

    (fields,) = told(world)
    assert kinds(world) == [("charge", 1_000), ("refund", 1_000)]
    assert (fields["status_code"], fields["payhere_amount"], len(fields["customer_token"])) == ("2", "10.00", 32)
    body = {"order_id": "L", "items": "x", "currency": "LKR", "amount": 5, "customer_token": fields["customer_token"]}
    assert caller.post("payment/charge", body).document["data"]["status_code"] == 2


def test_preapproval_with_an_amount_keeps_it(world: World, opened: Opens) -> None:
    """That sum is the merchant's."""
    paid(world, opened("preapprove"))

    assert kinds(world) == [("charge", 100_000)]
    assert "customer_token" in told(world)[0]


def test_refused_preapproval_has_no_token(world: World, opened: Opens) -> None:
    """There is nothing to charge later."""
    paid(world, opened("preapprove", "10.00", amount=""), POOR_VISA)

    assert ("customer_token" in told(world)[0], world.state.customers) == (False, {})


def test_authorization_sets_aside_and_can_be_captured(world: World, caller: Caller, opened: Opens) -> None:
    """The token comes by notification alone, which does not name a payment."""
    paid(world, opened("authorize"))

    (fields,) = told(world)
    assert (fields["status_code"], "payment_id" in fields, kinds(world)) == ("3", False, [("authorization", 100_000)])
    body = {"authorization_token": fields["authorization_token"], "amount": 400}
    assert caller.post("payment/capture", body).document["status"] == 1


def test_refused_authorization_has_no_token(world: World, opened: Opens) -> None:
    """Nothing is held. A payment id is named where the switch says so."""
    world.switches = Switches(authorize_payment_id="present")
    paid(world, opened("authorize"), POOR_VISA)

    (fields,) = told(world)
    assert (fields["status_code"], "authorization_token" in fields, "payment_id" in fields) == ("-2", False, True)
    assert world.state.holds == {}


def test_subscription_runs_to_its_end(world: World, opened: Opens) -> None:
    """Every installment is told of under the same order, each with a payment of its own; then the end is told."""
    visit = paid(world, opened(**MONTHLY))
    world.clock.advance(600)
    world.elapse()

    shown = [(each["message_type"], each["item_rec_status"], each["item_rec_install_paid"]) for each in told(world)]
    assert shown == [
        ("AUTHORIZATION_SUCCESS", "0", "1"),
        ("RECURRING_INSTALLMENT_SUCCESS", "0", "2"),
        ("RECURRING_INSTALLMENT_SUCCESS", "1", "3"),
        ("RECURRING_COMPLETE", "1", "3"),
    ]
    assert kinds(world) == [("installment", 100_000)] * 3
    assert {(each["order_id"], each["recurring"], each["item_recurrence"]) for each in told(world)} == {
        ("Order12345", "1", "1 Month")
    }
    assert [int(each["payment_id"]) for each in told(world)[:1]] == [visit.payment_id]
    assert len({each["payment_id"] for each in told(world)}) == 3


def test_subscription_of_one_installment_is_complete_at_once(world: World, opened: Opens) -> None:
    """Nothing is charged later."""
    paid(world, opened(recurrence="1 Month", duration="1 Month"))
    world.clock.advance(600)
    world.elapse()

    assert [each["message_type"] for each in told(world)] == ["AUTHORIZATION_SUCCESS", "RECURRING_COMPLETE"]
    assert len(kinds(world)) == 1


def test_startup_fee_is_in_the_first_payment_only(world: World, opened: Opens) -> None:
    """The notifications tell what was taken each time."""
    paid(world, opened("checkout", "1100.50", startup_fee="100.50", **MONTHLY))
    world.clock.advance(60)
    world.elapse()

    assert [each["payhere_amount"] for each in told(world)] == ["1100.50", "1000.00"]


def test_later_start_only_tries_the_card(world: World, opened: Opens) -> None:
    """A free trial: the first installment comes on its day."""
    world.switches = Switches(installments="calendar")
    paid(world, opened("checkout", "10.00", recurring_start_date="2026-09-11", **MONTHLY))
    assert kinds(world) == [("charge", 1_000), ("refund", 1_000)]
    world.clock.advance(10 * 24 * 3600)
    world.elapse()

    first, second = told(world)
    assert (first["message_type"], first["item_rec_install_paid"]) == ("AUTHORIZATION_SUCCESS", "0")
    assert first["item_rec_date_next"] == "2026-09-11"
    assert (second["message_type"], second["item_rec_date_next"]) == ("RECURRING_INSTALLMENT_SUCCESS", "2026-10-11")


def test_refused_first_payment_begins_no_subscription(world: World, caller: Caller, opened: Opens) -> None:
    """The failure has no subscription that it could name."""
    paid(world, opened(**MONTHLY), POOR_VISA)

    (fields,) = told(world)
    assert (fields["message_type"], fields["status_code"]) == ("AUTHORIZATION_FAILED", "-2")
    assert ("subscription_id" in fields, caller.get("subscription").document["data"]) == (False, [])


def test_later_start_in_accelerated_time_is_a_minute_away(world: World, opened: Opens) -> None:
    """Nobody waits ten days for a test."""
    paid(world, opened("checkout", "10.00", recurring_start_date="2026-09-11", **MONTHLY))
    world.clock.advance(60)
    world.elapse()

    assert kinds(world)[-1] == ("installment", 100_000)


def test_decline_by_order_refuses_a_good_card(world: World, opened: Opens) -> None:
    """A refusal can be ordered where the payer's card cannot be chosen."""
    world.faults.add_rules(Rule(fault="decline", match=Match(endpoint="pay"), args=Arguments(reason="do_not_honor")))

    assert paid(world, opened()).refusal == "do not honor"


def test_plan_of_a_page_fails_by_its_order_and_is_retried(world: World, caller: Caller, opened: Opens) -> None:
    """The token of a card typed on a page is told to nobody: the order is what a test can name."""
    paid(world, opened("checkout", **MONTHLY))
    world.faults.add_rules(Rule(fault="decline", match=Match(order_id="Order12345"), times=None))
    world.clock.advance(60)
    world.elapse()
    failed = told(world)[-1]
    assert (failed["message_type"], failed["status_code"]) == ("RECURRING_INSTALLMENT_FAILED", "-2")
    assert failed["captured_amount"] == "0.00"
    world.faults.clear()
    (subscription,) = world.state.subscriptions.values()
    caller.post("subscription/retry", {"subscription_id": subscription.subscription_id})

    assert told(world)[-1]["message_type"] == "RECURRING_INSTALLMENT_SUCCESS"
    assert kinds(world) == [("installment", 100_000), ("retry", 100_000)]


@pytest.mark.parametrize("settles", [True, False])
def test_pending_payment_is_told_twice_if_it_settles(
    world: World, caller: Caller, opened: Opens, *, settles: bool
) -> None:
    """First that it is pending, and when it can be found that it succeeded."""
    world.faults.add_rules(Rule(fault="pending", args=Arguments(settles=settles, wait_s=60)))
    visit = paid(world, opened())
    assert (visit.is_pending, search(caller)) == (True, None)
    world.clock.advance(60)

    assert [fields["status_code"] for fields in told(world)] == (["0", "2"] if settles else ["0"])
    assert bool(search(caller)) == settles
    assert len(world.notifications.take_due(world.clock.now())) == len(told(world))


def test_paid_order_can_be_hidden_from_searches(world: World, caller: Caller, opened: Opens) -> None:
    """A notification may be there before the payment can be found."""
    world.faults.add_rules(Rule(fault="late_visibility"))
    paid(world, opened())

    assert (search(caller), [fields["status_code"] for fields in told(world)]) == (None, ["2"])


def test_same_seed_gives_the_same_tokens_and_signatures(opened: Opens, world: World) -> None:
    """A story with pages can be repeated to the letter."""
    paid(world, opened("preapprove", "10.00", amount=""))

    assert told(world)[0]["md5sig"] == "437784007A55C7A3A06255C90848E9BB"
    assert told(world)[0]["customer_token"] == "AA5EF42CE80941D2AED3FFAD0A57C2C8"
