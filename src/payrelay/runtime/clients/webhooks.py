"""Posts webhooks over connections that lead to checked addresses only (``runtime.webhook_sender`` has the rules)."""

import asyncio
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver

from payrelay.clock import Clock
from payrelay.core.events.delivery import AttemptResult, judged
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.runtime.clients.receiver_names import ForbiddenAddressError, GuardedResolver, NameThreads
from payrelay.runtime.connections import connector_to_others
from payrelay.tracing.spans import Spans

ANSWER_BYTES_MAX: Final = 16_384
"""Bytes of an answer that are read, so that its connection can be reused; after a longer answer it is closed."""
ANSWER_READ_MAX_S: Final = 1.0
"""How long the rest of an answer is read once its status is known."""
IDLE_S: Final = 15.0
"""How long an idle connection is kept."""
_NAMES_KEPT_S: Final = 10


class WebhookClient:
    """Posts webhooks; belongs to the event loop that it was made on.

    Args:
        allowed: the addresses that may be reached.
        clock: gives the time, for an answer that says when to come again.
        limit_s: from the look-up of the name to the end of the answer.
        resolver: resolves names; None for the system's.
        spans: records each request, where tracing is on.
    """

    def __init__(
        self,
        allowed: AllowedDestinations,
        clock: Clock,
        *,
        limit_s: float,
        resolver: AbstractResolver | None,
        spans: Spans | None,
    ) -> None:
        self._clock = clock
        self._limit_s = limit_s
        connector = connector_to_others(
            resolver=GuardedResolver(allowed, resolver or NameThreads()),
            limit=0,  # the endpoint workers limit themselves; a limit here would let a slow receiver delay others
            ttl_dns_cache=_NAMES_KEPT_S,
            keepalive_timeout=IDLE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=limit_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trace_configs=None if spans is None else [spans.client()],
        )

    async def post(self, url: str, body: bytes, headers: dict[str, str], /) -> AttemptResult:
        """Posts one webhook, and returns the result; raises nothing but a cancellation."""
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                result = judged(response.status, response.headers.get("Retry-After"), self._clock.now_ms())
                await _read_some(response)
        except TimeoutError:
            return AttemptResult(failure=f"had not answered after {self._limit_s:g} s")
        except aiohttp.ClientConnectorDNSError as error:
            return AttemptResult(failure=_of_resolving(error))
        except aiohttp.ClientConnectorCertificateError:
            return AttemptResult(failure="has no certificate that is trusted")
        except aiohttp.ClientSSLError:
            return AttemptResult(failure="did not agree on TLS: it must have the curve P-256")
        except (aiohttp.ClientError, OSError, ValueError):
            return AttemptResult(failure="could not be reached")
        return result

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()


async def _read_some(response: aiohttp.ClientResponse) -> None:
    """Reads a short answer to its end; closes the connection of a longer or a slower one."""
    try:
        left = ANSWER_BYTES_MAX
        async with asyncio.timeout(ANSWER_READ_MAX_S):
            while left > 0 and (piece := await response.content.read(left)):
                left -= len(piece)
        if left <= 0:
            response.close()
    except (aiohttp.ClientError, OSError, TimeoutError):
        # Only the status counts, and it is known.
        response.close()


def _of_resolving(error: aiohttp.ClientConnectorDNSError) -> str:
    if isinstance(error.os_error, ForbiddenAddressError):
        return "has a name that leads to an address that is not public"
    return "has a name that leads nowhere"
