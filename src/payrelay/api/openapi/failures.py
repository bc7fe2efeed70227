"""The schemas of what a request gets that isn't answered with a success.

A 202 is no failure: the money may have moved. It has a type of its own, with the code, so that no generated client
takes it for an error, or for a finished charge.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from payrelay.api.openapi.shapes import NOTHING, Schema, reference
from payrelay.errors import MEANINGS, Code, Retry

_MSG: Final[Schema] = {"type": "string", "description": "A message for people."}
_REQUEST_ID: Final[Schema] = {"type": "string", "description": "Identifies the request in the service's log."}
_OPERATION_ID: Final[Schema] = {"type": "string", "description": "The operation, where it is yours."}
_CHECKOUT_ID: Final[Schema] = {"type": "string", "description": "The checkout, where it is yours."}
OPEN: Final = tuple(code for code in Code if MEANINGS[code].http_status == HTTPStatus.ACCEPTED)
FAILED: Final = tuple(code for code in Code if code not in OPEN)

FAILURES: Final[Mapping[str, Schema]] = {
    "Accepted": {
        "type": "object",
        "description": "The envelope of an operation whose outcome isn't known yet. Don't charge again with another"
        " key: follow the operation, or send the same request again.",
        "required": ["status", "msg", "data", "error"],
        "properties": {
            "status": {"type": "integer", "const": 0},
            "msg": _MSG,
            "data": NOTHING,
            "error": reference("OpenOutcome"),
        },
    },
    "OpenOutcome": {
        "type": "object",
        "description": "Why the outcome isn't known yet.",
        "required": ["code", "retry", "request_id"],
        "properties": {
            "code": {"type": "string", "enum": [*OPEN]},
            "retry": {
                "type": "string",
                "const": Retry.AFTER,
                "description": "Repeat the request unchanged, but not before Retry-After.",
            },
            "request_id": _REQUEST_ID,
            "operation_id": _OPERATION_ID,
        },
    },
    "Failure": {
        "type": "object",
        "description": "The envelope of an error.",
        "required": ["status", "msg", "data", "error"],
        "properties": {
            "status": {"type": "integer", "enum": [-1, -2], "description": "-2 with 401 and 403, else -1."},
            "msg": _MSG,
            "data": {
                "description": "The gateway's data if it gave any, `[]` for an order without payments, else null."
            },
            "error": reference("Error"),
        },
    },
    "Error": {
        "type": "object",
        "description": "What is wrong, for programs.",
        "required": ["code", "retry", "request_id"],
        "properties": {
            "code": {
                "type": "string",
                "enum": [*FAILED],
            },
            "retry": {"type": "string", "enum": [*Retry]},
            "request_id": _REQUEST_ID,
            "operation_id": _OPERATION_ID,
            "checkout_id": _CHECKOUT_ID,
            "fields": {
                "type": "array",
                "description": "Every wrong field.",
                "items": reference("FieldError"),
            },
        },
    },
    "FieldError": {
        "type": "object",
        "description": "One wrong field.",
        "required": ["path", "msg"],
        "properties": {
            "path": {"type": "string", "description": "Where it is, such as `itemList[0].name`."},
            "msg": {"type": "string", "description": "What it must be, for people."},
        },
    },
}
"""By name."""


def schema_of(status: int) -> Schema:
    """Gives the reference to the envelope of answers with an HTTP status that is no success."""
    return reference("Accepted" if status == HTTPStatus.ACCEPTED else "Failure")
