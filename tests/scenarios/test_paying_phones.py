"""What a phone pays: exactly what its token names, and no more often, on both databases."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble, refuses
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.phones import AMOUNT, data, token_for
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for

from payrelay.api.openapi.examples import REQUESTS

PAYING = ["payments:charge", "checkouts:create", "payments:read", "operations:read", "checkouts:read"]
PHONES, CHARGES_EACH = 5, 10
ROUNDS = 8
PLAN = {"recurrence": "1 Month", "duration": "1 Year"}
POSTGRESQL = pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.integration])


@pytest.fixture(scope="module", params=["sqlite", POSTGRESQL])
def shop(request: pytest.FixtureRequest, folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A shop on each database, which can send its customers to the gateway's page."""
    environment = settings_for(gateway) | {"PAYRELAY_PUBLIC_URL": "https://pay.example"}
    if request.param == "postgresql":
        server, name = request.getfixturevalue("postgresql_server"), f"phones_{drawn_uuid().hex}"
        server.run("createdb", "-h", str(server.folder), "-U", "payrelay", name)
        environment["PAYRELAY_DATABASE_URL"] = server.url(name)
        environment["PAYRELAY_ENCRYPTION_KEY"] = base64.b64encode(bytes(range(32))).decode()
    home = folder / request.param
    home.mkdir()
    program = Program(home, environment)
    assert program.run("db", "upgrade").returncode == 0
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest.fixture
def customer(shop: Scene) -> str:
    """A customer with a card."""
    return str(data(shop.client.post("customers", {"customer_token": drawn_uuid().hex.upper()}))["id"])


def phone_of(shop: Scene, customer: str, order_id: str, **members: object) -> Client:
    """A phone that may pay AMOUNT for the order once, but for what is named."""
    usual = {"amount": AMOUNT, "currency": "LKR", "scopes": PAYING}
    return token_for(shop.client, **({"customer_id": customer, "order_id": order_id} | usual | members))


def paying(order_id: str, **changes: object) -> dict[str, object]:
    """A charge as a phone sends it."""
    body = charge_body(order_id, **changes)
    del body["customer_token"]
    return body


def page(order_id: str, **changes: object) -> dict[str, Any]:
    """A checkout of the price, as a phone asks for it."""
    usual = {"type": "payment", "order_id": order_id, "currency": "LKR", "amount": AMOUNT, "items": "Tea"}
    return {"customer": REQUESTS["openCheckout"]["payment"]["value"]["customer"]} | usual | changes


def paid(reply: Reply) -> str:
    """The operation of a charge that succeeded."""
    assert reply.status == 200, str(reply)
    return str(reply.header("payrelay-operation"))


@pytest.mark.parametrize(
    "changes",
    [{"amount": Raw(text="1.00")}, {"amount": Raw(text="345.68")}, {"currency": "USD"}, {"type": "AUTHORIZE"}],
    ids=str,
)
def test_a_phone_pays_exactly_what_its_token_names(shop: Scene, customer: str, changes: dict[str, object]) -> None:
    """An app that somebody changed can't pay a rupee for a bicycle, nor only hold the money."""
    order_id = fresh("order")
    phone = phone_of(shop, customer, order_id)

    assert_refused(phone.charge(paying(order_id, **changes)), 403, "forbidden")
    assert shop.gateway.count("payment/charge", order_id) == 0
    paid(phone.charge(paying(order_id)))


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": Raw(text="1.00")},
        {"amount": Raw(text="345.68")},
        {"currency": "USD"},
        {"type": "authorization"},
        {"type": "preapproval"},
        {"type": "recurring"} | PLAN,
    ],
    ids=str,
)
def test_a_phone_opens_no_page_for_anything_else(shop: Scene, customer: str, changes: dict[str, object]) -> None:
    """The gateway's page asks for what the shop's server named, whatever the phone would rather pay there."""
    order_id = fresh("order")
    phone = phone_of(shop, customer, order_id)

    assert_refused(phone.post("checkouts", page(order_id, **changes)), 403, "forbidden")
    assert data(phone.post("checkouts", page(order_id)))["state"] == "open"


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": Raw(text="1.00")},
        {"recurrence": "1 Year"},
        {"duration": "1 Month"},
        {"startup_fee": Raw(text="-300.00")},
        {"type": "payment", "recurrence": None, "duration": None},
    ],
    ids=str,
)
def test_a_phone_subscribes_to_its_plan_alone(shop: Scene, customer: str, changes: dict[str, object]) -> None:
    """A monthly price isn't paid once a year, and no phone gives itself a discount on the first month."""
    order_id = fresh("order")
    phone = phone_of(shop, customer, order_id, type="recurring", **PLAN)
    asked = page(order_id, type="recurring", **PLAN) | changes

    refused = phone.post("checkouts", {name: value for name, value in asked.items() if value is not None})
    assert_refused(refused, 403, "forbidden")
    assert data(phone.post("checkouts", page(order_id, type="recurring", **PLAN)))["kind"] == "recurring"


