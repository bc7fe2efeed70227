"""The description's examples of requests and of answers with success: each is sent to a demo as it stands."""

import json
import re
from typing import Any, Final, NamedTuple

import pytest
from tests.scenarios.demo import running_demo
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.waiting import until

from payrelay.api.openapi.examples import ANSWERS, REQUESTS

pytestmark = pytest.mark.integration


class Step(NamedTuple):
    """A call by the docs page: a route, its example of a body, and the example of an answer that it must give."""

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
    Step("listSubscriptions", None, "subscriptions"),
    Step("retrieveSubscription", None, "subscription"),
    Step("listSubscriptionPayments"),
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
NOT_ANSWERED: Final = {"subscription states", "subscription state"}
"""A demo knows states only of subscriptions that somebody began on its pages."""
ADDRESSES: Final = ("url", "form")
CHANCE: Final = re.compile(
    r'(?<=")(?:(?:cus|chk|op)_[0-9a-f]{32}|req_[0-9a-f]{24})'
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}Z)?"
    r'|(?<="md5sig": ")[0-9A-F]{32}'
)
NUMBER: Final = re.compile(r'(?<="payment_id": )\d+')
"""A payment that the day itself makes has the next number of the demo's."""


def without_chance(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Puts a star in place of what differs at each run: ids of ours, times, and signatures over a payment's number."""
    return json.loads(NUMBER.sub("0", CHANCE.sub("*", json.dumps(value))))


def as_shown(data: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Leaves out the addresses of a page, which are those of the machine."""
    return {name: data[name] for name in data if name not in ADDRESSES} if isinstance(data, dict) else data


def sent(client: Client, document: Any, step: Step, ids: dict[str, str]) -> Reply:  # noqa: ANN401 - any JSON value
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
    body = None
    if step.example is not None:
        body = described["requestBody"]["content"]["application/json"]["examples"][step.example]["value"]
    headers = [] if body is None else [("Content-Type", "application/json")]
    content = None if body is None else json.dumps(body).encode()
    replies: list[Reply] = []

    def is_free() -> bool:
        replies.append(client.send(method.upper(), path, content, headers))
        return replies[-1].code != "gateway_busy"

    until(is_free, "the gateway takes calls again: 20 in 10 s")
    reply = replies[-1]
    data = reply.json.get("data")
    if isinstance(data, dict) and str(data.get("id", ""))[3:4] == "_":
        ids[data["id"][:4]] = data["id"]
    return reply


def test_every_example_is_walked_or_named() -> None:
    """An example that nobody sends may be a claim."""
    walked = {(step.route, step.example) for step in DAY if step.example is not None}
    assert walked | NOT_IN_A_DEMO.keys() == {(route, name) for route, examples in REQUESTS.items() for name in examples}
    assert {step.answer for step in DAY} - {None} | NOT_ANSWERED == ANSWERS.keys()


def test_a_reader_sends_every_example_in_a_demo(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Who presses "Execute" gets a success, and where the page shows an answer, that one."""
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        client = Client(port=demo.port, key=demo.key)
        document, ids = demo.document(), dict[str, str]()
        replies = {step: sent(client, document, step, ids) for step in DAY}
    assert {step: str(reply) for step, reply in replies.items() if reply.status != 200} == {}
    answered = {step.answer: reply.json for step, reply in replies.items() if step.answer is not None}
    for name, got in answered.items():
        msg, shown = without_chance(ANSWERS[name])
        assert (name, without_chance(got["msg"])) == (name, msg)
        assert without_chance(as_shown(got["data"])) == as_shown(shown)
