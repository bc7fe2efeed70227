"""The API of stored customers: wrong fields are named before any flow begins."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from tests.api.fakes import Caller, RecordingFlows
from tests.flows.world import World, asked, opened

from payrelay.api.openapi.examples import REQUESTS
from payrelay.api.requests.body import CheckedValue, parse_body
from payrelay.api.requests.route import ParsedRequest
from payrelay.api.routes.customers import ROUTES, CardExpiry, CustomerBody, CustomerNamesBody, MaskedCard
from payrelay.core.customers.customer import ExistingApproval
from payrelay.core.secret import Secret
from payrelay.flows.customers.change_customer import NewNames

CUSTOMER_ID = "cus_019c8b2f5a7e4d10b6f3a92c7e08d154"
WHOLE = {
    "customer_token": "CANARY59AFEE022C",
    "reference": "user-17",
    "label": "Blue card",
    "method": "VISA",
    "card_no_masked": "************1292",
    "card_expiry": "01/29",
    "card_holder": "CANARY PERERA",
}


def test_a_token_is_handed_over_with_what_is_known() -> None:
    """Nothing of it is lost on the way, and null says the same as nothing."""
    whole = parse_body(json.dumps(WHOLE).encode(), CustomerBody).call()
    bare = parse_body(b'{"customer_token":"t","label":null}', CustomerBody).call()

    assert whole == ExistingApproval(
        token=Secret("CANARY59AFEE022C"),
        reference="user-17",
        label="Blue card",
        method="VISA",
        card_no_masked="************1292",
        card_expiry="0129",
        card_holder="CANARY PERERA",
    )
    assert bare == ExistingApproval(token=Secret("t"))
    assert (type(whole.card_no_masked), type(whole.card_expiry)) == (str, str)


def test_a_body_prints_nothing_of_a_person() -> None:
    """Tracebacks show the values of functions."""
    body = parse_body(json.dumps(WHOLE).encode(), CustomerBody)

    assert not any(word in f"{body!r}{body.call()!r}" for word in ("CANARY", "PERERA"))
    assert "user-17" not in repr(body)


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("customer_token", None, "must be a string"),
        ("customer_token", "", "must not be empty"),
        ("reference", "x" * 256, "must have at most 255 characters"),
        ("label", 7, "must be a string"),
        ("method", "V" * 33, "must have at most 32 characters"),
        ("card_no_masked", "4916217501611292", "must be masked: asterisks and the last four digits"),
        ("card_no_masked", "491621******1292", "must be masked: asterisks and the last four digits"),
        ("card_no_masked", 1292, "must be masked: asterisks and the last four digits"),
        ("card_expiry", "1329", 'must be a month and a year, such as "0129" or "01/29"'),
        ("card_expiry", 129, 'must be a month and a year, such as "0129" or "01/29"'),
        ("holder", "S Perera", "is not a known field"),
    ],
)
async def test_a_wrong_field_is_named(call_parsing: Caller, member: str, value: object, words: str) -> None:
    """A whole card number above all must go no further, nor stand in the answer."""
    reply = await call_parsing("POST", "/gateway/api/customers", body=json.dumps(WHOLE | {member: value}).encode())

    assert (reply.status, reply.json["error"]["fields"]) == (422, [{"path": member, "msg": words}])
    assert not any(word in reply.body for word in (b"4916", b"CANARY"))


async def test_a_token_is_required(call_parsing: Caller) -> None:
    """There is nothing to keep without one."""
    reply = await call_parsing("POST", "/gateway/api/customers", body=b"{}")

    assert reply.json["error"]["fields"] == [{"path": "customer_token", "msg": "is required"}]


def test_names_are_left_changed_or_removed() -> None:
    """Three things that a merge patch must tell apart."""
    names = parse_body(b'{"reference":null,"label":"x"}', CustomerNamesBody).call()
    label = parse_body(b'{"label":"x"}', CustomerNamesBody).call()

    assert (names, label) == (NewNames(reference=None, label="x"), NewNames(reference=UNSET, label="x"))


async def test_a_change_of_nothing_is_a_mistake(call_parsing: Caller) -> None:
    """Somebody misspelt a member, or sent the wrong body."""
    reply = await call_parsing("PATCH", f"/gateway/api/customers/{CUSTOMER_ID}", body=b"{}")

    assert reply.json["error"]["fields"] == [{"path": "label", "msg": "is required, or reference"}]


@pytest.mark.parametrize(
    "query", ["state=gone", "cursor=cus_1", "reference=", f"reference={'x' * 256}", "limit=0", "principal=other"]
)
async def test_a_wrong_filter_goes_no_further(call_parsing: Caller, query: str) -> None:
    """An impossible filter must not look like an empty list."""
    reply = await call_parsing("GET", f"/gateway/api/customers?{query}")

    assert (reply.status, reply.json["error"]["fields"][0]["path"]) == (422, query.partition("=")[0])


@pytest.mark.parametrize(("method", "ending"), [("DELETE", ""), ("POST", "/erase")])
async def test_removal_and_erasure_take_no_body(call_parsing: Caller, method: str, ending: str) -> None:
    """A client that sends members misunderstands the call, and learns so before anything is destroyed."""
    reply = await call_parsing(method, f"/gateway/api/customers/{CUSTOMER_ID}{ending}", body=b'{"why":"x"}')

    assert (reply.status, reply.json["error"]["fields"][0]["path"]) == (422, "why")


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "customers?reference=user-17&state=active&limit=5", "listCustomers"),
        ("POST", "customers", "importCustomer"),
        ("GET", f"customers/{CUSTOMER_ID}", "showCustomer"),
        ("PATCH", f"customers/{CUSTOMER_ID}", "changeCustomer"),
        ("DELETE", f"customers/{CUSTOMER_ID}", "removeCustomer"),
        ("POST", f"customers/{CUSTOMER_ID}/erase", "eraseCustomer"),
    ],
)
async def test_each_address_reaches_its_own_flow(
    call: Caller, flows: RecordingFlows, method: str, path: str, name: str
) -> None:
    """A removal that lands at another route would destroy nothing, or too much."""
    reply = await call(method, f"/gateway/api/{path}", body=b"{}" if method in {"POST", "PATCH"} else b"")

    assert reply.status == 200
    assert [told for told, _ in flows.requests] == [name]


@pytest.mark.parametrize("name", ["importCustomer", "changeCustomer"])
def test_the_examples_are_right(name: str) -> None:
    """They are copied before anything else is read."""
    kind = CustomerBody if name == "importCustomer" else CustomerNamesBody
    for shown in REQUESTS[name].values():
        parse_body(json.dumps(shown["value"]).encode(), kind)


@given(st.data())
@pytest.mark.parametrize("kind", [MaskedCard, CardExpiry], ids=lambda kind: kind.__name__)
def test_check_and_schema_agree(kind: type[CheckedValue], data: Any) -> None:  # noqa: ANN401, what hypothesis gives
    """A client that goes by the schema is refused by nothing else."""
    schema = kind.SCHEMA
    text = data.draw(st.from_regex(str(schema["pattern"])) | st.text(alphabet="*X 0129/-\n", max_size=26))
    try:
        kind.read(text)
        is_right = True
    except ValueError:
        is_right = False

    assert jsonschema_rs.is_valid(schema, text) is is_right or text.endswith("\n")


async def test_each_handler_leads_to_its_flow(tmp_path: Path) -> None:
    """From what was sent to what is stored: the whole life of a customer, without a socket."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    relay = world.relay

    def sent(customer_id: str = "", body: bytes = b"", **query: str) -> ParsedRequest:
        return ParsedRequest(request=asked(), id=customer_id, body=body, query=query)

    async def data(name: str, request: ParsedRequest) -> Any:  # noqa: ANN401, whatever JSON has
        [handler] = [route.handler for route in ROUTES if route.name == name]
        return json.loads((await handler(relay, request)).body)["data"]

    new = await data("importCustomer", sent(body=json.dumps(WHOLE).encode()))
    wanted = sent(reference="user-17", state="active", limit="5")
    [found] = await data("listCustomers", wanted)
    shown = await data("showCustomer", sent(new["id"]))
    named = await data("changeCustomer", sent(new["id"], b'{"label":null}'))
    removed = await data("removeCustomer", sent(new["id"]))
    erased = await data("eraseCustomer", sent(new["id"], b"{}"))
    await world.database.close()

    assert new == found == shown
    assert (named["label"], removed["state"], erased["state"], erased["version"]) == (None, "removed", "erased", 4)
    assert erased["files_cleared"] is True
    assert "files_cleared" not in shown
