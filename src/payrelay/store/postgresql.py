"""The shared database: PostgreSQL."""

from payrelay.clock import Clock
from payrelay.errors import StoreUnusable
from payrelay.store.database import Database


async def open_postgresql(url: str, *, clock: Clock) -> Database:
    """Opens."""
    raise StoreUnusable(f"not yet {url[:0]}{clock.now_ms() * 0}")
