"""Principals: their other names, their groups, and the pairs that the upgrade found acting on each other's things."""

from typing import Final

from payrelay.store.engine.queries import query

NAME_OF: Final = query("SELECT name, principal, since_ms, digest FROM principal_names WHERE name = $1")
"""Reads whose other name this is."""

LIST_NAMES: Final = query(
    "SELECT name, principal, since_ms, digest FROM principal_names ORDER BY since_ms, name LIMIT $1"
)
"""Reads the other names, oldest first."""

ADD_NAME: Final = query(
    """
    INSERT INTO principal_names (name, principal, since_ms, digest) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING name""",
)
"""Gives a principal another name; gives no row where the name is taken."""

GROUP_AROUND: Final = query(
    """
    SELECT principal, name, since_ms, digest FROM principal_groups
    WHERE name = (SELECT own.name FROM principal_groups AS own WHERE own.principal = $1)""",
)
"""Reads the members of a principal's group, itself included."""

LIST_GROUPS: Final = query(
    "SELECT principal, name, since_ms, digest FROM principal_groups ORDER BY name, principal LIMIT $1"
)
"""Reads all members of groups."""

PUT_INTO_GROUP: Final = query(
    """
    INSERT INTO principal_groups (principal, name, since_ms, digest) VALUES ($1, $2, $3, $4)
    ON CONFLICT (principal) DO UPDATE
    SET name = excluded.name, since_ms = excluded.since_ms, digest = excluded.digest""",
)
"""Puts a principal into a group, and takes it out of any other."""

TAKE_OUT_OF_GROUP: Final = query("DELETE FROM principal_groups WHERE principal = $1 RETURNING principal")
"""Takes a principal out of its group; gives no row where it is in none."""

GRANDFATHERED_FOR: Final = query(
    "SELECT principal, owner, reason, actions, last_at_ms, digest FROM grandfathered WHERE principal = $1"
)
"""Reads on whose things a principal may still act because it did before."""

LIST_GRANDFATHERED: Final = query(
    """
    SELECT principal, owner, reason, actions, last_at_ms, digest FROM grandfathered
    ORDER BY principal, owner LIMIT $1""",
)
"""Reads all pairs about which no operator has decided."""

SIGN_GRANDFATHERED: Final = query(
    "UPDATE grandfathered SET digest = $3 WHERE principal = $1 AND owner = $2 AND digest = '' RETURNING principal"
)
"""Adds the digest to a pair that the migration found."""

END_GRANDFATHERED: Final = query("DELETE FROM grandfathered WHERE principal = $1 AND owner = $2 RETURNING principal")
"""Ends a pair, because an operator has decided."""
