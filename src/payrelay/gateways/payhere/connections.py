"""The connections to one gateway account: one pool for effects, one for reads, and what a call over them carries.

The pools share nothing, so that slow reads keep no effect waiting. What counts as sent is told in ``ConnectionPool``.
"""

import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

from payrelay.clock import Clock
from payrelay.gateways.http.pool import BeginSpan, ConnectionPool, PoolLimits

EFFECT_REPLY_BYTES_MAX: Final = 256 * 1024
"""The longest documented reply to an effect has about 500 bytes."""
READ_REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Some 20,000 subscriptions: the gateway has no paging, and a list must not be cut."""
EFFECT_IDLE_S: Final = 2.0
"""A connection that was idle for longer may be closing at the other end while we write. The effect's outcome would be
unknown."""
READ_IDLE_S: Final = 15.0
"""A read that meets a closing connection is made again."""


class GatewayConnections:
    """The two connection pools to one gateway account.

    Args:
        timeout_s: the longest one call may take, with its connection.
        begin_span: records the calls; None where nothing is traced.
        date_seen: gets the Date header of each reply.
        tls: the client's side of TLS; None for one that verifies by the machine's authorities.
    """

    def __init__(
        self,
        base_url: str,
        clock: Clock,
        *,
        timeout_s: float,
        begin_span: BeginSpan | None = None,
        date_seen: Callable[[str], None] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        pool = partial(ConnectionPool, base_url, clock, begin_span=begin_span, date_seen=date_seen, tls=tls)
        self.effects = pool(PoolLimits(timeout_s=timeout_s, idle_s=EFFECT_IDLE_S, bytes_max=EFFECT_REPLY_BYTES_MAX))
        self.reads = pool(PoolLimits(timeout_s=timeout_s, idle_s=READ_IDLE_S, bytes_max=READ_REPLY_BYTES_MAX))

    async def close(self) -> None:
        """Closes both pools."""
        await self.effects.close()
        await self.reads.close()
