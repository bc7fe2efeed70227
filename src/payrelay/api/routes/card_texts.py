"""The texts that say what card a token is for: what is checked of each, and how JSON Schema has it."""

import re
from collections.abc import Callable
from typing import Final

_MASKED_CARD: Final = r"^[*Xx -]{0,20}[0-9]{4}$"
_masked_card_match: Final = re.compile(_MASKED_CARD).fullmatch
_EXPIRY: Final = r"^(?:0[1-9]|1[0-2])/?[0-9]{2}$"
_expiry_match: Final = re.compile(_EXPIRY).fullmatch


class MaskedCard(str):
    """A card's number of which only the last four digits are there."""

    __slots__ = ()


class CardExpiry(str):
    """The month and year in which a card ends."""

    __slots__ = ()


def _masked_card(value: object) -> MaskedCard:
    if not isinstance(value, str) or _masked_card_match(value) is None:
        raise ValueError("must be masked: asterisks and the last four digits")
    return MaskedCard(value)


def _card_expiry(value: object) -> CardExpiry:
    if not isinstance(value, str) or _expiry_match(value) is None:
        raise ValueError('must be a month and a year, such as "0129"')
    return CardExpiry(value)


CARD_READERS: Final[dict[type, Callable[[object], object]]] = {MaskedCard: _masked_card, CardExpiry: _card_expiry}
"""Reads a value of each type; raises ValueError with words that fit behind its name."""

CARD_SCHEMAS: Final[dict[type, dict[str, object]]] = {
    MaskedCard: {
        "type": "string",
        "pattern": _MASKED_CARD,
        "description": "The card's number, masked: asterisks and the last four digits.",
    },
    CardExpiry: {"type": "string", "pattern": _EXPIRY, "description": "Month and year, such as `0129` or `01/29`."},
}
"""How they are written in JSON Schema."""
