"""Resolves host names that others have chosen, in threads of its own, and to addresses that may be called.

The owner of an endpoint chooses its name, for one, and its name server may never answer. A thread that resolves it is
then blocked for as long as the system waits. The event loop's own few threads are needed for the gateway's name.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

from payrelay.core.events.destinations import AllowedDestinations, may_reach

LOOKUPS_MAX: Final = 32
"""Names that are resolved at once, each in a thread."""

Found = list[tuple[Any, ...]]
"""The result of ``socket.getaddrinfo``."""
LookUp = Callable[..., Found]


class ForbiddenAddressError(OSError):
    """The name resolves to a forbidden address."""


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
            raise ForbiddenAddressError("the name leads to an address that is not public")
        return found

    async def close(self) -> None:
        """Closes the inner resolver."""
        await self._inner.close()


class NameThreads(AbstractResolver):
    """Asks the system for each name in a daemon thread, which the end of the process doesn't wait for."""

    def __init__(self, look_up: LookUp = socket.getaddrinfo, *, limit: int = LOOKUPS_MAX) -> None:
        self._look_up = look_up
        self._slots = asyncio.Semaphore(limit)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Returns the addresses of a host; raises OSError where there is none."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()

        def look_up() -> None:
            found, error = _looked_up(self._look_up, host, port, family)
            with suppress(RuntimeError):  # the process has ended meanwhile
                loop.call_soon_threadsafe(self._finish, answer, found, error)

        try:
            threading.Thread(target=look_up, name="payrelay-name", daemon=True).start()
        except RuntimeError as error:  # the system lets the process begin no further thread
            self._slots.release()
            raise OSError(f"the name can't be looked up: {error}") from error
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=of_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for of_family, _, protocol, _, address in await answer
        ]

    async def close(self) -> None:
        """Does nothing: the threads end with their look-ups, or with the process."""

    def _finish(self, answer: "asyncio.Future[Found]", found: Found, error: OSError | None) -> None:
        # The slot is free when the thread has ended, not when the caller has gone.
        self._slots.release()
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)


def _looked_up(look_up: LookUp, host: str, port: int, family: int) -> tuple[Found, OSError | None]:
    try:
        return look_up(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG), None
    except OSError as error:
        return [], error
    except Exception as error:  # noqa: BLE001 - the caller waits for a result, whatever goes wrong
        return [], OSError(f"the name can't be looked up: {type(error).__name__}")
