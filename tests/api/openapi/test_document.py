import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.fakes import Caller

from payrelay.api.openapi.document import describe_api
from payrelay.api.openapi.examples import ANSWERS, FAILURE_EXAMPLES, REQUESTS
from payrelay.api.openapi.schemas import name_of
from payrelay.api.requests.body import parse_body
from payrelay.api.requests.payment_bodies import CaptureBody, ChargeBody, RefundBody
from payrelay.api.requests.route import ALWAYS, Route
from payrelay.api.routes.customers import CustomerBody, CustomerNamesBody
from payrelay.api.routes.recovery import AcknowledgementBody
from payrelay.api.routes.table import ROUTES
from payrelay.core.answers import Trace, failed
from payrelay.errors import MEANINGS, Code, Refusal

CHARGE_ROUTE = next(route for route in ROUTES if route.name == "charge")
DOCUMENT: dict[str, Any] = json.loads(describe_api(ROUTES, {"gateway": "sandbox", "second": "live"}))


def described(route: Route) -> dict[str, Any]:
    """Gives the description of a route on the first account."""
    operation: dict[str, Any] = DOCUMENT["paths"][f"/gateway/api{route.path}"][route.method.lower()]
    return operation


def accepts(schema: dict[str, Any], value: object) -> bool:
    """Holds a value against a schema of the description."""
    whole = {**schema, "components": DOCUMENT["components"]}
    return bool(jsonschema_rs.validator_for(whole).is_valid(value))


def every_route() -> pytest.MarkDecorator:
    """Runs a test once for each route."""
    return pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)


@every_route()
def test_every_route_is_described_on_every_account(route: Route) -> None:
    """What is served is what is written, under each account's own name, with names that don't collide."""
    assert described(route)["operationId"] == route.name
    second = DOCUMENT["paths"][f"/second/api{route.path}"][route.method.lower()]
    assert second["operationId"] == f"second-{route.name}"


@every_route()
def test_every_code_has_its_status(route: Route) -> None:
    """A client finds each answer that it may get, with the codes that it may carry."""
    responses = described(route)["responses"]
    for code in (*route.codes, *ALWAYS):
        response = responses[str(MEANINGS[code].http_status)]
        assert f"`{code}`" in response["description"]
        raw_data = None if MEANINGS[code].http_status == 202 else b"[]"
        body = failed(code, "why", Trace(request_id="req_1", operation_id="op_1"), raw_data=raw_data).body
        assert accepts(response["content"]["application/json"]["schema"], json.loads(body))
        assert code in response["x-codes"]
    assert set(responses) == {"200"} | {str(MEANINGS[code].http_status) for code in (*route.codes, *ALWAYS)}


def test_what_is_not_final_has_a_type_of_its_own() -> None:
    """A generated client can't take a 202 for a failure, nor a failure for a 202: the money may have moved."""
    responses = described(CHARGE_ROUTE)["responses"]
    schemas = {status: responses[status]["content"]["application/json"]["schema"] for status in ("200", "202", "402")}
    assert [schema["$ref"].rpartition("/")[2] for schema in schemas.values()] == ["ChargeAnswer", "Accepted", "Failure"]
    for code in Code:
        body = json.loads(failed(code, "why", Trace(request_id="req_1")).body)
        fitting = [status for status, schema in schemas.items() if accepts(schema, body)]
        assert fitting == ["202" if MEANINGS[code].http_status == 202 else "402"]


