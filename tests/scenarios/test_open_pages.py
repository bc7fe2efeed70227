"""What needs no credential, and what every request leaves behind: health, metrics, documents, ids and log lines."""

import json
import re

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Reply
from tests.scenarios.stories import Scene, charge_body, fresh, fresh_number
from tests.scenarios.waiting import until

OPERATIONS = {
    ("get", "payments/{id}"),
    ("post", "payments/charge"),
    ("post", "payments/capture"),
    ("post", "payments/refund"),
    ("get", "subscriptions"),
    ("get", "subscriptions/{id}"),
    ("get", "subscriptions/{id}/payments"),
    ("post", "subscriptions/{id}/retry"),
    ("delete", "subscriptions/{id}"),
}


def page(scene: Scene, path: str) -> Reply:
    """The page, asked for by nobody in particular."""
    reply = scene.client.holding(None).send("GET", path)
    assert reply.status == 200, str(reply)
    return reply


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs"])
def test_an_open_page_needs_no_credential(scene: Scene, path: str) -> None:
    """Probes, scrapers and readers hold no key."""
    assert page(scene, path).body


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_head_is_get_without_a_body(scene: Scene, path: str) -> None:
    """Load balancers and monitors ask so, and take 405 for an ill service."""
    head = scene.client.holding(None).send("HEAD", path)
    get = page(scene, path)
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-type") == get.header("content-type")


def test_the_metrics_are_prometheus_text(scene: Scene) -> None:
    """Each line is a comment or a sample; a charge moves some of them."""
    before = page(scene, "/metrics").body
    scene.client.charge(charge_body())
    after = page(scene, "/metrics")
    assert (after.header("content-type") or "").startswith("text/plain")
    assert before != after.body
    for line in after.body.decode().splitlines():
        assert re.fullmatch(r"#.*|[a-zA-Z_:][\w:]*(\{.*\})? \S+( \d+)?", line), line


def test_the_metrics_do_not_grow_with_ids(scene: Scene) -> None:
    """No order, no path of a caller's choosing becomes a label: cardinality is ours."""
    order_id = fresh("order")
    scene.client.charge(charge_body(order_id))
    scene.client.get(f"payments/{order_id}")
    scene.client.get(f"{order_id}/{order_id}")
    scene.client.at(order_id).get("payments/1")
    assert order_id.encode() not in page(scene, "/metrics").body


def test_the_document_names_the_nine_operations(scene: Scene) -> None:
    """/openapi.json describes the interface at each account's name."""
    document = json.loads(page(scene, "/openapi.json").body)
    assert document["openapi"].startswith("3.")
    served = {
        (method, re.sub(r"\{[^}]+\}", "{id}", path.partition("/api/")[2]))
        for path, item in document["paths"].items()
        for method in item
    }
    assert served >= OPERATIONS


def test_the_docs_load_nothing_from_elsewhere(scene: Scene) -> None:
    """/docs has local assets: it works without the Internet and tells nobody who reads it."""
    text = page(scene, "/docs").body.decode()
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", text)


def test_the_service_is_ready_whether_or_not_the_gateway_is(scene: Scene) -> None:
    """Readiness is of the store alone: a gateway's bad day must not take the service out of its balancer."""
    assert isinstance(scene.gateway, GatewayDouble)
    assert page(scene, "/health/ready").status == 200


@pytest.mark.parametrize("path", ["/", "/nothing", "/favicon.ico", "/health", "/metrics/x", "/gateway", "/gateway/api"])
def test_elsewhere_is_404_or_401_and_no_fault(scene: Scene, path: str) -> None:
    """Paths that we don't have are said to be so."""
    assert scene.client.holding(None).send("GET", path).status in {401, 404, 307, 308, 302}


def test_every_answer_has_an_id(scene: Scene) -> None:
    """`X-Request-Id` on each answer, other each time, and equal to the one in an error."""
    replies = [scene.client.get("operations"), scene.client.get("nothing"), scene.client.holding(None).get("nothing")]
    ids = [reply.header("x-request-id") for reply in replies]
    assert all(ids)
    assert len(set(ids)) == 3
    assert ids[1] == replies[1].error["request_id"]


def test_a_callers_id_is_kept(scene: Scene) -> None:
    """A good id that comes in goes out: one id through all of a caller's logs."""
    mine = fresh("request")
    reply = scene.client.get("nothing", [("X-Request-Id", mine)])
    assert (reply.header("x-request-id"), reply.error["request_id"]) == (mine, mine)


@pytest.mark.parametrize("bad", ["a b", "x" * 5000, '"}{"', "a\tb", ""])
def test_a_bad_id_is_replaced(scene: Scene, bad: str) -> None:
    """An id goes into logs and headers: one that could break them is not taken over."""
    reply = scene.client.get("operations", [("X-Request-Id", bad)])
    assert (reply.status, reply.header("x-request-id") == bad) == (200, False)
    assert reply.header("x-request-id")


def lines_of(scene: Scene, request_id: str) -> list[dict[str, object]]:
    """The log lines of a request."""
    return [line for line in scene.program.log_lines() if request_id in line.values()]


@pytest.mark.parametrize(("path", "status"), [("operations", 200), ("nothing", 404)])
def test_each_request_leaves_one_line_of_json(scene: Scene, path: str, status: int) -> None:
    """One structured line: what was asked, what was answered, how long it took."""
    mine = fresh("request")
    scene.client.get(path, [("X-Request-Id", mine)])
    until(lambda: bool(lines_of(scene, mine)), "the request's log line")
    (line,) = lines_of(scene, mine)
    assert status in line.values()
    assert "GET" in line.values()


def test_the_log_is_json_throughout(scene: Scene) -> None:
    """A collector can read every line that the service writes."""
    scene.client.get(f"subscriptions/{fresh_number()}")
    for line in scene.program.log().splitlines():
        assert isinstance(json.loads(line), dict), line


def test_a_log_line_cannot_be_forged(scene: Scene) -> None:
    """A line break in a path stays inside its line."""
    mine = fresh("request")
    scene.client.get("payments/a%0A%7B%22event%22%3A%22forged%22%7D", [("X-Request-Id", mine)])
    until(lambda: bool(lines_of(scene, mine)), "the request's log line")
    assert not [line for line in scene.program.log_lines() if line.get("event") == "forged"]
