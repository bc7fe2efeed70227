"""Writes ``/openapi.json`` (OpenAPI 3.1) from the table of routes and the types of the bodies."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Final

import msgspec

from payrelay.api.openapi.examples import ANSWERS, REQUESTS
from payrelay.api.openapi.schemas import Schema, components, failure, success
from payrelay.api.requests.body import Body
from payrelay.api.requests.parameters import Parameter
from payrelay.api.requests.route import ALWAYS, Route
from payrelay.errors import MEANINGS, Code, Retry
from payrelay.flows.payments.await_outcome import WAIT_S_MAX

_DESCRIPTION: Final = """\
Relays payments and subscriptions to a payment gateway. Nobody is charged twice, and no answer is lost.

Every answer is an envelope of `status`, `msg` and `data`. An error also has `error`, with a `code` and what to do next
(`retry`). A POST or DELETE that got no answer may be sent again unchanged. With its `Idempotency-Key`, or without one
within the repeat window, it takes effect once and gets the finished answer.
"""

_STRING: Final[Schema] = {"type": "string"}
_SECONDS: Final[Schema] = {"type": "integer", "minimum": 0}
_HEADERS: Final[dict[str, tuple[str, Schema]]] = {
    "X-Request-Id": ("Identifies the request in the service's log; your own id where it is valid.", _STRING),
    "Retry-After": ("Seconds to wait before you repeat the request.", _SECONDS),
    "Location": ("The address that shows the operation.", _STRING),
    "Idempotent-Replayed": ("This is the finished answer of an earlier request.", {"const": "true"}),
    "Payrelay-Operation": ("The id of the operation.", _STRING),
    "WWW-Authenticate": ("Asks for a bearer key.", _STRING),
    "Allow": ("The methods that this address accepts.", _STRING),
    "Link": ('Leads to the next page, `rel="next"`.', _STRING),
    "RateLimit-Policy": ("Your quota, where the key has one (IETF draft).", _STRING),
    "RateLimit": ("The part of your quota that is left.", _STRING),
    "Age": ("The seconds since the gateway was asked, where this answer comes from the read cache.", _SECONDS),
    "Payrelay-Stale": ("This is the last known answer; the gateway gives none now.", {"const": "true"}),
    "Preference-Applied": ("The longest time in seconds that the answer was held, where you prefer to wait.", _STRING),
}

# A bare key, or the quoted string of the IETF draft, in which a backslash escapes a quote or itself.
_KEY_PATTERN: Final = r'^(?:[!#-~][!-~]{0,254}|"(?:[!#-\[\]-~]|\\["\\]){1,255}")$'

_REQUEST_ID: Final[Schema] = {
    "name": "X-Request-Id",
    "in": "header",
    "description": "Identifies the request in the service's log: 1 to 128 letters, digits and `._~:/+=@-`. Any other"
    " value is replaced.",
    "schema": _STRING,
}
_IDEMPOTENCY_KEY: Final[Schema] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Makes it safe to repeat the request; 1 to 255 visible ASCII characters, unique per principal.",
    "schema": {"type": "string", "pattern": _KEY_PATTERN},
}
_PREFER: Final[Schema] = {
    "name": "Prefer",
    "in": "header",
    # No pattern: a malformed preference is ignored, as RFC 7240 has it.
    "description": "`wait=n` holds the answer until the operation is final or there is an event, for at most n seconds"
    f" from the request (never more than {WAIT_S_MAX}). Then the service answers with the present state. Any other"
    " preference is ignored.",
    "schema": _STRING,
}
_CACHE_CONTROL: Final[Schema] = {
    "name": "Cache-Control",
    "in": "header",
    "description": "`no-cache` requires a new answer from the gateway. Any other directive is ignored.",
    "schema": _STRING,
}


def describe_api(routes: Sequence[Route], environments: Mapping[str, str]) -> bytes:
    """Gives the description as JSON: every route once per account, under the account's own name."""
    bodies = sorted({route.body for route in routes if route.body is not None}, key=lambda body: body.__name__)
    paths: dict[str, dict[str, object]] = {}
    for position, account in enumerate(environments):
        for route in routes:
            methods = paths.setdefault(f"/{account}/api{route.path}", {})
            methods[route.method.lower()] = _operation(route, account, is_first=position == 0)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Payrelay",
            "version": version("payrelay"),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [*_tags(environments), {"name": "service", "description": "The service itself; needs no key."}],
        "paths": {**paths, **_service_paths()},
        "components": {
            "schemas": components(bodies),
            "headers": {
                name: {"description": sentence, "schema": schema} for name, (sentence, schema) in _HEADERS.items()
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "prk_… or prt_…"}},
        },
    }
    return msgspec.json.encode(document)


def _tags(environments: Mapping[str, str]) -> list[Schema]:
    return [
        {"name": account, "description": f"The gateway account `{account}` ({environment})."}
        for account, environment in environments.items()
    ]


