"""The numbered SQL files, one folder for each database, and which of them are run.

A file runs in one transaction together with its row in ``schema_version``. A new database gets all files in one
transaction. A released file is never changed: a later change is a new file.

A file's name ends with the oldest version of the schema whose programs can work with it: ``0023_lanes_since_0022.sql``.
So a program that knows versions up to 22 goes on beside it, and can be started again on it. Where the name doesn't say
it, older programs refuse the database.
"""

import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Final, NamedTuple

from payrelay.core.database.schema_changes import SchemaChanges
from payrelay.errors import DatabaseMissing, DatabaseNotReady, StoreUnusable

_FILE: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_SINCE: Final = re.compile(r".*_since_(\d{4})")
ONLINE: Final = "-- online"
"""The first line of a PostgreSQL file that runs outside a transaction, statement by statement. It may be stopped after
any of them and run again."""

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

    @property
    def usable_since(self) -> int:
        """The oldest version of the schema whose programs can work with this one."""
        match = _SINCE.fullmatch(self.name)
        return int(match[1]) if match else self.number


class Migration(NamedTuple):
    """One file of this program."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the text, in hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def is_online(self) -> bool:
        """Whether it runs outside a transaction, because it reads a whole table while others write to it."""
        return self.text.startswith(ONLINE)

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements of an online migration, which has no semicolon inside one."""
        lines = (line for line in self.text.splitlines() if not line.lstrip().startswith("--"))
        return tuple(filter(None, map(str.strip, "\n".join(lines).split(";"))))

    @property
    def shown(self) -> str:
        """The line that tells that it runs now."""
        return f"migration {self.number} ({self.name})"


@functools.cache
def shipped(dialect: str) -> tuple[Migration, ...]:
    """Reads this program's files for ``sqlite`` or ``postgresql``, in their order; once, since they don't change."""
    folder = resources.files(__package__) / dialect
    found = []
    for file in folder.iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found))


def pending(applied: Sequence[AppliedMigration], known: Sequence[Migration], name: str) -> Sequence[Migration]:
    """Decides which migrations are still to be run; ``name`` is the name of the database in errors.

    Raises StoreUnusable where the database has had a migration that this program doesn't know and can't work with, or
    another text under an equal number.
    """
    if any(newer.usable_since > known[-1].number for newer in applied[len(known) :]):
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


def allowed(
    applied: Sequence[AppliedMigration], known: Sequence[Migration], name: str, changes: SchemaChanges
) -> Sequence[Migration]:
    """Decides which migrations are run now: those that are pending, where they may be.

    Raises DatabaseMissing where there is no schema and none may be made. Raises DatabaseNotReady where an old one may
    not be brought up to date, and as ``pending`` does.
    """
    todo = pending(applied, known, name)
    if todo and not applied and not changes.may_make:
        raise DatabaseMissing(f"{name}: the database is empty; run payrelay db upgrade, or start payrelay serve")
    if todo and applied and not changes.may_upgrade:
        raise DatabaseNotReady(
            f"{name}: the schema has version {applied[-1].number}, this program needs version {known[-1].number};"
            " run payrelay db upgrade, or start payrelay serve --upgrade"
        )
    return todo
