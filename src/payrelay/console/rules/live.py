"""What a live page is sent: its parts that have changed, found by marks that the templates put around them.

Whoever fills a text in can't write a mark, because every text on a page is escaped.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

_PART: Final = re.compile(rb'<div class="live" id="(live-[a-z-]+)">(.*?)</div><!--\1-->', re.DOTALL)
OVER: Final = b"event: over\ndata:\n\n"
"""The session has ended, or there is nothing to show any more: the browser need not come back."""
FULL: Final = b"event: full\ndata:\n\n"
"""As many pages are live as may be."""
ALIVE: Final = b": here\n\n"

_encode: Final = msgspec.json.Encoder().encode


def parts_of(body: bytes) -> dict[str, str]:
    """Finds the live parts of a page, by their ids."""
    return {name.decode(): content.decode() for name, content in _PART.findall(body)}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> bytes:
    """Writes the parts that are new or other than before, as one server-sent event; ``ALIVE`` where none is."""
    new = {name: content for name, content in now.items() if before.get(name) != content}
    return b"data: %b\n\n" % _encode(new) if new else ALIVE
