"""Writes ``/openapi.json`` (OpenAPI 3.1) from the table of routes and the types of the bodies."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Final

import msgspec

from payrelay.api.openapi.enums import ENUMS, NAMES_OF_ENUMS
from payrelay.api.openapi.examples import ANSWERS, FAILURE_EXAMPLES, REQUESTS, failure_examples_of
from payrelay.api.openapi.failures import schema_of
from payrelay.api.openapi.schemas import PAGED, components, name_of, success
from payrelay.api.openapi.shapes import Schema, plain, refer_to_enums, reference
from payrelay.api.openapi.webhooks import TAG as WEBHOOKS_TAG
from payrelay.api.openapi.webhooks import webhook_schemas, webhooks
from payrelay.api.requests.body import Body
from payrelay.api.requests.parameters import Parameter
from payrelay.api.requests.route import ALWAYS, EmptyBody, Route
from payrelay.errors import MEANINGS, Code, Retry
from payrelay.flows.payments.await_outcome import WAIT_S_MAX

_DESCRIPTION: Final = """\
Relays payments and subscriptions to a payment gateway. Nobody is charged twice, and no answer is lost.

Every answer is an envelope of `status`, `msg` and `data`. An error also has `error`, with a `code` and what to do next
(`retry`). A POST or DELETE that got no answer may be sent again unchanged. With its `Idempotency-Key`, or without one
within the repeat window, it takes effect once and gets the finished answer.

**202 is neither a success nor an error**: the outcome isn't known yet. Follow the operation, or send the same request
again. Charge under another key only after a final answer, such as 402, that the charge failed.

**How do I get a key?** An operator of the service types `payrelay keys create shop --environment sandbox`, and gives
you what it prints: a text that begins with `prk_`. `payrelay demo` starts the service with a simulated gateway, and
prints a key that works there, and calls to copy. Press *Authorize* on this page and paste the key. In your own calls,
send it as `Authorization: Bearer prk_…`. A key belongs on a server; an app gets a short-lived client token
(`prt_…`), which `POST /client-tokens` issues.

**The examples run in the demo.** Their cards, holds, payments and subscriptions exist there, so *Execute* gives the
answer that stands beside them. Identifiers such as `cus_…`, `chk_…` and `op_…` are new in each demo: copy them from an
earlier answer.

**Lists come in pages.** `limit` is the size of a page. Its `next_cursor` is the `cursor` of the next page, and null on
the last one; the `Link` header leads there too.
"""

_TAGS: Final[dict[str, str]] = {
    "payments": "Charge, capture, refund and void; the payments of an order.",
    "orders": "What was paid of an order, and what is left of it.",
    "subscriptions": "The gateway's subscriptions: read, retry and cancel them.",
    "checkouts": "Pages of the gateway on which customers pay, approve a card or subscribe.",
    "customers": "People who approved a card, which may be charged later.",
    "operations": "What became of each change that you asked for.",
    "client tokens": "Short-lived credentials for apps.",
    "events": "The feed of what has happened.",
    "endpoints": "The addresses to which events are sent.",
    WEBHOOKS_TAG: "What is sent to them: one for each type of event.",
    "recovery": "What you do after the service lost commits of its database.",
    "service": "The service itself; needs no key.",
}
"""By noun, in the order of the docs."""
_TAG_OF_PATHS: Final = {"subscription-states": "subscriptions", "client-tokens": "client tokens"}

_STRING: Final[Schema] = {"type": "string"}
_SHOWS_PAYMENTS: Final = frozenset({"payments", "subscription"})
"""Answers with the gateway's record of payments, which may lack some that are known to have taken money."""
_LIST_OF_PAYMENTS: Final = "payments"
"""Of these the one that is 404 where the record shows none."""
_SECONDS: Final[Schema] = {"type": "integer", "format": "int32", "minimum": 0}
HEADERS: Final[dict[str, tuple[str, Schema]]] = {
    "X-Request-Id": ("Identifies the request in the service's log; your own id where it is valid.", _STRING),
    "Retry-After": ("Seconds to wait before you repeat the request.", _SECONDS),
    "Location": ("The address that shows the operation.", _STRING),
    "Idempotent-Replayed": ("This is the finished answer of an earlier request.", {"type": "string", "const": "true"}),
    "Payrelay-Operation": ("The id of the operation.", _STRING),
    "WWW-Authenticate": ("Asks for a bearer key.", _STRING),
    "Allow": ("The methods that this address accepts.", _STRING),
    "Link": ('Leads to the next page, `rel="next"`.', _STRING),
    "RateLimit-Policy": ("Your quota, where the key has one (IETF draft).", _STRING),
    "RateLimit": ("The part of your quota that is left.", _STRING),
    "Age": ("The seconds since the gateway was asked, where this answer comes from the read cache.", _SECONDS),
    "Payrelay-Stale": (
        "This is the last known answer; the gateway gives none now.",
        {"type": "string", "const": "true"},
    ),
    "Payrelay-Missing": (
        "Ids of payments that took money and aren't in the gateway's record yet, with commas between them.",
        _STRING,
    ),
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


_SERVICE_SCHEMAS: Final[dict[str, Schema]] = {
    "Health": {
        "type": "object",
        "description": "How the service is; what is wrong has members of its own.",
        "required": ["status"],
        "properties": {
            "status": _STRING,
            "effects": {"type": "string", "description": "`refused` while the database may lack commits."},
        },
    },
}


def describe_api(routes: Sequence[Route], environments: Mapping[str, str], public_url: str | None = None) -> bytes:
    """Gives the description as JSON: every route once per account, under the account's own name.

    ``public_url`` is the service's address from outside, without a slash at its end.
    """
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
        "servers": [{"url": public_url or "/", "description": _accounts(environments)}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": sentence} for name, sentence in _TAGS.items()],
        "paths": {**refer_to_enums(paths, NAMES_OF_ENUMS), **_service_paths()},
        "webhooks": webhooks(),
        "components": {
            "schemas": _schemas(routes),
            "examples": FAILURE_EXAMPLES,
            "headers": {
                name: {"description": sentence, "schema": schema} for name, (sentence, schema) in HEADERS.items()
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "prk_… or prt_…"}},
        },
    }
    return msgspec.json.encode(document)


