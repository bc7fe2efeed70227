"""The keys that sign client tokens, sealed: made once for a store, and shared by its processes."""

import secrets
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.access.signatures import SECRET_BYTES, SigningKey
from payrelay.errors import Outdated
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements import meta

KEYS_MAX: Final = 2
"""The newest signs; the one before still verifies the tokens that it has signed."""
KEPT_S: Final = 10.0
"""How late a process may learn of another one's new key, unless it gets a token that this key has signed."""
ASKED_AGAIN_S: Final = 1.0
"""How often the store is asked for keys of unknown ids, so that made-up ids don't keep it busy."""

_NAME: Final = "client_token_keys"
_CONTEXT: Final = b"meta/client_token_keys"
_ID_BYTES: Final = 6

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[SigningKey, ...]).decode


class SigningKeys:
    """Gives the keys, the newest first, as they were at most KEPT_S ago."""

    def __init__(self, database: Database, seal: Seal, clock: Clock) -> None:
        self._database = database
        self._seal = seal
        self._clock = clock
        self._keys: tuple[SigningKey, ...] = ()
        self._read_at_s = 0.0
        self._missed_at_s = float("-inf")

    async def newest(self) -> SigningKey:
        """Gives the key to sign with, and makes it where there is none. Of many callers that make it at once, one does.

        Raises StoreUnavailable; StoreUnusable where the keys can't be opened.
        """
        if not self._is_fresh():
            await self._read()
        if not self._keys:
            first = self._seal.seal(_encode((self._new(),)), _CONTEXT)
            self._keep(await self._database.write(_add(first)))
        return self._keys[0]

    async def find(self, key_id: str) -> SigningKey | None:
        """Gives the key of that id. Where it isn't known here, asks the store, but at most once in ASKED_AGAIN_S.

        Raises as ``newest``.
        """
        if not self._is_fresh():
            await self._read()
        known = self._known(key_id)
        if known is not None or self._clock.boot_s() - self._missed_at_s < ASKED_AGAIN_S:
            return known
        self._missed_at_s = self._clock.boot_s()
        await self._read()
        return self._known(key_id)

    async def rotate(self) -> SigningKey:
        """Makes a new key that signs from now on. The one before stays valid, and an older one is forgotten.

        Raises as ``newest``; Outdated where another process rotates at the same moment.
        """
        await self.newest()
        current = await self._database.read(_value())
        before = () if current is None else _decode(self._seal.open(current, _CONTEXT))
        keys = (self._new(), *before)[:KEYS_MAX]
        replaced = Statement(
            meta.REPLACE_META, (_NAME, self._seal.seal(_encode(keys), _CONTEXT), current), is_whole=True
        )
        if not await self._database.write(all_rows(replaced)):
            raise Outdated("another process changed the key at the same moment")
        self._keys, self._read_at_s = keys, self._clock.boot_s()
        return keys[0]

    def _known(self, key_id: str) -> SigningKey | None:
        return next((key for key in self._keys if key.id == key_id), None)

    def _is_fresh(self) -> bool:
        return bool(self._keys) and self._clock.boot_s() - self._read_at_s < KEPT_S

    async def _read(self) -> None:
        self._keep(await self._database.read(_value()))

    def _keep(self, sealed: bytes | None) -> None:
        self._keys = () if sealed is None else _decode(self._seal.open(sealed, _CONTEXT))
        self._read_at_s = self._clock.boot_s()

    def _new(self) -> SigningKey:
        key_id = secrets.token_hex(_ID_BYTES)
        return SigningKey(id=key_id, secret=secrets.token_bytes(SECRET_BYTES), made_at_ms=self._clock.now_ms())


def _value() -> Unit[bytes | None]:
    rows = yield Statement(meta.GET_META, (_NAME,))
    return blob_of(rows[0][0]) if rows else None


def _add(first: bytes) -> Unit[bytes]:
    yield Statement(meta.ADD_META, (_NAME, first))
    rows = yield Statement(meta.GET_META, (_NAME,))
    return blob_of(rows[0][0])
