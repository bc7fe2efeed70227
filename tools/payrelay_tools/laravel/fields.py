"""Reads the fields of laravel-payhere's rows, as its databases write them."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from payrelay.core.money import AmountError, typed_minor
from payrelay.imports.rules.fields import Fields
from payrelay.imports.rules.items import ItemRefusedError
from payrelay_tools.laravel.secrets import AppKeys

_FRACTION: Final = re.compile(r"\d{1,15}\.\d{2,16}[1-9]", re.ASCII)
_NOISE_MAX: Final = Decimal("1e-6")
_FLAGS: Final = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}
"""As databases write yes and no."""


class LaravelFields(Fields):
    """The fields of one row; ``keys`` open those that the shop encrypted."""

    def __init__(self, values: Mapping[str, str | None], keys: AppKeys) -> None:
        super().__init__(values, keys.opened)

    def flag(self, name: str) -> bool:
        """Tells whether a field says yes; an empty one says no."""
        found = (self.text(name) or "0").lower()
        if found not in _FLAGS:
            raise ItemRefusedError(f"{name} is neither 1 nor 0")
        return _FLAGS[found]

    def amount(self, name: str) -> int:
        """Gives an amount in hundredths; a binary fraction is the hundredth that it is nearest to.

        The shortest text of a fraction doesn't end with a 0: 1.250 is none, and may be a thousand times as much.
        """
        found = self.required(name)
        if _FRACTION.fullmatch(found):
            nearest = round(Decimal(found), 2)
            found = str(nearest) if abs(Decimal(found) - nearest) < _NOISE_MAX else found
        try:
            return typed_minor(found)
        except AmountError as error:
            raise ItemRefusedError(f"{name} {error}") from None
