"""What the store keeps about itself: a sealed check value, by which a wrong encryption key is noticed at the start."""

from pathlib import Path
from typing import Final

from payrelay.errors import StoreUnusable
from payrelay.store import sealing, statements
from payrelay.store.database import Database, Statement, Unit
from payrelay.store.sealing import Seal

_KEY_CHECK: Final = "key_check"
_CONTEXT: Final = b"meta/key_check"
_PLAIN: Final = b"payrelay"


async def embedded_keys(database: Database, path: Path) -> tuple[bytes, ...]:
    """Reads the keys beside an embedded database, or makes one where nothing was sealed in it yet.

    Raises StoreUnusable where the file is gone although the database needs it: a new key would open nothing.
    """
    is_sealed = await database.read(_is_sealed())
    if is_sealed and not sealing.is_key_file(path):
        raise StoreUnusable(f"{path}: the encryption key of this database is missing; put the file back")
    return sealing.load_or_make_key(path)


async def verify_key(database: Database, seal: Seal) -> None:
    """Compares the encryption key with the one that this database was begun with, or notes it in a new database.

    Raises StoreUnusable where it is another one.
    """
    check = await database.write(_key_check(seal.seal(_PLAIN, _CONTEXT)))
    try:
        seal.open(check, _CONTEXT)
    except StoreUnusable:
        raise StoreUnusable("PAYRELAY_ENCRYPTION_KEY is not the key that this database was sealed with") from None


async def schema_version(database: Database) -> int:
    """Gives the number of the newest migration that this database has had."""
    return await database.read(_schema_version())


def _key_check(sealed: bytes) -> Unit[bytes]:
    """Stores the check value unless there is one; gives the one that stands."""
    yield Statement(statements.ADD_META, (_KEY_CHECK, sealed))
    rows = yield Statement(statements.GET_META, (_KEY_CHECK,))
    value = rows[0][0]
    if not isinstance(value, bytes):
        raise TypeError("a sealed column holds bytes")
    return value


def _is_sealed() -> Unit[bool]:
    rows = yield Statement(statements.GET_META, (_KEY_CHECK,))
    return bool(rows)


def _schema_version() -> Unit[int]:
    rows = yield Statement(statements.SCHEMA_VERSION, ())
    number = rows[0][0]
    if not isinstance(number, int):
        raise TypeError("a migration has a number")
    return number
