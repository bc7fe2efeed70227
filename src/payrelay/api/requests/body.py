"""What a body is: members whose annotations are the rules for them.

From the annotations come the fast check (msgspec), the list of everything that is wrong (``parse_body``) and the
schemas in ``/openapi.json``, so that the three can't differ.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Final, TypeVar, cast

import msgspec
from msgspec import Meta

from payrelay.api.http.json_text import parse_object, printable, unusable_texts
from payrelay.core.secret import STARS, MaskedRepr
from payrelay.errors import FieldError, wrong_fields

TEXT_LENGTH_MAX: Final = 255
"""Of every text; the gateway documents no limit, databases and card networks like this one."""
NO_NUL: Final = r"^[^\x00]*$"
"""What no text may hold, as JSON Schema has it."""

Text = Annotated[str, Meta(min_length=1, max_length=TEXT_LENGTH_MAX, extra_json_schema={"pattern": NO_NUL})]

Check = Callable[[object], object]
"""Gives what a value says; raises ValueError with words that fit behind the name of a field."""


class CheckedValue:
    """The base of a type of our own, made with its check and with what JSON Schema says of it.

    Its other base is ``int`` or ``str``; the check gives such a value.
    """

    __slots__ = ()
    SCHEMA: ClassVar[dict[str, object]]
    _check: ClassVar[Check]

    def __init_subclass__(cls, *, check: Check, schema: dict[str, object]) -> None:
        cls._check, cls.SCHEMA = check, schema

    @classmethod
    def read(cls, value: object) -> object:
        """Gives a value of this type; raises ValueError with words that fit behind the name of a field."""
        return cast("Callable[[object], object]", cls)(cls._check(value))


class Body(MaskedRepr, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all bodies: a member that we don't know is refused by name.

    Attributes:
        needs_one_of: two members of which one must be there.
        takes_both: whether the other one may be there too.
    """

    needs_one_of: ClassVar[tuple[str, str] | None] = None
    takes_both: ClassVar[bool] = True

    @classmethod
    def together_errors(cls, members: dict[str, object]) -> Iterator[FieldError]:
        """Finds what is wrong between fields, which no annotation says."""
        if cls.needs_one_of is None:
            return
        first, second = cls.needs_one_of
        if not (first in members or second in members):
            yield FieldError(first, f"is required, or {second}")
        elif not cls.takes_both and first in members and second in members:
            yield FieldError(second, f"must not be given together with {first}")


class RedactedBody(Body, frozen=True, kw_only=True):
    """The base of what holds a person's data: nothing of it is printed."""

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Gives stars in place of every member."""
        return [(name, STARS) for name in self.__struct_fields__]


BodyT = TypeVar("BodyT", bound=Body)


def parse_body(body: bytes, kind: type[BodyT]) -> BodyT:
    """Reads a body of this kind.

    Raises Refusal: malformed_request where it isn't one JSON object, invalid_request with every field that is wrong.
    """
    members = parse_object(body)
    errors: list[FieldError] = []
    if b"\\u" in body:
        errors.extend(unusable_texts(members))
    errors.extend(kind.together_errors(members))
    if not errors:
        try:
            return msgspec.convert(members, kind, dec_hook=_read)
        except msgspec.ValidationError:
            pass
    named = {error.path for error in errors}
    found = [error for error in _errors(members, msgspec.inspect.type_info(kind), "") if error.path not in named]
    raise wrong_fields([*found, *errors] or [FieldError("", "is not valid")])


def _read(kind: Any, value: object) -> object:  # noqa: ANN401 - msgspec's own type; each is a CheckedValue
    return kind.read(value)


def _errors(value: object, kind: msgspec.inspect.Type, path: str) -> Iterator[FieldError]:
    """Lists everything that is wrong with a value, by the same annotations that the fast check goes by."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            yield from _errors(value, inner, path)
        case msgspec.inspect.StructType():
            yield from _object_errors(value, kind, path)
        case msgspec.inspect.ListType():
            yield from _array_errors(value, kind, path)
        case msgspec.inspect.UnionType(types=types):
            if value is not None:
                yield from _errors(value, types[0], path)
        case _:
            words = _scalar_problem(value, kind)
            if words is not None:
                yield FieldError(path, words)


def _object_errors(value: object, kind: msgspec.inspect.StructType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield FieldError(path, "must be an object")
        return
    prefix = f"{path}." if path else ""
    for field in kind.fields:
        if field.name in value:
            yield from _errors(value[field.name], field.type, prefix + field.name)
        elif field.required:
            yield FieldError(prefix + field.name, "is required")
    known = {field.name for field in kind.fields}
    for name in value:
        if name not in known:
            yield FieldError(prefix + printable(name), "is not a known field")


def _array_errors(value: object, kind: msgspec.inspect.ListType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield FieldError(path, "must be an array")
    elif kind.max_length is not None and len(value) > kind.max_length:
        yield FieldError(path, f"must have at most {kind.max_length} entries")
    elif kind.min_length is not None and len(value) < kind.min_length:
        yield FieldError(path, f"must have at least {kind.min_length} entries" if kind.min_length > 1 else "is empty")
    else:
        for index, entry in enumerate(value):
            yield from _errors(entry, kind.item_type, f"{path}[{index}]")


def _scalar_problem(value: object, kind: msgspec.inspect.Type) -> str | None:
    match kind:
        case msgspec.inspect.CustomType(cls=cls):
            try:
                _read(cls, value)
            except ValueError as error:
                return str(error)
        case msgspec.inspect.LiteralType(values=values):
            return None if value in values else f"must be {' or '.join(sorted(map(str, values), reverse=True))}"
        case msgspec.inspect.BoolType():
            return None if isinstance(value, bool) else "must be true or false"
        case msgspec.inspect.StrType():
            return _text_problem(value, kind)
    return None


def _text_problem(value: object, kind: msgspec.inspect.StrType) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    shortest, longest = kind.min_length or 0, kind.max_length or TEXT_LENGTH_MAX
    if kind.pattern is not None:
        return None if len(value) == longest and re.search(kind.pattern, value) else "must be three capital letters"
    if shortest <= len(value) <= longest:
        return None
    return "must not be empty" if not value else f"must have at most {longest} characters"
