"""What a page of another origin may do here: nothing, unless its origin is allowed by setting (WHATWG Fetch, "CORS").

A page is not let in by this: it needs a credential as everybody does, and no cookie is ever looked at. It is the
browser that holds pages back, and that wants to be told which ones it needn't.
"""

from collections.abc import Collection
from typing import Final

from payrelay.api.http.incoming_request import Headers

METHODS: Final = b"GET, POST, PATCH, DELETE"
REQUEST_HEADERS: Final = (
    b"authorization, cache-control, content-type, idempotency-key, last-event-id, prefer, x-request-id"
)
ANSWER_HEADERS: Final = (
    b"age, idempotent-replayed, link, location, payrelay-operation, payrelay-stale, preference-applied, ratelimit,"
    b" ratelimit-policy, retry-after, x-request-id"
)
"""What a page's script may read beside what every script may."""
KEPT_S: Final = 600
"""How long a browser needn't ask again whether it may ask."""

RawHeaders = tuple[tuple[bytes, bytes], ...]

_VARIES: Final = ((b"vary", b"origin"),)


class Browsers:
    """Tells browsers which pages may use the API."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)

    def allowed(self, headers: Headers) -> bytes | None:
        """Gives the origin of the page that asks, where it is one of the allowed; None for everybody else."""
        origin = headers.get(b"origin")
        return origin if origin in self._origins and not headers.is_doubled(b"origin") else None

    def headers_for(self, headers: Headers) -> RawHeaders:
        """Gives what an answer must carry so that the page may read it."""
        if not self._origins:
            return ()
        origin = self.allowed(headers)
        if origin is None:
            return _VARIES
        return (*_VARIES, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", ANSWER_HEADERS))

    def preflight(self, method: str, headers: Headers) -> RawHeaders | None:
        """Gives the headers for a browser that asks whether a page may ask; None where it doesn't, or the page may not.

        It carries no credential, and learns nothing but what was configured.
        """
        if method != "OPTIONS" or headers.get(b"access-control-request-method") is None:
            return None
        if self.allowed(headers) is None:
            return None
        return (
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", REQUEST_HEADERS),
            (b"access-control-max-age", b"%d" % KEPT_S),
            (b"cache-control", b"no-store"),
            (b"server", b"payrelay"),
        )