def test_an_order_is_paid_once_with_any_number_of_tokens(shop: Scene, customer: str) -> None:
    """The second token is told what paid; a repeat of the first request gets its answer with any token."""
    order_id = fresh("order")
    first, second = phone_of(shop, customer, order_id), phone_of(shop, customer, order_id)
    answer = first.charge(paying(order_id), key="one")
    operation_id = paid(answer)

    again = second.charge(paying(order_id), key="two")
    assert_refused(again, 409, "conflict")
    assert (again.error["operation_id"], again.error["retry"]) == (operation_id, "never")
    assert str(answer.json["data"]["payment_id"]) in again.json["msg"]
    assert_refused(second.post("checkouts", page(order_id)), 409, "conflict")
    third = phone_of(shop, customer, order_id, amount=Raw(text="1.00"))
    for phone in (first, second, third):
        repeat = phone.charge(paying(order_id), key="one")
        assert (repeat.status, repeat.body, repeat.header("idempotent-replayed")) == (200, answer.body, "true")
    assert shop.gateway.count("payment/charge", order_id) == 1


def test_what_another_customer_paid_is_not_named(shop: Scene, customer: str) -> None:
    """Two share a bill: the second one learns that it is paid, and no id of the first one's payment."""
    order_id = fresh("order")
    other = str(data(shop.client.post("customers", {"customer_token": drawn_uuid().hex.upper()}))["id"])
    answer = phone_of(shop, other, order_id).charge(paying(order_id))

    refused = phone_of(shop, customer, order_id).charge(paying(order_id))
    assert_refused(refused, 409, "conflict")
    assert "operation_id" not in refused.error
    assert paid(answer) not in refused.body.decode()
    assert str(answer.json["data"]["payment_id"]) not in refused.body.decode()


def test_a_declined_card_gives_the_payment_back(shop: Scene, customer: str) -> None:
    """The customer tries again, with the same token, until the order is paid."""
    order_id = fresh("order")
    phone = phone_of(shop, customer, order_id)
    shop.gateway.script("payment/charge", order_id, refuses("Declined"), refuses("Declined"))

    assert [phone.charge(paying(order_id), key=f"{number}").status for number in range(4)] == [402, 402, 200, 409]


def test_a_token_for_two_payments_makes_two(shop: Scene, customer: str) -> None:
    """Where the shop's server wants two payments of one order, it says so, and gets no third one."""
    order_id = fresh("order")
    phones = [phone_of(shop, customer, order_id, payments=2) for _ in range(3)]

    assert [phone.charge(paying(order_id), key=fresh("k")).status for phone in phones] == [200, 200, 409]


@pytest.mark.parametrize("is_own", [True, False])
def test_what_a_key_charged_counts(shop: Scene, customer: str, *, is_own: bool) -> None:
    """The order is paid, whoever paid it; and no phone learns the ids of what a key did for another customer."""
    order_id = fresh("order")
    operation_id = paid((shop.client if is_own else shop.another()).charge(charge_body(order_id)))
    refused = phone_of(shop, customer, order_id).charge(paying(order_id))

    assert_refused(refused, 409, "conflict")
    assert operation_id not in refused.body.decode()
    assert shop.gateway.count("payment/charge", order_id) == 1


