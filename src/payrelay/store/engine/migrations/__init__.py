"""Migrations: numbered SQL files, one folder for each database, and what decides which of them are run."""

from payrelay.store.engine.migrations.files import (
    CREATE_VERSION_TABLE,
    READ_VERSIONS,
    AppliedMigration,
    Migration,
    allowed,
    shipped,
)

__all__ = ["CREATE_VERSION_TABLE", "READ_VERSIONS", "AppliedMigration", "Migration", "allowed", "shipped"]
