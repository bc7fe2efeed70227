"""Sealing: a value that must not lie in clear in the database is encrypted and bound to its row.

A sealed value is ``01 | key id (4) | salt (16) | nonce (12) | AES-256-GCM ciphertext and tag``. Each process draws a
new salt, from which HMAC-SHA256 derives a key of its own. So random nonces stay safe far beyond the 2**32 values that
one AES-GCM key may seal. A process that was forked or restored from a snapshot draws other nonces.

What can be erased on request is sealed with a *data key* of its own in place of the store's key, as
``02 | nonce (12) | AES-256-GCM ciphertext and tag``. The data key is stored sealed elsewhere, and is destroyed when the
value is erased (``store.data_keys.keys``).
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from payrelay.core.seal_keys import KEY_BYTES, key_text, parse_keys
from payrelay.errors import StoreUnusable

FORMAT: Final = b"\x01"
"""The first byte of a value that is sealed with the store's key."""
DATA_KEY_FORMAT: Final = b"\x02"
"""The first byte of a value that is sealed with a data key."""
KEY_CHECK: Final = "key_check"
"""The name, in ``meta``, of the sealed value that shows whether a key is the store's."""
_KEY_ID_BYTES: Final = 4
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_SALT_START: Final = len(FORMAT) + _KEY_ID_BYTES
_NONCE_START: Final = _SALT_START + _SALT_BYTES
_SEALED_START: Final = _NONCE_START + _NONCE_BYTES
_SEALS_PER_SALT_MAX: Final = 2**30
"""A quarter of the number that the standard allows for random nonces under one key."""
_CIPHERS_KEPT_MAX: Final = 256
"""Salts whose derived keys are kept in memory: about one for each recent start of a process."""
_KEY_FILE_BYTES_MAX: Final = 4096


class Seal:
    """Seals with the first of its keys, opens with any of them. Not to be shared between threads."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._keys = {_key_id(key): key for key in keys}
        self._key_id = _key_id(keys[0])
        self._ciphers: dict[bytes, AESGCM] = {}
        self._begin()

    @property
    def key_id(self) -> bytes:
        """Names the key that seals: four bytes, which each value has behind its first byte."""
        return self._key_id

    @property
    def key_ids(self) -> tuple[bytes, ...]:
        """Names the keys that open values, the sealing one first."""
        return tuple(self._keys)

    def with_key_of(self, sealed: bytes) -> "Seal":
        """Gives a seal that opens the same values, and seals with the key of a value that this one has opened."""
        key_id = sealed[len(FORMAT) : _SALT_START]
        others = (key for other_id, key in self._keys.items() if other_id != key_id)
        return Seal((self._keys[key_id], *others))

    def _begin(self) -> None:
        """Draws a salt, and derives the key for the next seals from it."""
        self._seals = 0
        self._head = FORMAT + self._key_id + secrets.token_bytes(_SALT_BYTES)
        self._cipher = self._derive(self._head)

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypts a value; ``context`` names its place, and must be equal to open it."""
        if self._seals >= _SEALS_PER_SALT_MAX:
            self._begin()
        self._seals += 1
        nonce = os.urandom(_NONCE_BYTES)
        return self._head + nonce + self._cipher.encrypt(nonce, plain, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypts a value. Raises StoreUnusable where its key is missing, or value or context are not as sealed."""
        head = sealed[:_NONCE_START]
        if sealed[: len(FORMAT)] != FORMAT or head[len(FORMAT) : _SALT_START] not in self._keys:
            raise StoreUnusable(
                "a sealed value can't be opened: it was sealed with a key that PAYRELAY_ENCRYPTION_KEY lacks"
            )
        cipher = self._cipher if head == self._head else self._cipher_of(head)
        try:
            return cipher.decrypt(sealed[_NONCE_START:_SEALED_START], sealed[_SEALED_START:], context)
        except (InvalidTag, ValueError):
            raise StoreUnusable("a sealed value can't be opened: it was changed, or belongs elsewhere") from None

    def _cipher_of(self, head: bytes) -> AESGCM:
        cipher = self._ciphers.get(head)
        if cipher is None:
            if len(self._ciphers) >= _CIPHERS_KEPT_MAX:
                self._ciphers.clear()
            cipher = self._ciphers[head] = self._derive(head)
        return cipher

    def _derive(self, head: bytes) -> AESGCM:
        key = self._keys[head[len(FORMAT) : _SALT_START]]
        return AESGCM(hmac.digest(key, b"payrelay seal\0" + head, "sha256"))


class DataKey:
    """A key that seals what can be erased of one row, and is destroyed with it. Only few values have the same one."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypts a value; ``context`` names its place, and must be equal to open it."""
        nonce = os.urandom(_NONCE_BYTES)
        return DATA_KEY_FORMAT + nonce + self._cipher.encrypt(nonce, plain, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypts a value. Raises StoreUnusable where key, value or context are not as sealed."""
        start = len(DATA_KEY_FORMAT)
        try:
            return self._cipher.decrypt(sealed[start : start + _NONCE_BYTES], sealed[start + _NONCE_BYTES :], context)
        except (InvalidTag, ValueError):
            raise StoreUnusable("a sealed value can't be opened: it was changed, or belongs elsewhere") from None


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"payrelay key id\0" + key).digest()[:_KEY_ID_BYTES]


def load_or_make_key(path: Path) -> tuple[bytes, ...]:
    """Reads the keys of the embedded database, or makes one where there is none, whole or not at all.

    Only the file's owner can read it. Of several processes that make it at once, one wins and all use its key. Raises
    SettingsError for a file without a key, StoreUnusable where it can be neither read nor made.
    """
    try:
        if not is_key_file(path):
            _make_key(path)
        with path.open("rb") as file:
            return parse_keys(file.read(_KEY_FILE_BYTES_MAX).decode("ascii", "replace").strip())
    except OSError as error:
        raise StoreUnusable(f"{path}: the encryption key can't be read or made: {error.strerror}") from error


def is_key_file(path: Path) -> bool:
    """True where there is a file of keys, whatever its content."""
    return path.exists()


def _make_key(path: Path) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_text(secrets.token_bytes(KEY_BYTES)).encode("ascii") + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails where the name is taken, which a rename would not: the key of another process is never replaced.
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
