"""Cache-Control in requests (RFC 9111), of which the API supports ``no-cache`` alone."""

import re
from typing import Final

from payrelay.api.http.incoming_request import Headers

NO_CACHE: Final = b"no-cache"

_directives: Final = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+').findall
"""Splits at commas outside quotes."""


def insists_on_new(headers: Headers) -> bool:
    """True where the client accepts no cached answer; every other directive is ignored."""
    values = headers.every(b"cache-control")
    return any(directive.strip().lower() == NO_CACHE for value in values for directive in _directives(value))
