"""Two principals of one merchant, over real sockets: neither reads, changes or takes what is the other's."""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.draws import drawn_uuid
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import (
    Scene,
    assert_refused,
    capture_body,
    charge_body,
    fresh,
    fresh_number,
    refund_body,
    settings_for,
)
from tests.scenarios.test_customers import fresh_token, put
from tests.scenarios.test_notifications import CUSTOMER, PUBLIC, checkout_of, listed, open_checkout, post, signed
from tests.scenarios.waiting import until

TAKEN = "this order id is taken; use another one"


@pytest.fixture(scope="module")
def scene(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """One service for the module, that knows its address from outside; its client is the owner of everything."""
    program = Program(folder, settings_for(gateway) | PUBLIC)
    key = program.new_key("web")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest.fixture(scope="module")
def other(scene: Scene) -> Client:
    """Another principal with every default scope."""
    return scene.another()


@dataclass(frozen=True, kw_only=True)
class Paid:
    """An order that its owner has paid."""

    order_id: str
    payment_id: str
    operation_id: str


def paid(scene: Scene, client: Client | None = None) -> Paid:
    """Charges an order; the gateway shows its payment from then on."""
    order_id = fresh("order")
    reply = (client or scene.client).charge(charge_body(order_id))
    assert reply.status == 200, str(reply)
    payment_id = str(reply.json["data"]["payment_id"])
    record = payhere.payment(order_id, payment_id=int(payment_id))
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record, msg="Found 1 payments")))
    return Paid(order_id=order_id, payment_id=payment_id, operation_id=reply.header("payrelay-operation") or "")


def authorized(scene: Scene) -> str:
    """Authorizes an amount; gives the gateway's token, which can be captured."""
    order_id, payment_id = fresh("order"), int(fresh_number())
    reply = scene.client.charge(charge_body(order_id, type="AUTHORIZE"))
    assert reply.status == 200, str(reply)
    token = str(reply.json["data"]["authorization_token"])
    captures = payhere.captures_with(order_id=order_id, payment_id=payment_id, amount=345.67)
    scene.gateway.always(payhere.CAPTURE, token, captures)
    return token


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A subscription that a customer began in a checkout."""

    order_id: str
    subscription_id: str
    payment_id: str


def subscribed(scene: Scene, client: Client | None = None) -> Plan:
    """Has a customer begin a plan in a checkout of the owner's."""
    order_id, subscription_id, payment_id = fresh("plan"), fresh_number(), fresh_number()
    scene = Scene(program=scene.program, gateway=scene.gateway, client=client or scene.client)
    checkout_id = open_checkout(
        scene, order_id, type="recurring", amount=Raw(text="345.67"), recurrence="1 Month", duration="1 Year"
    )
    record = payhere.payment_now(order_id, "345.67") | {"payment_id": int(payment_id)}
    plan = {
        "subscription_id": int(subscription_id),
        "order_id": order_id,
        "date": record["date"],
        "status": "ACTIVE",
        "currency": "LKR",
        "amount": 345.67,
    }
    path = f"{payhere.SUBSCRIPTIONS}/{subscription_id}"
    scene.gateway.always(path, subscription_id, payhere.says(payhere.envelope("Found subscription", plan)))
    scene.gateway.always(f"{path}/payments", subscription_id, payhere.says(payhere.found(record)))
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    more = {
        "recurring": "1",
        "message_type": "AUTHORIZATION_SUCCESS",
        "subscription_id": subscription_id,
        "payment_id": payment_id,
        "item_rec_status": "0",
        "item_rec_install_paid": "1",
        "item_rec_date_next": "2026-12-22",
    }
    assert post(scene.client, signed(order_id, **more)).status == 200
    until(lambda: checkout_of(scene.client, checkout_id)["state"] == "completed", "the plan has begun")
    until(lambda: scene.client.get(f"subscription-states/{subscription_id}").status == 200, "the plan is known")
    return Plan(order_id=order_id, subscription_id=subscription_id, payment_id=payment_id)


