import pytest

from payrelay_simulator import Caller, CustomerSeed, DemoWorld, Seed, Switches, World, plant

DEMO_IDS = ("active_subscription_id", "failed_subscription_id", "completed_subscription_id")


def test_list_shows_all_with_the_documented_fields(caller: Caller, demo: DemoWorld) -> None:
    """The list is one answer without pages, each row with every documented member."""
    document = caller.get("subscription").document

    assert document["msg"] == "Found 3 subscriptions"
    assert {row["subscription_id"] for row in document["data"]} == {getattr(demo, name) for name in DEMO_IDS}
    assert list(document["data"][0]) == [
        "subscription_id",
        "order_id",
        "date",
        "description",
        "recurring",
        "status",
        "amount",
        "currency",
        "customer",
        "amount_detail",
        "payment_method",
        "items",
    ]


def test_empty_list_is_switchable(world: World, caller: Caller) -> None:
    """What an account without subscriptions gets is undocumented."""
    assert caller.get("subscription").document == {"status": 1, "msg": "Found 0 subscriptions", "data": []}

    world.switches = Switches(empty_subscription_list="no_records")
    assert caller.get("subscription").document["status"] == -1


def test_one_subscription_is_an_object(caller: Caller, demo: DemoWorld) -> None:
    """The single lookup answers with the record itself, not with a list of one."""
    document = caller.get(f"subscription/{demo.active_subscription_id}").document

    assert document["msg"] == "Found subscription"
    assert document["data"]["subscription_id"] == demo.active_subscription_id


def test_payments_are_oldest_first_with_one_order_id(caller: Caller, demo: DemoWorld) -> None:
    """All installments carry the same order, so an order alone does not say that it is paid once."""
    document = caller.get(f"subscription/{demo.completed_subscription_id}/payments").document
    ids = [row["payment_id"] for row in document["data"]]

    assert document["msg"] == "Found 3 payments"
    assert ids == sorted(ids)
    assert {row["order_id"] for row in document["data"]} == {"DemoSubscription3"}


def test_startup_fee_is_in_the_first_payment_only(world: World, caller: Caller, demo: DemoWorld) -> None:
    """The first installment is larger, and its items say why."""
    world.clock.advance(60)
    rows = caller.get(f"subscription/{demo.active_subscription_id}/payments").document["data"]

    assert [row["amount"] for row in rows] == [200.0, 100.0]
    assert [len(row["items"]) for row in rows] == [2, 1]
    assert rows[0]["items"][1]["name"] == "Startup Fee"


@pytest.mark.parametrize("as_text", [str, int])
def test_failed_subscription_is_retried_once(caller: Caller, demo: DemoWorld, as_text: type) -> None:
    """A retry charges at once; then nothing has failed any more, so a second one is refused."""
    body = {"subscription_id": as_text(demo.failed_subscription_id)}
    outcome = caller.post("subscription/retry", body)

    assert outcome.document == {"status": 1, "msg": "Recurring payment charged successfully", "data": None}
    assert [(entry.kind, entry.amount_cents) for entry in outcome.entries] == [("retry", 2_000)]
    assert caller.post("subscription/retry", body).document["msg"] == "Subscription is not eligible for retrying"


@pytest.mark.parametrize("name", ["active_subscription_id", "completed_subscription_id"])
def test_what_has_not_failed_is_not_retried(caller: Caller, demo: DemoWorld, name: str) -> None:
    """A retry is no way to charge an installment early."""
    outcome = caller.post("subscription/retry", {"subscription_id": getattr(demo, name)})

    assert outcome.document == {"status": -1, "msg": "Subscription is not eligible for retrying", "data": None}
    assert outcome.entries == ()


def test_retry_of_a_card_that_still_declines_moves_nothing(world: World, caller: Caller, demo: DemoWorld) -> None:
    """A declined retry can be tried again later."""
    seed = CustomerSeed(customer_token=demo.other_customer_token, decline="do_not_honor")
    plant(world, Seed(customers=[seed]))
    outcome = caller.post("subscription/retry", {"subscription_id": demo.failed_subscription_id})

    assert outcome.document["msg"] == "Simulator: the retry was declined: do not honor"
    assert outcome.entries == ()


def test_cancel_ends_the_charges(world: World, caller: Caller, demo: DemoWorld) -> None:
    """After cancelling time brings no further installment."""
    outcome = caller.post("subscription/cancel", {"subscription_id": demo.active_subscription_id})
    assert outcome.document == {"status": 1, "msg": "Successfully cancelled the subscription", "data": None}
    entries = len(world.ledger)

    world.clock.advance(86_400)
    world.elapse()

    assert len(world.ledger) == entries


def test_ended_subscriptions_are_not_cancelled(caller: Caller, demo: DemoWorld) -> None:
    """The documented texts end with a full stop, unlike the one of the retry."""
    body = {"subscription_id": demo.active_subscription_id}
    caller.post("subscription/cancel", body)
    completed = {"subscription_id": demo.completed_subscription_id}

    assert caller.post("subscription/cancel", body).document["msg"] == "Subscription is already cancelled."
    assert caller.post("subscription/cancel", completed).document["msg"] == "Subscription is already completed."
    assert caller.post("subscription/retry", body).document["status"] == -1


@pytest.mark.parametrize("spelling", ["CANCELLED", "CANCELED"])
def test_spelling_of_cancelled_is_switchable(world: World, caller: Caller, demo: DemoWorld, spelling: str) -> None:
    """The value is undocumented and both spellings are used elsewhere."""
    world.switches = Switches(cancelled_subscription="CANCELED" if spelling == "CANCELED" else "CANCELLED")
    caller.post("subscription/cancel", {"subscription_id": demo.active_subscription_id})

    assert caller.get(f"subscription/{demo.active_subscription_id}").document["data"]["status"] == spelling


@pytest.mark.parametrize("http_status", [200, 404])
def test_unknown_subscription(world: World, caller: Caller, http_status: int) -> None:
    """What an unknown id gets is undocumented, so both an envelope and a 404 can be met."""
    world.switches = Switches(unknown_subscription="http_404" if http_status == 404 else "envelope")
    outcome = caller.get("subscription/420075999999")

    assert outcome.reply is not None
    assert outcome.reply.http_status == http_status
    assert outcome.document == {"status": -1, "msg": "Simulator: unknown subscription", "data": None}


@pytest.mark.parametrize("path", ["subscription/abc", "subscription/abc/payments", "subscription/-1"])
def test_id_of_another_form_is_refused(caller: Caller, path: str) -> None:
    """Only digits name a subscription."""
    assert caller.get(path).document["msg"] == "Simulator: subscription_id must be a number"
