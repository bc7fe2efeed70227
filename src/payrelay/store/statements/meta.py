"""Facts about the store itself."""

from typing import Final

from payrelay.store.engine.queries import query

GET_META: Final = query("SELECT value FROM meta WHERE name = $1")
"""Reads one fact about the store."""

ADD_META: Final = query("INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name")
"""Stores a fact about the store, unless there is one of that name."""

REPLACE_META: Final = query("UPDATE meta SET value = $2 WHERE name = $1 AND value = $3 RETURNING name")
"""Replaces the value that was read; gives no row where another process has replaced it."""

ANY_SEALED: Final = query(
    """
    SELECT 1 WHERE EXISTS (SELECT 1 FROM operations) OR EXISTS (SELECT 1 FROM checkouts)
                OR EXISTS (SELECT 1 FROM customers) OR EXISTS (SELECT 1 FROM notifications)
                OR EXISTS (SELECT 1 FROM endpoints) OR EXISTS (SELECT 1 FROM meta) OR EXISTS (SELECT 1 FROM anchors)
                OR EXISTS (SELECT 1 FROM credentials WHERE row_digest <> '')""",
)
"""Tells whether the database holds anything that is stored with sealed values, or with digests."""

SCHEMA_VERSION: Final = query("SELECT max(number) FROM schema_version")
"""Reads the number of the newest migration that this database has had."""

ANY_CHAINED: Final = query(
    """
    SELECT 1 WHERE EXISTS (SELECT 1 FROM anchors) OR EXISTS (SELECT 1 FROM operations WHERE chain <> '')
                OR EXISTS (SELECT 1 FROM history WHERE hash <> '')""",
)
"""Tells whether anything was chained yet. Where nothing was, it reads everything, which happens once in a store's life.
"""