def body_of(reply: Reply) -> Any:  # noqa: ANN401, any JSON
    """The body without what is another in each answer."""
    body = reply.json
    body.get("error", {}).pop("request_id", None)
    return body


def headers_of(reply: Reply) -> list[str]:
    """The names of the headers that tell something."""
    return sorted(name.lower() for name, _ in reply.headers)


def assert_as_unknown(foreign: Reply, unknown: Reply) -> None:
    """Nothing in the answer about a foreign thing differs from that about an unknown one."""
    assert (foreign.status, body_of(foreign)) == (unknown.status, body_of(unknown))
    assert headers_of(foreign) == headers_of(unknown)


def test_another_principals_payment_is_not_refunded(scene: Scene, other: Client) -> None:
    """A key that leaked from one shop must not give the other shop's money away."""
    order = paid(scene)
    by_number, padded = refund_body(order.payment_id), refund_body(f"000{order.payment_id}")
    replies = [other.post("payments/refund", body) for body in (by_number, padded)]

    for reply in replies:
        assert_refused(reply, 404, "not_found")
        assert "payrelay-operation" not in headers_of(reply)
    assert scene.gateway.count(payhere.REFUND, order.payment_id) == 0
    assert scene.client.post("payments/refund", by_number).status == 200


def test_another_principals_authorization_is_neither_captured_nor_voided(scene: Scene, other: Client) -> None:
    """Its money would be taken, or given up, by whoever learned the token."""
    token = authorized(scene)
    captured = other.post("payments/capture", capture_body(token))
    voided = other.post("payments/refund", {"authorization_token": token, "description": "void"})

    for reply in (captured, voided):
        assert_refused(reply, 404, "not_found")
        assert "payrelay-operation" not in headers_of(reply)
    assert scene.gateway.count(payhere.CAPTURE, token) == 0
    assert scene.gateway.count(payhere.REFUND, token) == 0
    assert scene.client.post("payments/capture", capture_body(token)).status == 200
    # What made the payment owns it, also after the capture.
    assert_refused(
        other.post("payments/refund", {"authorization_token": token, "description": "void"}), 404, "not_found"
    )


def test_another_principals_hosted_authorization_is_neither_captured_nor_voided(scene: Scene, other: Client) -> None:
    """Neither by the token, which the notification brought, nor by the checkout's id."""
    order_id, token = fresh("order"), str(drawn_uuid())
    checkout_id = open_checkout(scene, order_id, type="authorization", amount=Raw(text="345.67"))
    notified = signed(order_id, "3", authorization_token=token, payment_id=fresh_number())
    assert post(scene.client, notified).status == 200
    until(lambda: checkout_of(scene.client, checkout_id)["state"] != "open", "the customer has authorized it")
    by_token = [
        other.post("payments/capture", capture_body(token)),
        other.post("payments/refund", {"authorization_token": token, "description": "void"}),
    ]
    by_checkout = [other.post("payments/capture", capture_body(each)) for each in (checkout_id, f"chk_{'0' * 32}")]

    for reply in by_token:
        assert_refused(reply, 404, "not_found")
    assert_refused(by_checkout[0], 422, "invalid_request")
    assert_as_unknown(*by_checkout)
    assert scene.gateway.count(payhere.CAPTURE, token) == 0
    assert scene.gateway.count(payhere.REFUND, token) == 0


def test_another_principals_plan_is_neither_ended_nor_retried(scene: Scene, other: Client) -> None:
    """Whoever ends a plan takes its income; whoever retries it charges a customer who isn't theirs."""
    plan = subscribed(scene)
    asked_before = scene.gateway.count(f"{payhere.SUBSCRIPTIONS}/{plan.subscription_id}/payments", plan.subscription_id)
    replies = [
        other.post(f"subscriptions/{plan.subscription_id}/retry"),
        other.delete(f"subscriptions/{plan.subscription_id}"),
    ]

    for reply in replies:
        assert_refused(reply, 404, "not_found")
        assert "payrelay-operation" not in headers_of(reply)
    assert scene.gateway.count(payhere.RETRY, plan.subscription_id) == 0
    assert scene.gateway.count(payhere.CANCEL, plan.subscription_id) == 0
    asked = scene.gateway.count(f"{payhere.SUBSCRIPTIONS}/{plan.subscription_id}/payments", plan.subscription_id)
    assert asked == asked_before
    assert scene.client.delete(f"subscriptions/{plan.subscription_id}").status == 200


