"""The encryption keys that seal values, as the setting PAYRELAY_ENCRYPTION_KEY has them."""

import base64
import binascii
from typing import Final

from payrelay.errors import SettingsError

KEY_BYTES: Final = 32
KEYS_MAX: Final = 16
"""More keys than any rotation needs; a key is found by its id, never by trial."""

_SETTING: Final = "PAYRELAY_ENCRYPTION_KEY"


def parse_keys(text: str) -> tuple[bytes, ...]:
    """Reads the setting: 32 bytes in url-safe base64, or several separated by commas; the first one seals.

    Raises SettingsError, which never shows the text.
    """
    keys = tuple(_parse_key(part.strip()) for part in text.split(","))
    if len(keys) > KEYS_MAX:
        raise SettingsError(f"{_SETTING} holds more than {KEYS_MAX} keys")
    return keys


def _parse_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingsError(
            f"{_SETTING} must be {KEY_BYTES} bytes in url-safe base64 (43 or 44 characters), or several with commas"
        )
    return key


def key_text(key: bytes) -> str:
    """Writes a key as the setting takes it."""
    return base64.urlsafe_b64encode(key).decode("ascii")
