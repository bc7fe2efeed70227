"""Data keys: what can be erased on request is sealed with a key of its own, and destroying the key erases it.

Deleting a value doesn't remove its bytes. They stay in the database's log, in pages that were freed, in dead rows, and
on other servers. So each customer, checkout, notification and cached answer has a data key, which seals what names a
person in it. All data keys lie in one small table, each sealed with the store's key. Only that table must lose its
bytes, and the two databases can be made to do that.

Rules:

1. A key is stored by the unit of work that stores the value, and destroyed by the one that forgets the value.
2. A key that is destroyed on request leaves a note about its place, which is removed once the files of that place were
   cleared (``KeyResidues``).
"""

import secrets
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from payrelay.core.seal_keys import KEY_BYTES
from payrelay.errors import StoreUnavailable, StoreUnusable
from payrelay.store.engine.database import Database, Statement, Unit, Value, all_rows, count_rows, first_row
from payrelay.store.engine.sealing import FORMAT, DataKey, Seal
from payrelay.store.statements import data_keys as statements

_encode: Final = msgspec.json.Encoder().encode


class OwnKey(msgspec.Struct, frozen=True, kw_only=True):
    """The data key of an owner: the key itself, and how it is stored."""

    owner: str
    key: DataKey
    sealed: bytes

    def __repr__(self) -> str:
        return f"OwnKey(owner={self.owner!r})"


class DataKeys:
    """Makes data keys, and opens what they seal. An owner is named by the id of its row."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def new(self, owner: str) -> OwnKey:
        """Draws a key for an owner."""
        key = secrets.token_bytes(KEY_BYTES)
        return OwnKey(owner=owner, key=DataKey(key), sealed=self._seal.seal(key, key_context(owner)))

    def known(self, owner: str, sealed_key: Value) -> OwnKey | None:
        """Opens the stored key of an owner; None where there is none, or it was destroyed. Raises StoreUnusable."""
        if not isinstance(sealed_key, bytes) or sealed_key[: len(FORMAT)] != FORMAT:
            return None
        key = self._seal.open(sealed_key, key_context(owner))
        return OwnKey(owner=owner, key=DataKey(key), sealed=sealed_key)

    def open(self, sealed: Value, context: bytes, owner: str, sealed_key: Value) -> bytes | None:
        """Opens a value with the stored key of its owner; None where there is no value.

        Raises StoreUnusable where it can't be opened, as where its key was destroyed.
        """
        if not isinstance(sealed, bytes):
            return None
        own = self.known(owner, sealed_key)
        if own is None:
            raise StoreUnusable("a sealed value can't be opened: its data key is not in the database")
        return own.key.open(sealed, context)


def key_context(owner: str) -> bytes:
    """Gives the seal context of a data key."""
    return f"data key/{owner}".encode()


def stored(own: OwnKey) -> Statement:
    """Gives the statement that stores the key of a new owner."""
    return Statement(statements.PUT_KEY, (own.owner, own.sealed))


def replaced(own: OwnKey) -> Unit[None]:
    """Stores another key for an owner, and so destroys the one before on request."""
    yield from _noted((yield stored(own)))


def destroyed(owners: Iterable[Value]) -> Unit[None]:
    """Destroys the keys of owners whose values are old enough to be forgotten."""
    yield Statement(statements.DESTROY_KEYS, (_encode(list(owners)).decode(),))


def destroyed_on_request(owners: Iterable[Value]) -> Unit[None]:
    """Destroys the keys of owners, and notes their places, whose files are to be cleared."""
    yield from _noted((yield Statement(statements.DESTROY_KEYS, (_encode(list(owners)).decode(),))))


def forgotten(forgetting: Statement) -> Unit[int]:
    """Forgets values that are old enough, by a statement that gives the ids of their rows, and destroys their keys.

    Gives the number of rows.
    """
    return (yield from _forgotten(forgetting, destroyed))


def forgotten_on_request(forgetting: Statement) -> Unit[int]:
    """Forgets values as ``forgotten`` does, and notes the places of their keys, whose files are to be cleared."""
    return (yield from _forgotten(forgetting, destroyed_on_request))


def _forgotten(forgetting: Statement, end: Callable[[Iterable[Value]], Unit[None]]) -> Unit[int]:
    rows = yield forgetting
    yield from end(owner for (owner,) in rows)
    return len(rows)


def _noted(places: Iterable[Iterable[Value]]) -> Unit[None]:
    for place in sorted({str(name) for (name,) in places}):
        yield Statement(statements.ADD_RESIDUE, (place,))


class KeyResidues:
    """The places in the database's files that may still hold a destroyed key.

    A place is noted by the unit of work that destroys a key there. A process that dies before the files are cleared
    leaves the note, and the worker of any process clears the place.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def clear(self) -> bool:
        """Clears the files of all such places; False where something is in the way, so that it must be tried again.

        May be repeated, and by several processes at once. Raises StoreUnavailable where nothing can be read.
        """
        is_clear = True
        for place, times in await self._database.read(all_rows(Statement(statements.RESIDUES, ()))):
            is_clear = await self._is_cleared(str(place), times) and is_clear
        return is_clear

    async def _is_cleared(self, place: str, times: Value) -> bool:
        try:
            if not await self._database.clear_files(place):
                return False
            if await self._database.read(first_row(Statement(statements.IS_CLEAR, (place,)))) is None:
                return False
            forgotten = Statement(statements.FORGET_RESIDUE, (place, times), is_whole=True)
            return bool(await self._database.write(count_rows(forgotten)))
        except StoreUnavailable:
            return False
