"""Calls that are kept waiting, so that they can all be let go at once."""

import asyncio


class Hangs:
    """Those who wait, until their time is over or they are released."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, seconds: float | None) -> None:
        """Return after so many seconds of the real clock, never for None; earlier when released."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait([future], timeout=seconds)
        finally:
            self._waiting.discard(future)
            future.cancel()

    def release(self) -> None:
        """Let everybody go."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
