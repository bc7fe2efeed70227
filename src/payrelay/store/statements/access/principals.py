"""Principals: their other names, and their groups."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table

NAME_COLUMNS: Final = "id, principal, since_ms"
PRINCIPAL_NAMES: Final = Table(name="principal_names", columns=tuple(NAME_COLUMNS.split(", ")))
MEMBER_COLUMNS: Final = "id, name, since_ms"
PRINCIPAL_GROUPS: Final = Table(name="principal_groups", columns=tuple(MEMBER_COLUMNS.split(", ")))

NAME_OF: Final = query(f"SELECT {NAME_COLUMNS}, row_digest FROM principal_names WHERE id = $1")
"""Reads whose other name this is."""

LIST_NAMES: Final = query(f"SELECT {NAME_COLUMNS}, row_digest FROM principal_names ORDER BY since_ms, id LIMIT $1")
"""Reads the other names, oldest first."""

LOCK_NAMES: Final = query("SELECT pg_advisory_xact_lock(hashtextextended('principals', 0))", sqlite=("SELECT 1",))
"""Lets one transaction at a time give a name, to a key or to a principal, until it ends: the one is a row of another
table than the other. SQLite has one writer anyway."""

ADD_NAME: Final = query(
    f"""
    INSERT INTO principal_names ({NAME_COLUMNS}, row_digest) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Gives a principal another name; gives no row where the name is taken."""

GROUP_AROUND: Final = query(
    f"""
    SELECT {MEMBER_COLUMNS}, row_digest FROM principal_groups
    WHERE name = (SELECT own.name FROM principal_groups AS own WHERE own.id = $1)""",
)
"""Reads the members of a principal's group, itself included."""

LIST_GROUPS: Final = query(f"SELECT {MEMBER_COLUMNS}, row_digest FROM principal_groups ORDER BY name, id LIMIT $1")
"""Reads all members of groups."""

PUT_INTO_GROUP: Final = query(
    f"""
    INSERT INTO principal_groups ({MEMBER_COLUMNS}, row_digest) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, since_ms = excluded.since_ms, row_digest = excluded.row_digest
    WHERE principal_groups.name = excluded.name OR $5::bigint = 1
    RETURNING id""",
)
"""Puts a principal into a group. Where $5 is 1, takes it out of any other; else gives no row for one of another group.
"""

TAKE_OUT_OF_GROUP: Final = query("DELETE FROM principal_groups WHERE id = $1 RETURNING id")
"""Takes a principal out of its group; gives no row where it is in none."""
