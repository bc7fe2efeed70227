"""The command for client tokens: another key to sign them with, beside a running server."""

import sys

from payrelay.cli.session import DONE, REFUSED, complain, session
from payrelay.errors import Outdated
from payrelay.settings import Settings


async def run_rotate_key(settings: Settings) -> int:
    """Makes a new signing key; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
        try:
            key = await relay.signing_keys.rotate()
        except Outdated:
            complain("somebody else has just made a new key; nothing was changed")
            return REFUSED
    sys.stderr.write(
        f"Client tokens are now signed with key {key.id}; those that the key before it has signed stay good.\n"
    )
    return DONE
