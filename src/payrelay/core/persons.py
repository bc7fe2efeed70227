"""What is kept of a person who decides: a name, and a reason in that person's words."""

from typing import Final

NAME_LENGTH_MAX: Final = 100
"""A name that people can read in a list."""
REASON_LENGTH_MAX: Final = 500
"""Some sentences; what needs more has a document of its own, which can be named here."""


class WordsError(ValueError):
    """The text can't be kept; the message fits behind its name."""


def name_of(text: str) -> str:
    """Gives a person's name as it is kept: 1 to NAME_LENGTH_MAX printable characters. Raises WordsError."""
    return _kept(text, NAME_LENGTH_MAX)


def reason_of(text: str) -> str:
    """Gives a reason as it is kept: 1 to REASON_LENGTH_MAX printable characters. Raises WordsError."""
    return _kept(text, REASON_LENGTH_MAX)


def _kept(text: str, length_max: int) -> str:
    words = text.strip()
    if not words or not words.isprintable() or len(words) > length_max:
        raise WordsError(f"must have 1 to {length_max} printable characters")
    return words
