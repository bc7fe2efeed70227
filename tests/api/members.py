"""Every member of every body, found in the table of routes: what a law about bodies is tried on."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from payrelay.api.openapi.examples import REQUESTS
from payrelay.api.requests.body import Body, parse_body
from payrelay.api.requests.route import EmptyBody
from payrelay.api.routes.table import ROUTES
from payrelay.errors import Code, Refusal

_MARK = "\ufdd0"
"""Stands in an example for what a test writes there."""


@dataclass(frozen=True, eq=False)
class Member:
    """A member of a body, or of a part of one.

    Attributes:
        route: the name of the route.
        kind: the type of the whole body.
        owner: the type of the body, or of the part, that has the member.
        path: leads from the body to it; a number is the place in a list.
        field: what its annotation says.
    """

    route: str
    kind: type[Body]
    owner: str
    path: tuple[str | int, ...]
    field: msgspec.inspect.Field

    @property
    def name(self) -> str:
        """Names it in a table of a test: ``ChargeBody.amount``."""
        return f"{self.owner}.{self.path[-1]}"

    @property
    def shown(self) -> str:
        """Names it as an answer does: ``itemList[0].quantity``."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).removeprefix(".")

    @property
    def types(self) -> list[type]:
        """The types of our own that read it."""
        return [kind.cls for kind in _inside(self.field.type) if isinstance(kind, msgspec.inspect.CustomType)]

    def bodies(self, written: str) -> Iterator[bytes]:
        """Gives the examples of the docs in which the member can stand, with this JSON for its value."""
        for example in self._examples():
            yield json.dumps(_placed(example, self.path, _MARK)).replace(json.dumps(_MARK), written).encode()

    def bodies_without(self) -> Iterator[bytes]:
        """Gives the same examples without the member."""
        for example in self._examples():
            yield json.dumps(_placed(example, self.path, None)).encode()

    def _examples(self) -> list[dict[str, Any]]:
        found = [example for shown in REQUESTS[self.route].values() if _has_place(example := shown["value"], self.path)]
        assert found, f"no example has a place for {self.name}"
        return found


def members() -> list[Member]:
    """Gives every member of every body."""
    return [
        member
        for route in ROUTES
        if route.body is not None and route.body is not EmptyBody
        for member in _members(route.name, route.body, route.body, ())
    ]


def outcome(member: Member, body: bytes) -> object:
    """Gives the call that a body is, or what is wrong with it, by field. Raises Refusal for what is no JSON."""
    try:
        parsed: Any = parse_body(body, member.kind)
        return parsed.call() if hasattr(parsed, "call") else parsed
    except Refusal as refusal:
        if refusal.code is not Code.INVALID_REQUEST:
            raise
        return {error.path: error.msg for error in refusal.fields}


def _members(route: str, kind: type[Body], part: type, path: tuple[str | int, ...]) -> Iterator[Member]:
    fields: tuple[msgspec.inspect.Field, ...] = msgspec.inspect.type_info(part).fields  # type: ignore[attr-defined]
    for field in fields:
        here = (*path, field.encode_name)
        yield Member(route, kind, part.__name__, here, field)
        for inner, place in _parts(field.type, here):
            yield from _members(route, kind, inner, place)


def _parts(kind: msgspec.inspect.Type, path: tuple[str | int, ...]) -> Iterator[tuple[type, tuple[str | int, ...]]]:
    """Gives the objects in a member, each with its place: of a list its first entry."""
    for inner in _inside(kind):
        if isinstance(inner, msgspec.inspect.ListType):
            yield from _parts(inner.item_type, (*path, 0))
        elif isinstance(inner, msgspec.inspect.StructType):
            yield inner.cls, path


def _inside(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """Gives the types that an annotation allows, without what is written around them."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _inside(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        return [inner for each in kind.types for inner in _inside(each)]
    return [kind]


def _has_place(value: Any, path: tuple[str | int, ...]) -> bool:  # noqa: ANN401 - any JSON value
    for part in path[:-1]:
        if not (part in value if isinstance(value, dict) else isinstance(part, int) and part < len(value)):
            return False
        value = value[part]
    return True


def _placed(value: Any, path: tuple[str | int, ...], new: object) -> Any:  # noqa: ANN401 - any JSON value
    """Gives a copy with another value at a place; None leaves the member out."""
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_placed(each, rest, new) if index == first else each for index, each in enumerate(value)]
    if rest:
        return {**value, first: _placed(value[first], rest, new)}
    left = {name: each for name, each in value.items() if name != first}
    return left if new is None else {**left, first: new}
