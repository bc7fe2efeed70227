"""Which server a connection leads to, and what follows where it is another one than was known.

A server is known by its system identifier and its timeline: a copy or a restored backup has the one of its origin, and
begins a new timeline when it is promoted. The ids of the database and of a table of ours show what was restored into
the same server.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from payrelay.store.engine.postgresql.hosts import Host

LOOK: Final = """
    SELECT system_identifier::text AS system,
           CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN NULL
                ELSE pg_walfile_name(pg_current_wal_lsn()) END AS wal_file,
           (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database,
           to_regclass('schema_version')::oid::bigint AS tables,
           extract(epoch FROM pg_postmaster_start_time())::text AS started,
           pg_backend_pid()::bigint AS process,
           current_setting('synchronous_commit') <> 'off' AS is_durable
    FROM pg_control_system()"""
"""Reads a ``Sighting``. Everybody may call these functions, unless an operator has taken that right away."""
_TIMELINE: Final = slice(8)
"""The first digits of the name of a WAL file, hexadecimal."""


class Server(NamedTuple):
    """What tells a server, and the database on it, from another.

    Attributes:
        system: the system identifier, drawn when the server's files were made.
        timeline: one more after each promotion, and after each restore to a point in time.
        database: the id of the database on the server.
        tables: the id of our table of versions; None where there is none yet.
    """

    system: str
    timeline: int
    database: int
    tables: int | None

    @property
    def origin(self) -> str:
        """Names the server itself, whichever database is used on it."""
        return f"system {self.system}, timeline {self.timeline}"

    @property
    def words(self) -> str:
        """Names it for the log."""
        return f"system {self.system}, timeline {self.timeline}, database {self.database}"


class Sighting(NamedTuple):
    """What one connection showed.

    Attributes:
        host: where it was connected to.
        server: the server that takes writes there; None where it is a standby, or read-only.
        started: when the server was started, as the server writes it.
        is_pooled: a pooler stands between, which gives each transaction any of its connections.
        is_durable: a commit there waits for the disk.
    """

    host: Host
    server: Server | None
    started: str
    is_pooled: bool
    is_durable: bool


class Verdict(StrEnum):
    """What becomes of the connections of a process."""

    SAME = "same"
    """They lead to the known server."""
    RESTARTED = "restarted"
    """They lead to the known server, which was started anew: its files may have been put back meanwhile."""
    CHANGED = "changed"
    """Another server takes the writes now."""
    STALE = "stale"
    """Only a server takes writes that a promotion has left behind."""
    NONE = "none"
    """No server takes writes."""


Judgement: TypeAlias = tuple[Verdict, Sighting | None]


def judge(known: Sighting | None, seen: Sequence[Sighting]) -> Judgement:
    """Decides which of the servers that were seen is to be used: of those that take writes, the newest timeline.

    ``known`` is the one in use; None for the first time, when any server will do. SAME, RESTARTED and CHANGED come with
    the sighting of the server that is to be used from now on.

    A server with a smaller timeline than the known one was left behind by a promotion. What is written there is lost,
    so that it is never gone back to. Timelines of different systems have no order: the known system is kept for as long
    as it is seen.
    """
    writable = [(each.server, each) for each in seen if each.server is not None]
    if not writable:
        return Verdict.NONE, None
    if known is None or known.server is None:
        system, host = writable[0][0].system, None
    else:
        is_seen = any(server.system == known.server.system for server, _ in writable)
        system, host = known.server.system if is_seen else writable[0][0].system, known.host
    server, best = max(
        (pair for pair in writable if pair[0].system == system),
        key=lambda pair: (pair[0].timeline, pair[1].host == host),
    )
    if known is None or known.server is None:
        return Verdict.SAME, best
    if server == known.server:
        return (Verdict.SAME if best.started == known.started else Verdict.RESTARTED), best
    if server.system == known.server.system and server.timeline < known.server.timeline:
        return Verdict.STALE, None
    return Verdict.CHANGED, best


def server_of(system: str, wal_file: str | None, database: int, tables: int | None) -> Server | None:
    """Makes the server of what LOOK gave; None where it takes no writes."""
    return None if wal_file is None else Server(system, int(wal_file[_TIMELINE], 16), database, tables)
