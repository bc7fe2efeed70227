"""Records the description's examples from a demo: each of its requests is sent as it stands, each failure is provoked.

What differs at each run is made stable: ids of the service's own, times, tokens, and the addresses of the machine.
"""

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.scenarios.demo import Demo, running_demo
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.waiting import until
from tests.sources import ROOT

from payrelay.api.openapi.examples import REQUESTS
from payrelay.api.requests.parameters import ID_EXAMPLE

EXAMPLES: Final = ROOT / "src/payrelay/api/openapi/examples.json"
ACCOUNT: Final = "/gateway/api"
JSON: Final = "application/json"


class Step(NamedTuple):
    """A call by the docs page: a route, its example of a body, and the answer that is recorded under this name."""

    route: str
    example: str | None = None
    answer: str | None = None


DAY: Final = (
    Step("retrievePayments", None, "payments"),
    Step("charge", "payment", "charge"),
    Step("charge", "authorization"),
    Step("capture", "part", "capture"),
    Step("refund", "whole", "refund"),
    Step("refund", "part"),
    Step("showOrder", None, "order"),
    Step("refund", "void"),
    Step("retrieveSubscription", None, "subscription"),
    Step("listSubscriptionPayments"),
    Step("listSubscriptionStates", None, "subscription states"),
    Step("showSubscriptionState", None, "subscription state"),
    Step("listSubscriptions", None, "subscriptions"),
    Step("retrySubscription"),
    Step("cancelSubscription", None, "nothing"),
    Step("importCustomer", "token", "customer"),
    Step("importCustomer", "bare"),
    Step("listCustomers", None, "customers"),
    Step("changeCustomer", "label"),
    Step("changeCustomer", "nameless"),
    Step("removeCustomer"),
    Step("eraseCustomer", None, "erased customer"),
    Step("openCheckout", "payment", "opened checkout"),
    Step("showCheckout", None, "checkout"),
    Step("closeCheckout", None, "closed checkout"),
    Step("openCheckout", "preapproval"),
    Step("openCheckout", "recurring"),
    Step("openCheckout", "authorization"),
    Step("issueClientToken", "read"),
    Step("createEndpoint", "all"),
    Step("createEndpoint", "some"),
    Step("changeEndpoint", "pause"),
    Step("changeEndpoint", "start"),
    Step("replayEvents", "span"),
)
NOT_IN_A_DEMO: Final = {
    ("issueClientToken", "order"): "its customer has a new id in each demo",
    ("replayEvents", "one"): "its event has a new id in each demo",
    ("acknowledgeRecovery", "recovery"): "a demo loses no database",
}

