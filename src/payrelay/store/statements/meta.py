"""Facts about the store itself."""

# ruff: noqa: S608 - only tables that are named here are put into the texts; values are parameters

from typing import Final

from payrelay.store.engine.queries import query, query_among

GET_META: Final = query("SELECT value FROM meta WHERE name = $1")
"""Reads one fact about the store."""

META_OF: Final = query_among("SELECT name, value FROM meta WHERE name @1")
"""Reads the facts that have one of the names in a JSON list."""

META_BETWEEN: Final = query("SELECT name, value FROM meta WHERE name >= $1 AND name < $2 ORDER BY name")
"""Reads the facts whose names lie between two texts."""

_PLACE: Final = """
    (SELECT format('server %s, database %s, table %s', system_identifier,
                   (SELECT oid FROM pg_database WHERE datname = current_database()), to_regclass('schema_version')::oid)
     FROM pg_control_system())"""
"""What a dump doesn't take along: the server's number, and those that it gave the database and a table of ours."""
PLACE: Final = query(f"SELECT {_PLACE}", sqlite=("SELECT ''",))
"""Names the place of the tables; an embedded database has no name for it."""
GET_META_IN_PLACE: Final = query(
    f"SELECT value, {_PLACE} FROM meta WHERE name = $1", sqlite=("SELECT value, '' FROM meta WHERE name = $1",)
)
"""Reads one fact about the store, with the place of the tables."""

ELSEWHERE: Final = query(
    """
    SELECT decode((xpath('/table/row/value/text()', query_to_xml(
        format('SELECT value FROM %I.meta WHERE name = %L', n.nspname, $1::text), true, false, '')))[1]::text, 'base64')
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = 'meta' AND c.relkind = 'r' AND n.nspname <> current_schema()
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
      AND (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND NOT a.attisdropped
           AND (a.attname, a.atttypid) IN (('name', 'text'::regtype), ('value', 'bytea'::regtype))) = 2""",
    sqlite=("SELECT NULL WHERE $1 IS NULL",),
)
"""Reads one fact from every other schema that has such a table and may be read; an embedded database has no other."""

LOCK_META: Final = query("SELECT value FROM meta WHERE name = $1 FOR UPDATE")
"""Reads one fact about the store, and locks it until the transaction ends."""

ADD_META: Final = query("INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name")
"""Stores a fact about the store, unless there is one of that name."""

PUT_META: Final = query(
    "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
)
"""Stores a fact about the store, in place of an earlier one of that name."""

REPLACE_META: Final = query("UPDATE meta SET value = $2 WHERE name = $1 AND value = $3 RETURNING name")
"""Replaces the value that was read; gives no row where another process has replaced it."""

_KEPT: Final = (
    *("meta", "credentials", "client_tokens", "principal_names", "principal_groups", "customers", "endpoints"),
    *("checkouts", "notifications", "operations", "history", "anchors", "data_keys"),
    *("signed_texts", "accepted_tokens", "payments_seen", "imported_payments", "subscriptions", "installments"),
    *("chargebacks", "returns_seen", "failed_refunds", "outbox", "events"),
    *("operators", "operator_invitations", "operator_passkeys", "console_sessions", "console_confirmations"),
)
ANY_STORED: Final = query("SELECT 1 WHERE " + " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in _KEPT))
"""Tells whether the database holds anything that a process has stored in it."""

SCHEMA_VERSION: Final = query("SELECT max(number) FROM schema_version")
"""Reads the number of the newest migration that this database has had."""
