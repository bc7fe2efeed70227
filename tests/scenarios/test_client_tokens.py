"""Tokens for phones, over sockets: what one may do, what it may not, and how it ends."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.gateway_double import GatewayDouble, found, payment, payment_now, refuses, says
from tests.scenarios.http_client import Client, Raw
from tests.scenarios.phones import ALL_SCOPES, AMOUNT, Person, arrive, data, token_for
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for
from tests.scenarios.waiting import until

from payrelay.api.requests.route import Route
from payrelay.api.routes.table import ROUTES


@pytest.fixture(scope="module")
def shop(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A shop that can send its customers to the gateway's page."""
    program = Program(folder, settings_for(gateway) | {"PAYRELAY_PUBLIC_URL": "https://pay.example"})
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest.fixture
def anna(shop: Scene) -> Person:
    """The person whose phone it is."""
    return arrive(shop.client)


@pytest.fixture
def phone(shop: Scene, anna: Person) -> Client:
    """A phone that may do all that phones may, on one order; the shop has opened a page for it too, which counts."""
    return token_for(
        shop.client,
        customer_id=anna.customer_id,
        order_id=anna.open_order,
        amount=AMOUNT,
        currency="LKR",
        payments=2,
        scopes=ALL_SCOPES,
    )


@pytest.fixture(scope="module")
def berta(shop: Scene) -> Person:
    """Somebody else."""
    return arrive(shop.client)


def body_of(order_id: str, **changes: object) -> dict[str, object]:
    """A charge as a phone sends it: whose card it is goes without saying."""
    body = charge_body(order_id, **changes)
    if "customer_token" not in changes:
        del body["customer_token"]
    return body


def test_a_phone_pays_its_order_and_sees_what_became_of_it(shop: Scene, anna: Person, phone: Client) -> None:
    """The whole way of an app: pay, repeat after a lost answer, look it up by key, see the payments."""
    paid = phone.charge(body_of(anna.open_order), key="pay-1")
    again = phone.charge(body_of(anna.open_order), key="pay-1")

    assert (paid.status, again.body, again.header("idempotent-replayed")) == (200, paid.body, "true")
    assert shop.gateway.count("payment/charge", anna.open_order) == 1
    by_key = data(phone.get("operations/by-key/pay-1"))
    assert (by_key["idempotency_key"], by_key["order_id"]) == ("pay-1", anna.open_order)
    assert data(phone.get(f"operations/{by_key['id']}"))["state"] == "succeeded"
    assert [each["id"] for each in phone.get("operations").json["data"]] == [by_key["id"]]
    shop.gateway.script("payment/search", anna.open_order, says(found(payment_now(anna.open_order, "345.67"))))
    assert phone.get(f"payments/{anna.open_order}").status == 200
    assert data(phone.get(f"checkouts/{anna.checkout_id}"))["order_id"] == anna.open_order
    assert data(phone.get(f"customers/{anna.customer_id}"))["id"] == anna.customer_id


def test_the_server_finds_what_its_phones_did(shop: Scene, anna: Person, phone: Client) -> None:
    """It is the server's own operation, under a key that says whose phone it was."""
    assert phone.charge(body_of(anna.open_order, customer_token=anna.customer_id), key="k").status == 200

    seen = data(shop.client.get(f"operations/by-key/{anna.customer_id}%2Fk"))
    assert (seen["order_id"], seen["principal"]) == (anna.open_order, "shop")


@pytest.mark.parametrize(
    "changes",
    [
        {"order_id": "another"},
        {"amount": Raw(text="345.68")},
        {"currency": "USD"},
        {"customer_token": "59AFEE022CC69CA39D325E1B59130862"},
        {"customer_token": "cus_" + "0" * 32},
        {"notify_url": "https://evil.example/"},
    ],
    ids=str,
)
def test_a_phone_pays_nothing_but_its_order(
    shop: Scene, anna: Person, phone: Client, changes: dict[str, object]
) -> None:
    """Another order, more, another currency, another card, or telling another address: nothing of it is sent."""
    assert_refused(phone.charge(body_of(anna.open_order) | changes), 403, "forbidden")
    assert shop.gateway.count("payment/charge", anna.open_order) == 0
    assert shop.gateway.count("payment/charge", "another") == 0


