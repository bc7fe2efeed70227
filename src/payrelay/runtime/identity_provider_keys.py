"""The keys of an identity provider: fetched from its address, and kept for a while.

Rules:

1. A request waits for a fetch only where its key is not known; what is known serves while it is looked for anew.
2. A key that nobody knows is looked for at a bounded pace, whatever is sent to us.
3. While the provider is down its last keys serve on, for LAST_GOOD_S at most: a key that it has withdrawn meanwhile
   must end some time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec
from joserfc.jwk import Key
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.access.signatures import identity_keys
from payrelay.errors import Code, Refusal

KEPT_S: Final = 600.0
"""How long fetched keys are good without another look: how late a withdrawn key ends."""
LAST_GOOD_S: Final = 86_400.0
ASKED_AGAIN_S: Final = 10.0
"""Between two fetches, whether they failed or brought nothing new."""
FETCH_MAX_S: Final = 5.0
"""From the name to the last byte."""
ANSWER_BYTES_MAX: Final = 262_144
"""A set of keys has some 5 KiB."""

_HEADERS: Final = {"Accept": "application/json", "User-Agent": "payrelay"}

Fetch = Callable[[], Awaitable[bytes]]
"""Gives the JWKS as it is now; raises FetchError."""


class FetchError(Exception):
    """The keys did not come; the text says why, in a few words."""


class IdentityProviderKeys:
    """Gives the provider's keys by their ids."""

    def __init__(self, fetch: Fetch, clock: Clock, log: FilteringBoundLogger) -> None:
        self._fetch = fetch
        self._clock = clock
        self._log = log
        self._keys: dict[str, Key] = {}
        self._fetched_at_s = float("-inf")
        self._asked_at_s = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, key_id: str) -> Key | None:
        """Gives the key of that id, None where the provider has none.

        Raises Refusal (unavailable) where the provider's keys are not known, or not any more.
        """
        age_s = self._clock.boot_s() - self._fetched_at_s
        is_known = key_id in self._keys and age_s < LAST_GOOD_S
        if age_s >= KEPT_S or not is_known:
            fetching = self._begin()
            if fetching is not None and not is_known:
                # A wait, not an await: a client that goes away must not end the fetch that others wait for.
                await asyncio.wait({fetching})
        if self._clock.boot_s() - self._fetched_at_s >= LAST_GOOD_S:
            raise Refusal(Code.UNAVAILABLE, "the identity provider's keys can't be fetched now")
        return self._keys.get(key_id)

    async def close(self) -> None:
        """Ends a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _begin(self) -> "asyncio.Task[None] | None":
        """Gives the fetch under way, or begins one unless the last one was a moment ago."""
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
        except (FetchError, ValueError) as error:
            # What a decoder says may repeat what came; a failure of ours is said in words of ours.
            reason = str(error) if isinstance(error, FetchError) else "what came is no set of keys"
            self._log.warning("provider_keys_not_fetched", reason=reason, known=len(self._keys))
            return
        if not keys:
            self._log.warning("provider_keys_not_fetched", reason="no key in it can be used", known=len(self._keys))
            return
        self._keys, self._fetched_at_s = keys, self._clock.boot_s()


class Jwks:
    """Fetches the keys from an address; follows no redirect, and sends nothing of ours."""

    def __init__(self, url: str, *, limit_s: float = FETCH_MAX_S) -> None:
        self._url = url
        self._limit_s = limit_s

    async def __call__(self) -> bytes:
        """Gives what the address answers; raises FetchError."""
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._limit_s)) as session,
                session.get(self._url, headers=_HEADERS, allow_redirects=False) as response,
            ):
                if response.status != HTTPStatus.OK:
                    raise FetchError(f"the address answered with HTTP {response.status}")
                body = b""
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > ANSWER_BYTES_MAX:
                        raise FetchError(f"the answer has over {ANSWER_BYTES_MAX} bytes")
                return body
        except TimeoutError:
            raise FetchError(f"the address had not answered after {self._limit_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError("the address could not be reached") from error


def _members(body: bytes) -> dict[str, object]:
    members: dict[str, object] = msgspec.json.decode(body, type=dict[str, object])
    return members
