"""The parameters that routes take in their path and query: one value each, from which check and schema are made."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from payrelay.api.http.queries import parse_query
from payrelay.core.calls import SUBSCRIPTION_ID_DIGITS_MAX
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.payments.find_operations import PAGE_SIZE_MAX

TEXT_LENGTH_MAX: Final = 255
"""As in the body of a charge."""
PAGE_SIZE_USUAL: Final = 20
"""What fits a screen."""
GATEWAY_NUMBER: Final = rf"[0-9]{{1,{SUBSCRIPTION_ID_DIGITS_MAX}}}"
"""What a gateway numbers its payments and subscriptions with."""
TEXT_SCHEMA: Final[dict[str, object]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": TEXT_LENGTH_MAX,
    "pattern": r"^[^\x00]*$",
}

Validator: TypeAlias = Callable[[str], str | None]
"""Gives what is wrong with a text, in words that fit behind the parameter's name; None where nothing is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        name: as it stands in the address.
        sentence: what it is, for the docs.
        schema: the JSON Schema of its value.
        validator: gives what is wrong with a text, in words that fit behind the name, or None.
        example: a value to try.
        is_required: whether a query must have it; what a path has is always there.
    """

    name: str
    sentence: str
    schema: dict[str, object]
    validator: Validator
    example: str | int
    is_required: bool = False


def anything(_: str) -> str | None:
    """Finds nothing wrong with any text."""
    return None


def matches(pattern: str, words: str) -> Validator:
    """Wants a text that matches a regular expression as a whole; ``words`` say what it must be."""
    fullmatch = re.compile(pattern).fullmatch
    return lambda text: None if fullmatch(text) else words


def one_of(*values: str) -> Validator:
    """Wants one of a few words."""
    return lambda text: None if text in values else f"must be one of {', '.join(values)}"


def at_most_long(length_max: int) -> Validator:
    """Wants a text that isn't empty, and not longer than that."""
    return lambda text: None if 1 <= len(text) <= length_max else f"must have 1 to {length_max} characters"


def up_to(largest: int) -> Validator:
    """Wants a whole number from 1 on, in no more digits than the largest one has."""

    def validator(text: str) -> str | None:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(largest))
        return None if is_number and 1 <= int(text) <= largest else f"must be 1 to {largest}"

    return validator


def read_query(parameters: tuple[Parameter, ...], query_string: bytes) -> dict[str, str]:
    """Gives the parameters of a query by name; raises Refusal naming every one that is wrong or not known."""
    if not query_string:
        return {}
    values = parse_query(query_string, frozenset(parameter.name for parameter in parameters))
    errors = query_errors(parameters, values)
    if errors:
        raise wrong_fields(errors)
    return values


def query_errors(parameters: tuple[Parameter, ...], values: dict[str, str]) -> list[FieldError]:
    """Lists what is wrong with the values of a query whose names are known."""
    return [
        FieldError(parameter.name, words)
        for parameter in parameters
        if parameter.name in values and (words := parameter.validator(values[parameter.name])) is not None
    ]


OF_CUSTOMER: Final = Parameter(
    name="customer_id",
    sentence="Only those of this customer.",
    schema=TEXT_SCHEMA,
    validator=at_most_long(TEXT_LENGTH_MAX),
    example="cus_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
LIMIT: Final = Parameter(
    name="limit",
    sentence="Operations on the page.",
    schema={"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE_USUAL},
    validator=up_to(PAGE_SIZE_MAX),
    example=PAGE_SIZE_USUAL,
)
