"""The form of the schemas: one that every generator of clients reads alike.

Rules:

1. What may be null has that as a second type beside its own. Only a reference to a schema has null as an alternative.
2. Every enumeration and every constant has a type.
3. Every integer has a format: without one, many generators take 32 bits. Every other number has 64 bits of its own.
4. An enumeration stands once, under a name: whoever uses it refers to it.
5. No schema has a title: generators would name their types by it.
6. A rule between members stands under ``then``, where generators don't look for types.
7. No pattern looks ahead or behind: some languages can't, and a fuzzer throws away most texts that it makes for one.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, object]

REF: Final = "#/components/schemas/"
NULL: Final[Schema] = {"type": "null"}
NOTHING: Final[Schema] = {"type": ["string", "null"], "maxLength": 0, "description": "Null."}
"""The schema of a member that is always null: as a type of its own, null is no type for many generators."""

CARD_EXPIRY: Final[Schema] = {
    "type": ["string", "null"],
    "pattern": "^(?:0[1-9]|1[0-2])[0-9]{2}$",
    "description": "Month and year in which the card expires, as four digits: `0129` is January 2029.",
}
"""The one form in which the service shows it, whatever it was told."""

_SMALL: Final = frozenset(
    {
        *("attempts", "elapsed_ms", "gateway_status", "http_status", "incarnation", "installments_paid", "last_status"),
        *("payments", "quantity", "revoked", "status_code", "version"),
    }
)
"""Members whose numbers never need more than 32 bits, and have no maximum that says so."""
_INT32_MAX: Final = 2**31 - 1
_MOMENTS: Final = ("at", "timestamp", "as_of", "send_by", "failing_since", "lost_since", "lost_until")
_TYPES: Final[Mapping[type, str]] = {bool: "boolean", str: "string", int: "integer", float: "number"}
_RULES: Final = frozenset({"if", "then", "else", "examples", "example"})
_MARKUP: Final = re.compile(r"``")
_SPACE: Final = re.compile(r"\s+")


def reference(name: str) -> Schema:
    """Gives a reference to a schema of this document."""
    return {"$ref": REF + name}


def described(schema: Schema, sentence: str) -> Schema:
    """Gives a schema with a description."""
    return {**schema, "description": sentence}


def always(*rules: Schema) -> Schema:
    """Gives the members of a schema by which rules between its members hold, and that no generator makes a type of."""
    return {"if": {"type": "object"}, "then": {"allOf": [*rules]}}


def nullable(schema: Schema) -> Schema:
    """Gives a schema that also allows null."""
    if "$ref" in schema:
        return {"anyOf": [{"$ref": schema["$ref"]}, NULL], **{key: schema[key] for key in schema if key != "$ref"}}
    if "anyOf" in schema:
        alternatives = schema["anyOf"]
        assert isinstance(alternatives, list)  # noqa: S101 - tells mypy what JSON Schema has there
        return schema if NULL in alternatives else _with_null_in_alternatives(schema, alternatives)
    kind = schema.get("type")
    if kind is None or "null" in (kind if isinstance(kind, list) else [kind]):
        return schema
    more: Schema = {"type": [*(kind if isinstance(kind, list) else [kind]), "null"]}
    values = schema.get("enum")
    if isinstance(values, list):
        more["enum"] = [*values, None]
    if "default" in schema and schema["default"] is None:
        schema = {name: value for name, value in schema.items() if name != "default"}
    return {**schema, **more}


def or_empty(schema: Schema) -> Schema:
    """Gives a schema of a text that also allows the empty one; that of an object only says so in words.

    An object or an empty text would be a type for which few languages have a name.
    """
    sentence = f"{schema.get('description', '')} An empty text says the same as nothing.".strip()
    if "anyOf" in schema:
        return {**schema, "description": sentence}
    more: Schema = {"description": sentence}
    values, pattern = schema.get("enum"), schema.get("pattern")
    if isinstance(values, list):
        more["enum"] = [*values, ""]
    if isinstance(pattern, str) and re.search(pattern, "") is None:
        more["pattern"] = f"^$|{pattern}"
    return {**{name: value for name, value in schema.items() if name != "minLength"}, **more}


def _with_null_in_alternatives(schema: Schema, alternatives: list[Schema]) -> Schema:
    """Lets the last alternative be null that has a type and is no constant, beside which null would be none."""
    for index in reversed(range(len(alternatives))):
        each = alternatives[index]
        if "$ref" not in each and "type" in each and "const" not in each:
            return {**schema, "anyOf": [*alternatives[:index], nullable(each), *alternatives[index + 1 :]]}
    return {**schema, "anyOf": [*alternatives, NULL]}


def plain(schema: Schema, name: str = "") -> Schema:
    """Gives a schema by the rules above; ``name`` is that of the member that it describes."""
    shaped = {key: value for key, value in schema.items() if key != "title" and (key, value) != ("default", None)}
    alternatives = shaped.get("anyOf")
    if isinstance(alternatives, list) and NULL in alternatives:
        return _plain_or_null(shaped, alternatives, name)
    description = shaped.get("description")
    if isinstance(description, str):
        shaped["description"] = (
            _SPACE.sub(" ", _MARKUP.sub("`", description))
            if "``" in description or ("\n  " in description)
            else description
        )
    return _with_format(_typed(_with_plain_parts(shaped, name)), name)


def _plain_or_null(schema: Schema, alternatives: list[Schema], name: str) -> Schema:
    others = [each for each in alternatives if each != NULL]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    inner: Schema = others[0] if len(others) == 1 else {"anyOf": others}
    return {**nullable(plain(inner, name)), **rest}


def _with_plain_parts(schema: Schema, name: str) -> Schema:
    shaped = dict(schema)
    for key in ("properties", "$defs"):
        members = shaped.get(key)
        if isinstance(members, dict):
            shaped[key] = {member: plain(part, member) for member, part in members.items()}
    for key in ("items", "additionalProperties"):
        part = shaped.get(key)
        if isinstance(part, dict):
            shaped[key] = plain(part, name)
    for key in ("anyOf", "oneOf"):
        parts = shaped.get(key)
        if isinstance(parts, list):
            shaped[key] = [plain(part, name) for part in parts]
    if shaped.get("required") == []:
        del shaped["required"]
    return shaped


def _typed(schema: Schema) -> Schema:
    if "type" in schema:
        return schema
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    assert isinstance(values, list)  # noqa: S101 - tells mypy what JSON Schema has there
    kinds = {_TYPES[type(value)] for value in values if value is not None}
    return {"type": kinds.pop(), **schema} if len(kinds) == 1 else schema


def _with_format(schema: Schema, name: str) -> Schema:
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "format" in schema:
        return schema
    if "integer" in kinds:
        maximum = schema.get("maximum")
        is_small = name in _SMALL or (isinstance(maximum, int) and maximum <= _INT32_MAX) or "const" in schema
        return {**schema, "format": "int32" if is_small or "enum" in schema else "int64"}
    if "number" in kinds:
        return {**schema, "format": "double"}
    is_free_text = "string" in kinds and "pattern" not in schema and "enum" not in schema
    if is_free_text and (name in _MOMENTS or name.endswith("_at")):
        return {**schema, "format": "date-time"}
    return schema


def refer_to_enums(value: Any, names: Mapping[frozenset[object], str]) -> Any:  # noqa: ANN401 - any part of the document
    """Puts, into a part of the document, references in place of the enumerations that have a name."""
    if isinstance(value, list):
        return [refer_to_enums(part, names) for part in value]
    if not isinstance(value, dict):
        return value
    listed = value.get("enum", [])
    name = names.get(frozenset(listed) - {None})
    if name is None:
        return {key: part if key in _RULES else refer_to_enums(part, names) for key, part in value.items()}
    rest = {key: part for key, part in value.items() if key not in {"type", "enum", "minLength", "maxLength"}}
    return {**rest, **({"anyOf": [reference(name), NULL]} if None in listed else reference(name))}
