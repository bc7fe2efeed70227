"""What is stored of an operator who decides or acts: a name, the operator's own reason, and a description."""

import re
from typing import Final

NAME_LENGTH_MAX: Final = 100
"""A name that fits into a list."""
REASON_LENGTH_MAX: Final = 500
"""Some sentences; a longer reason can name a document of its own."""

DESCRIPTION_LENGTH_MAX: Final = 200
"""Of what the gateway's own record says."""


_is_plain: Final = re.compile(r"[A-Za-z0-9_.:/#+@~-]+").fullmatch


class WordsError(ValueError):
    """The text can't be stored; the message fits behind its name."""


def name_of(text: str) -> str:
    """Gives an operator's name as it is stored: 1 to NAME_LENGTH_MAX printable characters. Raises WordsError."""
    return _checked(text, NAME_LENGTH_MAX)


def reason_of(text: str) -> str:
    """Gives a reason as it is stored: 1 to REASON_LENGTH_MAX printable characters. Raises WordsError."""
    return _checked(text, REASON_LENGTH_MAX)


def description_of(text: str) -> str:
    """Gives what the gateway's record is to say: 1 to DESCRIPTION_LENGTH_MAX printable characters.

    Raises WordsError.
    """
    return _checked(text, DESCRIPTION_LENGTH_MAX)


def named(text: str) -> str:
    """Gives a name or an id that somebody else chose, for a sentence: in quotes, unless it is one plain word.

    Nothing of it can be read as more of the sentence: quotes, and what turns or breaks a line, are written as escapes.
    """
    if _is_plain(text):
        return text
    kept = (each if each.isprintable() and each not in "“”" else ascii(each)[1:-1] for each in text)
    return f"“{''.join(kept)}”"


def _checked(text: str, length_max: int) -> str:
    words = text.strip()
    if not words or not words.isprintable() or len(words) > length_max:
        raise WordsError(f"must have 1 to {length_max} printable characters")
    return words
