"""Sends one event to one endpoint, signed according to Standard Webhooks.

Rules:

1. Addresses are checked each time that a name is resolved, and the sender connects only to checked addresses. A name
   that resolves to another address a moment later gains nothing.
2. The sender follows no redirect and uses no proxy of the environment. Of an answer, only status and Retry-After count.
3. No log or failure contains the address, the secret, or what the receiver answers.
"""

import asyncio
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from standardwebhooks import Webhook

from payrelay.clock import Clock
from payrelay.core.events.delivery import AttemptResult, Endpoint
from payrelay.core.events.destinations import AllowedDestinations, DestinationError, require_destination
from payrelay.core.events.event import Plain, PublishedEvent
from payrelay.core.moments import rfc3339
from payrelay.core.secret import Secret
from payrelay.core.views import with_members_of
from payrelay.tracing.spans import Spans

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

SEND_MAX_S: Final = 15.0
"""From the look-up of the name to the end of the answer, as Standard Webhooks recommends."""
CLIENT: Final = "payrelay.runtime.clients.webhooks"
"""Loaded by the first event that is sent, in a thread: it takes 11 MB, and a tenth of a second."""
_CHECKED_MAX: Final = 1_024
"""Checked endpoint addresses that are remembered, so that each is checked once and not for each event."""

_encode: Final = msgspec.json.Encoder().encode


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


class _Client(Protocol):
    """Posts webhooks (``clients.webhooks.WebhookClient``)."""

    async def post(self, url: str, body: bytes, headers: dict[str, str], /) -> AttemptResult:
        """Posts one, and returns the result; raises nothing but a cancellation."""

    async def close(self) -> None:
        """Closes all connections."""


class WebhookSender:
    """Sends events; belongs to the event loop that it was made on."""

    def __init__(
        self,
        allowed: AllowedDestinations,
        clock: Clock,
        *,
        limit_s: float = SEND_MAX_S,
        resolver: "AbstractResolver | None" = None,
        spans: Spans | None = None,
    ) -> None:
        self.allowed = allowed
        self._spans = spans
        self._clock = clock
        self._limit_s = limit_s
        self._resolver = resolver
        self._require = lru_cache(_CHECKED_MAX)(partial(require_destination, allowed=allowed))
        self._client: _Client | None = None

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
        except DestinationError as error:
            return AttemptResult(failure=f"its address {error}")
        client = self._client or await self._opened()
        return await client.post(endpoint.url, body, headers)

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.close()

    async def _opened(self) -> "_Client":
        """Returns the client, which the first attempt opens."""
        module = await asyncio.to_thread(import_module, CLIENT)  # several may wait for it; one makes the client
        if self._client is None:
            self._client = module.WebhookClient(
                self.allowed, self._clock, limit_s=self._limit_s, resolver=self._resolver, spans=self._spans
            )
        return self._client


def body_of(event: PublishedEvent) -> bytes:
    """Encodes the body of a webhook."""
    return _encode(message_of(event))


def message_of(event: PublishedEvent) -> WebhookMessage:
    """Returns an event in the members of the interface."""
    return with_members_of(event, WebhookMessage, timestamp=rfc3339(event.at_ms))
