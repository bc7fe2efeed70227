"""The description's examples of answers without success: each is provoked in the demo, and compared."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
import pytest
from tests.scenarios.demo import Demo, running_demo
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.waiting import until

from payrelay.api.openapi.examples import CHECKOUT
from payrelay.api.openapi.failure_examples import EXAMPLES

ACCOUNT = "/gateway/api"
CHARGE = {
    "type": "PAYMENT",
    "order_id": "DemoOrder4",
    "items": "Taxi Hire 124",
    "currency": "LKR",
    "amount": 345.67,
    "customer_token": "D3A0" * 8,
}
NOBODY = "0" * 32
JSON = "application/json"
CLOSED_S = 15
"""Longer than the gateway's budget of calls can be used up."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request that gets the answer, and what is done before.

    Attributes:
        method, path, body, key, content_type: of the request; a body in bytes is sent as it is.
        fault: what the gateway does, and with which order.
        is_gateway_closed: whether the gateway takes no connections.
        before: requests that are sent first.
        credential: the demo's key, none, or a client token that may only read.
    """

    method: str = "POST"
    path: str = "/payments/charge"
    body: object = None
    key: str | None = None
    content_type: str = JSON
    fault: tuple[str, str] | None = None
    is_gateway_closed: bool = False
    before: tuple["Call", ...] = field(default=())
    credential: str = "key"


def charge(**changes: object) -> dict[str, object]:
    """Gives a charge with some members changed."""
    return {**CHARGE, **changes}


LOST = Call(body=charge(order_id="LostOrder"), key="lost-1", fault=("cut_after", "LostOrder"))
LOST_TOO = Call(body=charge(order_id="LostOrder2"), key="lost-2", fault=("cut_after", "LostOrder2"))
# The connection to the gateway is kept alive until something cuts it.
CUT = Call(body=charge(order_id="LostOrder3"), key="lost-4", fault=("cut_after", "LostOrder3"))
SHOWN_LATE = Call(body=charge(order_id="ShownLate"), key="shown-late", fault=("late_visibility", "ShownLate"))
OPEN_PAGE = Call(path="/checkouts", body=CHECKOUT, key="page-1")
SAME = Call(body=charge(order_id="SameOrder"), key="same")
CALLS = {
    "pending": Call(body=charge(order_id="SlowOrder"), fault=("pending", "SlowOrder")),
    "outcome_unknown": LOST,
    "in_progress": Call(body=charge(order_id="LostOrder2"), key="lost-3", before=(LOST_TOO,)),
    "malformed_request": Call(body=b'{"type":"PAYMENT"'),
    "bad_key": Call(body=CHARGE, key="two words"),
    "unauthenticated": Call(body=CHARGE, credential="none"),
    "declined": Call(body=charge(customer_token="DEC1" * 8)),
    "forbidden": Call(path="/payments/capture", body={}, credential="token"),
    "not_shown_yet": Call(method="GET", path="/payments/ShownLate", before=(SHOWN_LATE,)),
    "no_payments": Call(method="GET", path="/payments/NoSuchOrder"),
    "no_order": Call(method="GET", path="/orders/NoSuchOrder"),
    "no_operation": Call(method="GET", path=f"/operations/op_{NOBODY}"),
    "no_customer": Call(method="GET", path=f"/customers/cus_{NOBODY}"),
    "no_checkout": Call(method="GET", path=f"/checkouts/chk_{NOBODY}"),
    "no_endpoint": Call(method="GET", path=f"/endpoints/end_{NOBODY}"),
    "no_client_token": Call(method="DELETE", path=f"/client-tokens/ct_{NOBODY}"),
    "method_not_allowed": Call(method="DELETE", path="/operations"),
    "open_page": Call(path="/checkouts", body={**CHECKOUT, "amount": 1200}, key="page-2", before=(OPEN_PAGE,)),
    "not_eligible": Call(path="/subscriptions/420075000003/retry"),
    "no_recovery": Call(path="/recovery/acknowledgement", body={"incarnation": 1}),
    "position_lost": Call(method="GET", path="/events?after=999999"),
    "too_large": Call(body=charge(items="x" * 70_000)),
    "unsupported_media_type": Call(body=CHARGE, content_type="text/plain"),
    "inexact_amount": Call(body=charge(amount=10.100000000000001)),
    "wrong_address": Call(path="/endpoints", body={"url": "http://shop.example/events"}),
    "idempotency_mismatch": Call(body=charge(order_id="OtherOrder"), key="same", before=(SAME,)),
    "gateway_unreachable": Call(body=charge(order_id="LateOrder"), before=(CUT,), is_gateway_closed=True),
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One demo for all."""
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        yield demo


def sent(demo: Demo, call: Call) -> Reply:
    """Prepares the gateway, sends what comes before, then the request, once the gateway takes calls: 20 in 10 s."""
    for earlier in call.before:
        sent(demo, earlier)
    if call.fault is not None:
        fault, order_id = call.fault
        rule = {"fault": fault, "match": {"endpoint": "charge", "order_id": order_id}, "times": 1}
        demo.control("faults", {"script": [rule]})
    if call.is_gateway_closed:
        demo.control("listener", {"close_for_s": CLOSED_S})
    key: str | None = demo.key if call.credential == "key" else None
    if call.credential == "token":
        order = Call(path="/client-tokens", body={"order_id": "ReadOrder"})
        key = str(sent(demo, order).json["data"]["token"])
    headers = [] if key is None else [("Authorization", f"Bearer {key}")]
    headers += [] if call.key is None else [("Idempotency-Key", call.key)]
    headers += [] if call.body is None else [("Content-Type", call.content_type)]
    content = call.body if isinstance(call.body, bytes | None) else json.dumps(call.body).encode()
    client, replies = Client(port=demo.port, key=None), list[Reply]()

    def is_free() -> bool:
        replies.append(client.send(call.method, f"{ACCOUNT}{call.path}", content, headers))
        return replies[-1].code != "gateway_busy"

    until(is_free, "the gateway takes calls again")
    return replies[-1]


def without_chance(body: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Puts stars in place of what differs at each run: ids, and the signature, which has the payment's number."""
    text = re.sub(r"(req_|op_|chk_)[0-9a-f]+", r"\1*", json.dumps(body))
    text = re.sub(r'"payment_id": [0-9]+', '"payment_id": 0', text)
    text = re.sub(r"by the payment [0-9]+", "by the payment *", text)
    return json.loads(re.sub(r'"md5sig": "[0-9A-F]{32}"', '"md5sig": "*"', text))


@pytest.mark.integration
def test_every_example_is_provoked() -> None:
    """An example that nobody can get is a claim."""
    assert CALLS.keys() == EXAMPLES.keys()


# Out of reach, the gateway gives no other answer for some seconds, and so comes last.
@pytest.mark.integration
@pytest.mark.parametrize("name", CALLS)
def test_an_example_is_what_the_demo_answers(demo: Demo, name: str) -> None:
    """Whoever tries what the docs show gets what the docs show, in the form that they describe."""
    reply = sent(demo, CALLS[name])
    assert without_chance(reply.json) == without_chance(EXAMPLES[name].body)
    kind = "Accepted" if reply.status == 202 else "Failure"
    schema = {"$ref": f"#/components/schemas/{kind}", "components": demo.document()["components"]}
    assert jsonschema_rs.validator_for(schema).is_valid(reply.json)