CHARGE: Final = {
    "type": "PAYMENT",
    "order_id": "DemoOrder4",
    "items": "Taxi Hire 124",
    "currency": "LKR",
    "amount": 345.67,
    "customer_token": "D3A0" * 8,
}
CHECKOUT: Final = REQUESTS["openCheckout"]["payment"]["value"]
NOBODY: Final = "0" * 32
CLOSED_S: Final = 15
"""Longer than the gateway's budget of calls can be used up."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request that gets a failure, and what is done before.

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
    before: tuple["Call", ...] = ()
    credential: str = "key"


def charge(**changes: object) -> dict[str, object]:
    """Gives a charge with some members changed."""
    return {**CHARGE, **changes}


LOST = Call(body=charge(order_id="LostOrder"), key="lost-1", fault=("cut_after", "LostOrder"))
PENDING = Call(body=charge(order_id="SlowOrder"), fault=("pending", "SlowOrder"))
# The connection to the gateway is kept alive until something cuts it.
CUT = Call(body=charge(order_id="LostOrder3"), key="lost-4", fault=("cut_after", "LostOrder3"))
SHOWN_LATE = Call(body=charge(order_id="ShownLate"), key="shown-late", fault=("late_visibility", "ShownLate"))
OPEN_PAGE = Call(path="/checkouts", body=CHECKOUT, key="page-1")
SAME = Call(body=charge(order_id="SameOrder"), key="same")
CALLS: Final = {
    "pending": PENDING,
    "outcome_unknown": LOST,
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
    "in_progress": Call(body=charge(order_id="SlowOrder"), key="slow-2", before=(PENDING,)),
    "open_page": Call(path="/checkouts", body={**CHECKOUT, "amount": 1200}, key="page-2", before=(OPEN_PAGE,)),
    "not_eligible": Call(path="/subscriptions/420075000003/retry"),
    "no_recovery": Call(path="/recovery/acknowledgement", body={"incarnation": 1}),
    "position_lost": Call(method="GET", path="/events?after=999999"),
    "too_large": Call(body=charge(items="x" * 70_000)),
    "unsupported_media_type": Call(body=CHARGE, content_type="text/plain"),
    "inexact_amount": Call(body=charge(amount=10.100000000000001)),
    "wrong_address": Call(path="/endpoints", body={"url": "http://shop.example/events"}),
    "idempotency_mismatch": Call(body=charge(order_id="OtherOrder"), key="same", before=(SAME,)),
    # Out of reach, the gateway gives no other answer for some seconds, and so this comes last.
    "gateway_unreachable": Call(body=charge(order_id="LateOrder"), before=(CUT,), is_gateway_closed=True),
}


class Recorded(NamedTuple):
    """What a demo answered, as it is shown; ``refused`` are the requests of the docs page that got no success."""

    answers: dict[str, Any]
    failures: dict[str, Any]
    refused: dict[Step, str]


def recorded(demo: Demo) -> Recorded:
    """Plays the day and provokes the failures in a new demo."""
    told = Recorded({}, {}, {})
    client, document, ids = Client(port=demo.port, key=demo.key), demo.document(), dict[str, str]()
    for step in DAY:
        reply = _by_page(client, document, step, ids)
        if reply.status != 200:
            told.refused[step] = str(reply)
        elif step.answer is not None:
            told.answers[step.answer] = stable(demo, reply.json)
    told.failures.update({name: stable(demo, _provoked(demo, call).json) for name, call in CALLS.items()})
    return told


def _once_free(send: Callable[[], Reply]) -> Reply:
    """Sends a request once the gateway takes calls: 20 in 10 s."""
    replies: list[Reply] = []

    def is_free() -> bool:
        replies.append(send())
        return replies[-1].code != "gateway_busy"

    until(is_free, "the gateway takes calls again")
    return replies[-1]


def _by_page(client: Client, document: Any, step: Step, ids: dict[str, str]) -> Reply:  # noqa: ANN401 - any JSON value
    """Sends a step as the page would: with the parameter's example, or with an id that an earlier answer showed."""
    ((path, method, described),) = (
        (path, method, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
        if described["operationId"] == step.route
    )
    for parameter in described.get("parameters", []):
        if parameter.get("in") == "path":
            example = str(parameter["example"])
            path = path.replace(f"{{{parameter['name']}}}", ids.get(example[:4], example))
    content, headers = None, []
    if step.example is not None:
        body = described["requestBody"]["content"][JSON]["examples"][step.example]["value"]
        content, headers = json.dumps(body).encode(), [("Content-Type", JSON)]
    reply = _once_free(lambda: client.send(method.upper(), path, content, headers))
    data = reply.json.get("data")
    if isinstance(data, dict) and str(data.get("id", ""))[3:4] == "_":
        ids[data["id"][:4]] = data["id"]
    return reply


def _provoked(demo: Demo, call: Call) -> Reply:
    """Prepares the gateway, sends what comes before, then the request."""
    for earlier in call.before:
        _provoked(demo, earlier)
    if call.fault is not None:
        fault, order_id = call.fault
        rule = {"fault": fault, "match": {"endpoint": "charge", "order_id": order_id}, "times": 1}
        demo.control("faults", {"script": [rule]})
    if call.is_gateway_closed:
        demo.control("listener", {"close_for_s": CLOSED_S})
    key: str | None = demo.key if call.credential == "key" else None
    if call.credential == "token":
        order = Call(path="/client-tokens", body={"order_id": "ReadOrder"})
        key = str(_provoked(demo, order).json["data"]["token"])
    headers = [] if key is None else [("Authorization", f"Bearer {key}")]
    headers += [] if call.key is None else [("Idempotency-Key", call.key)]
    headers += [] if call.body is None else [("Content-Type", call.content_type)]
    content = call.body if isinstance(call.body, bytes | None) else json.dumps(call.body).encode()
    client = Client(port=demo.port, key=None)
    return _once_free(lambda: client.send(call.method, f"{ACCOUNT}{call.path}", content, headers))


FIRST: Final = datetime.fromisoformat("2026-03-01T08:00:00")
STEP: Final = timedelta(seconds=10)


def stable(demo: Demo, body: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Gives an answer as it is shown: each value that differs at each run has another one of its form."""
    text = json.dumps(body).replace(demo.address, "https://pay.example")
    text = text.replace(demo.gateway, "https://sandbox.payhere.lk")
    text = re.sub(rf"\b(cus|chk|op)_(?!{NOBODY})[0-9a-f]{{32}}", rf"\1_{ID_EXAMPLE}", text)
    text = re.sub(r"\breq_[0-9a-f]{24}", "req_5af22480a16661292670ceae", text)
    text = re.sub(rf"(chk_{ID_EXAMPLE}/)[\w-]{{20,}}", r"\1Jw0c…", text)
    text = re.sub(r'("next_on": )"[\d-]+"', rf'\1"{FIRST + timedelta(days=31):%Y-%m-%d}"', text)
    text = re.sub(r"\.\d{3}Z", ".000Z", text)
    return json.loads(_moved(_moved(text, "T"), " "))


def _moved(text: str, between: str) -> str:
    """Moves the earliest time in a text to FIRST, and the others with it; whole steps are left between them."""
    pattern = rf"\d{{4}}-\d\d-\d\d{between}\d\d:\d\d:\d\d"
    times = [datetime.fromisoformat(each) for each in re.findall(pattern, text)]

    def moved(found: re.Match[str]) -> str:
        later = round((datetime.fromisoformat(found[0]) - min(times)) / STEP) * STEP
        return (FIRST + later).isoformat(between)

    return re.sub(pattern, moved, text)


def main() -> None:
    """Writes the answers of a new demo into the file of examples."""
    shown = json.loads(EXAMPLES.read_text())
    with tempfile.TemporaryDirectory() as folder, running_demo(Path(folder)) as demo:
        told = recorded(demo)
    if told.refused:
        raise SystemExit(f"refused: {told.refused}")
    shown["answers"] = told.answers
    for name, value in told.failures.items():
        shown["failures"][name]["value"] = value
    EXAMPLES.write_text(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
