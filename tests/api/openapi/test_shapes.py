"""The rules of the description's form, which the generators of clients need: see ``openapi.shapes``."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from payrelay.api.openapi.document import describe_api
from payrelay.api.openapi.shapes import nullable, plain
from payrelay.api.routes.table import ROUTES
from payrelay.core.events.event import TYPES

DOCUMENT: dict[str, Any] = json.loads(describe_api(ROUTES, {"gateway": "sandbox"}, "https://pay.example"))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
NULL = {"type": "null"}


def parts(schema: Any, at: str) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any part of a schema
    """Gives a schema and every schema in it from which generators make types, each with its place."""
    yield at, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{at}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{at}[]")
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, []):
            yield from parts(part, f"{at}|")


def operations() -> Iterator[dict[str, Any]]:
    """Gives every operation and every webhook."""
    for methods in (*DOCUMENT["paths"].values(), *DOCUMENT["webhooks"].values()):
        yield from methods.values()


def inline() -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives every schema that stands in an operation."""
    for operation in operations():
        name = operation["operationId"]
        for parameter in operation.get("parameters", []):
            yield from parts(parameter["schema"], f"{name}.{parameter['name']}")
        for status, answer in {"body": operation.get("requestBody", {}), **operation["responses"]}.items():
            for media in answer.get("content", {}).values():
                yield from parts(media["schema"], f"{name} {status}")


ALL = [each for name, schema in SCHEMAS.items() for each in parts(schema, name)] + [*inline()]


def kinds(schema: dict[str, Any]) -> list[str]:
    """Gives the types of a schema, without null."""
    kind = schema.get("type", [])
    return [each for each in (kind if isinstance(kind, list) else [kind]) if each != "null"]


def test_every_schema_stands_once_under_a_short_name() -> None:
    """A generator makes one type of each: copies without a name became 1,283 types, and names with dots none."""
    unnamed = [at for at, schema in ALL if "object" in kinds(schema) and "properties" in schema and at not in SCHEMAS]
    enums = [at for at, schema in ALL if len(schema.get("enum", [])) > 1 and "string" in kinds(schema)]
    assert [*unnamed, *(at for at in enums if at not in SCHEMAS)] == []
    assert all(name.isalnum() and len(name) <= 24 for name in SCHEMAS)
    assert len({name.casefold() for name in SCHEMAS}) == len(SCHEMAS)
    assert not any("title" in schema for _, schema in ALL)
    same = Counter(json.dumps(schema, sort_keys=True) for schema in SCHEMAS.values())
    assert same.most_common(1)[0][1] == 1
    assert len(SCHEMAS) < 140


def test_null_is_never_a_type_of_its_own() -> None:
    """Half of the generators know no type that is only null; beside a reference there is no other way to say it."""
    for at, schema in ALL:
        assert schema.get("type") != ["null"], at
        alternatives = schema.get("anyOf", [])
        if NULL in alternatives:
            assert [list(each) for each in alternatives if each != NULL] == [["$ref"]], at
    assert not [at for at, schema in ALL if schema == NULL and not at.endswith("|")]


def test_every_number_has_its_size() -> None:
    """Go and Java took 32 bits for a number without a format, and cut the payment's id after the money was taken."""
    for at, schema in ALL:
        if "integer" in kinds(schema):
            assert schema.get("format") in {"int32", "int64"}, at
            name = at.rpartition(".")[2]
            is_id = name.endswith("_id") or name in {"next", "after", "position"}
            assert not is_id or schema["format"] == "int64", at
        if "number" in kinds(schema):
            assert schema.get("format") == "double", at
    assert SCHEMAS["RefundAnswer"]["properties"]["data"]["format"] == "int64"


def test_every_constant_and_enumeration_has_a_type() -> None:
    """A value without a type becomes an untyped one in most languages."""
    assert [at for at, schema in ALL if {"enum", "const"} & schema.keys() and "type" not in schema] == []


def test_no_pattern_looks_ahead() -> None:
    """Go and Rust have no such expressions, and a fuzzer that fills in eight of them gives up."""
    patterns = [str(schema["pattern"]) for _, schema in ALL if "pattern" in schema]
    assert len(patterns) > 20
    assert [pattern for pattern in patterns if re.search(r"\(\?(?!:)", pattern)] == []


def test_the_expiry_of_a_card_has_one_form() -> None:
    """Who shows a card or compares two must not read three ways of writing January 2029."""
    shown = [schema for at, schema in ALL if at.endswith(".card_expiry") and "Request" not in at]
    assert len(shown) >= 3
    assert all(re.search(schema["pattern"], "0129") and not re.search(schema["pattern"], "01/29") for schema in shown)