def test_another_principals_installment_is_not_refunded(scene: Scene, other: Client) -> None:
    """A plan's payments belong to whoever began the plan, though no operation made them."""
    plan = subscribed(scene)

    assert_refused(other.post("payments/refund", refund_body(plan.payment_id)), 404, "not_found")
    assert scene.gateway.count(payhere.REFUND, plan.payment_id) == 0


def test_another_principals_payments_look_like_none(scene: Scene, other: Client) -> None:
    """A record has a name, an address and a card; even that an order exists would be told by another answer."""
    order = paid(scene)
    assert scene.client.get(f"payments/{order.order_id}").status == 200  # and it is in the cache from here on
    foreign = [other.get(f"payments/{order.order_id}") for _ in range(2)]
    unknown = other.get(f"payments/{fresh('order')}")

    for reply in foreign:
        assert_as_unknown(reply, unknown)
    assert_refused(foreign[0], 404, "not_found")


def test_a_foreign_read_costs_as_many_calls_as_an_unknown_one(scene: Scene, other: Client) -> None:
    """Else its budget, and the time that the answer takes, would tell the two apart. The foreign id isn't sent."""
    order, unknown = paid(scene), fresh("order")
    assert scene.client.get(f"payments/{order.order_id}").status == 200
    before = scene.gateway.count(payhere.SEARCH, "")
    other.get(f"payments/{unknown}")
    between = scene.gateway.count(payhere.SEARCH, "")
    other.get(f"payments/{order.order_id}")

    assert (between - before, scene.gateway.count(payhere.SEARCH, "") - between) == (1, 1)
    assert scene.gateway.count(payhere.SEARCH, order.order_id) == 1


