import pytest

from payrelay.errors import StoreUnusable
from payrelay.store.engine.migrations import AppliedMigration, Migration, pending, shipped

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


def test_a_changed_migration_is_refused() -> None:
    """The tables are then not what this program believes them to be."""
    changed = (KNOWN[0], Migration(2, "more", "DROP"))

    with pytest.raises(StoreUnusable, match="migration 2"):
        pending(APPLIED, changed, "place")


def test_both_databases_have_the_same_migrations() -> None:
    """A number means the same state of affairs in both."""
    names = [[(migration.number, migration.name) for migration in shipped(of)] for of in ("sqlite", "postgresql")]

    assert names[0] == names[1]
    assert [number for number, _ in names[0]] == list(range(1, len(names[0]) + 1))
