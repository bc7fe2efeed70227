"""The numbered SQL files in ``schema/``, and which of them are run.

A file in that folder is for both databases: written for PostgreSQL, and translated for SQLite, as queries are. A file
of the same name in the folder of a database is for that one alone, and follows it. Either may be there without the
other.

A migration runs in one transaction together with its row in ``schema_version``. A new database gets all of them in one
transaction. A released file is never changed: a later change is a new file.

A file's name ends with the oldest version of the schema whose programs can work with it: ``0002_lanes_since_0001.sql``.
So a program that knows version 1 goes on beside it, and can be started again on it. Where the name doesn't say it,
older programs refuse the database, and ``db upgrade`` begins only once none of them is connected.
"""

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple, TypeAlias

from payrelay.core.database.schema_changes import SchemaChanges
from payrelay.errors import DatabaseMissing, DatabaseNotReady, StoreUnusable
from payrelay.store.engine.queries import in_sqlite

_FILE: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_SINCE: Final = re.compile(r".*_since_(\d{4})")
ONLINE: Final = "-- online"
"""The first line of a file that PostgreSQL runs outside a transaction, statement by statement. It may be stopped after
any of them and run again."""

_TYPES: Final = {"bigint": "INTEGER", "bytea": "BLOB"}
"""What SQLite calls them."""
_TYPE: Final = re.compile(rf"\b(?:{'|'.join(_TYPES)})\b")
_POSTGRESQLS: Final = re.compile(
    r' COLLATE "C"| GENERATED ALWAYS AS IDENTITY| PARTITION BY HASH \(\w+\)| CONCURRENTLY\b'
)
_SQLITES: Final = " WITHOUT ROWID"
_TABLE_ENDS: Final = re.compile(rf"^\)({_SQLITES})?;", re.MULTILINE)

CREATE_VERSION_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS schema_version (
        number        INTEGER NOT NULL PRIMARY KEY,
        name          TEXT    NOT NULL,
        checksum      TEXT    NOT NULL,
        applied_at_ms BIGINT  NOT NULL
    )"""
"""Valid SQL in both databases."""

READ_VERSIONS: Final = "SELECT number, name, checksum FROM schema_version ORDER BY number"


Texts: TypeAlias = Mapping[tuple[int, str], str]
"""SQL files by their numbers and names."""


class AppliedMigration(NamedTuple):
    """A migration that the database has had, as ``schema_version`` has it."""

    number: int
    name: str
    checksum: str

    @property
    def usable_since(self) -> int:
        """The oldest version of the schema whose programs can work with this one."""
        return _usable_since(self.number, self.name)


class Migration(NamedTuple):
    """One file of this program."""

    number: int
    name: str
    text: str

    @property
    def usable_since(self) -> int:
        """The oldest version of the schema whose programs can work with this one."""
        return _usable_since(self.number, self.name)

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


def _usable_since(number: int, name: str) -> int:
    match = _SINCE.fullmatch(name)
    return int(match[1]) if match else number


@functools.cache
def shipped(dialect: str) -> tuple[Migration, ...]:
    """Reads this program's migrations for ``sqlite`` or ``postgresql``, in their order; once, for they don't change."""
    folder = resources.files(__package__) / "schema"
    return written(dialect, _texts_in(folder), _texts_in(folder / "sqlite"), _texts_in(folder / "postgresql"))


def written(dialect: str, both: Texts, sqlites: Texts, postgresqls: Texts) -> tuple[Migration, ...]:
    """Gives the migrations of one database, of the texts for both and of those for each.

    Both have all of them, also where one has nothing to do: a number means the same state of affairs in both.
    """
    translated, own = (_for_sqlite, sqlites) if dialect == "sqlite" else (_for_postgresql, postgresqls)
    names = sorted({*both, *sqlites, *postgresqls})
    return tuple(Migration(*name, translated(both.get(name, "")) + own.get(name, "")) for name in names)


def _texts_in(folder: Traversable) -> Texts:
    files = ((file, _FILE.fullmatch(file.name)) for file in folder.iterdir())
    return {(int(match[1]), match[2]): file.read_text(encoding="utf-8") for file, match in files if match}


def _for_postgresql(text: str) -> str:
    return text.replace(_SQLITES, "")


def _for_sqlite(text: str) -> str:
    text = _TYPE.sub(lambda found: _TYPES[found[0]], _POSTGRESQLS.sub("", in_sqlite(text)))
    return _TABLE_ENDS.sub(lambda end: f") STRICT{',' if end[1] else ''}{end[1] or ''};", text)


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
