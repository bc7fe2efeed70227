"""The bodies of requests: the annotations of their members are the rules for them.

The fast check (msgspec), the list of everything that is wrong (``parse_body``) and the schemas in ``/openapi.json`` all
come from the annotations, so that they can't differ.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, TypeVar, cast

import msgspec
from msgspec import Meta

from payrelay.api.http.json_text import parse_object, printable, unusable_texts
from payrelay.core.secret import STARS, MaskedRepr
from payrelay.errors import FieldError, wrong_fields

TEXT_LENGTH_MAX: Final = 255
"""The limit of every text; the gateway documents none, and this one is usual in databases and card networks."""
NO_NUL: Final = r"^[^\x00]*$"
"""The pattern of JSON Schema that forbids NUL in a text."""
_VISIBLE: Final = "^[!-~]+$"
_KINDS_MAX: Final = 64
"""More than there are kinds of bodies."""

Text = Annotated[str, Meta(min_length=1, max_length=TEXT_LENGTH_MAX, extra_json_schema={"pattern": NO_NUL})]

EMPTY_IS_ABSENT: Final = Meta(extra={"is_empty_absent": True})
"""Marks an optional address or label: an empty text says what its absence says.

Never for what decides about money or whom it is of, nor for a member of a change, where absence leaves what there is.
"""

Check = Callable[[object], object]
"""Converts a value; raises ValueError with words that fit behind the name of a field."""


class CheckedValue:
    """The base of our own types, each declared with its check and its JSON Schema.

    The other base of such a type is ``int`` or ``str``, and the check gives a value of that.
    """

    __slots__ = ()
    SCHEMA: ClassVar[dict[str, object]]
    _check: ClassVar[Check]

    def __init_subclass__(cls, *, check: Check, schema: dict[str, object]) -> None:
        cls._check, cls.SCHEMA = check, schema

    @classmethod
    def read(cls, value: object) -> object:
        """Converts a value to this type; raises ValueError with words that fit behind the name of a field."""
        return cast("Callable[[object], object]", cls)(cls._check(value))


def matching(pattern: str, words: str, longest: int = TEXT_LENGTH_MAX) -> Check:
    """Makes the check of a text that matches a regular expression; ``words`` say what any other value must be."""
    match = re.compile(pattern).fullmatch

    def check(value: object) -> str:
        if not isinstance(value, str) or len(value) > longest or not match(value):
            raise ValueError(words)
        return value

    return check


def text_check(is_right: Callable[[str], object], words: str) -> Check:
    """Makes the check of a text of 1 to TEXT_LENGTH_MAX characters; ``words`` say what one that isn't right must be."""

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")  # noqa: TRY004 - what is wrong with a value is a ValueError here
        problem = _length_problem(value, 1, TEXT_LENGTH_MAX)
        if problem is not None or not is_right(value):
            raise ValueError(problem or words)
        return value

    return check


class MatchingText(CheckedValue, str, check=str, schema={}):
    """The base of texts that match a regular expression, each declared with that and with words for any other value."""

    __slots__ = ()

    def __init_subclass__(cls, *, pattern: str, words: str, longest: int = TEXT_LENGTH_MAX, **schema: object) -> None:
        bounds = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": pattern}
        super().__init_subclass__(check=matching(pattern, words, longest), schema={**bounds, **schema})


class VisibleText(
    CheckedValue,
    str,
    check=text_check(re.compile(_VISIBLE).fullmatch, "must be visible ASCII characters without spaces"),
    schema={"type": "string", "minLength": 1, "maxLength": TEXT_LENGTH_MAX, "pattern": _VISIBLE},
):
    """A text of visible characters, as the gateway's tokens and our handles are."""

    __slots__ = ()