def shown(value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:  # noqa: ANN401 - any part of the description
    """Gives every example of the description, with the schema beside it."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from shown(each)
    if isinstance(value, dict) and "schema" in value:
        if "example" in value:
            yield value["example"], value["schema"]
        for example in value.get("examples", {}).values():
            named = example.get("$ref", "").rpartition("/")[2]
            yield (DOCUMENT["components"]["examples"][named] if named else example)["value"], value["schema"]


def test_every_example_fits_its_schema() -> None:
    """What the docs show is what the docs say: of requests, successes, failures and ids in addresses."""
    examples = [*shown(DOCUMENT["paths"])]
    assert [(example, schema) for example, schema in examples if not accepts(schema, example)] == []
    values = [example for example, _ in examples]
    written = [*ANSWERS.values(), *(each["value"] for each in FAILURE_EXAMPLES.values())]
    written += [each["value"] for of_route in REQUESTS.values() for each in of_route.values()]
    assert [each for each in written if each not in values] == []


CHARGE = REQUESTS["charge"]["payment"]["value"]
ODD: st.SearchStrategy[object] = st.sampled_from(
    ["", "x" * 256, "x" * 1001, "a\0", "LKR", "lkr", "http://a.lk", "http://", "AUTHORIZE", "12", "100.50", "0.00",
     0, -1, 1, 10**12, 0.5, 3.25, 10**19, True, None, [], [{}], {}, [CHARGE["itemList"][0]]],
)  # fmt: skip


def texts_of(schema: dict[str, Any]) -> st.SearchStrategy[object]:
    """Gives texts that a member's pattern allows, and texts beside them."""
    patterns = [each["pattern"] for each in (schema, *schema.get("anyOf", [])) if "pattern" in each]
    drawn = [st.from_regex(pattern, fullmatch=not pattern.startswith("^$|")) for pattern in patterns]
    return st.one_of(*drawn, *(each.map(lambda text: f"{text}\n") for each in drawn), ODD)


@pytest.mark.parametrize(
    "kind", [ChargeBody, CaptureBody, RefundBody, CustomerBody, CustomerNamesBody, AcknowledgementBody]
)
@given(data=st.data())
def test_schema_and_check_agree(kind: type[ChargeBody], data: st.DataObject) -> None:
    """A body that the description allows is accepted, and one that it forbids is refused.

    Left out are only numbers with an exponent or a third decimal, which JSON Schema can't say.
    """
    route = next(route for route in ROUTES if route.body is kind)
    examples = [shown["value"] for shown in REQUESTS[route.name].values()]
    names = [*kind.__struct_fields__, "unknown"]
    body = dict(data.draw(st.sampled_from(examples)))
    for name in data.draw(st.sets(st.sampled_from(names), max_size=2)):
        body[name] = data.draw(texts_of(DOCUMENT["components"]["schemas"][name_of(kind)]["properties"].get(name, {})))
    for name in data.draw(st.sets(st.sampled_from(names), max_size=2)):
        body.pop(name, None)
    try:
        parse_body(json.dumps(body).encode(), kind)
        is_accepted = True
    except Refusal:
        is_accepted = False
    schema = described(route)["requestBody"]["content"]["application/json"]["schema"]
    assert accepts(schema, body) == is_accepted, body


@pytest.mark.parametrize("key", ["a", "order-1", 'a"b', '"quoted"', r'"a\"b\\"', "~" * 255, '"' + "x" * 255 + '"'])
async def test_a_key_that_the_description_allows_is_accepted(call: Caller, key: str) -> None:
    """Bare and quoted keys match the pattern, and the API accepts them."""
    assert accepts(_key_schema(), key)
    reply = await call("POST", "/gateway/api/payments/charge", headers={"Idempotency-Key": key}, body=b"{}")
    assert reply.status == 200


@pytest.mark.parametrize("key", ["a b", "x" * 256, '"open', '"a"b', r'"a\b"', '""', "é", '"'])
async def test_a_key_that_the_description_forbids_is_refused(call: Caller, key: str) -> None:
    """Keys that don't match the pattern are refused as well."""
    assert not accepts(_key_schema(), key)
    reply = await call("POST", "/gateway/api/payments/charge", headers={"Idempotency-Key": key}, body=b"{}")
    assert reply.status == 400


@every_route()
def test_waiting_is_described_where_it_is_possible(route: Route) -> None:
    """On every effect, one operation and the feed, which can be waited for; what isn't read is not offered."""
    operation = described(route)
    names = {parameter["name"] for parameter in operation["parameters"]}
    assert ("Prefer" in names) is (route.is_effect or route.name in {"showOperation", "listEvents"})
    assert ("Preference-Applied" in operation["responses"]["200"]["headers"]) is ("Prefer" in names)


@every_route()
def test_a_quota_is_described_everywhere(route: Route) -> None:
    """429 has the seconds to wait and the fields of the quota; every other answer has the fields too."""
    responses = described(route)["responses"]
    assert "Retry-After" in responses["429"]["headers"]
    assert all({"RateLimit", "RateLimit-Policy"} <= response["headers"].keys() for response in responses.values())


def _key_schema() -> dict[str, Any]:
    parameters = described(CHARGE_ROUTE)["parameters"]
    schema: dict[str, Any] = next(each["schema"] for each in parameters if each["name"] == "Idempotency-Key")
    return schema


def test_every_reference_leads_somewhere() -> None:
    """A description with holes can't be read by a generator."""
    text = msgspec.json.encode(DOCUMENT).decode()
    for kind in ("schemas", "headers"):
        named = {piece.split('"')[0] for piece in text.split(f"#/components/{kind}/")[1:]}
        assert named == set(DOCUMENT["components"][kind])


async def test_it_is_served_as_it_is_made(call: Caller) -> None:
    """The API gives the description of its own accounts without a credential."""
    reply = await call("GET", "/openapi.json", headers={"Authorization": ""})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.body == describe_api(ROUTES, {"gateway": "sandbox"})


@every_route()
def test_missing_payments_are_described_where_payments_are_shown(route: Route) -> None:
    """A client that is made of the description reads the header; and the 404 that is no "no" has a time to wait."""
    responses = described(route)["responses"]
    shows = {"retrievePayments", "listSubscriptionPayments", "retrieveSubscription"}
    assert ("Payrelay-Missing" in responses["200"]["headers"]) is (route.name in shows)
    has_list = route.name in shows - {"retrieveSubscription"}
    if "404" in responses:
        assert ({"Payrelay-Missing", "Retry-After"} <= responses["404"]["headers"].keys()) is has_list
