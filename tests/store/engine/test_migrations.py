import sqlite3
from typing import Final

import pytest

from payrelay.core.database.schema_changes import ANY, AS_IT_IS, MAKE, SchemaChanges
from payrelay.errors import DatabaseMissing, DatabaseNotReady, StoreUnusable
from payrelay.store.engine.migrations import (
    ONLINE,
    AppliedMigration,
    Migration,
    allowed,
    pending,
    shipped,
    written,
)

KNOWN = (Migration(1, "begin", "CREATE"), Migration(2, "more", "ALTER"))
APPLIED = [AppliedMigration(migration.number, migration.name, migration.checksum) for migration in KNOWN]


def test_what_the_database_lacks_is_run() -> None:
    """In order, and nothing twice."""
    assert pending([], KNOWN, "place") == KNOWN
    assert pending(APPLIED[:1], KNOWN, "place") == KNOWN[1:]
    assert pending(APPLIED, KNOWN, "place") == ()


def test_a_newer_database_is_refused_with_both_numbers() -> None:
    """An older program would write rows that the newer one misunderstands."""
    with pytest.raises(StoreUnusable, match="place: the schema has version 2, this program knows version 1"):
        pending(APPLIED, KNOWN[:1], "place")


def test_an_older_program_works_on_what_a_newer_one_has_only_added_to() -> None:
    """Both run side by side during an upgrade, and the older one is started again where the newer one fails."""
    added = AppliedMigration(3, "lanes_since_0002", "a text that this program doesn't have")

    assert pending([*APPLIED, added], KNOWN, "place") == ()
    with pytest.raises(StoreUnusable, match="this program knows version 1"):
        pending([*APPLIED, added], KNOWN[:1], "place")


def test_one_migration_that_is_not_for_older_programs_shuts_them_out() -> None:
    """Whatever was added before or after it."""
    newer = [AppliedMigration(3, "digests", "x"), AppliedMigration(4, "lanes_since_0002", "x")]

    with pytest.raises(StoreUnusable, match="the schema has version 4, this program knows version 2"):
        pending([*APPLIED, *newer], KNOWN, "place")


@pytest.mark.parametrize(
    ("changes", "missing", "old"), [(ANY, True, True), (MAKE, True, False), (AS_IT_IS, False, False)]
)
def test_an_old_schema_waits_for_whoever_may_upgrade_it(changes: SchemaChanges, *, missing: bool, old: bool) -> None:
    """A service that is started anew must not change the database under the other ones, unless somebody said so."""
    for applied, is_done, refusal in (([], missing, DatabaseMissing), (APPLIED[:1], old, DatabaseNotReady)):
        if is_done:
            assert allowed(applied, KNOWN, "place", changes) == KNOWN[len(applied) :]
        else:
            with pytest.raises(refusal, match="run payrelay db upgrade, or start payrelay serve"):
                allowed(applied, KNOWN, "place", changes)
    assert allowed(APPLIED, KNOWN, "place", changes) == ()


def test_an_online_migration_is_run_statement_by_statement() -> None:
    """PostgreSQL refuses its statements inside a transaction, which several in one text are."""
    text = f"{ONLINE}\n-- By what; it is found.\nDROP INDEX a;\n\nCREATE INDEX a\n    ON b (c);\n"

    assert Migration(1, "more", text).is_online
    assert Migration(1, "more", text).statements == ("DROP INDEX a", "CREATE INDEX a\n    ON b (c)")


TABLE: Final = """
-- Shops.
CREATE TABLE shops (
    id    text COLLATE "C" NOT NULL PRIMARY KEY,
    seq   bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    state text   NOT NULL CHECK (state IN ('open', 'closed')),
    seal  bytea
) PARTITION BY HASH (id);
CREATE TABLE pairs (
    one bigint, other bigint DEFAULT 0,
    PRIMARY KEY (one, other)
) WITHOUT ROWID;
CREATE INDEX CONCURRENTLY shops_open ON shops (state) WHERE state IN ('a', 'b', 'c');
"""


def test_a_file_for_both_databases_is_translated() -> None:
    """Written twice, what is alike would differ one day, and what is tried on one database say nothing of the other."""
    sqlite, postgresql = (written(of, {(1, "begin"): TABLE}, {}, {})[0].text for of in ("sqlite", "postgresql"))

    assert postgresql == TABLE.replace(" WITHOUT ROWID", "")
    assert (
        sqlite
        == """
-- Shops.
CREATE TABLE shops (
    id    text NOT NULL PRIMARY KEY,
    seq   INTEGER NOT NULL,
    state text   NOT NULL CHECK (state IN ('open', 'closed')),
    seal  BLOB
) STRICT;
CREATE TABLE pairs (
    one INTEGER, other INTEGER DEFAULT 0,
    PRIMARY KEY (one, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX shops_open ON shops (state) WHERE (state = 'a' OR state = 'b' OR state = 'c');
"""
    )
    sqlite3.connect(":memory:").executescript(sqlite)


def test_a_migration_of_one_database_counts_in_both() -> None:
    """A number means the same state of affairs in both; a text for both comes before what is one's own."""
    both, one = {(1, "begin"): "CREATE A;"}, {(1, "begin"): "CREATE B;", (2, "more"): "CREATE C;"}

    assert written("sqlite", both, one, {}) == (
        Migration(1, "begin", "CREATE A;CREATE B;"),
        Migration(2, "more", "CREATE C;"),
    )
    assert written("postgresql", both, one, {}) == (Migration(1, "begin", "CREATE A;"), Migration(2, "more", ""))


def test_a_changed_migration_is_refused() -> None:
    """The tables are then not what this program believes them to be."""
    changed = (KNOWN[0], Migration(2, "more", "DROP"))

    with pytest.raises(StoreUnusable, match="migration 2"):
        pending(APPLIED, changed, "place")


def test_migrations_are_numbered_without_a_gap() -> None:
    """A database that has had so many is at the version of that number."""
    for of in ("sqlite", "postgresql"):
        assert [migration.number for migration in shipped(of)] == list(range(1, len(shipped(of)) + 1))
