"""Notifications over the wire: signed by the test itself, posted to the real program, followed to what they lead to."""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for, state_of
from tests.scenarios.waiting import until

FORM = [("Content-Type", "application/x-www-form-urlencoded")]
PUBLIC = {"PAYRELAY_PUBLIC_URL": "https://pay.example.com"}
CUSTOMER = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "0771234567",
    "address": "1 Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}


@pytest.fixture(scope="module")
def scene(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """One service for the module, that knows its address from outside."""
    with_public = settings_for(gateway) | PUBLIC
    program = Program(folder, with_public)
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


def md5(text: str) -> str:
    """Gives what the gateway makes signatures of."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def signed(order_id: str, status: str = "2", *, account: str = "gateway", **more: str) -> bytes:
    """Writes a notification as the gateway does."""
    fields = {
        "merchant_id": f"merchant-of-{account}",
        "order_id": order_id,
        "payhere_amount": more.pop("payhere_amount", "345.67"),
        "payhere_currency": "LKR",
        "status_code": status,
    }
    signature = md5("".join(fields.values()) + md5(f"merchant-secret-of-{account}"))
    card = {"method": "VISA", "card_holder_name": "S Perera", "card_no": "************1292", "card_expiry": "0129"}
    return urlencode(fields | {"md5sig": signature} | card | more).encode()


def post(client: Client, body: bytes, account: str = "gateway") -> Reply:
    """Posts a notification, as a stranger does."""
    return client.holding(None).send("POST", f"/{account}/notifications", body, FORM)


def listed(program: Program, *options: str) -> list[dict[str, object]]:
    """Gives what `payrelay notifications list` tells."""
    ran = program.run("notifications", "list", "--json", *options)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)
    assert isinstance(rows, list)
    return rows


def open_checkout(scene: Scene, order_id: str, **more: object) -> str:
    """Opens a checkout; gives its id."""
    body = {
        "type": "payment",
        "order_id": order_id,
        "items": "Taxi Hire 123",
        "currency": "LKR",
        "customer": CUSTOMER,
        **more,
    }
    opened = scene.client.post("checkouts", body)
    assert opened.status == 200, str(opened)
    return str(opened.json["data"]["id"])


def checkout_of(client: Client, checkout_id: str) -> dict[str, object]:
    """Reads a checkout."""
    reply = client.get(f"checkouts/{checkout_id}")
    assert reply.status == 200, str(reply)
    data = reply.json["data"]
    assert isinstance(data, dict)
    return data


def test_what_is_taken_is_answered_with_nothing(scene: Scene) -> None:
    """A gateway wants a 200 and no more; that nothing here has the order yet is for later."""
    order_id = fresh("order")
    first, again = post(scene.client, signed(order_id)), post(scene.client, signed(order_id))

    assert [(each.status, each.body) for each in (first, again)] == [(200, b"")] * 2
    until(lambda: listed(scene.program, "--order", order_id)[0]["state"] == "waiting", "it waits")
    (row,) = listed(scene.program, "--order", order_id)
    assert (row["reason"], row["repeats"], row["authenticity"]) == ("unknown_order", 1, "genuine")


def test_what_is_not_taken_is_told_why(scene: Scene) -> None:
    """Whoever sets the address up, or tries to cheat, hears what is wrong; only the cheating is kept."""
    client, order_id = scene.client.holding(None), fresh("order")
    cheating = post(client, signed(order_id).replace(b"345.67", b"1.00"))
    elsewhere = post(client, signed(order_id, account="second"))

    assert_refused(cheating, 403, "forbidden")
    assert_refused(elsewhere, 403, "forbidden")
    assert_refused(
        client.send("POST", "/gateway/notifications", b"{}", [("Content-Type", "application/json")]),
        415,
        "unsupported_media_type",
    )
    assert_refused(post(client, b"order_id=1"), 400, "malformed_request")
    assert_refused(post(client, signed(order_id) + b"&x=" + b"y" * 70_000), 413, "too_large")
    assert_refused(client.send("GET", "/gateway/notifications"), 405, "method_not_allowed")
    assert_refused(post(client, signed(order_id), "nowhere"), 404, "not_found")
    verdicts = sorted(str(row["authenticity"]) for row in listed(scene.program, "--order", order_id))
    assert verdicts == ["forged", "wrong_merchant"]
    text = client.send("GET", "/metrics").body.decode()
    assert 'payrelay_notifications_total{account="gateway",authenticity="forged"}' in text
    assert 'payrelay_notifications_total{account="gateway",authenticity="unreadable"}' in text


@pytest.mark.smoke
def test_a_paid_checkout_is_completed_by_its_notification(scene: Scene) -> None:
    """From the page to paid: the gateway posts, shows the payment, and the app sees it."""
    order_id = fresh("order")
    checkout_id = open_checkout(scene, order_id, amount=Raw(text="345.67"))
    assert post(scene.client, signed(order_id, "-2")).status == 200
    until(lambda: checkout_of(scene.client, checkout_id)["state"] == "failed", "the failure is told")
    record = payhere.payment_now(order_id, "345.67")
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    assert post(scene.client, signed(order_id, payment_id=str(record["payment_id"]))).status == 200

    until(lambda: checkout_of(scene.client, checkout_id)["state"] == "completed", "the payment is proved")
    assert checkout_of(scene.client, checkout_id)["payment_id"] == str(record["payment_id"])


def test_an_approval_becomes_a_customer_that_can_be_charged(scene: Scene) -> None:
    """The app gets a handle; the token goes to the gateway alone."""
    order_id, token = fresh("order"), "59AFEE022CC69CA39D325E1B5913CAFE"
    checkout_id = open_checkout(scene, order_id, type="preapproval")
    body = signed(order_id, payhere_amount="10.00", customer_token=token, payment_id="320000000001")
    assert post(scene.client, body).status == 200
    until(lambda: checkout_of(scene.client, checkout_id)["state"] == "completed", "the approval is stored")
    customer_id = checkout_of(scene.client, checkout_id)["customer_id"]
    paid = fresh("order")
    charged = scene.client.charge(charge_body(paid, customer_token=customer_id), key=fresh("key"))

    assert charged.status == 200, str(charged)
    (call,) = scene.gateway.calls(payhere.CHARGE, paid)
    assert call.json["customer_token"] == token
    assert token not in scene.program.log()
    assert "S Perera" not in scene.program.log()


def test_a_lost_charge_is_settled_by_its_notification(scene: Scene) -> None:
    """The answer was cut off; the notification brings the moment to look, well before the next look by schedule."""
    order_id, key = fresh("order"), fresh("key")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    assert scene.client.charge(charge_body(order_id), key=key).status == 202
    scene.gateway.wait_for(payhere.SEARCH, order_id)
    record = payhere.payment_now(order_id, "345.67")
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    assert post(scene.client, signed(order_id, payment_id=str(record["payment_id"]))).status == 200

    until(lambda: state_of(scene.client, key) == "succeeded", "the charge is settled", deadline_s=5)


def test_a_chargeback_is_shown_at_its_operation(scene: Scene) -> None:
    """Support looks at the charge and sees that the bank took it back; the charge did succeed."""
    order_id, key = fresh("order"), fresh("key")
    charged = scene.client.charge(charge_body(order_id), key=key)
    payment_id = str(charged.json["data"]["payment_id"])
    record = payhere.payment_now(order_id, "345.67") | {"payment_id": int(payment_id), "status": "CHARGEBACKED"}
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    assert post(scene.client, signed(order_id, "-3", payment_id=payment_id)).status == 200
    operation_id = charged.header("payrelay-operation")

    def chargebacks() -> list[dict[str, object]]:
        data = scene.client.get(f"operations/{operation_id}").json["data"]
        assert data["state"] == "succeeded"
        found = data["chargebacks"]
        assert isinstance(found, list)
        return found

    until(lambda: len(chargebacks()) == 1, "the chargeback is kept")
    assert chargebacks()[0]["payment_id"] == payment_id


def test_a_subscription_is_followed_without_the_gateway(scene: Scene) -> None:
    """An app shows what is paid and what comes next; that costs no call."""
    order_id, subscription_id = fresh("order"), "420075044317"
    open_checkout(scene, order_id, type="recurring", amount=Raw(text="345.67"), recurrence="1 Month", duration="1 Year")
    record = payhere.payment_now(order_id, "345.67")
    paid = f"{payhere.SUBSCRIPTIONS}/{subscription_id}/payments"
    scene.gateway.always(paid, subscription_id, payhere.says(payhere.found(record)))
    plan = {
        "subscription_id": int(subscription_id),
        "order_id": order_id,
        "date": record["date"],
        "status": "ACTIVE",
        "currency": "LKR",
        "amount": 345.67,
    }
    shown = f"{payhere.SUBSCRIPTIONS}/{subscription_id}"
    scene.gateway.always(shown, subscription_id, payhere.says(payhere.envelope("Found subscription", plan)))
    body = signed(
        order_id,
        payment_id=str(record["payment_id"]),
        subscription_id=subscription_id,
        message_type="AUTHORIZATION_SUCCESS",
        item_rec_status="0",
        item_rec_install_paid="1",
        item_rec_date_next="2026-12-21",
    )
    assert post(scene.client, body).status == 200
    path = f"subscription-states/{subscription_id}"
    until(lambda: scene.client.get(path).status == 200, "it is known")
    calls = [(paid, subscription_id), (shown, subscription_id)]
    asked = [scene.gateway.count(*call) for call in calls]
    state = scene.client.get(path).json["data"]

    assert (state["state"], state["installments_paid"], state["next_on"]) == ("active", 1, "2026-12-21")
    assert [each["subscription_id"] for each in scene.client.get("subscription-states").json["data"]] == [
        subscription_id
    ]
    assert [scene.gateway.count(*call) for call in calls] == asked
    assert_refused(scene.client.get("subscription-states/1"), 404, "not_found")


def test_a_kill_in_the_midst_loses_nothing(tmp_path: Path, gateway: GatewayDouble) -> None:
    """Kill -9 after the 200, while the gateway is being asked: the next start works on it at once."""
    program = Program(tmp_path, settings_for(gateway) | PUBLIC)
    key = program.new_key("shop")
    program.start()
    try:
        own = Scene(program=program, gateway=gateway, client=program.client(key))
        order_id = fresh("order")
        checkout_id = open_checkout(own, order_id, amount=Raw(text="345.67"))
        record = payhere.payment_now(order_id, "345.67")
        held = gateway.hold(payhere.SEARCH, order_id)
        assert post(own.client, signed(order_id, payment_id=str(record["payment_id"]))).status == 200
        held.wait_for_arrival()
        program.kill()
        held.released.set()
        gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
        program.start()
        client = program.client(key)

        until(lambda: checkout_of(client, checkout_id)["state"] == "completed", "it is worked on")
        until(lambda: listed(program)[0]["state"] == "applied", "and finished")
        assert len(listed(program)) == 1
    finally:
        program.kill()


@pytest.mark.integration
def test_a_storm_with_a_kill_in_it_loses_no_notification_that_was_answered(
    tmp_path: Path, gateway: GatewayDouble
) -> None:
    """What was answered with 200 is on disk, wherever the power failed."""
    program = Program(tmp_path, settings_for(gateway) | PUBLIC)
    program.new_key("shop")
    program.start()
    client = program.client(None)
    orders = [fresh("order") for _ in range(200)]

    def deliver(order_id: str) -> str | None:
        try:
            return order_id if post(client, signed(order_id)).status == 200 else None
        except (RemoteDisconnected, ConnectionError):
            return None

    try:
        with ThreadPoolExecutor(8) as pool:
            running = [pool.submit(deliver, order_id) for order_id in orders]
            until(lambda: sum(each.done() for each in running) > 60, "some are answered")
            program.kill()
            answered = {each.result() for each in running} - {None}
        program.start()
        kept = {str(row["order_id"]) for row in listed(program, "--limit", "1000")}
    finally:
        program.kill()

    assert len(answered) > 50
    assert answered <= kept
