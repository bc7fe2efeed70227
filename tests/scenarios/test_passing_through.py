"""What passes through untouched: the gateway's words and numbers downwards, the caller's names upwards."""

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, fresh_number

ODD_NAMES = [
    "a b",
    "a/b",
    "a/../b",
    "..",
    "a#b",
    "a&order_id=b",
    "a?b=c",
    "a%b",
    "a%2Fb",
    "a+b",
    "a=b",
    "a;b",
    'a"b',
    "a'b",
    "a\\b",
    "a|b",
    "ක්‍රමය",
    "é",
    "e\u0301",
    "💳",
    "<b>",
    "{id}",
    "a:b@c",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_order_id_in_the_path_reaches_the_gateway_whole(scene: Scene, name: str) -> None:
    """Whatever stands in the id, upstream it is the value of `order_id` and nothing else."""
    order_id = name + fresh("-")
    reply = scene.client.get("payments/" + quote(order_id, safe=""))
    assert_refused(reply, 404, "not_found")
    (call,) = scene.gateway.calls(payhere.SEARCH, order_id)
    assert parse_qs(urlsplit(call.target).query, strict_parsing=True) == {"order_id": [order_id]}


@pytest.mark.parametrize("name", [*ODD_NAMES, "a\tb", "a\nb"])
def test_an_order_id_in_a_body_reaches_the_gateway_whole(scene: Scene, name: str) -> None:
    """The same for the order of a charge, and it comes back as it went."""
    order_id = name + fresh("-")
    reply = scene.client.charge(charge_body(order_id))
    assert (reply.status, reply.json["data"]["order_id"]) == (200, order_id), str(reply)
    assert [call.json["order_id"] for call in scene.gateway.calls(payhere.CHARGE, order_id)] == [order_id]


def test_two_unicode_forms_of_a_name_are_two_orders(scene: Scene) -> None:
    """Names are compared as they are; they are never normalised into each other."""
    name = fresh("order")
    composed, combined = name + "é", name + "e\u0301"
    assert scene.client.charge(charge_body(composed)).status == 200
    reply = scene.client.charge(charge_body(combined))
    assert reply.header("idempotent-replayed") is None
    assert scene.gateway.count(payhere.CHARGE, composed) == scene.gateway.count(payhere.CHARGE, combined) == 1


def test_a_read_passes_the_gateways_data_undamaged(scene: Scene) -> None:
    """Doubles, 64-bit ids, long decimals, unknown members and the order of members: as the gateway wrote them."""
    order_id = fresh("order")
    record = (
        f'{{"zeta":1,"payment_id":9007199254740993,"order_id":"{order_id}","amount":1000.0,"fee":14.50,'
        '"exchange_rate":0.12345678901234567890,"big":18446744073709551615,"request":{"custom1":null},'
        '"status":"RECEIVED","text":"a\\u0026b \\u0d9a","alpha":[1.10,{"b":1,"a":2}],"nothing":null}'
    )
    body = f'{{"status":1,"msg":"Payments with order_id:{order_id}","data":[{record}],"extra":true}}'
    scene.gateway.script(payhere.SEARCH, order_id, payhere.says(body))
    reply = scene.client.get(f"payments/{order_id}")
    assert reply.status == 200, str(reply)
    assert reply.json["msg"] == f"Payments with order_id:{order_id}"
    assert_same_tokens(reply.body, record)


def members_of(text: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """Numbers digit by digit, members in their order, text by value."""
    return json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=list)


def assert_same_tokens(body: bytes, record: str) -> None:
    """The answer's data holds the record, to the digit."""
    assert dict(members_of(body))["data"] == [members_of(record)]


def test_a_charges_answer_is_the_gateways(scene: Scene) -> None:
    """`msg` and `data` of the charge, `1000.0` included, unknown members included."""
    order_id = fresh("order")
    record = (
        f'{{"order_id":"{order_id}","items":"Taxi Hire 123","currency":"LKR","amount":345.670,"custom_1":null,'
        '"custom_2":null,"payment_id":320025021815,"status_code":2,"status_message":"Successfully completed",'
        '"md5sig":"A098FEBCC06293734641770555B4D569","authorization_token":null,"rate":1.0,"later":{"b":1,"a":[]}}'
    )
    body = f'{{"status":1,"msg":"Automatic payment charged successfully","data":{record}}}'
    scene.gateway.script(payhere.CHARGE, order_id, payhere.says(body))
    reply = scene.client.charge(charge_body(order_id))
    assert (reply.status, reply.json["msg"]) == (200, "Automatic payment charged successfully"), str(reply)
    assert dict(members_of(reply.body))["data"] == members_of(record)


def test_a_refunds_number_is_passed_on(scene: Scene) -> None:
    """The data of a refund is a bare number and stays one."""
    reply = scene.client.post("payments/refund", {"payment_id": fresh_number(), "description": "late"})
    assert (reply.status, reply.json["data"]) == (200, 560034010257), str(reply)


def test_a_subscription_id_goes_up_as_a_number(scene: Scene) -> None:
    """The gateway's pages show `subscription_id` as a number of 12 digits; no digit is lost."""
    number = fresh_number()
    assert scene.client.post(f"subscriptions/{number}/retry").status == 200
    (call,) = scene.gateway.calls(payhere.RETRY, number)
    assert str(call.json["subscription_id"]) == number


def test_every_call_upstream_carries_the_token_and_json(scene: Scene) -> None:
    """`Authorization: Bearer` and `Content-Type: application/json` on each, as the protocol wants it."""
    order_id = fresh("order")
    scene.client.charge(charge_body(order_id))
    (call,) = scene.gateway.calls(payhere.CHARGE, order_id)
    assert call.token in scene.gateway.tokens
    assert dict(call.headers)["content-type"].startswith("application/json")


def test_one_token_serves_many_calls(scene: Scene) -> None:
    """A token is used until it expires: one for each call would eat half of the gateway's budget."""
    orders = [fresh("order") for _ in range(3)]
    for order_id in orders:
        scene.client.charge(charge_body(order_id))
    used = {call.token for order_id in orders for call in scene.gateway.calls(payhere.CHARGE, order_id)}
    assert len(used) == 1


def test_a_callers_headers_stay_here(scene: Scene) -> None:
    """The caller's credential, cookies and origin are nobody's business upstream."""
    order_id = fresh("order")
    fields = [("Cookie", "session=1"), ("Origin", "https://shop.example"), ("Referer", "https://shop.example/x")]
    assert scene.client.post("payments/charge", charge_body(order_id), headers=fields).status == 200
    (call,) = scene.gateway.calls(payhere.CHARGE, order_id)
    assert not {"cookie", "origin", "referer", "idempotency-key"} & {name for name, _ in call.headers}
    assert str(scene.client.key) not in str(call.headers)
