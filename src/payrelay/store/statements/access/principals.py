"""Principals: their other names, their groups, and the pairs that the upgrade found acting on each other's things."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

NAME_COLUMNS: Final = "id, principal, since_ms"
MEMBER_COLUMNS: Final = "id, name, since_ms"
PAIR_COLUMNS: Final = "id, principal, owner, reason, actions, last_at_ms"

NAME_OF: Final = query(f"SELECT {NAME_COLUMNS}, row_digest FROM principal_names WHERE id = $1")
"""Reads whose other name this is."""

LIST_NAMES: Final = query(f"SELECT {NAME_COLUMNS}, row_digest FROM principal_names ORDER BY since_ms, id LIMIT $1")
"""Reads the other names, oldest first."""

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
    SET name = excluded.name, since_ms = excluded.since_ms, row_digest = excluded.row_digest""",
)
"""Puts a principal into a group, and takes it out of any other."""

TAKE_OUT_OF_GROUP: Final = query("DELETE FROM principal_groups WHERE id = $1 RETURNING id")
"""Takes a principal out of its group; gives no row where it is in none."""

GRANDFATHERED_FOR: Final = query(f"SELECT {PAIR_COLUMNS}, row_digest FROM grandfathered WHERE principal = $1")
"""Reads on whose things a principal may still act because it did before."""

LIST_GRANDFATHERED: Final = query(
    f"SELECT {PAIR_COLUMNS}, row_digest FROM grandfathered ORDER BY principal, owner LIMIT $1"
)
"""Reads all pairs about which no operator has decided."""

END_GRANDFATHERED: Final = query("DELETE FROM grandfathered WHERE principal = $1 AND owner = $2 RETURNING id")
"""Ends a pair, because an operator has decided."""