def test_an_order_that_is_being_charged_is_not_shown(scene: Scene, other: Client) -> None:
    """The gateway may show the payment before its reply is here: it has an owner from the moment of the intent."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    record = payhere.payment(order_id, payment_id=int(fresh_number()))
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    assert scene.client.charge(charge_body(order_id)).status == 202

    assert_as_unknown(other.get(f"payments/{order_id}"), other.get(f"payments/{fresh('order')}"))


def test_another_principals_subscriptions_look_like_none(scene: Scene, other: Client) -> None:
    """By id, with its payments, in the list, and as the state that is known here."""
    plan, unknown = subscribed(scene), fresh_number()
    lacking = payhere.says(payhere.envelope("Did not find any subscription", None, -1))
    for path in (
        f"subscriptions/{plan.subscription_id}",
        f"subscriptions/{plan.subscription_id}/payments",
        f"subscriptions/{plan.subscription_id}?expand=payments",
    ):
        assert scene.client.get(path).status == 200, path
        assert other.get(path).status == 404, path
    for each in (f"{payhere.SUBSCRIPTIONS}/{unknown}", f"{payhere.SUBSCRIPTIONS}/{unknown}/payments"):
        scene.gateway.always(each, unknown, lacking)
    assert_as_unknown(
        other.get(f"subscription-states/{plan.subscription_id}"), other.get(f"subscription-states/{unknown}")
    )
    assert plan.subscription_id not in other.get("subscription-states?limit=100").body.decode()
    assert plan.subscription_id in scene.client.get("subscription-states?limit=100").body.decode()


def test_the_list_of_subscriptions_has_ones_own_and_unknown_ones(scene: Scene, other: Client) -> None:
    """The gateway lists all of the merchant's; what nobody here began stays open to all keys, as before.

    A plan that nobody is known to have begun belongs to its order's owner, in the list as by its number.
    """
    plan, own, unknown, of_paid = subscribed(scene), subscribed(scene, other), fresh_number(), fresh_number()

    def record(subscription_id: str, order_id: str) -> dict[str, object]:
        return {"subscription_id": int(subscription_id), "order_id": order_id, "status": "ACTIVE", "customer": "Saman"}

    records = [
        record(plan.subscription_id, plan.order_id),
        record(own.subscription_id, own.order_id),
        record(unknown, fresh("order")),
        record(of_paid, paid(scene).order_id),
    ]
    scene.gateway.script(payhere.SUBSCRIPTIONS, "", payhere.says(payhere.found(*records, msg="Found 4 subscriptions")))
    reply = other.get("subscriptions", [("Cache-Control", "no-cache")])

    assert [each["subscription_id"] for each in reply.json["data"]] == [int(own.subscription_id), int(unknown)]
    assert "4" not in reply.json["msg"]


def test_another_principals_operations_are_not_read(scene: Scene, other: Client) -> None:
    """Not by id, by key, in the list or as a stream: so it was, and so it stays."""
    key = fresh("key")
    reply = scene.client.charge(charge_body(), key=key)
    operation_id = reply.header("payrelay-operation")

    assert_as_unknown(other.get(f"operations/{operation_id}"), other.get(f"operations/op_{'0' * 32}"))
    assert_as_unknown(other.get(f"operations/by-key/{key}"), other.get(f"operations/by-key/{fresh('key')}"))
    assert other.get(f"operations?order_id={reply.json['data']['order_id']}").json["data"] == []


def test_another_principals_order_id_is_not_taken(scene: Scene, other: Client) -> None:
    """A second payment of an order is the first one's owner's to take; the refusal names nothing and nobody."""
    order = paid(scene)
    held = fresh("order")
    checkout_id = open_checkout(scene, held, amount=Raw(text="345.67"))
    checkout = {"type": "payment", "items": "Tea", "currency": "LKR", "amount": Raw(text="1.00"), "customer": CUSTOMER}
    replies = [
        other.charge(charge_body(order.order_id)),
        other.charge(charge_body(held)),
        other.post("checkouts", {**checkout, "order_id": order.order_id}),
        other.post("checkouts", {**checkout, "order_id": held}),
    ]

    for reply in replies:
        assert_refused(reply, 409, "conflict")
        assert reply.json["msg"] == TAKEN
        assert set(reply.error) == {"code", "retry", "request_id"}
    assert checkout_id not in str([reply.body for reply in replies])
    assert scene.gateway.count(payhere.CHARGE, held) == 0
    assert scene.gateway.count(payhere.CHARGE, order.order_id) == 1


def test_an_attempt_without_effect_takes_no_order(scene: Scene, other: Client) -> None:
    """A declined charge must not keep the other shop from the order for ever; else order ids could be spoilt."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.refuses("Insufficient funds"))
    assert scene.client.charge(charge_body(order_id)).status == 402

    assert other.charge(charge_body(order_id)).status == 200
    assert_refused(scene.client.charge(charge_body(order_id), key=fresh("key")), 409, "conflict")


def test_a_guard_of_another_principal_names_no_id(scene: Scene, other: Client) -> None:
    """Two refunds of one payment at once stay one, whoever asks; who asked first is nobody's business."""
    payment_id = fresh_number()
    scene.gateway.script(payhere.REFUND, payment_id, payhere.cuts)
    assert scene.client.post("payments/refund", refund_body(payment_id)).status == 202
    reply = other.post("payments/refund", refund_body(payment_id))

    assert_refused(reply, 409, "in_progress")
    assert "operation_id" not in reply.error


def test_a_repeat_is_answered_before_its_owner_is_asked_for(scene: Scene, other: Client) -> None:
    """What a client once got it gets again, even where the thing has become another's since."""
    payment_id, key = fresh_number(), fresh("key")
    first = other.post("payments/refund", refund_body(payment_id), key=key)
    assert first.status == 200  # nobody here knew the payment
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(payment_id=int(payment_id)))
    assert scene.client.charge(charge_body(order_id)).status == 200
    again = other.post("payments/refund", refund_body(payment_id), key=key)
    anew = other.post("payments/refund", refund_body(payment_id, description="again"), key=fresh("key"))

    assert (again.status, again.body, again.header("idempotent-replayed")) == (200, first.body, "true")
    assert_refused(anew, 404, "not_found")


