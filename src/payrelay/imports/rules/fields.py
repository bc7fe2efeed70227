"""Reads the fields of a row of a file or a table; one that can't be read refuses the row, by its name."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from payrelay.core.customers.customer import CARD_EXPIRY_WORDS, CARD_FACT_LENGTH_MAX, month_and_year
from payrelay.core.money import AmountError, is_currency, typed_minor
from payrelay.core.payments.payment import payment_number
from payrelay.core.text.table_text import moment_in
from payrelay.imports.rules.items import ItemRefusedError

TEXT_MAX: Final = 255
"""Characters of an id or a name, as in the API."""
DATES_LAST_MS: Final = 4_102_444_800_000
"""The year 2100: whatever a file dates later is no date."""
IsMerchant = Callable[[str], bool | None]
"""Tells whether a merchant's number is the account's; None where the account has no number to compare with."""
OTHER_MERCHANT: Final = "merchant_id is another merchant's"
ENCRYPTED: Final = "eyJpdiI6"
"""How a value begins that a shop encrypted with Laravel's own key: ``{"iv":`` in base64. It would pass for a token."""
_HANDLE: Final = "cus_"
_TOKEN: Final = re.compile(r"[!-~]{8,255}")
_DAY: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T].*")
"""A day with its time, as databases write it."""
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)
_NULLS: Final = frozenset({"", "NULL", "null", "\\N"})


class Fields:
    """The fields of one row, read by their names; ``opened`` gives the text of a value that may be encrypted.

    Everything here raises ItemRefusedError, whose text begins with the name of the field and never has a token.
    """

    def __init__(self, values: Mapping[str, str | None], opened: "Callable[[str], str] | None" = None) -> None:
        self._values = values
        self._opened = opened or _unencrypted

    def has(self, name: str) -> bool:
        """Tells whether the row has the field at all, be it empty."""
        return name in self._values

    def text(self, *names: str) -> str | None:
        """Gives the first of some fields that isn't empty; None where all are."""
        for name in names:
            value = self._values.get(name)
            if value is None or value.strip() in _NULLS:
                continue
            try:
                opened = self._opened(value.strip()).strip()
            except ItemRefusedError as error:
                raise ItemRefusedError(f"{name} {error}") from None
            if opened:
                return _checked(name, opened)
        return None

    def required(self, *names: str) -> str:
        """Gives the first of some fields that isn't empty."""
        found = self.text(*names)
        if found is None:
            raise ItemRefusedError(f"{names[0]} is missing")
        return found

    def number(self, *names: str) -> str | None:
        """Gives one of the gateway's numbers, as it is stored; None where there is none."""
        found = self.text(*names)
        if found is None:
            return None
        number = payment_number(found)
        if number is None or number == "0":
            raise ItemRefusedError(f"{names[0]} is no number of the gateway's: it has 1 to 19 digits")
        return number

    def required_number(self, *names: str) -> str:
        """Gives one of the gateway's numbers, as it is stored."""
        found = self.number(*names)
        if found is None:
            raise ItemRefusedError(f"{names[0]} is missing")
        return found

    def require_merchant(self, is_merchant: IsMerchant) -> None:
        """Refuses the row where it names another merchant than the account's."""
        merchant = self.text("merchant_id")
        if merchant is not None and is_merchant(merchant) is False:
            raise ItemRefusedError(OTHER_MERCHANT)

    def token(self, name: str) -> str:
        """Gives a card token."""
        found = self.required(name)
        if found.startswith(_HANDLE):
            raise ItemRefusedError(f"{name} is the handle of a customer of Payrelay, and not a gateway's token")
        if not _TOKEN.fullmatch(found) or set(found) == {"*"}:
            raise ItemRefusedError(f"{name} can't be a token: it has 8 to 255 visible characters without spaces")
        return found

    def card_fact(self, name: str) -> str | None:
        """Gives what is told of a card, as it is shown; None where there is nothing."""
        found = self.text(name)
        if found is not None and len(found) > CARD_FACT_LENGTH_MAX:
            raise ItemRefusedError(f"{name} has more than {CARD_FACT_LENGTH_MAX} characters")
        return found

    def card_expiry(self, name: str) -> str | None:
        """Gives the month and the year in which a card expires, ``0129``; None where they aren't told."""
        found = self.text(name)
        expiry = month_and_year(found)
        if found is not None and expiry is None:
            raise ItemRefusedError(f"{name} {CARD_EXPIRY_WORDS}")
        return expiry

    def amount(self, name: str) -> int:
        """Gives an amount in hundredths."""
        try:
            return typed_minor(self.required(name))
        except AmountError as error:
            raise ItemRefusedError(f"{name} {error}") from None

    def currency(self, name: str) -> str:
        """Gives a currency."""
        found = self.required(name)
        if not is_currency(found):
            raise ItemRefusedError(f"{name} is no currency such as LKR")
        return found

    def count(self, name: str) -> int | None:
        """Gives a number of things; None where there is none."""
        found = self.text(name)
        if found is not None and not _WHOLE.fullmatch(found):
            raise ItemRefusedError(f"{name} is no whole number")
        return None if found is None else int(found)

    def day(self, name: str) -> str | None:
        """Gives a date as text; None where there is none."""
        found = self.text(name)
        if found is None or found.startswith("0000"):  # as MySQL writes no date
            return None
        match = _DAY.fullmatch(found)
        try:
            return date.fromisoformat(match[1] if match else found).isoformat()
        except ValueError:
            raise ItemRefusedError(f"{name} is no date such as 2026-11-25") from None

    def moment(self, name: str, timezone: str) -> int | None:
        """Gives a time; None where there is none. One without a zone is in ``timezone``."""
        found = self.text(name)
        if found is None or found.startswith("0000"):
            return None
        at_ms = moment_in(found, timezone)
        if at_ms is None or at_ms > DATES_LAST_MS:
            raise ItemRefusedError(f"{name} is no time such as 2026-11-25 10:00:00")
        return at_ms


def _unencrypted(value: str) -> str:
    if value.startswith(ENCRYPTED):
        raise ItemRefusedError("is encrypted by the shop")
    return value


def _checked(name: str, text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ItemRefusedError(f"{name} isn't UTF-8")
    if not text.isprintable():
        raise ItemRefusedError(f"{name} has a character that nobody can print")
    if len(text) > TEXT_MAX:
        raise ItemRefusedError(f"{name} has more than {TEXT_MAX} characters")
    return text
