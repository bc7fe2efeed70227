"""Opens what a Laravel application encrypted in its tables with its own key.

The format is documented by Laravel: JSON in base64 with ``iv`` and ``value``, and with a ``mac`` (AES in CBC mode) or a
``tag`` (AES-GCM). What can't be opened, or was changed, is an error; nothing is guessed.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Sequence
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from payrelay.core.secret import Secret
from payrelay.imports.rules.fields import ENCRYPTED
from payrelay.imports.rules.items import ItemRefusedError

KEY_BYTES: Final = frozenset({16, 32})
KEYS_MAX: Final = 16
"""More keys than a shop has ever had: each value is tried with all of them."""
VALUE_LENGTH_MAX: Final = 10_000
"""Characters of an encrypted value: what the shop encrypts has some hundred."""
_KEY_LINE: Final = re.compile(r"\s*(?:APP_KEY|APP_PREVIOUS_KEYS)\s*=(.*)", re.DOTALL)
"""For one line: over all lines of a text, the spaces would be looked at again from each of them."""
_BLOCK_BITS: Final = 128
_PREFIX: Final = "base64:"

NO_KEY: Final = "is encrypted by the shop: give --app-key-file"
WRONG_KEY: Final = "is encrypted by the shop with a key that --app-key-file doesn't have, or was changed"


class _Envelope(msgspec.Struct, frozen=True):
    iv: str
    value: str
    mac: str = ""
    tag: str | None = None


_read_envelope: Final = msgspec.json.Decoder(_Envelope).decode


class AppKeys:
    """The keys of a Laravel application: the present one, and earlier ones. Without any, it opens nothing."""

    def __init__(self, keys: Sequence[Secret] = ()) -> None:
        self._keys = [_bytes_of(each.reveal()) for each in keys]

    def opened(self, value: str) -> str:
        """Gives the text of an encrypted value, and any other value as it is. Raises ItemRefusedError."""
        if not value.startswith(ENCRYPTED):
            return value
        if not self._keys:
            raise ItemRefusedError(NO_KEY)
        if len(value) > VALUE_LENGTH_MAX:
            raise ItemRefusedError(WRONG_KEY)
        for key in self._keys:
            try:
                return _opened(value, key)
            except (ValueError, InvalidTag, msgspec.MsgspecError, binascii.Error, RecursionError):
                continue
        raise ItemRefusedError(WRONG_KEY)


def app_keys_in(text: str) -> AppKeys:
    """Reads the keys in an application's ``.env``, or a key that stands alone.

    Raises ValueError, whose text never has a key, where there is none, one can't be a key, or there are too many.
    """
    matches = map(_KEY_LINE.match, text.split("\n"))
    lines = [match[1].strip() for match in matches if match is not None] or [text.strip()]
    keys = [each.strip().strip("\"'") for line in lines for each in line.strip("\"'").split(",")]
    found = [Secret(each) for each in keys if each]
    if not found:
        raise ValueError("has no APP_KEY")
    if len(found) > KEYS_MAX:
        raise ValueError(f"has more than {KEYS_MAX} keys")
    return AppKeys(found)


def _bytes_of(key: str) -> bytes:
    try:
        raw = base64.b64decode(key.removeprefix(_PREFIX), validate=True) if key.startswith(_PREFIX) else key.encode()
    except binascii.Error:
        raw = b""
    if len(raw) not in KEY_BYTES:
        raise ValueError("has an APP_KEY that is no key of 16 or 32 bytes")
    return raw


def _opened(value: str, key: bytes) -> str:
    envelope = _read_envelope(base64.b64decode(value, validate=True))
    iv, sealed = base64.b64decode(envelope.iv, validate=True), base64.b64decode(envelope.value, validate=True)
    if envelope.tag:
        return AESGCM(key).decrypt(iv, sealed + base64.b64decode(envelope.tag, validate=True), None).decode()
    mac = hmac.digest(key, (envelope.iv + envelope.value).encode(), "sha256").hex()
    if not hmac.compare_digest(mac.encode(), envelope.mac.encode()):
        raise ValueError("the value was changed, or has another key")
    decryptor = Cipher(AES(key), CBC(iv)).decryptor()
    padded = decryptor.update(sealed) + decryptor.finalize()
    unpadder = PKCS7(_BLOCK_BITS).unpadder()
    return (unpadder.update(padded) + unpadder.finalize()).decode()