class Body(MaskedRepr, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all bodies: an unknown member is refused by name.

    Attributes:
        needs_one_of: two members of which at least one is required.
        takes_both: whether both may be given together.
    """

    needs_one_of: ClassVar[tuple[str, str] | None] = None
    takes_both: ClassVar[bool] = True

    @classmethod
    def together_errors(cls, members: dict[str, object]) -> Iterator[FieldError]:
        """Finds the errors between fields, which annotations can't express."""
        if cls.needs_one_of is None:
            return
        first, second = cls.needs_one_of
        if not (first in members or second in members):
            yield FieldError(first, f"is required, or {second}")
        elif not cls.takes_both and first in members and second in members:
            yield FieldError(second, f"must not be given together with {first}")


class RedactedBody(Body, frozen=True, kw_only=True):
    """The base of bodies with personal data: no member is printed."""

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Gives stars in place of each value."""
        return [(name, STARS) for name in self.__struct_fields__]


BodyT = TypeVar("BodyT", bound=Body)


def given(name: str) -> dict[str, object]:
    """Gives, as JSON Schema, the condition that a member is there, and is neither null nor an empty text."""
    return {"required": [name], "properties": {name: {"not": {"enum": [None, ""]}}}}


def parse_body(body: bytes, kind: type[BodyT]) -> BodyT:
    """Reads a body of this kind.

    Null stands for an absent member wherever a member may be absent and null has no meaning of its own, and so does an
    empty text where EMPTY_IS_ABSENT. Raises Refusal: malformed_request where the body isn't one JSON object,
    invalid_request with every wrong field.
    """
    members = parse_object(body)
    if b"null" in body or b'""' in body:
        members = _without_absent(members, _type_of(kind))
    errors: list[FieldError] = []
    if b"\\u" in body:
        errors.extend(unusable_texts(members))
    errors.extend(kind.together_errors(members))
    if not errors:
        try:
            return msgspec.convert(members, kind, dec_hook=_read)
        except (msgspec.ValidationError, UnicodeEncodeError):  # the latter where a name has half of a surrogate pair
            pass
    paths = {error.path for error in errors}
    others = [error for error in _errors(members, _type_of(kind), "") if error.path not in paths]
    raise wrong_fields([*others, *errors] or [FieldError("", "is not valid")])


@lru_cache(maxsize=_KINDS_MAX)
def _type_of(kind: type[Body]) -> msgspec.inspect.Type:
    """Gives what the annotations of a kind of body say; to find it out takes longer than to read a body."""
    return msgspec.inspect.type_info(kind)


def empty_is_absent(field: msgspec.inspect.Field) -> bool:
    """True for a member that is marked with EMPTY_IS_ABSENT."""
    return isinstance(field.type, msgspec.inspect.Metadata) and field.type.extra == EMPTY_IS_ABSENT.extra


def _without_absent(value: Any, kind: msgspec.inspect.Type) -> Any:  # noqa: ANN401 - any JSON value
    """Leaves out the members that count as absent: by null, or by an empty text."""
    match kind:
        case msgspec.inspect.StructType(fields=fields) if isinstance(value, dict):
            kinds = {field.name: field for field in fields}
            return {
                name: _without_absent(member, kinds[name].type) if name in kinds else member
                for name, member in value.items()
                if name not in kinds or not _is_absent(member, kinds[name])
            }
        case msgspec.inspect.Metadata(type=inner):
            return _without_absent(value, inner)
        case msgspec.inspect.UnionType(types=types):
            return _without_absent(value, types[0])
        case msgspec.inspect.ListType(item_type=inner) if isinstance(value, list):
            return [_without_absent(entry, inner) for entry in value]
    return value


def _is_absent(member: object, field: msgspec.inspect.Field) -> bool:
    """True for null where it may be absent and has no value None, and for an empty text where that is marked."""
    if member is None:
        return not field.required and not _has_none(field.type)
    return member == "" and empty_is_absent(field)


def _has_none(kind: msgspec.inspect.Type) -> bool:
    return isinstance(kind, msgspec.inspect.UnionType) and kind.includes_none


def _read(kind: Any, value: object) -> object:  # noqa: ANN401 - msgspec's own type; each is a CheckedValue
    return kind.read(value)


def _errors(value: object, kind: msgspec.inspect.Type, path: str) -> Iterator[FieldError]:
    """Lists everything that is wrong with a value, by the annotations that the fast check uses."""
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
    return _length_problem(value, shortest, longest)


def _length_problem(value: str, shortest: int, longest: int) -> str | None:
    if shortest <= len(value) <= longest:
        return None
    return "must not be empty" if not value else f"must have at most {longest} characters"