def test_a_phone_can_not_charge_another_customer(shop: Scene, anna: Person, berta: Person, phone: Client) -> None:
    """Not even one that it knows the handle of: and it isn't told whether it is one."""
    known = phone.charge(body_of(anna.open_order, customer_token=berta.customer_id))
    unknown = phone.charge(body_of(anna.open_order, customer_token="cus_" + "0" * 32))

    assert_refused(known, 403, "forbidden")
    assert known.json["msg"] == unknown.json["msg"]
    assert shop.gateway.count("payment/charge", anna.open_order) == 0


PAYS: dict[str, object] = {"order_id": "A", "amount": 5, "currency": "LKR", "scopes": ["checkouts:create"]}
MONTHLY = {"type": "recurring", "recurrence": "1 Month", "duration": "Forever"}
UNKNOWN = {
    "customer_id": "cus_" + "0" * 32,
    "operation_id": "op_" + "0" * 32,
    "checkout_id": "chk_" + "0" * 32,
    "paid_order": "no-such-order",
    "open_order": "no-such-order-either",
    "key": "no-such-key",
    "reference": "nobody",
    "label": "nothing",
}
AT_ONCE = 50  # with one token, before its quota is used up
WORDS = re.compile(r"(cus|op|chk)_[0-9a-f]{32}|(user|label|paid|key|open)-[0-9a-f]{32}|no-such-[a-z-]+|nobody|nothing")


def attempts(route: Route, names: dict[str, str]) -> Iterator[tuple[str, dict[str, object]]]:
    """Gives the ways to ask a route for what somebody has: by each of the names in the path, the query and the body."""
    bodies: list[dict[str, object]] = [
        {},
        charge_body(names["open_order"], customer_token=names["customer_id"]),
        charge_body(names["paid_order"], customer_token=names["customer_id"]),
        {"payment_id": "1", "description": names["paid_order"]},
        {"customer_id": names["customer_id"], "order_id": names["open_order"]},
        {"label": names["label"]},
    ]
    ids = [*(names[name] for name in sorted(names)), "420075032251"]
    paths = [re.sub(r"\{[a-z_]+\}", each, route.path) for each in ids] if "{" in route.path else [route.path]
    queries = [""]
    for parameter in route.query:
        of_kind = {"subject": [f"operation:{names['operation_id']}", f"checkout:{names['checkout_id']}"]}
        queries += [f"?{parameter.name}={value}" for value in (*ids, *of_kind.get(parameter.name, ()))]
    for path in paths:
        for query in queries:
            for body in bodies if route.body is not None else [{}]:
                yield path.lstrip("/") + query, body


def ask(phone: Client, route: Route, target: str, body: dict[str, object]) -> tuple[int, str]:
    """Asks, and gives what is said with every name in it blotted out."""
    content = json.dumps(body, default=lambda _: 345.67).encode() if route.body is not None else None
    fields = [("Content-Type", "application/json")] if content is not None else []
    reply = phone.send(route.method, f"/{phone.account}/api/{target}", content, fields)
    text = re.sub(r'"request_id":"[^"]*"', "", reply.body.decode())
    return reply.status, text


