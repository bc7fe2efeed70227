"""The command for client tokens: another key to sign them with, beside a running server."""

import sys

from payrelay.app import opened_database, seal_of
from payrelay.clock import Clock
from payrelay.errors import Outdated
from payrelay.operator_session import DONE, REFUSED, complain
from payrelay.settings import Settings
from payrelay.store.signing_keys import SigningKeys


async def run_rotate_key(settings: Settings) -> int:
    """Makes a new signing key; gives the exit code. Raises SettingsError, StoreError."""
    clock = Clock()
    async with opened_database(settings, clock, is_owner=False) as database:
        keys = SigningKeys(database, await seal_of(settings, database), clock)
        try:
            key = await keys.rotate()
        except Outdated:
            complain("somebody else has just made a new key; nothing was changed")
            return REFUSED
    sys.stderr.write(
        f"Client tokens are now signed with key {key.id}; those that the key before it has signed stay good.\n"
    )
    return DONE