def _operation(route: Route, account: str, *, is_first: bool) -> Schema:
    own = (
        (_IDEMPOTENCY_KEY, route.is_effect or route.takes_key),
        (_CACHE_CONTROL, route.is_read),
        (_PREFER, route.can_wait),
    )
    parameters = [*_parameters(route), *(header for header, is_taken in own if is_taken), _REQUEST_ID]
    operation: Schema = {
        "operationId": route.name if is_first else f"{account}-{route.name}",
        "summary": route.sentence,
        "description": f"Needs the scope `{route.scope}`.",
        "tags": [account],
        "parameters": parameters,
        "responses": _responses(route),
    }
    if route.body is not None:
        operation["requestBody"] = _request_body(route, route.body)
    return operation


def _parameters(route: Route) -> list[Schema]:
    in_path = [] if route.segment is None else [_parameter(route.segment, "path")]
    return [*in_path, *(_parameter(parameter, "query") for parameter in route.query)]


def _parameter(parameter: Parameter, location: str) -> Schema:
    described: Schema = {
        "name": parameter.name,
        "in": location,
        "description": parameter.sentence,
        "schema": parameter.schema,
    }
    # The docs page would fill an example into an optional query parameter, and so narrow the call.
    is_required = parameter.is_required or location == "path"
    return {**described, "required": True, "example": parameter.example} if is_required else described


def _request_body(route: Route, body: type[Body]) -> Schema:
    examples = {name: {"summary": sentence, "value": value} for name, (sentence, value) in REQUESTS[route.name].items()}
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    return {
        "required": bool(body.__struct_fields__),
        "content": {"application/json": {"schema": schema, "examples": examples}},
    }


def _responses(route: Route) -> Schema:
    by_status: dict[int, list[Code]] = {}
    for code in (*route.codes, *ALWAYS):
        by_status.setdefault(MEANINGS[code].http_status, []).append(code)
    failures = {str(status): _failure(status, by_status[status], route) for status in sorted(by_status)}
    return {"200": _success(route), **failures}


def _success(route: Route) -> Schema:
    names = ["X-Request-Id", "RateLimit-Policy", "RateLimit"]
    if route.is_effect:
        names += ["Payrelay-Operation", "Idempotent-Replayed"]
    if route.takes_key:
        names.append("Idempotent-Replayed")
    if route.is_read:
        names += ["Age", "Payrelay-Stale"]
    if route.can_wait:
        names.append("Preference-Applied")
    if route.answer in {"operations", "client_tokens"}:
        names.append("Link")
    media: Schema = {"schema": success(route.answer)}
    if route.answer in ANSWERS:
        msg, data = ANSWERS[route.answer]
        media["example"] = {"status": 1, "msg": msg, "data": data}
    if route.is_stream:
        stream: Schema = {"text/event-stream": {}}
        return {"description": "Events, as they happen.", "headers": _headers(names), "content": stream}
    return {"description": "Success.", "headers": _headers(names), "content": {"application/json": media}}


def _failure(status: int, codes: list[Code], route: Route) -> Schema:
    names = ["X-Request-Id", "RateLimit-Policy", "RateLimit"]
    if any(MEANINGS[code].retry is Retry.AFTER for code in codes):
        names.append("Retry-After")
    if status == HTTPStatus.ACCEPTED:
        names.append("Location")
    if status == HTTPStatus.UNAUTHORIZED:
        names.append("WWW-Authenticate")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        names.append("Allow")
    if route.is_effect:
        names += ["Payrelay-Operation", "Idempotent-Replayed", "Preference-Applied"]
    sentences = "\n".join(f"- `{code}`: {MEANINGS[code].sentence}" for code in codes)
    return {
        "description": sentences,
        "headers": _headers(names),
        "content": {"application/json": {"schema": failure(codes)}},
    }


def _headers(names: list[str]) -> Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _service_paths() -> Schema:
    ready = _ok() | {"description": "Yes. While the database may lack commits, `effects` is `refused`."}
    not_ready = {"description": "The store can't be used.", **_json({"type": "object"})}
    metrics = {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": _STRING}}}
    nothing = {"description": "The client's network may not read the metrics.", **_json(failure([Code.NOT_FOUND]))}
    return {
        "/health/live": {"get": _service("live", "Tell whether the process answers", {"200": _ok()})},
        "/health/ready": {
            "get": _service("ready", "Tell whether requests can be served", {"200": ready, "503": not_ready})
        },
        "/metrics": {"get": _service("metrics", "Read the metrics", {"200": metrics, "404": nothing})},
    }


def _service(name: str, sentence: str, responses: Schema) -> Schema:
    return {"operationId": name, "summary": sentence, "tags": ["service"], "security": [], "responses": responses}


def _ok() -> Schema:
    return {
        "description": "Yes.",
        **_json({"type": "object", "required": ["status"], "properties": {"status": _STRING}}),
    }


def _json(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}
