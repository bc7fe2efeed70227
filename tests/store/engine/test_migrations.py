import pytest

from payrelay.core.database.schema_changes import ANY, AS_IT_IS, MAKE, SchemaChanges
from payrelay.errors import DatabaseMissing, DatabaseNotReady, StoreUnusable
from payrelay.store.engine.migrations.files import ONLINE, AppliedMigration, Migration, allowed, pending, shipped

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
    assert not any(migration.is_online for migration in shipped("sqlite"))


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
