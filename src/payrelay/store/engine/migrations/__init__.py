"""Migrations: numbered SQL files, one folder for each database. This module decides which of them are pending.

The engines run the files that ``pending`` gives, each in one transaction together with its row in ``schema_version``. A
released file is never changed: a later change is a new file.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Final, NamedTuple

from payrelay.errors import DatabaseNotReady, StoreUnusable

_FILE: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

CREATE_VERSION_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS schema_version (
        number        INTEGER NOT NULL PRIMARY KEY,
        name          TEXT    NOT NULL,
        checksum      TEXT    NOT NULL,
        applied_at_ms BIGINT  NOT NULL
    )"""
"""Valid SQL in both databases."""

READ_VERSIONS: Final = "SELECT number, name, checksum FROM schema_version ORDER BY number"


class AppliedMigration(NamedTuple):
    """A migration that the database has had, as ``schema_version`` has it."""

    number: int
    name: str
    checksum: str


class Migration(NamedTuple):
    """One file of this program."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the text, in hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def shipped(dialect: str) -> tuple[Migration, ...]:
    """Reads this program's files for ``sqlite`` or ``postgresql``, in their order."""
    folder = resources.files(__name__) / dialect
    found = []
    for file in folder.iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found))


def pending(applied: Sequence[AppliedMigration], known: Sequence[Migration], name: str) -> Sequence[Migration]:
    """Decides which migrations are still to be run; ``name`` is the name of the database in errors.

    Raises StoreUnusable where the database is newer than the program, or had another text under an equal number.
    """
    if len(applied) > len(known):
        raise StoreUnusable(
            f"{name}: the schema has version {applied[-1].number}, this program knows version {known[-1].number};"
            " install a newer Payrelay"
        )
    for there, here in zip(applied, known, strict=False):
        if (there.number, there.checksum) != (here.number, here.checksum):
            raise StoreUnusable(
                f"{name}: migration {there.number} ({there.name}) is not the one of this program ({here.name});"
                " the database was made by another build"
            )
    return known[len(applied) :]


def require_none_pending(applied: Sequence[AppliedMigration], known: Sequence[Migration], name: str) -> None:
    """Raises DatabaseNotReady where a migration is still to be run, and as ``pending`` does."""
    if pending(applied, known, name):
        version = applied[-1].number if applied else 0
        raise DatabaseNotReady(
            f"{name}: the schema has version {version}, this program needs version {known[-1].number};"
            " run payrelay db upgrade, or start payrelay serve"
        )
