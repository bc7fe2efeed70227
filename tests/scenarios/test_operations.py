"""The operations that Payrelay adds: what became of each wish, to its owner."""

import re

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import Client, JsonObject, Reply
from tests.scenarios.stories import Scene, assert_envelope, assert_refused, charge_body, fresh, state_of
from tests.scenarios.waiting import until

RESOLVED_S = 6.0  # the first look at the gateway comes after 2 s


def operation(client: Client, path: str) -> JsonObject:
    """The data of an operation."""
    reply = client.get(f"operations/{path}")
    assert reply.status == 200, str(reply)
    assert_envelope(reply)
    data = reply.json["data"]
    assert isinstance(data, dict)
    return data


def ids(reply: Reply) -> list[str]:
    """The operations of a page."""
    assert reply.status == 200, str(reply)
    assert_envelope(reply)
    return [entry["id"] for entry in reply.json["data"]]


def next_page(client: Client, reply: Reply) -> Reply | None:
    """The page that the answer's Link leads to."""
    link = re.search(r'<([^>]+)>\s*;\s*rel="?next"?', reply.header("link") or "")
    if link is None:
        return None
    target = re.sub(r"^https?://[^/]+", "", link[1])
    return client.send("GET", target)


def test_an_operation_is_found_by_its_key(scene: Scene) -> None:
    """Whoever lost the answer but has his key finds what became of it."""
    key, order_id = fresh("key"), fresh("order")
    scene.client.charge(charge_body(order_id), key=key)
    data = operation(scene.client, f"by-key/{key}")
    assert (data["state"], data["order_id"]) == ("succeeded", order_id)


def test_an_operation_is_read_by_its_id_with_its_history(scene: Scene) -> None:
    """State, history and evidence: how it came to be what it is."""
    key = fresh("key")
    scene.client.charge(charge_body(), key=key)
    known = operation(scene.client, f"by-key/{key}")
    data = operation(scene.client, known["id"])
    assert data["id"] == known["id"]
    assert "succeeded" in str(data["history"])
    assert "sending" in str(data["history"])


def test_by_key_gives_the_newest(scene: Scene) -> None:
    """A key that was released and used again leads to its last operation."""
    body, key = charge_body(), fresh("key")
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.refuses("Authentication error", -2))
    assert scene.client.charge(body, key=key).status == 502
    assert scene.client.charge(body, key=key).status == 200
    assert operation(scene.client, f"by-key/{key}")["state"] == "succeeded"


@pytest.mark.parametrize("path", ["op_nothing", "by-key/nothing", "op_00000000000000000000000000"])
def test_an_unknown_operation_is_404(scene: Scene, path: str) -> None:
    """Nothing there, or nothing for you: the same answer."""
    assert_refused(scene.client.get(f"operations/{path}"), 404, "not_found")


def test_another_principals_operation_is_404(scene: Scene) -> None:
    """An operation belongs to its principal; its id tells nobody else anything."""
    key = fresh("key")
    scene.client.charge(charge_body(), key=key)
    known = operation(scene.client, f"by-key/{key}")
    stranger = scene.another()
    assert_refused(stranger.get(f"operations/{known['id']}"), 404, "not_found")
    assert_refused(stranger.get(f"operations/by-key/{key}"), 404, "not_found")
    assert known["id"] not in ids(stranger.get("operations"))


def test_read_all_sees_everybodys(scene: Scene) -> None:
    """The scope that is never in the default."""
    key = fresh("key")
    scene.client.charge(charge_body(), key=key)
    known = operation(scene.client, f"by-key/{key}")
    auditor = scene.another("--scope", "operations:read-all")
    assert operation(auditor, known["id"])["id"] == known["id"]
    assert known["id"] in ids(auditor.get("operations"))


@pytest.mark.parametrize("name", ["state", "kind", "order_id"])
def test_a_filter_keeps_what_fits(scene: Scene, name: str) -> None:
    """A list by state, kind or order holds only such operations, the new one among them."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.refuses("Card declined"))
    scene.client.charge(charge_body(order_id))
    value = {"state": "declined", "kind": "charge", "order_id": order_id}[name]
    reply = scene.client.get(f"operations?{name}={value}")
    assert {entry[name] for entry in reply.json["data"]} == {value}
    assert order_id in {entry["order_id"] for entry in reply.json["data"]}


@pytest.mark.parametrize(
    "query", ["state=nonsense", "kind=nonsense", "nonsense=1", "limit=0", "limit=abc", "limit=-1", "cursor=nonsense"]
)
def test_a_filter_that_says_nothing_is_refused(scene: Scene, query: str) -> None:
    """A mistyped filter must not quietly list everything."""
    assert_refused(scene.client.get(f"operations?{query}"), 422, "invalid_request")


def test_pages_hold_each_operation_once_newest_first(scene: Scene) -> None:
    """Cursor paging: while new ones come in, no operation is shown twice or passed over."""
    reader = scene.another()
    orders = [fresh("order") for _ in range(7)]
    for order_id in orders:
        assert reader.charge(charge_body(order_id)).status == 200
    seen: list[str] = []
    page: Reply | None = reader.get("operations?limit=3")
    while page is not None:
        seen += [entry["order_id"] for entry in page.json["data"]]
        if len(seen) == 3:
            assert reader.charge(charge_body()).status == 200
        page = next_page(reader, page)
    assert seen == orders[::-1]


def test_an_unsettled_operation_is_found_where_the_answer_points(scene: Scene) -> None:
    """`Location` of a 202 leads to the operation, and to nobody else's eyes."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    reply = scene.client.charge(charge_body(order_id))
    location = reply.header("location") or ""
    assert scene.client.send("GET", location).json["data"]["order_id"] == order_id
    assert scene.another().send("GET", location).status == 404


def test_settling_finds_the_payment(scene: Scene) -> None:
    """A lost reply ends as a success when the gateway's record proves it: the same key then gets the answer."""
    order_id, key = fresh("order"), fresh("key")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    assert scene.client.charge(charge_body(order_id), key=key).status == 202
    record = payhere.payment_now(order_id, "345.67")
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    until(lambda: state_of(scene.client, key) == "succeeded", "the charge is settled", deadline_s=RESOLVED_S)
    reply = scene.client.charge(charge_body(order_id), key=key)
    assert (reply.status, reply.json["msg"]) == (200, "Resolved by proof"), str(reply)
    assert (reply.json["data"]["payment_id"], reply.json["data"]["md5sig"]) == (record["payment_id"], None)
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1
