"""Reads the text that a notification's signature covers: merchant, order, amount, currency with nothing between. Pure.

Rules:

1. A form's signature covers the amount with two decimals. A call's reply and its notification are signed over the same
   text, and over a status behind it. So the text of a form is the beginning of the text of its notification.
2. All texts of one merchant begin with the merchant's number, which is therefore left out here.
3. The end is unmistakable: a currency is three capital letters, and only digits, a point and commas are before it. So
   only the border between order and amount can be moved.
4. A notification's amount may have thousands separators or other decimals, while the form that led to it never had. So
   each reading of a notification gives the text that a form for that order and amount would have.
"""

from typing import Final

from payrelay.core.gateways.signed_text import SignedText
from payrelay.gateways.payhere.wire.amounts import minor_of

AMOUNT_TEXT_MAX: Final = 40
"""Characters of an amount: 15 digits with separators, and 9 decimals, have 29."""


def readings_of(order_id: str, amount: str, currency: str) -> tuple[SignedText, ...]:
    """Gives every order and amount that the signature of a notification fits, its own among them.

    ``amount`` is the text as it came. Only amounts greater than 0 are given: no form and no call is for nothing.
    """
    run = order_id + amount
    borders = range(max(1, len(run) - AMOUNT_TEXT_MAX), len(run))
    read = ((run[:border], minor_of(run[border:])) for border in borders)
    return tuple(
        SignedText(order_id=order, amount_minor=amount_minor, currency=currency)
        for order, amount_minor in read
        if amount_minor
    )
