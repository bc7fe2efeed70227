"""What the store keeps about itself."""

from typing import Final

from payrelay.store.engine.queries import query

GET_META: Final = query("get_meta", "SELECT value FROM meta WHERE name = $1")
"""Reads one value that the store keeps about itself."""

ADD_META: Final = query(
    "add_meta", "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name"
)
"""Stores a value about the store itself unless there is one of that name."""

REPLACE_META: Final = query("replace_meta", "UPDATE meta SET value = $2 WHERE name = $1 AND value = $3 RETURNING name")
"""Puts another value in place of the one that was read; gives no row where somebody was quicker."""

SCHEMA_VERSION: Final = query("schema_version", "SELECT max(number) FROM schema_version")
"""Reads the number of the newest migration that this database has had."""

ANY_CHAINED: Final = query(
    "any_chained",
    """
    SELECT 1 WHERE EXISTS (SELECT 1 FROM anchors) OR EXISTS (SELECT 1 FROM operations WHERE chain <> '')
                OR EXISTS (SELECT 1 FROM history WHERE hash <> '')""",
)
"""Tells whether anything was chained yet; looks through everything where nothing was, which is once in its life."""
