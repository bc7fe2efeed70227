"""Sends one event to one endpoint, signed according to Standard Webhooks.

Rules:

1. Addresses are checked each time that a name is resolved, and the sender connects only to checked addresses. A name
   that resolves to another address a moment later gains nothing.
2. The sender follows no redirect and uses no proxy of the environment. Of an answer, only status and Retry-After count.
3. No log or failure contains the address, the secret, or what the receiver answers.
"""

import asyncio
import socket
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from standardwebhooks import Webhook

from payrelay.clock import Clock
from payrelay.core.events.delivery import AttemptResult, Endpoint, judged
from payrelay.core.events.destinations import AllowedDestinations, DestinationError, may_reach, require_destination
from payrelay.core.events.event import Plain, PublishedEvent
from payrelay.core.moments import rfc3339
from payrelay.core.secret import Secret
from payrelay.core.views import with_members_of
from payrelay.runtime.receiver_names import NameThreads
from payrelay.tracing.spans import Spans

SEND_MAX_S: Final = 15.0
"""From the look-up of the name to the end of the answer, as Standard Webhooks recommends."""
ANSWER_BYTES_MAX: Final = 16_384
"""Bytes of an answer that are read, so that its connection can be reused; after a longer answer it is closed."""
ANSWER_READ_MAX_S: Final = 1.0
"""How long the rest of an answer is read once its status is known."""
IDLE_S: Final = 15.0
"""How long an idle connection is kept."""
_NAMES_KEPT_S: Final = 10
_CHECKED_MAX: Final = 1_024
"""Checked endpoint addresses that are remembered, so that each is checked once and not for each event."""

_encode: Final = msgspec.json.Encoder().encode


class _ForbiddenAddress(OSError):
    """The name resolves to a forbidden address."""


class WebhookMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a webhook; an event has equal bytes in each attempt.

    ``traceparent`` is the trace context of the change, where tracing was on.
    """

    id: str
    type: str
    timestamp: str
    account: str
    subject: str
    data: dict[str, Plain]
    traceparent: str | None = None


class Secrets(msgspec.Struct, frozen=True):
    """The signing secrets of an endpoint: the newest, and the previous one while it is still valid."""

    newest: Secret
    older: Secret | None = None


class Signer:
    """Signs for one endpoint."""

    def __init__(self, secrets: Secrets) -> None:
        self._webhooks = [Webhook(secret.reveal()) for secret in (secrets.newest, secrets.older) if secret is not None]

    def headers(self, event_id: str, at_ms: int, body: str) -> dict[str, str]:
        """Returns the headers that prove who sent a message, and when."""
        at = datetime.fromtimestamp(at_ms // 1000, UTC)
        signatures = [webhook.sign(msg_id=event_id, timestamp=at, data=body) for webhook in self._webhooks]
        return {
            "Content-Type": "application/json",
            "User-Agent": "payrelay",
            "webhook-id": event_id,
            "webhook-timestamp": str(at_ms // 1000),
            "webhook-signature": " ".join(signatures),
        }


class GuardedResolver(AbstractResolver):
    """Resolves names to allowed addresses: to all addresses of a name, or to none where one is forbidden."""

    def __init__(self, allowed: AllowedDestinations, inner: AbstractResolver) -> None:
        self._allowed = allowed
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Returns the addresses of a host; raises OSError where there is none, or one of them is forbidden."""
        found = await self._inner.resolve(host, port, family)
        if not all(may_reach(host, result["host"], self._allowed) for result in found):
            raise _ForbiddenAddress("the name leads to an address that is not public")
        return found

    async def close(self) -> None:
        """Closes the inner resolver."""
        await self._inner.close()


class WebhookSender:
    """Sends events; belongs to the event loop that it was made on."""

    def __init__(
        self,
        allowed: AllowedDestinations,
        clock: Clock,
        *,
        limit_s: float = SEND_MAX_S,
        resolver: AbstractResolver | None = None,
        spans: Spans | None = None,
    ) -> None:
        self.allowed = allowed
        self._spans = spans
        self._clock = clock
        self._limit_s = limit_s
        self._resolver = resolver
        self._require = lru_cache(_CHECKED_MAX)(partial(require_destination, allowed=allowed))
        self._session: aiohttp.ClientSession | None = None

    async def send(self, endpoint: Endpoint, signer: Signer, event: PublishedEvent) -> AttemptResult:
        """Sends an event once, and returns the result; raises nothing but a cancellation."""
        if self._spans is None:
            return await self._send(endpoint, signer, event)
        with self._spans.after(
            event.traceparent, "deliver webhook", payrelay__event__id=event.id, payrelay__event__type=event.type
        ) as span:
            result = await self._send(endpoint, signer, event)
            span.note(has_failed=not result.is_delivered, http__response__status_code=result.status)
            return result

    async def _send(self, endpoint: Endpoint, signer: Signer, event: PublishedEvent) -> AttemptResult:
        body = body_of(event)
        headers = signer.headers(event.id, self._clock.now_ms(), body.decode())
        try:
            # A literal IP address never reaches the resolver, so it is checked here.
            self._require(endpoint.url)
            async with self._opened().post(endpoint.url, data=body, headers=headers, allow_redirects=False) as response:
                result = judged(response.status, response.headers.get("Retry-After"), self._clock.now_ms())
                await _read_some(response)
        except DestinationError as error:
            return AttemptResult(failure=f"its address {error}")
        except TimeoutError:
            return AttemptResult(failure=f"had not answered after {self._limit_s:g} s")
        except aiohttp.ClientConnectorDNSError as error:
            return AttemptResult(failure=_of_resolving(error))
        except aiohttp.ClientSSLError:
            return AttemptResult(failure="has no certificate that is trusted")
        except (aiohttp.ClientError, OSError, ValueError):
            return AttemptResult(failure="could not be reached")
        return result

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Returns the session, which the first attempt opens."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self.allowed, self._resolver or NameThreads()),
                limit=0,  # the endpoint workers limit themselves; a limit here would let a slow receiver delay others
                ttl_dns_cache=_NAMES_KEPT_S,
                keepalive_timeout=IDLE_S,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self._limit_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=None if self._spans is None else [self._spans.client()],
            )
        return self._session


def body_of(event: PublishedEvent) -> bytes:
    """Encodes the body of a webhook."""
    return _encode(message_of(event))


def message_of(event: PublishedEvent) -> WebhookMessage:
    """Returns an event in the members of the interface."""
    return with_members_of(event, WebhookMessage, timestamp=rfc3339(event.at_ms))


def host_of(url: str) -> str:
    """Returns the part of an address that may be logged."""
    return urlsplit(url).hostname or ""


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
    if isinstance(error.os_error, _ForbiddenAddress):
        return "has a name that leads to an address that is not public"
    return "has a name that leads nowhere"
