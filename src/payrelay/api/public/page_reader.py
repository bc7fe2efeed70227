"""Who reads a page: the language, chosen by ``Accept-Language`` (RFC 9110, by the lookup of RFC 4647), and the shop."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from payrelay.api.public.caller import Caller
from payrelay.api.public.language import LANGUAGES, Language, language
from payrelay.core.checkouts.shop import UNNAMED_SHOP, Shop

RANGES_MAX: Final = 50
"""A header with more is cut: no reader has so many languages."""
_ANY: Final = "*"

_range = re.compile(
    r"\s*(?P<tag>\*|[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}+)*+)\s*(?:;\s*[qQ]=(?P<quality>0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*)?"
).fullmatch


def chosen_language(accepted: str | None, offered: Sequence[str]) -> str:
    """Gives the offered language that the reader likes best; the first one where the header names none of them.

    ``offered`` are primary subtags such as ``si``, which a region such as ``si-LK`` means too. What can't be read
    counts as absent. Of equally good languages the first one in the header is chosen.
    """
    likes: dict[str, tuple[float, int]] = {}
    for place, part in enumerate((accepted or "").split(",")[:RANGES_MAX]):
        found = _range(part)
        if found is not None:
            tag = found["tag"].lower().partition("-")[0]
            quality = float(found["quality"] or 1)
            likes[tag] = max(likes.get(tag, (0.0, -place)), (quality, -place))
    best = max(offered, key=lambda language: likes.get(language, likes.get(_ANY, (0.0, -RANGES_MAX))))
    return best if likes.get(best, likes.get(_ANY, (0.0, 0)))[0] > 0 else offered[0]


@dataclass(frozen=True, slots=True)
class PageReader:
    """Who reads a page: its language, and the shop that the page looks like."""

    shop: Shop
    language: Language


ANYBODY: Final = PageReader(UNNAMED_SHOP, language(LANGUAGES[0]))
"""A reader of English, at a merchant who has said nothing of the pages."""


def reader_of(caller: Caller) -> PageReader:
    """Gives the reader of a request."""
    accepted = b",".join(caller.headers.every(b"accept-language")).decode("latin-1")
    return PageReader(shop=caller.shop, language=language(chosen_language(accepted, LANGUAGES)))
