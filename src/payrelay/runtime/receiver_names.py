"""Finds out what the names of receivers lead to, in threads of its own.

Whoever registers an endpoint chooses its name, and may answer for it never: a thread that asks for it is then gone for
as long as the system waits. The loop's own threads are few, and the gateway's name is looked up in them.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

LOOKUPS_MAX: Final = 32
"""Names that are looked up at once; each has a thread. The same name is asked for once at a time."""

Found = list[tuple[Any, ...]]
"""As ``socket.getaddrinfo`` gives it."""
LookUp = Callable[..., Found]


class NameThreads(AbstractResolver):
    """Asks the system, each name in a thread that nobody waits for at the end of the program."""

    def __init__(self, look_up: LookUp = socket.getaddrinfo, *, limit: int = LOOKUPS_MAX) -> None:
        self._look_up = look_up
        self._room = asyncio.Semaphore(limit)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Gives the addresses of a host; raises OSError where there is none."""
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()

        def look() -> None:
            found, error = _asked(self._look_up, host, port, family)
            with suppress(RuntimeError):  # the program has ended meanwhile
                loop.call_soon_threadsafe(self._tell, answer, found, error)

        threading.Thread(target=look, name="payrelay-name", daemon=True).start()
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
        """Leaves the threads to themselves; they end with what they wait for, or with the program."""

    def _tell(self, answer: "asyncio.Future[Found]", found: Found, error: OSError | None) -> None:
        # The place is free when the thread is, not when whoever waited has gone.
        self._room.release()
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)


def _asked(look_up: LookUp, host: str, port: int, family: int) -> tuple[Found, OSError | None]:
    try:
        return look_up(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG), None
    except OSError as error:
        return [], error
    except Exception as error:  # noqa: BLE001 - whatever a name makes of itself, somebody waits for the answer
        return [], OSError(f"the name can't be looked up: {type(error).__name__}")