def test_what_is_unknown_here_stays_open_to_all_keys(scene: Scene, other: Client) -> None:
    """A merchant's older payments and plans were made by nobody here: its keys work with them as before."""
    order_id, payment_id, subscription_id = fresh("order"), fresh_number(), fresh_number()
    record = payhere.payment(order_id, payment_id=int(payment_id))
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    replies = [
        caller.get(path)
        for caller in (scene.client, other)
        for path in (f"payments/{order_id}", f"subscriptions/{subscription_id}")
    ]

    assert [reply.status for reply in replies] == [200] * 4
    assert other.post("payments/refund", refund_body(payment_id)).status == 200
    assert other.delete(f"subscriptions/{subscription_id}").status == 200


def test_two_principals_at_one_order_at_once_are_one_payer(scene: Scene) -> None:
    """However the requests meet: one principal pays the order, as often as it asks, and the other one never does."""
    callers = [scene.another(), scene.another()]
    for _ in range(3):
        order_id = fresh("order")

        def charge(number: int, order_id: str = order_id) -> list[tuple[int, int]]:
            body = charge_body(order_id)
            return [(number % 2, callers[number % 2].charge(body, key=fresh("key")).status) for _ in range(8)]

        with ThreadPoolExecutor(8) as pool:
            replies = [each for replies in pool.map(charge, range(8)) for each in replies]
        assert len({principal for principal, status in replies if status == 200}) == 1, replies
        assert {status for _, status in replies} <= {200, 409}
        assert scene.gateway.count(payhere.CHARGE, order_id) == sum(status == 200 for _, status in replies)


def test_erasing_a_customer_leaves_the_other_principals_notifications(scene: Scene, other: Client) -> None:
    """An attempt of one's own on another's order id is no claim to that order's notifications."""
    order_id = fresh("order")
    customer = put(other, fresh_token())
    scene.gateway.script(payhere.CHARGE, order_id, payhere.refuses("Insufficient funds"))
    assert other.charge(charge_body(order_id, customer_token=customer["id"])).status == 402
    payment = payhere.payment_now(order_id, "345.67")
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(payment)))
    checkout_id = open_checkout(scene, order_id, amount=Raw(text="345.67"))
    assert post(scene.client, signed(order_id, payment_id=str(payment["payment_id"]))).status == 200
    until(lambda: checkout_of(scene.client, checkout_id)["state"] == "completed", "the order is paid")
    (row,) = listed(scene.program, "--order", order_id)
    assert other.post(f"customers/{customer['id']}/erase").status == 200

    assert has_body(scene, str(row["id"]))


def test_erasing_a_customer_still_removes_its_own_notifications(scene: Scene, other: Client) -> None:
    """What the law demands stays whole: the customer's own names go, also where the order is another's by now."""
    order_id, token = fresh("approval"), fresh_token()
    own = Scene(program=scene.program, gateway=scene.gateway, client=other)
    checkout_id = open_checkout(own, order_id, type="preapproval")
    assert post(other, signed(order_id, payhere_amount="10.00", customer_token=token)).status == 200
    until(lambda: checkout_of(other, checkout_id)["state"] == "completed", "the approval is stored")
    (row,) = listed(scene.program, "--order", order_id)
    assert other.post(f"customers/{checkout_of(other, checkout_id)['customer_id']}/erase").status == 200

    assert not has_body(scene, str(row["id"]))


def has_body(scene: Scene, notification_id: str) -> bool:
    """Tells whether the body of a notification is still stored."""
    with closing(sqlite3.connect(scene.program.folder / "payrelay.db")) as database:
        query = "SELECT sealed_body IS NOT NULL FROM notifications WHERE id = ?"
        return bool(database.execute(query, (notification_id,)).fetchone()[0])


