"""The state of a database's engine, as the metrics show it."""

from collections.abc import Mapping
from typing import NamedTuple

from payrelay.errors import StoreFault


class StoreStatus(NamedTuple):
    """The state of an engine now.

    Attributes:
        connections_max: the most connections that this process uses; an embedded database has one writer.
        connections_open: the connections that stand now.
        connections_used: those of them that a unit of work uses now.
        waiting: the units of work that wait for a connection, or for the writer.
        failed: how many units of work failed since the start, by what kept the store from them.
        server_changes: how often another server took the writes since the start.
        disk_free_bytes: what is free where an embedded database lies; None with a server, which alone knows.
    """

    connections_max: int
    connections_open: int
    connections_used: int
    waiting: int
    failed: Mapping[StoreFault, int]
    server_changes: int = 0
    disk_free_bytes: int | None = None
