"""Fetches the keys of an identity provider, and caches them.

Rules:

1. A request waits for a fetch only where its key is not cached; a cached key serves while the keys are fetched again.
2. Requests with unknown keys cause fetches at a limited rate only.
3. While the identity provider is down, its last keys serve on, for LAST_GOOD_S at most: a key that it has revoked
   meanwhile must expire some time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from joserfc.jwk import Key
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.access.signatures import identity_keys
from payrelay.errors import Code, Refusal
from payrelay.runtime.connections import body_of, session_to_others

KEPT_S: Final = 600.0
"""How long fetched keys are used without another fetch: the longest time that a revoked key is still accepted."""
LAST_GOOD_S: Final = 86_400.0
ASKED_AGAIN_S: Final = 10.0
"""Between the starts of two fetches, whether they failed or brought no new key."""
FETCH_MAX_S: Final = 5.0
"""From the look-up of the name to the last byte."""
ANSWER_BYTES_MAX: Final = 262_144
"""A set of keys has some 5 KiB."""

_HEADERS: Final = {"Accept": "application/json", "User-Agent": "payrelay"}

Fetch = Callable[[], Awaitable[bytes]]
"""Returns the current JWKS document; raises FetchError."""


class FetchError(Exception):
    """The keys could not be fetched; the text says why, in a few words."""


class IdentityProviderKeys:
    """Finds keys of the identity provider by their ids."""

    def __init__(self, fetch: Fetch, clock: Clock, log: FilteringBoundLogger) -> None:
        self._fetch = fetch
        self._clock = clock
        self._log = log
        self._keys: dict[str, Key] = {}
        self._fetched_at_s = float("-inf")
        self._asked_at_s = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, key_id: str) -> Key | None:
        """Returns the key of an id; None where the identity provider has no such key.

        Raises Refusal (unavailable) where no keys could be fetched for LAST_GOOD_S.
        """
        age_s = self._clock.boot_s() - self._fetched_at_s
        is_known = key_id in self._keys and age_s < LAST_GOOD_S
        if age_s >= KEPT_S or not is_known:
            fetching = self._begin()
            if fetching is not None and not is_known:
                # A wait, not an await: a client that goes away must not cancel the fetch that others wait for.
                await asyncio.wait({fetching})
        if self._clock.boot_s() - self._fetched_at_s >= LAST_GOOD_S:
            raise Refusal(Code.UNAVAILABLE, "the identity provider's keys can't be fetched now")
        return self._keys.get(key_id)

    async def close(self) -> None:
        """Cancels a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _begin(self) -> "asyncio.Task[None] | None":
        """Returns the fetch under way, or begins one; None where the last one began less than ASKED_AGAIN_S ago."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        now_s = self._clock.boot_s()
        if now_s - self._asked_at_s < ASKED_AGAIN_S:
            return None
        self._asked_at_s = now_s
        self._fetching = asyncio.get_running_loop().create_task(self._refresh())
        return self._fetching

    async def _refresh(self) -> None:
        try:
            keys = identity_keys(_members(await self._fetch()))
        except (FetchError, ValueError, RecursionError) as error:
            # A decoder's message may quote the answer, so only our own messages are logged.
            reason = str(error) if isinstance(error, FetchError) else "the answer is no set of keys"
            self._log.warning("identity_provider_keys_not_fetched", reason=reason, known=len(self._keys))
            return
        if not keys:
            self._log.warning(
                "identity_provider_keys_not_fetched", reason="no key in it can be used", known=len(self._keys)
            )
            return
        self._keys, self._fetched_at_s = keys, self._clock.boot_s()


class Jwks:
    """Fetches the keys from an address; follows no redirect, and sends nothing of ours.

    ``resolver`` looks up an address that somebody else has named; None for the operator's.
    """

    def __init__(self, url: str, *, limit_s: float = FETCH_MAX_S, resolver: AbstractResolver | None = None) -> None:
        self._url = url
        self._resolver = resolver
        self._limit_s = limit_s

    async def __call__(self) -> bytes:
        """Returns the body of the address's answer; raises FetchError."""
        try:
            async with (
                session_to_others(self._limit_s, self._resolver) as session,
                session.get(self._url, headers=_HEADERS, allow_redirects=False) as response,
            ):
                if response.status != HTTPStatus.OK:
                    raise FetchError(f"the address answered with HTTP {response.status}")
                body = await body_of(response, ANSWER_BYTES_MAX)
                if body is None:
                    raise FetchError(f"the answer has over {ANSWER_BYTES_MAX} bytes")
                return body
        except TimeoutError:
            raise FetchError(f"the address had not answered after {self._limit_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError("the address could not be reached") from error


def keys_at(url: str, clock: Clock, log: FilteringBoundLogger) -> IdentityProviderKeys:
    """Gives the keys that an address publishes."""
    return IdentityProviderKeys(Jwks(url), clock, log)


def _members(body: bytes) -> dict[str, object]:
    members: dict[str, object] = msgspec.json.decode(body, type=dict[str, object])
    return members
