"""What may be wrong with the text of a parameter, in words that fit behind its name; None where nothing is."""

import re
from collections.abc import Callable
from typing import TypeAlias

Complaint: TypeAlias = Callable[[str], str | None]


def anything(_: str) -> str | None:
    """Finds nothing wrong with any text."""
    return None


def matches(pattern: str, words: str) -> Complaint:
    """Wants a text that matches a regular expression as a whole; ``words`` say what it must be."""
    fullmatch = re.compile(pattern).fullmatch
    return lambda text: None if fullmatch(text) else words


def one_of(*values: str) -> Complaint:
    """Wants one of a few words."""
    return lambda text: None if text in values else f"must be one of {', '.join(values)}"


def at_most_long(length_max: int) -> Complaint:
    """Wants a text that isn't empty, and not longer than that."""
    return lambda text: None if 1 <= len(text) <= length_max else f"must have 1 to {length_max} characters"


def up_to(largest: int) -> Complaint:
    """Wants a whole number from 1 on, in no more digits than the largest one has."""

    def complaint(text: str) -> str | None:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(largest))
        return None if is_number and 1 <= int(text) <= largest else f"must be 1 to {largest}"

    return complaint
