"""Brings the schema of a PostgreSQL database up to date."""

from collections.abc import Sequence
from typing import Final

import asyncpg

from payrelay.clock import Clock
from payrelay.store.engine import migrations

MIGRATION_TIMEOUT_S: Final = 600.0
"""How long a start waits for another process's migrations, or runs its own."""
_MIGRATION_LOCK: Final = 0x7061_7972_656C_6179
"""The number of the advisory lock under which one process migrates at a time."""


async def migrate(connection: asyncpg.Connection, name: str, clock: Clock, *, may_upgrade: bool) -> None:
    """Runs the missing migrations. Of several processes that start at once, one runs each; the others wait.

    Without ``may_upgrade`` raises StoreUnusable where one is missing.
    """
    known = migrations.shipped("postgresql")
    if not may_upgrade:
        migrations.require_none_pending(await _applied(connection), known, name)
        return
    if not await _applied(connection):
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
            await connection.execute(migrations.CREATE_VERSION_TABLE)
    while await _migrate_once(connection, known, name, clock.now_ms()):
        pass


async def _migrate_once(
    connection: asyncpg.Connection, known: Sequence[migrations.Migration], name: str, now_ms: int
) -> bool:
    """Runs the first of the missing migrations in one transaction with its lock; False where none is missing.

    The lock is the transaction's and not the session's: behind a pooler there is no session of ours.
    """
    if not migrations.pending(await _applied(connection), known, name):
        return False
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
        for migration in migrations.pending(await _applied(connection), known, name)[:1]:
            await connection.execute(migration.text)
            await connection.execute(
                "INSERT INTO schema_version (number, name, checksum, applied_at_ms) VALUES ($1, $2, $3, $4)",
                migration.number,
                migration.name,
                migration.checksum,
                now_ms,
            )
    return True


async def _applied(connection: asyncpg.Connection) -> list[migrations.AppliedMigration]:
    """Reads the migrations that the database has had; none where it is new."""
    if not await connection.fetchval("SELECT to_regclass('schema_version') IS NOT NULL"):
        return []
    return [migrations.AppliedMigration(*row) for row in await connection.fetch(migrations.READ_VERSIONS)]