def test_a_key_with_any_principal_acts_on_everything(scene: Scene) -> None:
    """Somebody must be able to help both shops; no key has this unless it is asked for by name."""
    order, plan = paid(scene), subscribed(scene)
    default = scene.another()
    desk = scene.another(
        "--scope", "any-principal", *(f"--scope={each}" for each in ("payments:read", "payments:refund"))
    )
    default_scopes = json.loads(scene.program.run("keys", "list", "--json").stdout)

    assert default.get(f"payments/{order.order_id}").status == 404
    assert desk.get(f"payments/{order.order_id}").status == 200
    assert desk.post("payments/refund", refund_body(order.payment_id)).status == 200
    assert desk.post("payments/refund", refund_body(plan.payment_id)).status == 200
    assert [row for row in default_scopes if "any-principal" in row["scopes"]] == [
        row for row in default_scopes if row["id"] == (desk.key or "").split("_")[2]
    ]


def test_a_client_token_never_acts_for_any_principal(scene: Scene) -> None:
    """A key may have the scope; what it gives to a phone has it not, whatever is asked for."""
    order = paid(scene)
    desk = scene.another("--scope", "any-principal", "--scope", "payments:read", "--scope", "client-tokens:create")
    refused = desk.post("client-tokens", {"order_id": order.order_id, "scopes": ["any-principal"]})
    issued = desk.post("client-tokens", {"order_id": order.order_id, "scopes": ["payments:read"]})
    phone = desk.holding(issued.json["data"]["token"])

    assert refused.status == 422, str(refused)
    assert phone.get(f"payments/{order.order_id}").status == 404


def test_a_group_acts_as_one_owner(scene: Scene) -> None:
    """A shop's web key takes the money, and its support key gives it back; a third principal stays out."""
    web, support, stranger = scene.another(), scene.another(), scene.another()
    order = paid(scene, web)
    assert_refused(support.post("payments/refund", refund_body(order.payment_id)), 404, "not_found")
    names = [name_of(scene, each) for each in (web, support)]
    grouped = scene.program.run("principals", "group", fresh("group"), *names)
    assert grouped.returncode == 0, grouped.stderr

    assert support.get(f"payments/{order.order_id}").status == 200
    assert support.post("payments/refund", refund_body(order.payment_id)).status == 200
    assert support.charge(charge_body(order.order_id)).status == 200
    assert_refused(stranger.post("payments/refund", refund_body(order.payment_id)), 404, "not_found")
    # Keys stay with each: the support key's "k" is another request than the web key's "k".
    key = fresh("key")
    replies = [each.charge(charge_body(), key=key) for each in (web, support)]
    assert [reply.header("idempotent-replayed") for reply in replies] == [None, None]
    ungrouped = scene.program.run("principals", "ungroup", names[1])
    assert ungrouped.returncode == 0, ungrouped.stderr
    assert support.get(f"payments/{paid(scene, web).order_id}").status == 404


def test_a_renamed_principal_owns_what_it_owned(scene: Scene) -> None:
    """A new name is for new keys: its payments, its Idempotency-Keys and its events stay its own."""
    web = scene.another()
    order, key = paid(scene, web), fresh("key")
    body = charge_body()
    first = web.charge(body, key=key)
    new_name = fresh("renamed")
    renamed = scene.program.run("principals", "rename", name_of(scene, web), new_name)
    assert renamed.returncode == 0, renamed.stderr
    again = scene.program.client(scene.program.new_key(new_name))

    assert again.post("payments/refund", refund_body(order.payment_id)).status == 200
    assert again.charge(body, key=key).body == first.body
    assert again.get(f"operations/{order.operation_id}").status == 200
    taken = scene.program.run("principals", "rename", new_name, "web")
    assert taken.returncode != 0


def name_of(scene: Scene, client: Client) -> str:
    """The principal of a client's key."""
    rows = json.loads(scene.program.run("keys", "list", "--json").stdout)
    return next(str(row["name"]) for row in rows if row["id"] == (client.key or "").split("_")[2])
