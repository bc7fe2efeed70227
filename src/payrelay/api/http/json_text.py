"""A strict reader of JSON: no doubled member, no float, no NaN, no number that can't be written out.

The standard library's decoder calls this module for every object and every fraction, and does the rest in C. msgspec is
quicker, but accepts doubled members, of which the last one wins. It reads only bodies that show that they have none.
"""

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final, NoReturn

import msgspec

from payrelay.errors import Code, FieldError, Refusal

NESTING_MAX: Final = 16
"""The deepest body of the API has three levels."""
CONTAINERS_MAX: Final = 1_000
"""Objects and arrays in a body: one with a full list of items has some hundred."""
NAME_LENGTH_SHOWN_MAX: Final = 64
"""The characters of an unknown member's name that an answer repeats."""
PATH_LENGTH_SHOWN_MAX: Final = 256
"""The characters of a path that an answer repeats: more than the paths of the API's own members have. Names in names
could make it some thousand long, and it is written for each text below them."""
_INTEGER_DIGITS_MAX: Final = 4300
"""The most digits that Python converts to an integer; a longer number becomes a Decimal, too large for any field."""
_EXPONENT_NUMBER_LENGTH_MAX: Final = 100
"""The characters of a number with an exponent: five times as many as any language writes."""
_BYTE_ORDER_MARKS: Final = (
    (b"\xef\xbb\xbf", "UTF-8"),
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
"""The marks with which some editors and libraries begin a text; RFC 8259 forbids them in JSON."""
# Zeros before the exponent's digits are allowed, and say nothing.
_is_usual_exponent: Final = re.compile(r"[^eE]*[eE][+-]?0*[0-9]{1,3}").fullmatch


class OversizeNumber:
    """A number with an exponent that is beyond every field's values, or has more digits than any; it isn't computed."""

    __slots__ = ()


OVERSIZE_NUMBER: Final = OversizeNumber()


def parse_object(body: bytes) -> dict[str, object]:
    """Gives the members of a body that is one JSON object.

    Numbers become int, Decimal or OVERSIZE_NUMBER, never float. Raises Refusal (malformed_request) for anything but an
    object in UTF-8 without a byte order mark, for a doubled member at any depth, for more than NESTING_MAX levels and
    more than CONTAINERS_MAX objects and arrays.
    """
    plain = _plain_object(body)
    if plain is not None:
        return plain
    for mark, encoding in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            raise _malformed(f"the body begins with a byte order mark ({encoding}); it must be UTF-8 without one")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise _malformed("the body is not UTF-8") from None
    value = _decoded(text)
    if type(value) is not dict:
        raise _malformed("the body is not a JSON object")
    if text.count("{") + text.count("[") > NESTING_MAX:
        _require_usual(value)
    return value


def _plain_object(body: bytes) -> dict[str, object] | None:
    """Gives the members of a flat object without escapes, which most bodies are; None for any other body.

    Takes a fifth of the time that the strict reader takes. msgspec keeps the last of doubled members, but each name and
    each text has two quotes, and without escapes there are no others. So a doubled member is seen by their number.
    """
    if b"\\" in body:
        return None
    try:
        value = _decode_plainly(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the strict reader says what is wrong
        return None
    if type(value) is not dict:
        return None
    texts = len(value)
    for member in value.values():
        kind = type(member)
        if kind is str:
            texts += 1
        elif kind is not int and kind is not Decimal and kind is not bool and member is not None:
            return None
    return value if body.count(b'"') == 2 * texts else None


def _decoded(text: str) -> object:
    try:
        return _strictly_decoded(text)
    except RecursionError:
        raise _malformed(f"the body is nested more than {NESTING_MAX} levels deep") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"the body is not JSON: {error.msg} at character {error.pos + 1}") from None


def _strictly_decoded(text: str) -> object:
    try:
        return _decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Only an integer of more than _INTEGER_DIGITS_MAX digits leads here: the decoder raises no other ValueError.
        return _decode_any_integer(text)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        doubled = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _malformed(f"the member {printable(doubled)} is there twice")
    return members


def _fraction(text: str) -> Decimal | OversizeNumber:
    """Reads a number with a point or an exponent, exactly; the exponent is bounded before anything is computed."""
    if "e" not in text and "E" not in text:
        return Decimal(text)
    is_usual = len(text) <= _EXPONENT_NUMBER_LENGTH_MAX and _is_usual_exponent(text) is not None
    return Decimal(text) if is_usual else OVERSIZE_NUMBER


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _INTEGER_DIGITS_MAX else Decimal(text)


def _no_constant(text: str) -> NoReturn:
    raise _malformed(f"the body is not JSON: {text} is not a number")


_decode_plainly: Final = msgspec.json.Decoder(float_hook=_fraction).decode
_decode: Final = json.JSONDecoder(object_pairs_hook=_members, parse_float=_fraction, parse_constant=_no_constant).decode
_decode_any_integer: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_fraction, parse_int=_integer, parse_constant=_no_constant
).decode


def _require_usual(body: dict[str, object]) -> None:
    """Raises Refusal for more levels, or more objects and arrays, than a body of the API has."""
    level: list[dict[str, object] | list[object]] = [body]
    count = 0
    for _ in range(NESTING_MAX):
        count += len(level)
        if count > CONTAINERS_MAX:
            raise _malformed(f"the body has more than {CONTAINERS_MAX} objects and arrays")
        level = [each for container in level for each in _within(container) if isinstance(each, dict | list)]
    if level:
        raise _malformed(f"the body is nested more than {NESTING_MAX} levels deep")


def _within(container: dict[str, object] | list[object]) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else container


def unusable_texts(value: object, path: str = "") -> Iterator[FieldError]:
    r"""Finds the texts that no database can store: those with U+0000 or half of a surrogate pair.

    Both can only be written as escapes, so a body without ``\u`` has none.
    """
    if isinstance(value, str):
        if not is_usable_text(value):
            yield FieldError(path, "must not contain U+0000 or an unpaired surrogate")
    elif isinstance(value, dict):
        for name, member in value.items():
            below = f"{path}.{printable(name)}" if path else printable(name)
            yield from unusable_texts(member, below[:PATH_LENGTH_SHOWN_MAX])
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from unusable_texts(entry, f"{path}[{index}]"[:PATH_LENGTH_SHOWN_MAX])


def is_usable_text(text: str) -> bool:
    """True when every character can be stored and sent on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def printable(name: str) -> str:
    """Makes a client's name for a member fit for an answer: cut, and with unusual characters escaped."""
    return name[:NAME_LENGTH_SHOWN_MAX].encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _malformed(msg: str) -> Refusal:
    return Refusal(Code.MALFORMED_REQUEST, msg)