@pytest.mark.parametrize("kind", ["order", "customer", "order alone"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_no_route_tells_a_phone_of_anybody_else(
    shop: Scene, anna: Person, berta: Person, route: Route, kind: str
) -> None:
    """Every route, with every id of another customer: the answer is that for an id which nobody has, word for word.

    Nothing of the other one is in it, and the gateway is never asked.
    """
    scopes = [scope for scope in ALL_SCOPES if kind == "order" or scope not in {"payments:charge", "checkouts:create"}]
    members: dict[str, object] = {"scopes": scopes}
    if kind == "order":
        members |= {"amount": AMOUNT, "currency": "LKR", "payments": 2}
    if kind != "order alone":
        members["customer_id"] = anna.customer_id
    if kind != "customer":
        members["order_id"] = anna.open_order
    calls, phone = len(shop.gateway.asked), shop.client

    pairs = zip(attempts(route, berta.names), attempts(route, UNKNOWN), strict=True)
    for number, ((theirs, body), (nobodys, same)) in enumerate(pairs):
        if number % AT_ONCE == 0:
            phone = token_for(shop.client, **members)
        status, text = ask(phone, route, theirs, body)
        other_status, other_text = ask(phone, route, nobodys, same)
        assert (status, WORDS.sub("·", text)) == (other_status, WORDS.sub("·", other_text)), (theirs, body)
        told = {name: value for name, value in berta.names.items() if value in text and value not in theirs}
        assert not told, (theirs, text)
        if status == 200:
            assert not any(value in text for value in berta.names.values()), (theirs, text)
    assert not any(asked.is_about(value) for asked in shop.gateway.asked[calls:] for value in berta.names.values())


def test_equal_keys_of_two_phones_are_two_keys(shop: Scene, anna: Person, berta: Person) -> None:
    """One phone neither gets another one's answer by its key nor is it kept from using it."""
    phones = {
        person: token_for(
            shop.client,
            customer_id=person.customer_id,
            order_id=person.paid_order + "2",
            amount=AMOUNT,
            currency="LKR",
            scopes=ALL_SCOPES,
        )
        for person in (anna, berta)
    }
    replies = {person: phone.charge(body_of(person.paid_order + "2"), key="1") for person, phone in phones.items()}

    for person, reply in replies.items():
        assert reply.status == 200, str(reply)
        assert reply.header("idempotent-replayed") is None
        assert reply.json["data"]["order_id"] == person.paid_order + "2"
    assert_refused(phones[anna].get(f"operations/by-key/{anna.key}"), 404, "not_found")
    assert_refused(phones[anna].get(f"operations/by-key/{berta.customer_id}%2F1"), 404, "not_found")


def test_a_token_for_a_customer_alone_looks_on(shop: Scene, anna: Person) -> None:
    """Without an order it pays nothing; what was done for the customer it sees, whoever asked for it."""
    phone = token_for(shop.client, customer_id=anna.customer_id)

    assert [each["id"] for each in phone.get("operations").json["data"]] == [anna.operation_id]
    shop.gateway.script("payment/search", anna.paid_order, says(found(payment_now(anna.paid_order, "345.67"))))
    assert phone.get(f"payments/{anna.paid_order}").status == 200
    assert_refused(phone.get(f"payments/{anna.open_order}"), 404, "not_found")
    assert_refused(phone.charge(body_of(anna.open_order)), 403, "forbidden")
    assert data(phone.get(f"checkouts/{anna.checkout_id}"))["id"] == anna.checkout_id


def test_what_another_person_paid_on_the_same_order_is_not_shown(shop: Scene, anna: Person, berta: Person) -> None:
    """Two share a bill: the first one's card is declined, the second one pays, and the record has the second's name."""
    server, order_id = shop.client, fresh("shared")
    shop.gateway.script("payment/charge", order_id, refuses("Declined"))
    assert server.charge(charge_body(order_id, customer_token=anna.customer_id)).status == 402
    paid = server.charge(charge_body(order_id, customer_token=berta.customer_id))
    bertas = payment(order_id, payment_id=int(paid.json["data"]["payment_id"]))
    phones = [
        token_for(server, customer_id=person.customer_id, **bounds)
        for person in (anna, berta)
        for bounds in ({}, {"order_id": order_id})
    ]
    replies = []
    for phone in phones:
        shop.gateway.script("payment/search", order_id, says(found(bertas)))
        replies.append(phone.get(f"payments/{order_id}", [("Cache-Control", "no-cache")]))

    assert [reply.status for reply in replies] == [404, 404, 200, 200]
    assert all(reply.json["data"] == [] for reply in replies[:2])
    both = says(found(bertas, payment_now(order_id, "345.67")))
    shop.gateway.script("payment/search", order_id, both)
    shown = phones[1].get(f"payments/{order_id}", [("Cache-Control", "no-cache")])
    assert [each["payment_id"] == bertas["payment_id"] for each in shown.json["data"]] == [False]


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({}, "customer_id"),
        ({"customer_id": 5}, "customer_id"),
        ({"order_id": ""}, "order_id"),
        ({"order_id": "A", "scopes": ["payments:charge"]}, "customer_id"),
        ({"order_id": "A", "amount": 5, "currency": "LKR"}, "amount"),
        ({"order_id": "A", "amount": "open"}, "amount"),
        ({"order_id": "A", "amount_max": 5}, "amount_max"),
        ({"order_id": "A", "currency": "LKR"}, "currency"),
        ({"order_id": "A", "payments": 2}, "payments"),
        ({"order_id": "A", "type": "payment"}, "type"),
        (PAYS | {"currency": None}, "currency"),
        (PAYS | {"amount": None}, "amount"),
        (PAYS | {"amount": None, "amount_max": 5}, "amount"),
        (PAYS | {"amount": None, "amount_max": 5, "type": "preapproval"}, "amount"),
        (PAYS | {"amount": 0}, "amount"),
        (PAYS | {"amount": "all"}, "amount"),
        (PAYS | {"amount_max": 5}, "amount_max"),
        (PAYS | {"amount": "open", "amount_max": 0}, "amount_max"),
        (PAYS | {"payments": 0}, "payments"),
        (PAYS | {"payments": 101}, "payments"),
        (PAYS | {"payments": "2"}, "payments"),
        (PAYS | {"type": "AUTHORIZE"}, "type"),
        (PAYS | {"recurrence": "1 Month"}, "recurrence"),
        (PAYS | {"type": "recurring"}, "recurrence"),
        (PAYS | {"type": "recurring", "recurrence": "1 Month"}, "duration"),
        (PAYS | {"type": "recurring", "recurrence": "monthly", "duration": "Forever"}, "recurrence"),
        (PAYS | MONTHLY | {"amount": "open"}, "recurrence"),
        (PAYS | MONTHLY | {"startup_fee": -5}, "startup_fee"),
        (PAYS | {"type": "preapproval", "customer_id": "cus_1", "scopes": ["payments:charge"]}, "type"),
        ({"order_id": "A", "scopes": ["payments:refund"]}, "scopes[0]"),
        ({"order_id": "A", "scopes": ["payments:read", "operations:read-all"]}, "scopes[1]"),
        ({"order_id": "A", "scopes": "payments:read"}, "scopes"),
        ({"order_id": "A", "scopes": []}, "scopes"),
        ({"order_id": "A", "expires_in_s": 59}, "expires_in_s"),
        ({"order_id": "A", "expires_in_s": 3601}, "expires_in_s"),
        ({"order_id": "A", "expires_in_s": "900"}, "expires_in_s"),
        ({"order_id": "A", "principal": "other"}, "principal"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_by_name(shop: Scene, members: dict[str, object], path: str) -> None:
    """Whoever writes the app's backend is told which member is wrong."""
    reply = shop.client.post("client-tokens", {name: value for name, value in members.items() if value is not None})

    assert_refused(reply, 422, "invalid_request")
    assert path in [wrong["path"] for wrong in reply.error["fields"]], str(reply)


def test_a_token_needs_a_customer_of_ones_own(shop: Scene, anna: Person) -> None:
    """Another shop's customer is as unknown as one that nobody has; a removed one has no phone any more."""
    other = shop.another()
    foreign = other.post("client-tokens", {"customer_id": anna.customer_id})
    unknown = other.post("client-tokens", {"customer_id": "cus_" + "0" * 32})

    assert_refused(foreign, 404, "not_found")
    assert foreign.json["msg"] == unknown.json["msg"]
    assert shop.client.delete(f"customers/{anna.customer_id}", {}).status == 200
    assert_refused(shop.client.post("client-tokens", {"customer_id": anna.customer_id}), 404, "not_found")


def test_no_token_may_more_than_its_key(shop: Scene) -> None:
    """Scopes, amount, account and end of the key are the most that it can give away."""
    narrow = shop.another(
        *("--scope", "payments:read", "--scope", "client-tokens:create", "--account", "gateway"),
        *("--scope", "checkouts:create"),
        *("--max-amount", "10", "--expires", "20m"),
    )
    order = {"order_id": fresh("order")}

    assert_refused(narrow.post("client-tokens", order | {"scopes": ["operations:read"]}), 403, "forbidden")
    pays = order | {"currency": "LKR", "scopes": ["checkouts:create"]}
    for too_much in (
        {"amount": Raw(text="10.01")},
        {"amount": "open", "amount_max": Raw(text="10.01")},
        {"amount": Raw(text="9.50"), "startup_fee": Raw(text="0.51")} | MONTHLY,
    ):
        assert_refused(narrow.post("client-tokens", pays | too_much), 403, "forbidden")
    assert_refused(narrow.at("second").post("client-tokens", order), 403, "forbidden")
    made = data(narrow.post("client-tokens", order | {"expires_in_s": 3600}))
    assert made["scopes"] == ["payments:read"]
    assert made["expires_at"] < data(shop.client.post("client-tokens", order | {"expires_in_s": 3600}))["expires_at"]
    phone = narrow.holding(made["token"])
    shop.gateway.script("payment/search", order["order_id"], says(found(payment_now(order["order_id"], "1"))))
    assert phone.get(f"payments/{order['order_id']}").status == 200
    assert_refused(phone.at("second").get(f"payments/{order['order_id']}"), 403, "forbidden")
    assert_refused(phone.get("operations"), 403, "forbidden")


def test_a_phone_issues_nothing(phone: Client, anna: Person) -> None:
    """A stolen token can't be made to last."""
    assert_refused(phone.post("client-tokens", {"customer_id": anna.customer_id}), 403, "forbidden")
    assert_refused(phone.get("client-tokens"), 403, "forbidden")


def test_a_token_has_the_printed_form(phone: Client, anna: Person) -> None:
    """Scanners of secrets find it, and a developer can read what is in it; no key and nothing of the card is."""
    text = phone.key or ""
    assert re.fullmatch(r"prt_[\w-]+\.[\w-]+\.[\w-]+", text)
    header, payload = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in text[4:].split(".")[:2])
    assert header["alg"] == "HS256"
    assert (payload["customer"], payload["order"], payload["account"]) == (anna.customer_id, anna.open_order, "gateway")
    assert payload["exp"] - payload["iat"] == 900
    paying = {name: payload[name] for name in ("type", "amount", "currency", "payments")}
    assert paying == {"type": "payment", "amount": 34_567, "currency": "LKR", "payments": 2}


def test_a_revoked_token_is_dead_within_a_second(shop: Scene, anna: Person, phone: Client) -> None:
    """One by its id; the others of the customer go on until they are revoked together."""
    other = token_for(shop.client, customer_id=anna.customer_id)
    listed = shop.client.get(f"client-tokens?customer_id={anna.customer_id}").json["data"]
    assert [each["order_id"] for each in listed] == [None, anna.open_order]
    assert all("token" not in each for each in listed)
    assert phone.get("operations").status == 200

    assert shop.client.delete(f"client-tokens/{listed[1]['id']}").status == 200
    until(lambda: phone.get("operations").status == 401, "the token is refused", deadline_s=1.5)
    assert other.get("operations").status == 200
    revoked = data(shop.client.delete(f"client-tokens?customer_id={anna.customer_id}"))
    assert revoked == {"revoked": 1}
    until(lambda: other.get("operations").status == 401, "the other is refused", deadline_s=1.5)
    assert_refused(other.get("operations"), 401, "unauthenticated")


def test_a_list_says_what_each_token_may_pay(shop: Scene) -> None:
    """Whoever looks for the token that paid too much sees what it was given."""
    server = shop.another()
    plan = MONTHLY | {"startup_fee": Raw(text="-0.50")}
    for members in (
        PAYS,
        PAYS | plan,
        PAYS | {"amount": "open", "amount_max": 7, "type": "authorization", "payments": 3},
        {"order_id": "A"},
    ):
        assert server.post("client-tokens", members).status == 200

    names = ("type", "amount", "amount_max", "currency", "payments", "recurrence", "duration", "startup_fee")
    listed = [tuple(each[name] for name in names) for each in server.get("client-tokens").json["data"]]
    assert sorted(map(str, listed)) == sorted(
        map(
            str,
            [
                ("payment", 5.0, None, "LKR", 1, None, None, None),
                ("recurring", 5.0, None, "LKR", 1, "1 Month", "Forever", -0.5),
                ("authorization", "open", 7.0, "LKR", 3, None, None, None),
                (None,) * 8,
            ],
        )
    )


def test_another_principal_revokes_nothing(shop: Scene, anna: Person, phone: Client) -> None:
    """Nor does it see that there is a token."""
    token_id = shop.client.get(f"client-tokens?customer_id={anna.customer_id}").json["data"][0]["id"]
    stranger = shop.another()

    assert_refused(stranger.delete(f"client-tokens/{token_id}"), 404, "not_found")
    assert data(stranger.delete(f"client-tokens?customer_id={anna.customer_id}")) == {"revoked": 0}
    assert stranger.get("client-tokens").json["data"] == []
    assert data(stranger.delete("client-tokens")) == {"revoked": 0}
    assert phone.get("operations").status == 200


def test_a_revoked_key_takes_its_tokens_with_it(shop: Scene) -> None:
    """Whoever ends a server's key has ended what it gave away, within a second."""
    server = shop.another()
    phones = [token_for(server, order_id=fresh("order")) for _ in range(2)]
    assert all(phone.get("operations").status == 200 for phone in phones)

    done = shop.program.run("keys", "revoke", (server.key or "").split("_")[2])
    assert done.returncode == 0, done.stderr
    for phone in phones:
        until(lambda phone=phone: phone.get("operations").status == 401, "it is refused", deadline_s=1.5)  # type: ignore[misc]


def test_all_that_a_key_has_issued_can_be_revoked(shop: Scene) -> None:
    """Without ending the key itself."""
    server = shop.another()
    phone = token_for(server, order_id=fresh("order"))

    assert data(server.delete(f"client-tokens?credential_id={(server.key or '').split('_')[2]}")) == {"revoked": 1}
    until(lambda: phone.get("operations").status == 401, "it is refused", deadline_s=1.5)
    assert server.get("operations").status == 200


@pytest.mark.parametrize("end", ["removed", "erased"])
def test_a_customer_that_is_gone_has_no_phone(shop: Scene, anna: Person, phone: Client, end: str) -> None:
    """Who left, or asked to be forgotten, must not be seen by a telephone that somebody found."""
    assert phone.get("operations").status == 200
    path = f"customers/{anna.customer_id}"
    ended = shop.client.delete(path, {}) if end == "removed" else shop.client.post(f"{path}/erase", {})
    assert (ended.status, ended.json["data"]["state"]) == (200, end), str(ended)
    until(lambda: phone.get("operations").status == 401, "it is refused", deadline_s=1.5)


def test_wrong_tokens_are_401_and_counted(shop: Scene, phone: Client) -> None:
    """Cut, changed, unsigned, or a JWT of somebody else's: none is let in, and an operator sees how many of each."""
    text = phone.key or ""
    header, payload, signature = text.removeprefix("prt_").split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    wrong = [
        text[:-2],
        text[4:],
        f"prt_{none}.{payload}.",
        f"prt_{none}.{payload}.{signature}",
        f"prt_{header}.{payload}.{'A' * len(signature)}",
        "prt_",
        "prt_" + "x" * 5000,
    ]
    for each in wrong:
        assert_refused(shop.client.holding(each).get("operations"), 401, "unauthenticated")
    metrics = shop.client.send("GET", "/metrics").body.decode()
    for reason in ("form", "key", "signature"):
        assert re.search(rf'payrelay_refused_tokens_total{{reason="{reason}"}} [1-9]', metrics), reason


def test_a_token_is_never_logged(shop: Scene, anna: Person, phone: Client) -> None:
    """Who reads the log can't act for a customer; the token's id is there to find what it did."""
    phone.get("operations")
    phone.charge(body_of(anna.open_order))

    log = shop.program.log()
    assert (phone.key or "")[4:40] not in log
    assert any(str(line.get("credential_id")).startswith("ct_") for line in shop.program.log_lines())


def test_a_phone_follows_its_own_checkout(anna: Person, phone: Client) -> None:
    """As it changes, without asking again and again; a stream of somebody else's is tried with every other route."""
    with phone.connected() as wire:
        wire.sendall(phone.request("GET", f"events/stream?subject=checkout:{anna.checkout_id}"))
        head = wire.recv(4096).decode()

    assert head.startswith("HTTP/1.1 200"), head
    assert "text/event-stream" in head
