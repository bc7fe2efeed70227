"""Describes what came by its shape, and compares it with the shape that is known. Pure.

A description has names, types and the forms of texts, and no value: ``9`` stands for a digit and ``A`` for a letter.
Only words that the gateway uses for everybody are shown as they are.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

Shape: TypeAlias = str | Mapping[str, Any] | list[Any]
"""A type by its name in KINDS, with ``?`` behind it where it may be null, and ``-`` where it may be absent.

Or one exact text behind ``=``, a pattern behind ``~``, the shapes of an object's members, or that of a list's entries.
"""

WORDS: Final = frozenset(
    {
        *("VISA", "MASTER", "AMEX", "LKR", "USD", "GBP", "EUR", "AUD", "bearer", "SANDBOX", "invalid_token"),
        *("invalid_client", "unauthorized", "invalid_request", "unsupported_grant_type"),
        *("RECEIVED", "REFUND REQUESTED", "REFUND PROCESSING", "REFUNDED", "CHARGEBACKED", "HOLD"),
        *("ACTIVE", "COMPLETED", "FAILED", "CANCELLED", "CANCELED", "STOPPED", "Startup Fee"),
        *("AUTHORIZATION_SUCCESS", "AUTHORIZATION_FAILED", "RECURRING_INSTALLMENT_SUCCESS"),
        *("RECURRING_INSTALLMENT_FAILED", "RECURRING_COMPLETE", "RECURRING_STOPPED"),
        *("1 Month", "1 MONTH", "1 Year", "1 YEAR", "Forever", "FOREVER", "Charged every month for 1 year"),
    }
)
"""Values that name nobody."""
TEXT_MAX: Final = 160
_KNOWN_WORD: Final = frozenset({"msg", "error", "error_description", "status_message", "message"})
"""Members whose text is the gateway's own sentence: it is shown, without ids and tokens."""
_SECRET: Final = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f-]{20,}|[0-9A-Fa-f]{16,}|\d{5,}|https?://\S+|payrelay-\S+")

_WORD: Final = re.compile(r"\S+")

KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "any": re.compile(r".*", re.DOTALL),
    "text": re.compile(r".+", re.DOTALL),
    "id": re.compile(r"\d{12}"),
    "amount": re.compile(r"\d+\.\d{2}"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "moment": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
    "uuid": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    "hex": re.compile(r"[0-9A-F]{32}"),
    "card": re.compile(r"\*{12}\d{4}"),
    "expiry": re.compile(r"\d{4}"),
    "code": re.compile(r"-?\d"),
}
"""What a text may be."""
_NUMBERS: Final[Mapping[str, tuple[type, ...]]] = {"whole": (int,), "number": (int, float), "id": (int,)}


def described(value: object, name: str = "") -> object:
    """Describes a value of JSON, or of a form, without any value that could be somebody's."""
    if isinstance(value, Mapping):
        return {formed_name(str(each)): described(member, str(each)) for each, member in value.items()}
    if isinstance(value, list):
        return [described(each, name) for each in value[:1]] + ([f"{len(value)} in all"] if len(value) > 1 else [])
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_described(value, name)
    if name in {"status", "status_code", "expires_in"}:
        return value
    return f"number {formed(str(value))}"


def text_described(text: str, name: str) -> str:
    """Describes a text: a known word as it is, the gateway's own sentence without ids, any other by its form."""
    if text in WORDS or (name.endswith("status_code") and KINDS["code"].fullmatch(text)):
        return text
    return masked(text) if name in _KNOWN_WORD else f"text {formed(text)}"


def masked(text: str) -> str:
    """Gives a sentence of the gateway's without ids, tokens and addresses."""
    # Word by word: a pattern that may begin anywhere would look for the @ from each character on.
    without_emails = _WORD.sub(lambda word: "…" if "@" in word[0][1:-1] else word[0], text)
    return _SECRET.sub("…", without_emails)[:TEXT_MAX]


def formed(text: str) -> str:
    """Gives the form of a text: its kinds of characters, runs of one kind by their length."""
    kinds = "".join("9" if each.isdigit() else "A" if each.isalpha() else each for each in text[:TEXT_MAX])
    return re.sub(r"(9|A)\1{3,}", lambda run: f"{run[1]}x{len(run[0])}", kinds)


def parsed(body: bytes) -> object:
    """Reads JSON; a text that says that it is none."""
    try:
        return json.loads(body)
    except ValueError:
        return f"no JSON, {len(body)} bytes"


def differences(known: Shape, value: object, name: str = "answer") -> Iterator[str]:
    """Gives in words each difference between a value and its known shape."""
    if isinstance(known, str):
        yield from _text_differences(known, value, name)
    elif isinstance(known, list):
        if not isinstance(value, list):
            yield f"{name} is {_kind_of(value)}, known as a list"
            return
        for each in value[:1]:
            yield from differences(known[0], each, f"{name}[]")
    elif not isinstance(value, Mapping):
        yield f"{name} is {_kind_of(value)}, known as an object"
    else:
        for each, shape in known.items():
            if each not in value:
                if not (isinstance(shape, str) and shape.endswith("-")):
                    yield f"{name} has no {each}"
            else:
                yield from differences(shape, value[each], f"{name}.{each}")
        for each in sorted(map(str, value.keys() - known.keys())):
            yield f"{name} has {formed_name(each)}, which is new"


def formed_name(name: str) -> str:
    """Gives the name of a member; one that could hold somebody's data by its form."""
    return name if re.fullmatch(r"[A-Za-z][A-Za-z_0-9]{0,40}", name) and not re.search(r"\d{3}", name) else formed(name)


def _text_differences(known: str, value: object, name: str) -> Iterator[str]:
    kind = known if known[:1] in {"=", "~"} else known.rstrip("?-")
    if value is None:
        if "?" not in known:
            yield f"{name} is null, known as {kind}"
    elif kind.startswith("="):
        if str(value) != kind[1:]:
            yield f"{name} is {described(value, name.rpartition('.')[2])!r}, known as {kind[1:]!r}"
    elif kind.startswith("~"):
        if not isinstance(value, str) or re.fullmatch(kind[1:], value) is None:
            yield f"{name} is {described(value, name.rpartition('.')[2])!r}, known as {kind[1:]!r}"
    elif isinstance(value, str):
        pattern = KINDS.get(kind)
        if pattern is None or pattern.fullmatch(value) is None:
            yield f"{name} is {text_described(value, name.rpartition('.')[2])}, known as {kind}"
    elif kind != "any" and not (isinstance(value, _NUMBERS.get(kind, ())) and not isinstance(value, bool)):
        yield f"{name} is {_kind_of(value)}, known as {kind}"


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a number" if isinstance(value, int | float) else f"text {formed(str(value))}"
