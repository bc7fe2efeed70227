import pytest
from tests.store.engine.migration_rules import faults

from payrelay.store.engine.migrations import ONLINE, Migration, shipped

SINCE = "more_since_0040"


def found(text: str, name: str = SINCE) -> list[str]:
    """Gives what is wrong with a migration of that text."""
    return list(faults(Migration(41, name, text)))


def test_no_migration_stops_a_charge() -> None:
    """It runs beside services that charge, of this version and of the one before."""
    later = shipped("postgresql")[1:]

    assert {each.name: list(faults(each)) for each in later} == {each.name: [] for each in later}


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE lanes (id text PRIMARY KEY); CREATE INDEX lanes_id ON lanes (id);",
        "ALTER TABLE places ADD COLUMN lane text;",
        "ALTER TABLE places ADD COLUMN lane text NOT NULL DEFAULT '';",
        "ALTER TABLE places ADD CONSTRAINT c CHECK (lane <> '') NOT VALID;",
        "ALTER TABLE places ADD CONSTRAINT c UNIQUE USING INDEX i;",
        "DROP INDEX i;",
        f"{ONLINE}\nDROP INDEX CONCURRENTLY IF EXISTS i;\nCREATE UNIQUE INDEX CONCURRENTLY i ON places (lane);",
        f"{ONLINE}\nALTER TABLE places VALIDATE CONSTRAINT c;",
        "-- Nobody asks for it since 40.\nALTER TABLE places DROP COLUMN lane;",
    ],
)
def test_what_takes_a_moment_may_be_done(text: str) -> None:
    """Each changes the catalog alone, or lets others write meanwhile."""
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE INDEX i ON places (lane);", "concurrently, in an online file"),
        ("CREATE INDEX CONCURRENTLY i ON places (lane);", "runs in a transaction"),
        ("ALTER TABLE places ADD COLUMN at timestamptz DEFAULT now();", "isn't a constant"),
        ("ALTER TABLE places ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();", "isn't a constant"),
        ("ALTER TABLE places ADD COLUMN lane text NOT NULL;", "store rows without it"),
        ("ALTER TABLE places ADD COLUMN id bigserial;", "computed column"),
        ("ALTER TABLE places ADD COLUMN lane text UNIQUE;", "unique constraint"),
        ("ALTER TABLE places ADD COLUMN lane text CHECK (lane <> '');", "of a column reads the whole table"),
        ("ALTER TABLE places ALTER COLUMN lane TYPE bigint;", "column type"),
        ("ALTER TABLE places ALTER lane SET NOT NULL;", "set not null"),
        ("ALTER TABLE places ADD CONSTRAINT c CHECK (lane <> '');", "NOT VALID"),
        ("ALTER TABLE a ADD COLUMN x text; ALTER TABLE b ADD COLUMN x text;", "several tables"),
        ("UPDATE places SET lane = '';", "page by page"),
        ("VACUUM FULL places;", "page by page"),
        (f"{ONLINE}\nALTER TABLE places ADD COLUMN lane text;", "no place in an online file"),
        (f"{ONLINE}\nCREATE INDEX CONCURRENTLY i ON places (lane);", "leaves an invalid index"),
    ],
)
def test_what_stops_charges_is_found(text: str, why: str) -> None:
    """Each holds a lock for as long as it takes to read a table, or can't run as its file is run."""
    assert any(why in fault for fault in found(text)), found(text)


def test_a_file_says_which_programs_can_work_with_it() -> None:
    """Without that the version before refuses to start again on what was only added to."""
    assert "doesn't say since which version" in found("SELECT 1;", "more")[0]


def test_what_is_removed_was_out_of_use_before() -> None:
    """A program of version 38 that may be running would ask for the column."""
    text = "ALTER TABLE places DROP COLUMN lane;"

    assert "may still use what it removes" in found(text, "fewer_since_0038")[0]
