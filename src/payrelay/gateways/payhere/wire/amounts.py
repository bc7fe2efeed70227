"""Reads the amounts that PayHere writes in a notification. Pure."""

import re
from decimal import Decimal

from payrelay.core.money import AmountError, minor_units

# Without leading zeros: nothing separates the order from the amount in the signed text, so this leaves fewer readings.
is_amount = re.compile(r"(?:0|[1-9][0-9]{0,2}(?:,[0-9]{3})*|[1-9][0-9]{0,14})(?:\.[0-9]{1,9})?").fullmatch
"""Matches a text that is an amount, with or without thousands separators, which were seen once."""


def minor_of(text: str | None) -> int | None:
    """Gives an amount in hundredths, 0 for nothing; None for a text that is none, or has more than two decimals."""
    if text is None or is_amount(text) is None:
        return None
    amount = Decimal(text.replace(",", ""))
    try:
        return 0 if amount.is_zero() else minor_units(amount)
    except AmountError:
        return None