def _accounts(environments: Mapping[str, str]) -> str:
    named = ", ".join(f"`{account}` ({environment})" for account, environment in environments.items())
    return f"The gateway accounts: {named}."


def _schemas(routes: Sequence[Route]) -> dict[str, Schema]:
    bodies = {route.body for route in routes if _takes_members(route)} - {None}
    named = sorted((body for body in bodies if body is not None), key=lambda body: body.__name__)
    more = {name: plain(schema) for name, schema in {**webhook_schemas(), **_SERVICE_SCHEMAS}.items()}
    made = {**components(named, {route.answer for route in routes if not route.is_stream}), **more}
    inside = {name: schema for name, schema in made.items() if name not in ENUMS}
    return dict(sorted({**refer_to_enums(inside, NAMES_OF_ENUMS), **ENUMS}.items()))


def _takes_members(route: Route) -> bool:
    """Tells whether a body is described; that of a call that takes none is read, so that any client's gets through."""
    return route.body is not None and route.body is not EmptyBody


def _tag(route: Route) -> str:
    noun = route.path.split("/")[1]
    return _TAG_OF_PATHS.get(noun, noun)


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
        "tags": [_tag(route)],
        "parameters": parameters,
        "responses": _responses(route),
    }
    if route.body is not None and _takes_members(route):
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
        "schema": plain(parameter.schema),
    }
    # The docs page would fill an example into an optional query parameter, and so narrow the call.
    is_required = parameter.is_required or location == "path"
    return {**described, "required": True, "example": parameter.example} if is_required else described


def _request_body(route: Route, body: type[Body]) -> Schema:
    media = {"schema": reference(name_of(body)), "examples": REQUESTS[route.name]}
    return {"required": True, "content": {"application/json": media}}


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
    if route.answer in _SHOWS_PAYMENTS:
        names.append("Payrelay-Missing")
    if route.can_wait:
        names.append("Preference-Applied")
    if route.answer in PAGED:
        names.append("Link")
    media: Schema = {"schema": success(route.answer)}
    if route.answer in ANSWERS:
        media["example"] = ANSWERS[route.answer]
    if route.is_stream:
        stream: Schema = {"text/event-stream": {"schema": _STRING}}
        return {"description": "Events, as they happen.", "headers": _headers(names), "content": stream}
    return {"description": "Success.", "headers": _headers(names), "content": {"application/json": media}}


def _failure(status: int, codes: list[Code], route: Route) -> Schema:
    names = ["X-Request-Id", "RateLimit-Policy", "RateLimit"]
    is_not_shown_yet = status == HTTPStatus.NOT_FOUND and route.answer == _LIST_OF_PAYMENTS
    if is_not_shown_yet or any(MEANINGS[code].retry is Retry.AFTER for code in codes):
        names.append("Retry-After")
    if is_not_shown_yet:
        names.append("Payrelay-Missing")
    if status == HTTPStatus.ACCEPTED:
        names.append("Location")
    if status == HTTPStatus.UNAUTHORIZED:
        names.append("WWW-Authenticate")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        names.append("Allow")
    if route.is_effect:
        names += ["Payrelay-Operation", "Idempotent-Replayed", "Preference-Applied"]
    media: Schema = {"schema": schema_of(status)}
    examples = {name: {"$ref": f"#/components/examples/{name}"} for name in failure_examples_of(route.name, codes)}
    if examples:
        media["examples"] = examples
    return {
        "description": "\n".join(f"- `{code}`: {MEANINGS[code].sentence}" for code in codes),
        "headers": _headers(names),
        "content": {"application/json": media},
        "x-codes": [*codes],
    }


def _headers(names: list[str]) -> Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _service_paths() -> Schema:
    ready = {"description": "Yes.", **_json(reference("Health"))}
    not_ready = {
        "description": "The store can't be used, or the service is about to stop.",
        **_json(reference("Health")),
    }
    metrics = {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": _STRING}}}
    nothing = {"description": "The client's network may not read the metrics.", **_json(reference("Failure"))}
    live = {"description": "Yes.", **_json(reference("Health"))}
    return {
        "/health/live": {"get": _service("live", "Tell whether the process answers", {"200": live})},
        "/health/ready": {
            "get": _service("ready", "Tell whether requests can be served", {"200": ready, "503": not_ready})
        },
        "/metrics": {"get": _service("metrics", "Read the metrics", {"200": metrics, "404": nothing})},
    }


def _service(name: str, sentence: str, responses: Schema) -> Schema:
    return {"operationId": name, "summary": sentence, "tags": ["service"], "security": [], "responses": responses}


def _json(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}