def test_an_open_page_holds_the_payment(shop: Scene, customer: str) -> None:
    """While the customer may be paying on the gateway's page, the app doesn't charge the card as well."""
    order_id = fresh("order")
    phone = phone_of(shop, customer, order_id)
    opened = data(phone.post("checkouts", page(order_id)))

    refused = phone.charge(paying(order_id))
    assert_refused(refused, 409, "in_progress")
    assert refused.json["error"]["checkout_id"] == opened["id"]
    assert data(phone.post("checkouts", page(order_id)))["id"] == opened["id"]
    assert shop.gateway.count("payment/charge", order_id) == 0


def test_fifty_charges_with_five_tokens_pay_once(shop: Scene, customer: str) -> None:
    """All at once, each with a key of its own: the order is paid once, and the others are told so or to wait.

    The tokens of one order have one rate, so that some of the charges don't get as far as to be counted.
    """
    order_id = fresh("order")
    phones = [phone_of(shop, customer, order_id) for _ in range(PHONES)]

    def pay(number: int) -> Reply:
        return phones[number % PHONES].charge(paying(order_id), key=f"try-{number}")

    with ThreadPoolExecutor(PHONES * CHARGES_EACH) as threads:
        replies = list(threads.map(pay, range(PHONES * CHARGES_EACH)))
    assert shop.gateway.count("payment/charge", order_id) == 1
    assert [reply.status for reply in replies].count(200) == 1
    others = {(reply.status, reply.code) for reply in replies if reply.status != 200}
    assert (409, "conflict") in others or (409, "in_progress") in others
    assert others <= {(409, "conflict"), (409, "in_progress"), (429, "rate_limited")}


def test_a_charge_and_a_page_at_once_are_one_payment(shop: Scene, customer: str) -> None:
    """Neither sees the other one begin, and still only one of them may."""

    def begin(phone: Client, order_id: str, number: int) -> Reply:
        key = f"{order_id}-{number}"
        if number % 2:
            return phone.post("checkouts", page(order_id), key=key)
        return phone.charge(paying(order_id), key=key)

    with ThreadPoolExecutor(PHONES) as threads:
        for _ in range(ROUNDS):
            order_id = fresh("order")
            phones = [phone_of(shop, customer, order_id) for _ in range(PHONES)]
            begun = [threads.submit(begin, phone, order_id, number) for number, phone in enumerate(phones)]
            replies = [each.result() for each in begun]
            statuses = sorted(reply.status for reply in replies)
            assert statuses == [200] + [409] * (PHONES - 1), [str(reply) for reply in replies]


def test_no_phone_sees_a_signature_or_an_authorization_token(shop: Scene, customer: str) -> None:
    """With them a phone could forge what the gateway reports, or capture; the shop's server has both."""
    order_id = fresh("order")
    phone = phone_of(shop, customer, order_id, type="authorization")
    body = paying(order_id, type="AUTHORIZE")
    answer = phone.charge(body, key="hold")
    operation_id = paid(answer)

    answers = [
        answer.json,
        phone.charge(body, key="hold").json,
        phone.get(f"operations/{operation_id}").json["data"]["answer"]["body"],
        phone.get("operations/by-key/hold").json["data"]["answer"]["body"],
    ]
    for shown in answers:
        assert (shown["data"]["md5sig"], shown["data"]["authorization_token"]) == (None, None)
        assert shown["data"]["order_id"] == order_id
    seen = shop.client.get(f"operations/{operation_id}").json["data"]["answer"]["body"]["data"]
    assert seen["md5sig"]
    assert seen["authorization_token"]


def test_a_phone_in_a_hurry_does_not_keep_its_shop_waiting(shop: Scene) -> None:
    """A phone that asks without end is told to wait. Its shop's key has its own quota, and so have other phones."""
    server = shop.another("--rate", "20/1h")
    phones = [token_for(server, order_id=fresh("order")) for _ in range(2)]
    replies = [phones[0].get("operations").status for _ in range(25)]

    assert replies == [200] * 20 + [429] * 5
    assert phones[1].get("operations").status == 200
    assert server.get("operations").status == 200