def test_required_members_exist() -> None:
    """A required member that isn't described can be neither read nor written."""
    for at, schema in ALL:
        assert set(schema.get("required", [])) <= set(schema.get("properties", schema.get("required", []))), at


def test_rules_between_members_are_out_of_the_generators_way() -> None:
    """Alternatives of required members beside properties made types that had lost the properties."""
    for name, schema in SCHEMAS.items():
        if "properties" in schema:
            assert not {"anyOf", "oneOf", "allOf"} & schema.keys(), name


def test_times_are_told_as_such() -> None:
    """A generated client then has a moment and not a text."""
    operation = SCHEMAS["Operation"]["properties"]
    assert {operation[name]["format"] for name in ("created_at", "updated_at", "send_by")} == {"date-time"}
    assert SCHEMAS["Recovery"]["properties"]["lost_since"]["format"] == "date-time"


def test_operations_are_grouped_by_noun() -> None:
    """A reader looks for customers, not for the name of an account."""
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    used = [tag for operation in operations() for tag in operation["tags"]]
    assert set(used) == tags
    assert {"payments", "subscriptions", "checkouts", "customers", "operations", "events", "endpoints"} <= tags


def test_no_call_shares_a_tag_with_a_webhook() -> None:
    """OpenAPI Generator writes a file for each tag: its clients in Go and Java had webhooks in place of calls."""
    paths = [tag for methods in DOCUMENT["paths"].values() for method in methods.values() for tag in method["tags"]]
    webhooks = [tag for methods in DOCUMENT["webhooks"].values() for tag in methods["post"]["tags"]]
    assert not set(paths) & set(webhooks)


def test_every_event_has_its_webhook() -> None:
    """Whoever receives events gets their types from the same description."""
    assert DOCUMENT["webhooks"].keys() == TYPES
    for type_, methods in DOCUMENT["webhooks"].items():
        name = methods["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        kind = SCHEMAS[name]["properties"]["type"]
        known = SCHEMAS[kind["$ref"].rpartition("/")[2]]["enum"] if "$ref" in kind else kind["enum"]
        assert type_ in known


@pytest.mark.parametrize(("public_url", "shown"), [("https://pay.example", "https://pay.example"), (None, "/")])
def test_the_server_is_the_public_address(public_url: str | None, shown: str) -> None:
    """A generated client calls the service and not the machine that it was generated on."""
    document = json.loads(describe_api(ROUTES, {"gateway": "sandbox"}, public_url))
    assert [server["url"] for server in document["servers"]] == [shown]


def test_every_page_of_a_list_tells_of_the_next_alike() -> None:
    """One loop reads each list: ``cursor`` in, ``next_cursor`` out."""
    paged = {
        operation["operationId"]
        for operation in operations()
        if any(parameter["name"] == "cursor" for parameter in operation.get("parameters", []))
    }
    assert paged == {
        *("listOperations", "listCustomers", "listClientTokens", "listSubscriptionStates", "listEvents"),
        "listDeliveries",
    }
    for operation in operations():
        if operation["operationId"] in paged:
            success = operation["responses"]["200"]
            envelope = SCHEMAS[success["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
            assert "next_cursor" in envelope["required"]
            assert "Link" in success["headers"]
            assert {"cursor", "limit"} <= {parameter["name"] for parameter in operation["parameters"]}


@pytest.mark.parametrize(
    ("schema", "shaped"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"$ref": "#/a"}, {"anyOf": [{"$ref": "#/a"}, NULL]}),
        ({"anyOf": [{"type": "number"}, {"const": "x"}]}, {"anyOf": [{"type": ["number", "null"]}, {"const": "x"}]}),
        ({"anyOf": [{"const": "x"}]}, {"anyOf": [{"const": "x"}, NULL]}),
        (
            {"anyOf": [{"type": "number"}, {"type": "string"}]},
            {"anyOf": [{"type": "number"}, {"type": ["string", "null"]}]},
        ),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({}, {}),
    ],
)
def test_what_may_be_null_keeps_its_own_type(schema: dict[str, Any], shaped: dict[str, Any]) -> None:
    """Null is a second type; only where there is none to stand beside is it an alternative."""
    assert nullable(schema) == shaped
    assert nullable(nullable(schema)) == nullable(schema)


def test_a_description_is_one_paragraph_of_markdown() -> None:
    """Docstrings are wrapped and have reStructuredText's marks; the docs page shows Markdown."""
    schema = plain(
        {"title": "X", "description": "The state; ``open``\n    at first.", "type": "string", "default": None}
    )
    assert schema == {"description": "The state; `open` at first.", "type": "string"}
