"""Signed texts: what a gateway's signature covers where the gateway runs fields together before it signs them.

Rules:

1. Order ``A1`` with 2510.00 and order ``A125`` with 10.00 are one text, and have one signature. Whoever has a form for
   the one can change it into a form for the other. So such a signature proves a text, and not an order or an amount.
2. A form that was given out may be used for good, whatever became of its checkout. So may what signs a call's effect.
"""

from typing import Final

import msgspec

from payrelay.core.money import decimal_text

PURPOSE: Final = "signed text"
"""The purpose of the keyed digests of signed texts."""
_TEXT: Final = "text"


class SignedText(msgspec.Struct, frozen=True, kw_only=True):
    """An order, an amount in hundredths and a currency, as a signature covers them run together."""

    order_id: str
    amount_minor: int
    currency: str

    @property
    def digested(self) -> tuple[str, ...]:
        """The values of its digest: equal for two of them whose texts are equal, and for no others."""
        return (_TEXT, f"{self.order_id}{decimal_text(self.amount_minor)}{self.currency}")
