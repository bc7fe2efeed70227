"""Data keys, and the places in the database's files where a destroyed one may still lie."""

# ruff: noqa: S608 - only tables named in the code are put into the texts; values are always parameters

from collections.abc import Iterable
from typing import Final

from payrelay.store.engine.queries import query


def key_of(owner: str) -> str:
    """Composes a column with the sealed key of the owner that an SQL expression names; null where there is none."""
    return f"(SELECT sealed_key FROM data_keys WHERE owner = {owner})"


_PUT: Final = "ON CONFLICT (owner) DO UPDATE SET sealed_key = excluded.sealed_key"


def put_key_after(change: str, owner: str, sealed_key: str, beside: Iterable[str] = ()) -> tuple[str, str]:
    """Composes two statements: a change of a row, and storing its key where the change was made.

    Gives the text for PostgreSQL, and the second step for SQLite. ``owner`` and ``sealed_key`` are parameters. The text
    for PostgreSQL carries out the changes ``beside``, too, which read from ``changed``.
    """
    values = f"{owner}::text, {sealed_key}::bytea"
    others = "".join(f",\n    beside_{number} AS ({each})" for number, each in enumerate(beside))
    both = f"""
    WITH changed AS ({change} RETURNING 1){others}
    INSERT INTO data_keys (owner, sealed_key) SELECT {values} FROM changed {_PUT} RETURNING owner"""
    return both, f"INSERT INTO data_keys (owner, sealed_key) VALUES ({owner}, {sealed_key}) {_PUT}"


def put_keys(owners_and_keys: str) -> str:
    """Writes the statement that stores the sealed keys of owners, which another one selects."""
    return f"INSERT INTO data_keys (owner, sealed_key) {owners_and_keys} {_PUT}"


PUT_KEY: Final = query(
    f"INSERT INTO data_keys (owner, sealed_key) VALUES ($1, $2) {_PUT} RETURNING tableoid::regclass::text",
    sqlite=(f"INSERT INTO data_keys (owner, sealed_key) VALUES ($1, $2) {_PUT} RETURNING 'data_keys'",),
)
"""Stores the sealed key of an owner, in place of the one that it had; gives the place."""

KEY_OF: Final = query("SELECT sealed_key FROM data_keys WHERE owner = $1")
"""Reads the sealed key of an owner."""

DESTROY_KEYS: Final = query(
    """
    DELETE FROM data_keys WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb))
    RETURNING tableoid::regclass::text""",
    sqlite=(
        """
        UPDATE data_keys SET sealed_key = zeroblob(length(sealed_key))
        WHERE owner IN (SELECT value FROM json_each($1)) RETURNING 'data_keys'""",
    ),
)
"""Destroys the keys of the owners in a JSON list; gives a place for each. SQLite overwrites a key where it lies, with a
value of equal length."""

ADD_RESIDUE: Final = query(
    """
    INSERT INTO key_residues (place, times) VALUES ($1, 1)
    ON CONFLICT (place) DO UPDATE SET times = key_residues.times + 1""",
)
"""Notes that a key was destroyed in a place, whose files may still hold it."""

RESIDUES: Final = query("SELECT place, times FROM key_residues WHERE place LIKE 'data_keys%' ORDER BY place")
"""Reads the places that may still hold a destroyed key."""

IS_CLEAR: Final = query(
    """
    SELECT r.place FROM key_residues AS r JOIN pg_class AS c ON c.oid = to_regclass(r.place)
    WHERE r.place = $1 AND age(r.xmin) > age(c.relfrozenxid)""",
    sqlite=("SELECT place FROM key_residues WHERE place = $1",),
)
"""Tells whether a place that was cleared just now has lost all keys that were destroyed before. PostgreSQL keeps a row
for as long as an older transaction may read it. A rewritten table has lost the rows of all transactions before its
``relfrozenxid``, and the residue was noted by the transaction that destroyed the key."""

FORGET_RESIDUE: Final = query("DELETE FROM key_residues WHERE place = $1 AND times = $2 RETURNING place")
"""Removes the note about a place that was cleared; gives no row where another key was destroyed there since."""
