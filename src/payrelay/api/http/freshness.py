"""How new an answer a client wants (RFC 9111, Cache-Control in a request); of that only ``no-cache`` is known here."""

import re
from typing import Final

from payrelay.api.http.incoming_request import Headers

NO_CACHE: Final = b"no-cache"

_directives: Final = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+').findall
"""Splits at the commas that don't stand in quotes."""


def insists_on_new(headers: Headers) -> bool:
    """True where the client takes no answer that is kept; any other directive is passed over."""
    values = headers.every(b"cache-control")
    return any(directive.strip().lower() == NO_CACHE for value in values for directive in _directives(value))
