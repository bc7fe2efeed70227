"""Facts about the store itself: a check of its encryption key, the audit chain's key, and the merchant of each app."""

import secrets
from pathlib import Path
from typing import Final, NamedTuple

from payrelay.clock import Clock
from payrelay.core.payments.audit_chain import KEY_BYTES
from payrelay.errors import StoreUnusable
from payrelay.store.engine import sealing
from payrelay.store.engine.database import Database, Statement, Unit
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements import meta as statements

_KEY_CHECK: Final = "key_check"
_CONTEXT: Final = b"meta/key_check"
_PLAIN: Final = b"payrelay"
_CHAIN_KEY: Final = "chain_key"
_CHAIN_CONTEXT: Final = b"meta/chain_key"
_SINCE_BYTES: Final = 8
_MERCHANT: Final = "merchant/"


class ChainStart(NamedTuple):
    """The key of the audit chain, and the time of its start; older journal entries are in no chain."""

    secret: bytes
    since_ms: int


async def embedded_keys(database: Database, path: Path) -> tuple[bytes, ...]:
    """Reads the keys beside an embedded database, or makes one where nothing was sealed in it yet.

    Raises StoreUnusable where the file is missing although the database needs it, because a new key would open nothing.
    """
    is_sealed = await database.read(_is_sealed())
    if is_sealed and not sealing.is_key_file(path):
        raise StoreUnusable(f"{path}: the encryption key of this database is missing; put the file back")
    return sealing.load_or_make_key(path)


async def verify_key(database: Database, seal: Seal) -> None:
    """Compares the encryption key with the one of the database's first start; stores a check in a new database.

    Raises StoreUnusable where the keys differ.
    """
    check = await database.write(_stored_or_new(_KEY_CHECK, seal.seal(_PLAIN, _CONTEXT)))
    try:
        seal.open(check, _CONTEXT)
    except StoreUnusable:
        raise StoreUnusable("PAYRELAY_ENCRYPTION_KEY is not the key that this database was sealed with") from None


async def chain_key(database: Database, seal: Seal, clock: Clock) -> ChainStart:
    """Reads the key of the audit chain, or makes it where there is none. Of many callers that make it, one does.

    Raises StoreUnusable where it can't be opened, or is missing although journal entries are in the chain. With a new
    key nobody could tell whether these entries were changed.
    """
    plain = secrets.token_bytes(KEY_BYTES) + clock.now_ms().to_bytes(_SINCE_BYTES, "big")
    sealed = await database.write(_stored_chain_key(seal.seal(plain, _CHAIN_CONTEXT)))
    if sealed is None:
        raise StoreUnusable("the key of the audit chain is missing from the database; bring it back from a backup")
    plain = seal.open(sealed, _CHAIN_CONTEXT)
    return ChainStart(plain[:KEY_BYTES], int.from_bytes(plain[KEY_BYTES:], "big"))


async def merchant_of_app(database: Database, seal: Seal, app: str, merchant: str) -> str:
    """Gives the merchant under which the store knows an app: the one of the first call.

    An app belongs to one merchant for good. Otherwise, an operator who adds the merchant's number to an account's
    settings would change its merchant, and the guards of its orders would guard them no more. May be repeated.

    Raises StoreUnavailable; StoreUnusable where the stored value can't be opened.
    """
    name = f"{_MERCHANT}{app}"
    context = f"meta/{name}".encode()
    stored = await database.write(_stored_or_new(name, seal.seal(merchant.encode(), context)))
    return seal.open(stored, context).decode()


async def schema_version(database: Database) -> int:
    """Gives the number of the newest migration that this database has had."""
    return await database.read(_schema_version())


def _stored_or_new(name: str, sealed: bytes) -> Unit[bytes]:
    """Stores a value unless there is one of that name; gives the stored one."""
    rows = yield Statement(statements.GET_META, (name,))
    if not rows:
        yield Statement(statements.ADD_META, (name, sealed))
        rows = yield Statement(statements.GET_META, (name,))
    return blob_of(rows[0][0])


def _stored_chain_key(sealed: bytes) -> Unit[bytes | None]:
    """Gives the stored sealed key, or stores this one; None where there is none although there is a chain."""
    rows = yield Statement(statements.GET_META, (_CHAIN_KEY,))
    if rows:
        return blob_of(rows[0][0])
    if (yield Statement(statements.ANY_CHAINED, ())):
        return None
    return (yield from _stored_or_new(_CHAIN_KEY, sealed))


def _is_sealed() -> Unit[bool]:
    rows = yield Statement(statements.GET_META, (_KEY_CHECK,))
    return bool(rows)


def _schema_version() -> Unit[int]:
    rows = yield Statement(statements.SCHEMA_VERSION, ())
    number = rows[0][0]
    if not isinstance(number, int):
        raise TypeError("a migration has a number")
    return number
