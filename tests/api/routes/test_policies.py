"""The policies for bound credentials, before any flow begins."""

import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from tests.api.fakes import Caller, Keyring, RecordingFlows

from payrelay.api.requests.route import Route, refused
from payrelay.api.routes.table import ROUTES
from payrelay.core.access.allowance import Allowance
from payrelay.core.access.bounds import key_of_bound
from payrelay.core.access.client_token import CLIENT_SCOPES
from payrelay.core.access.credential import Bound, Credential, Scope
from payrelay.errors import Code

CUSTOMER = "cus_" + "a" * 32
PRICE = Allowance(amount_minor=150, currency="LKR")
BOUND = Bound(customer_id=CUSTOMER, order_id="A-1", allowance=PRICE)
CHARGE = b'{"type":"PAYMENT","order_id":"A-1","items":"Tea","currency":"LKR","amount":1.50}'


@pytest.fixture
def call_bound(keyring: Keyring, credential: Credential, call_with: Callable[..., Caller]) -> Callable[..., Caller]:
    """Makes a client with a bound key, of an API whose flows only record requests."""

    def make(bound: Bound, scopes: frozenset[Scope] = frozenset(Scope), **changes: object) -> Caller:
        keyring.by_id[credential.id] = msgspec.structs.replace(credential, bound=bound, scopes=scopes)
        return call_with(**changes)

    return make


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_names_its_policy(route: Route) -> None:
    """Whoever adds a route decides it; and what changes something is closed unless it is named here."""
    assert route.bound is not None
    if route.method != "GET" and route.bound is not refused:
        assert route.name in {"charge", "openCheckout", "closeCheckout", "cancelSubscription"}
    if route.bound is not refused:
        assert route.scope in CLIENT_SCOPES


async def test_a_route_without_a_policy_is_closed(call_bound: Callable[..., Caller], flows: RecordingFlows) -> None:
    """A mistake in the table costs an app an answer, never a customer's data."""
    routes = tuple(flows.behind(replace(route, bound=None)) for route in ROUTES)
    reply = await call_bound(BOUND, routes=routes)("GET", "/gateway/api/operations")

    assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden")
    assert flows.requests == []


@pytest.mark.parametrize("route", [route for route in ROUTES if route.bound is refused], ids=lambda route: route.name)
async def test_a_closed_route_is_closed_whatever_the_scopes(
    call_bound: Callable[..., Caller], flows: RecordingFlows, route: Route
) -> None:
    """Nothing of the request is even read."""
    target = f"/gateway/api{route.path}".replace("{id}", "1").replace("{idempotency_key}", "1")
    reply = await call_bound(BOUND)(route.method, target, body=b"not JSON" if route.body else b"")

    assert (reply.status, reply.json["msg"]) == (403, "a client token may not do this")
    assert flows.requests == []


async def test_a_key_is_bound_to_nothing(call: Caller, flows: RecordingFlows) -> None:
    """Policies are for apps; a backend's requests arrive as they were sent."""
    reply = await call("POST", "/gateway/api/payments/charge", body=b"anything", headers={"Idempotency-Key": "k"})

    assert reply.status == 200
    assert (flows.requests[0][1].body, flows.requests[0][1].request.idempotency_key) == (b"anything", "k")


@pytest.mark.parametrize("body", [CHARGE, b" \n" + CHARGE, CHARGE[:-1] + f',"customer_token":"{CUSTOMER}"}}'.encode()])
async def test_a_charge_arrives_with_its_customer_and_its_own_key(
    call_bound: Callable[..., Caller], flows: RecordingFlows, body: bytes
) -> None:
    """The card goes without saying, the amount stays as it was written, and the key is the customer's own."""
    reply = await call_bound(BOUND)("POST", "/gateway/api/payments/charge", body=body, headers={"Idempotency-Key": "k"})

    assert reply.status == 200
    name, parsed = flows.requests[0]
    assert name == "charge"
    assert json.loads(parsed.body)["customer_token"] == CUSTOMER
    assert b"1.50" in parsed.body
    assert parsed.request.idempotency_key == key_of_bound(BOUND, "k") == f"{CUSTOMER}/k"


@pytest.mark.parametrize(
    ("bound", "body", "code"),
    [
        (Bound(order_id="A-1"), CHARGE, Code.FORBIDDEN),
        (Bound(customer_id=CUSTOMER, order_id="A-1"), CHARGE, Code.FORBIDDEN),
        (Bound(customer_id=CUSTOMER), CHARGE, Code.FORBIDDEN),
        (Bound(reference="user-1", order_id="A-1", keys_of="person/user-1"), CHARGE, Code.FORBIDDEN),
        (BOUND, CHARGE.replace(b"A-1", b"A-2"), Code.FORBIDDEN),
        (BOUND, CHARGE[:-1] + b',"customer_token":"cus_x"}', Code.FORBIDDEN),
        (BOUND, CHARGE[:-1] + b',"notify_url":"https://x.example/"}', Code.FORBIDDEN),
        (BOUND, CHARGE[:-1] + b',"customer_token":null}', Code.INVALID_REQUEST),
        (BOUND, CHARGE[:-1] + b',"customer_token":5}', Code.INVALID_REQUEST),
        (BOUND, b"{}", Code.INVALID_REQUEST),
        (BOUND, b"{ }", Code.INVALID_REQUEST),
        (BOUND, b"[]", Code.MALFORMED_REQUEST),
        (BOUND, b'{"a":1,"a":2}', Code.MALFORMED_REQUEST),
    ],
)
async def test_another_charge_does_not_arrive(
    call_bound: Callable[..., Caller], flows: RecordingFlows, bound: Bound, body: bytes, code: Code
) -> None:
    """A charge of another order or card is refused before any flow, with an error that says why."""
    reply = await call_bound(bound)("POST", "/gateway/api/payments/charge", body=body)

    assert reply.json["error"]["code"] == code
    assert flows.requests == []


async def test_another_order_is_not_found(call_bound: Callable[..., Caller], flows: RecordingFlows) -> None:
    """The gateway is asked for the bound order alone."""
    call = call_bound(BOUND)
    own, other = await call("GET", "/gateway/api/payments/A-1"), await call("GET", "/gateway/api/payments/A-2")

    assert (own.status, other.status, other.json["msg"]) == (200, 404, "there is no such order")
    assert [parsed.id for _, parsed in flows.requests] == ["A-1"]


async def test_an_app_finds_only_its_own_keys(call_bound: Callable[..., Caller], flows: RecordingFlows) -> None:
    """Whatever key an app sends, it finds operations of its own customer alone."""
    await call_bound(BOUND)("GET", "/gateway/api/operations/by-key/cus_b%2Fk")

    assert flows.requests[0][1].id == f"{CUSTOMER}/cus_b/k"


async def test_a_scope_is_needed_all_the_same(call_bound: Callable[..., Caller]) -> None:
    """The policy narrows what the scopes allow, and allows nothing itself."""
    reply = await call_bound(BOUND, frozenset({Scope.OPERATIONS_READ}))("GET", "/gateway/api/payments/A-1")

    assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden")
