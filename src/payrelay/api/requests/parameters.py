"""The parameters of a route's path and query: one value each, with its check and its JSON Schema."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict

from payrelay.api.http.queries import parse_query
from payrelay.core.calls import SUBSCRIPTION_ID_DIGITS_MAX
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.payments.find_operations import PAGE_SIZE_MAX

TEXT_LENGTH_MAX: Final = 255
"""The limit of texts in the body of a charge, too."""
PAGE_SIZE_USUAL: Final = 20
"""The size of a page where the client names none: what fits a screen."""
GATEWAY_NUMBER: Final = rf"[0-9]{{1,{SUBSCRIPTION_ID_DIGITS_MAX}}}"
"""How a gateway numbers its payments and subscriptions."""
ID_EXAMPLE: Final = "019c8b2f5a7e4d10b6f3a92c7e08d154"
"""What follows the prefix of one of our ids."""
TEXT_SCHEMA: Final[dict[str, object]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": TEXT_LENGTH_MAX,
    "pattern": r"^[^\x00]*$",
}

Validator: TypeAlias = Callable[[str], str | None]
"""Gives what is wrong with a text, in words that fit behind the parameter's name; None where the text is valid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        name: as it stands in the address.
        sentence: the description in the API docs.
        schema: the JSON Schema of its value.
        validator: gives what is wrong with a text, in words that fit behind the name, or None.
        example: a value to try.
        is_required: whether a query must have it; a path always has its parameter.
    """

    name: str
    sentence: str
    schema: dict[str, object]
    validator: Validator
    example: str | int
    is_required: bool = False


class PageQuery(TypedDict):
    """Which page of a list the client asks for.

    ``before`` is the id of the last entry on the page before, None for the first page; ``limit`` is the page's size.
    """

    before: str | None
    limit: int


def anything(_: str) -> str | None:
    """Accepts any text."""
    return None


def matches(pattern: str, words: str) -> Validator:
    """Accepts a text that matches a regular expression as a whole; ``words`` say what the text must be."""
    fullmatch = re.compile(pattern).fullmatch
    return lambda text: None if fullmatch(text) else words


def at_most_long(length_max: int) -> Validator:
    """Accepts a text of 1 to ``length_max`` characters."""
    return lambda text: None if 1 <= len(text) <= length_max else f"must have 1 to {length_max} characters"


def up_to(largest: int) -> Validator:
    """Accepts a whole number from 1 to ``largest``, in no more digits than that has."""

    def validator(text: str) -> str | None:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(largest))
        return None if is_number and 1 <= int(text) <= largest else f"must be 1 to {largest}"

    return validator


def id_pattern(prefix: str) -> str:
    """Gives the regular expression of our ids with this prefix."""
    return rf"{prefix}_[0-9a-f]{{32}}"


def own_id(prefix: str, noun: str) -> Parameter:
    """Makes the parameter for one of our ids in a path; a malformed id passes, and is answered as one not found."""
    return Parameter(
        name="id",
        sentence=f"Identifier of the {noun}.",
        schema={"type": "string", "pattern": f"^{id_pattern(prefix)}$"},
        validator=anything,
        example=f"{prefix}_{ID_EXAMPLE}",
    )


def cursor(noun: str, pattern: str, example: str, words: str | None = None) -> Parameter:
    """Makes the parameter that asks for the next page of a list.

    ``noun`` has its article; ``words`` say what a wrong value must be.
    """
    return Parameter(
        name="cursor",
        sentence=f"`next_cursor` of the page before, after which this one begins: the id of {noun}.",
        schema={"type": "string", "pattern": f"^{pattern}$"},
        validator=matches(pattern, words or f"must be the id of {noun}"),
        example=example,
    )


def own_cursor(prefix: str, noun: str) -> Parameter:
    """Makes a ``cursor`` of our ids with this prefix."""
    return cursor(noun, id_pattern(prefix), f"{prefix}_{ID_EXAMPLE}")


def limit(noun: str, usual: int, largest: int) -> Parameter:
    """Makes the parameter for the size of a page."""
    return Parameter(
        name="limit",
        sentence=f"{noun} on the page.",
        schema={"type": "integer", "minimum": 1, "maximum": largest, "default": usual},
        validator=up_to(largest),
        example=usual,
    )


def text(name: str, sentence: str, example: str) -> Parameter:
    """Makes a parameter of 1 to TEXT_LENGTH_MAX characters."""
    return Parameter(
        name=name,
        sentence=sentence,
        schema=TEXT_SCHEMA,
        validator=at_most_long(TEXT_LENGTH_MAX),
        example=example,
    )


def choice(name: str, sentence: str, values: Iterable[str], example: str) -> Parameter:
    """Makes a parameter that is one of a few words."""
    words = [*values]
    return Parameter(
        name=name,
        sentence=sentence,
        schema={"type": "string", "enum": words},
        validator=lambda text: None if text in words else f"must be one of {', '.join(words)}",
        example=example,
    )


def gateway_number(name: str, sentence: str, example: str) -> Parameter:
    """Makes a parameter for the gateway's number of a payment or a subscription."""
    return Parameter(
        name=name,
        sentence=sentence,
        schema={"type": "string", "pattern": f"^{GATEWAY_NUMBER}$"},
        validator=matches(GATEWAY_NUMBER, f"must be 1 to {SUBSCRIPTION_ID_DIGITS_MAX} digits"),
        example=example,
    )


def read_query(parameters: tuple[Parameter, ...], query_string: bytes) -> dict[str, str]:
    """Gives the parameters of a query by name; raises Refusal that names every wrong or unknown parameter."""
    if not query_string:
        return {}
    values = parse_query(query_string, frozenset(parameter.name for parameter in parameters))
    errors = query_errors(parameters, values)
    if errors:
        raise wrong_fields(errors)
    return values


def query_errors(parameters: tuple[Parameter, ...], values: dict[str, str]) -> list[FieldError]:
    """Lists what is wrong with the values of a query whose names are all known."""
    return [
        FieldError(parameter.name, words)
        for parameter in parameters
        if parameter.name in values and (words := parameter.validator(values[parameter.name])) is not None
    ]


def page_of(query: Mapping[str, str]) -> PageQuery:
    """Gives the page that the valid parameters ``cursor`` and ``limit`` ask for; both may be absent."""
    return PageQuery(before=query.get("cursor"), limit=int(query.get("limit", PAGE_SIZE_USUAL)))


OF_CUSTOMER: Final = text("customer_id", "Only entries of this customer.", f"cus_{ID_EXAMPLE}")
LIMIT: Final = limit("Entries", PAGE_SIZE_USUAL, PAGE_SIZE_MAX)
