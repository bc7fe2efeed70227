"""Facts about the store itself: a check of its encryption key, the audit chain's key, and the merchant of each app."""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from payrelay.clock import Clock
from payrelay.core.payments.audit_chain import KEY_BYTES
from payrelay.errors import DatabaseMissing, Outdated, StoreUnusable
from payrelay.store.engine import sealing
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import KEY_CHECK, Seal
from payrelay.store.statements import meta as statements

_CONTEXT: Final = b"meta/key_check"
CHAIN_KEY: Final = "chain_key"
"""The name of the key of the audit chain."""
_CHAIN_CONTEXT: Final = b"meta/chain_key"
_SINCE_BYTES: Final = 8
_MERCHANT: Final = "merchant/"
_NOTE_ATTEMPTS_MAX: Final = 10
"""Each further attempt needs another process that replaced the check between two statements."""


class _KeyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the check: the names of the finished upgrade steps."""

    upgrades: tuple[str, ...] = ()


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_KeyCheck).decode


class ChainStart(NamedTuple):
    """The key of the audit chain, and the time of its start."""

    secret: bytes
    since_ms: int


async def embedded_keys(database: Database, path: Path) -> tuple[bytes, ...]:
    """Reads the keys beside an embedded database, or makes one where nothing was sealed in it yet.

    Raises StoreUnusable where the file is missing although the database needs it, because a new key would open nothing.
    """
    is_needed = await is_anything_stored(database)
    if is_needed and not sealing.is_key_file(path):
        raise key_file_is_missing(path)
    return sealing.load_or_make_key(path)


def key_file_is_missing(path: Path) -> StoreUnusable:
    """Makes the error for a database whose key file is gone."""
    return StoreUnusable(f"{path}: the encryption key of this database is missing; put the file back")


async def is_anything_stored(database: Database) -> bool:
    """True where a process has stored anything in the database. Raises StoreUnavailable."""
    return bool(await database.read(all_rows(Statement(statements.ANY_STORED, ()))))


async def begin(database: Database, values: Mapping[str, bytes]) -> bool:
    """Stores the first values of a store, all of them or none; False where the database holds anything already.

    Raises StoreUnavailable.
    """
    return await database.write(_begun(values))


async def verify_key(database: Database, seal: Seal) -> None:
    """Compares the encryption key with the one of the database's first start.

    Raises DatabaseMissing where the database holds nothing yet. Raises StoreUnusable where the keys differ, and where
    the check is missing although the database holds something: a new check would hide what was changed since.
    """
    check, is_stored = await database.read(_check())
    if check is None and not is_stored:
        raise DatabaseMissing("the database is empty; run payrelay db upgrade, or start payrelay serve")
    if check is None:
        raise StoreUnusable("the check of the encryption key is missing from the database; bring it back from a backup")
    require_opened(seal, check)


def require_opened(seal: Seal, check: bytes) -> None:
    """Raises StoreUnusable where a database with this check was sealed with another encryption key."""
    try:
        seal.open(check, _CONTEXT)
    except StoreUnusable:
        raise StoreUnusable("PAYRELAY_ENCRYPTION_KEY is not the key that this database was sealed with") from None


async def finished_upgrades(database: Database, seal: Seal) -> frozenset[str]:
    """Reads the names of the upgrade steps that this database has had; none where it has no check of its key yet.

    Raises StoreUnusable where the check can't be opened.
    """
    return frozenset(_finished_in(seal, await database.read(_meta_of(KEY_CHECK))))


async def note_upgrade(database: Database, seal: Seal, name: str) -> None:
    """Notes an upgrade step as finished, in the check of the encryption key; may be repeated.

    Raises StoreUnusable where there is no check, or where it can't be opened, and StoreUnavailable.
    """
    for _ in range(_NOTE_ATTEMPTS_MAX):
        try:
            await database.write(noted(seal, name))
        except Outdated:
            continue
        return
    raise StoreUnusable("an upgrade could not be noted in the check of the encryption key")


def noted(seal: Seal, name: str) -> Unit[bool]:
    """Notes an upgrade step as finished within a unit of work; False where it is noted already.

    Until that unit ends, no other process notes a step. Raises StoreUnusable where there is no check, or where it can't
    be opened, and Outdated.
    """
    rows = yield Statement(statements.LOCK_META, (KEY_CHECK,))
    if not rows:
        raise StoreUnusable("an upgrade can't be noted: the check of the encryption key is missing")
    stored = blob_of(rows[0][0])
    finished = _finished_in(seal, stored)
    if name in finished:
        return False
    # With its own key: it moves to another one last of all, when a rotation has sealed everything else anew.
    changed = sealed_check(seal.with_key_of(stored), (*finished, name))
    if not (yield Statement(statements.REPLACE_META, (KEY_CHECK, changed, stored))):
        raise Outdated("the check of the encryption key was changed since it was read")
    return True


def sealed_check(seal: Seal, upgrades: Iterable[str]) -> bytes:
    """Gives the check of the encryption key as it is stored, with the names of the finished upgrade steps."""
    return seal.seal(_encode(_KeyCheck(upgrades=tuple(upgrades))), _CONTEXT)


def sealed_chain_key(seal: Seal, start: ChainStart) -> bytes:
    """Gives the key of the audit chain as it is stored."""
    return seal.seal(start.secret + start.since_ms.to_bytes(_SINCE_BYTES, "big"), _CHAIN_CONTEXT)


def new_chain(clock: Clock) -> ChainStart:
    """Draws a key for an audit chain that begins now."""
    return ChainStart(secrets.token_bytes(KEY_BYTES), clock.now_ms())


async def chain_key(database: Database, seal: Seal) -> ChainStart:
    """Reads the key of the audit chain.

    Raises StoreUnusable where it can't be opened or is missing: with a new one nobody could tell what was changed.
    """
    sealed = await database.read(_meta_of(CHAIN_KEY))
    if sealed is None:
        raise StoreUnusable("the key of the audit chain is missing from the database; bring it back from a backup")
    plain = seal.open(sealed, _CHAIN_CONTEXT)
    return ChainStart(plain[:KEY_BYTES], int.from_bytes(plain[KEY_BYTES:], "big"))


async def merchants_of_apps(database: Database, seal: Seal, merchants: Mapping[str, str]) -> dict[str, str]:
    """Gives, by app, the merchant under which the store knows it: the one of the first call, which ``merchants`` names.

    An app belongs to one merchant for good. Otherwise, an operator who adds the merchant's number to an account's
    settings would change its merchant, and the guards of its orders would guard them no more. May be repeated. All that
    is new is stored at once, so that a start with many accounts waits for one commit.

    Raises StoreUnavailable; StoreUnusable where a stored value can't be opened.
    """
    named = {f"{_MERCHANT}{app}": merchant for app, merchant in merchants.items()}
    stored = await database.read(_stored_of(named))
    new = {name: seal.seal(named[name].encode(), _context(name)) for name in sorted(named.keys() - stored.keys())}
    if new:
        stored |= await database.write(_each_stored_or_new(new))
    return {app: seal.open(stored[name], _context(name)).decode() for app, name in zip(merchants, named, strict=True)}


async def schema_version(database: Database) -> int:
    """Gives the number of the newest migration that this database has had."""
    return await database.read(_schema_version())


def _meta_of(name: str) -> Unit[bytes | None]:
    rows = yield Statement(statements.GET_META, (name,))
    return blob_of(rows[0][0]) if rows else None


def _finished_in(seal: Seal, check: bytes | None) -> tuple[str, ...]:
    if check is None:
        return ()
    return _decode(seal.open(check, _CONTEXT)).upgrades


def _check() -> Unit[tuple[bytes | None, bool]]:
    """Gives the check, and whether anything is stored; the latter is asked first, so that a check of then is seen."""
    is_stored = bool((yield Statement(statements.ANY_STORED, ())))
    return (yield from _meta_of(KEY_CHECK)), is_stored


def _begun(values: Mapping[str, bytes]) -> Unit[bool]:
    if (yield Statement(statements.ANY_STORED, ())):
        return False
    for name, value in values.items():
        if not (yield Statement(statements.ADD_META, (name, value))):
            return False  # another process has just stored all of them
    return True


def _stored_or_new(name: str, sealed: bytes) -> Unit[bytes]:
    """Stores a value unless there is one of that name; gives the stored one."""
    stored = yield from _meta_of(name)
    if stored is None:
        yield Statement(statements.ADD_META, (name, sealed))
        stored = yield from _meta_of(name)
    return blob_of(stored)


def _context(name: str) -> bytes:
    return f"meta/{name}".encode()


def _stored_of(names: Iterable[str]) -> Unit[dict[str, bytes]]:
    rows = yield Statement(statements.META_OF, (msgspec.json.encode(list(names)).decode(),))
    return {str(name): blob_of(value) for name, value in rows}


def _each_stored_or_new(new: Mapping[str, bytes]) -> Unit[dict[str, bytes]]:
    """Stores each value unless there is one of that name; gives the stored ones.

    In the order of their names, which is the same in every process: two that store at once never wait for each other.
    """
    stored = {}
    for name in sorted(new):
        stored[name] = yield from _stored_or_new(name, new[name])
    return stored


def _schema_version() -> Unit[int]:
    rows = yield Statement(statements.SCHEMA_VERSION, ())
    number = rows[0][0]
    if not isinstance(number, int):
        raise TypeError("a migration has a number")
    return number
