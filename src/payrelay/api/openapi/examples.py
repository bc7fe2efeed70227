"""The examples of the description: requests that a reader can send to a demo, and what the demo answers.

They are data, in ``examples.json``. The requests are written by hand, and so is which routes show a failure. The
answers are recorded from a demo (``make examples``), and a test records them anew and compares.
"""

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

from payrelay.api.openapi.shapes import Schema
from payrelay.errors import Code


class _Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer with a code; ``routes`` are those that give it, None for all that have the code."""

    routes: list[str] | None
    value: dict[str, Any]


class _Examples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    requests: dict[str, dict[str, Schema]]
    answers: dict[str, Schema]
    failures: dict[str, _Failure]


_SHOWN: Final = msgspec.json.decode(files(__package__).joinpath("examples.json").read_bytes(), type=_Examples)

REQUESTS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = _SHOWN.requests
"""The examples of each route that has a body, by name, as OpenAPI has them: a summary, and a value."""
ANSWERS: Final[Mapping[str, Schema]] = _SHOWN.answers
"""The body of a success, by what a route answers."""
FAILURE_EXAMPLES: Final[Mapping[str, Schema]] = {
    name: {"summary": failure.value["msg"], "value": failure.value} for name, failure in _SHOWN.failures.items()
}
"""Answers with a code, as components of the description, by name."""


def failure_examples_of(route: str, codes: Collection[Code]) -> list[str]:
    """Gives the names of the examples of these codes on a route."""
    return [
        name
        for name, failure in _SHOWN.failures.items()
        if failure.value["error"]["code"] in codes and (failure.routes is None or route in failure.routes)
    ]
