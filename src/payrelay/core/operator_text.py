"""What is stored of an operator who decides: a name, and the operator's own reason."""

from typing import Final

NAME_LENGTH_MAX: Final = 100
"""A name that fits into a list."""
REASON_LENGTH_MAX: Final = 500
"""Some sentences; a longer reason can name a document of its own."""


class WordsError(ValueError):
    """The text can't be stored; the message fits behind its name."""


def name_of(text: str) -> str:
    """Gives an operator's name as it is stored: 1 to NAME_LENGTH_MAX printable characters. Raises WordsError."""
    return _checked(text, NAME_LENGTH_MAX)


def reason_of(text: str) -> str:
    """Gives a reason as it is stored: 1 to REASON_LENGTH_MAX printable characters. Raises WordsError."""
    return _checked(text, REASON_LENGTH_MAX)


def _checked(text: str, length_max: int) -> str:
    words = text.strip()
    if not words or not words.isprintable() or len(words) > length_max:
        raise WordsError(f"must have 1 to {length_max} printable characters")
    return words
