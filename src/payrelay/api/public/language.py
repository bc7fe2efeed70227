"""The languages of the customers' pages: their sentences, and amounts, dates and spans in the reader's way.

The sentences stand in English in the sources. Their translations are gettext catalogues in ``hosted/languages``.
"""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from typing import Final

from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency

LANGUAGES: Final = ("en", "si", "ta")
"""The first one is for readers who accept none of them."""
_LOCALES: Final = {"en": "en_GB", "si": "si_LK", "ta": "ta_LK"}
AMOUNT_PATTERN: Final = "¤¤\u00a0#,##0.00"
"""The code of the currency, because ``Rs.`` is the name of several; thousands, as they are written in Sri Lanka."""
_span_match = re.compile(r"([0-9]{1,3}) (day|week|month|year)s?", re.IGNORECASE).fullmatch


def marked(sentence: str) -> str:
    """Marks a sentence for the catalogues; it is translated where it is shown."""
    return sentence


@dataclass(frozen=True, slots=True)
class Language:
    """One language of the pages.

    Attributes:
        tag: as HTML and HTTP name it.
        locale: whose amounts and dates are written.
        catalogue: the translations.
    """

    tag: str
    locale: str
    catalogue: NullTranslations

    def text(self, sentence: str) -> str:
        """Gives a sentence in this language."""
        return self.catalogue.gettext(sentence)

    def amount(self, currency: str, amount: Decimal) -> str:
        """Writes an amount, with two decimals."""
        return format_currency(amount, currency, AMOUNT_PATTERN, locale=self.locale, currency_digits=False)

    def day(self, day: date) -> str:
        """Writes a date in full."""
        return format_date(day, "long", locale=self.locale)

    def span(self, text: str) -> str:
        """Writes a span such as ``2 Week``; one that can't be read stays as it is."""
        found = _span_match(text)
        if found is None:
            return text
        one, many = _SPANS[found[2].lower()]
        count = int(found[1])
        return self.catalogue.ngettext(one, many, count) % {"count": count}


@cache
def language(tag: str) -> Language:
    """Gives one of LANGUAGES, read once."""
    return Language(tag=tag, locale=_LOCALES[tag], catalogue=_catalogue(tag))


def _catalogue(tag: str) -> NullTranslations:
    if tag == LANGUAGES[0]:
        return NullTranslations()
    with files("payrelay.api.public").joinpath("hosted", "languages", f"{tag}.po").open("rb") as file:
        catalogue = read_po(file, locale=tag)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return GNUTranslations(compiled)


def _pair(one: str, many: str) -> tuple[str, str]:
    """Marks a span in its two English forms."""
    return one, many


_SPANS: Final = {
    "day": _pair("%(count)d day", "%(count)d days"),
    "week": _pair("%(count)d week", "%(count)d weeks"),
    "month": _pair("%(count)d month", "%(count)d months"),
    "year": _pair("%(count)d year", "%(count)d years"),
}
