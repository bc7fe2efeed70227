"""Cross-origin requests: browsers let a page use the API where a setting allows its origin (WHATWG Fetch, "CORS").

This admits nobody. A page needs a credential as every client does, and the API reads no cookies. The browser blocks
pages of other origins, and asks the API which ones it may let through.
"""

from collections.abc import Collection
from typing import Final

from payrelay.api.http.incoming_request import Headers

METHODS: Final = b"GET, POST, PATCH, DELETE"
REQUEST_HEADERS: Final = (
    b"authorization, cache-control, content-type, idempotency-key, last-event-id, prefer, traceparent,"
    b" tracestate, x-request-id"
)
ANSWER_HEADERS: Final = (
    b"age, idempotent-replayed, link, location, payrelay-missing, payrelay-operation, payrelay-stale,"
    b" preference-applied, ratelimit, ratelimit-policy, retry-after, traceresponse, x-request-id"
)
"""The headers that a page's script may read, beyond those that every script may."""
PREFLIGHT_CACHED_S: Final = 600
"""How long a browser may use the answer to a preflight again."""

RawHeaders = tuple[tuple[bytes, bytes], ...]

_VARIES: Final = ((b"vary", b"origin"),)


class Browsers:
    """Tells browsers which pages may use the API."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def allowed(self, headers: Headers) -> bytes | None:
        """Gives the page's origin where it is allowed, else None."""
        origin = headers.get(b"origin")
        return origin if origin in self._origins and not headers.is_doubled(b"origin") else None

    def headers_for(self, headers: Headers) -> RawHeaders:
        """Gives the headers of an answer that let the page read it."""
        if not self._origins:
            return ()
        origin = self.allowed(headers)
        if origin is None:
            return _VARIES
        return (*_VARIES, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", ANSWER_HEADERS))

    def preflight(self, method: str, headers: Headers) -> RawHeaders | None:
        """Gives the headers that answer a browser's preflight; None for another request, or an origin not allowed.

        A preflight has no credential; its answer shows nothing but the configuration.
        """
        if method != "OPTIONS" or headers.get(b"access-control-request-method") is None:
            return None
        if self.allowed(headers) is None:
            return None
        return (
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", REQUEST_HEADERS),
            (b"access-control-max-age", b"%d" % PREFLIGHT_CACHED_S),
            (b"cache-control", b"no-store"),
            (b"server", b"payrelay"),
        )
