"""Sends one event to one endpoint, signed as Standard Webhooks has it.

Rules:

1. What a name leads to is looked at each time that it is resolved, and only what was looked at is connected to: a name
   that leads to another address a moment later gains nothing by it.
2. No redirect is followed, no proxy of the environment is asked, and of an answer only status and Retry-After count.
3. Neither address, nor secret, nor what the receiver says is ever put into words.
"""

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
from payrelay.runtime.receiver_names import NameThreads

SEND_MAX_S: Final = 15.0
"""From the name to the end of the answer, as Standard Webhooks recommends."""
ANSWER_BYTES_MAX: Final = 16_384
"""Of an answer, so that its connection can be used again; a longer one costs it that."""
IDLE_S: Final = 15.0
"""How long a connection that nobody uses is kept."""
_NAMES_KEPT_S: Final = 10
_CHECKED_MAX: Final = 1_024
"""Addresses that are known to be good, so that each is looked at once and not for each event."""

_encode: Final = msgspec.json.Encoder().encode


class _ForbiddenAddress(OSError):
    """The name leads to an address that may not be called."""


class WebhookMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver gets; the same event is the same bytes each time."""

    id: str
    type: str
    timestamp: str
    account: str
    subject: str
    data: dict[str, Plain]


class Secrets(msgspec.Struct, frozen=True):
    """What is signed with: the newest secret, and the one before it while that still counts."""

    newest: Secret
    older: Secret | None = None


class Signer:
    """Signs for one endpoint."""

    def __init__(self, secrets: Secrets) -> None:
        self._webhooks = [Webhook(secret.reveal()) for secret in (secrets.newest, secrets.older) if secret is not None]

    def headers(self, event_id: str, at_ms: int, body: str) -> dict[str, str]:
        """Gives the headers that prove where a message comes from, and when it was sent."""
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
    """Resolves names, and gives only addresses that may be called: all that a name leads to, or none of them."""

    def __init__(self, allowed: AllowedDestinations, inner: AbstractResolver) -> None:
        self._allowed = allowed
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Gives the addresses of a host; raises OSError where there is none, or one that may not be called."""
        found = await self._inner.resolve(host, port, family)
        if not all(may_reach(host, result["host"], self._allowed) for result in found):
            raise _ForbiddenAddress("the name leads to an address that is not public")
        return found

    async def close(self) -> None:
        """Lets go of the resolver below."""
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
    ) -> None:
        self.allowed = allowed
        self._clock = clock
        self._limit_s = limit_s
        self._resolver = resolver
        self._require = lru_cache(_CHECKED_MAX)(partial(require_destination, allowed=allowed))
        self._session: aiohttp.ClientSession | None = None

    async def send(self, endpoint: Endpoint, signer: Signer, event: PublishedEvent) -> AttemptResult:
        """Sends an event once, and tells what came of it; raises nothing but a cancellation."""
        body = body_of(event)
        headers = signer.headers(event.id, self._clock.now_ms(), body.decode())
        try:
            # The resolver isn't asked about an address that stands there literally.
            self._require(endpoint.url)
            async with self._opened().post(endpoint.url, data=body, headers=headers, allow_redirects=False) as response:
                tried = judged(response.status, response.headers.get("Retry-After"), self._clock.now_ms())
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
        return tried

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Gives the connections, which a process that sends nothing never has."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=GuardedResolver(self.allowed, self._resolver or NameThreads()),
                limit=0,  # those who send see to it; here a slow receiver would let others wait
                ttl_dns_cache=_NAMES_KEPT_S,
                keepalive_timeout=IDLE_S,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self._limit_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


def body_of(event: PublishedEvent) -> bytes:
    """Writes what a receiver gets."""
    return _encode(message_of(event))


def message_of(event: PublishedEvent) -> WebhookMessage:
    """Says an event in the words of the interface."""
    return WebhookMessage(
        id=event.id,
        type=event.type,
        timestamp=rfc3339(event.at_ms),
        account=event.account,
        subject=event.subject,
        data=event.data,
    )


def host_of(url: str) -> str:
    """Gives what of an address may be logged."""
    return urlsplit(url).hostname or ""


async def _read_some(response: aiohttp.ClientResponse) -> None:
    """Reads a short answer to its end; what is left of a longer one goes with its connection."""
    try:
        left = ANSWER_BYTES_MAX
        while left > 0 and (piece := await response.content.read(left)):
            left -= len(piece)
        if left <= 0:
            response.close()
    except (aiohttp.ClientError, OSError, TimeoutError):
        # The status is known, and that is what counts.
        response.close()


def _of_resolving(error: aiohttp.ClientConnectorDNSError) -> str:
    if isinstance(error.os_error, _ForbiddenAddress):
        return "has a name that leads to an address that is not public"
    return "has a name that leads nowhere"
