"""What a copy of a database is asked about itself, whichever database it is of, and whatever its version."""

from collections.abc import Callable
from typing import Final, NamedTuple

SCHEMA_VERSION: Final = "SELECT max(number) FROM schema_version"
"""The number of the newest migration."""
NEWEST_ENTRY: Final = """
    SELECT max(at_ms) FROM (
      SELECT max(at_ms) AS at_ms FROM history
      UNION ALL
      SELECT updated_at_ms FROM operations WHERE id = (SELECT max(id) FROM operations)
    ) AS newest"""
"""When the newest journal entry was written, in ms since 1970, UTC. Where nothing was done for so long that all
histories are closed, the newest operation tells it."""
KEY_CHECK: Final = "SELECT value FROM meta WHERE name = 'key_check'"
"""The check of the encryption key, sealed."""

Moved = Callable[[int, int | None], None]
"""Called with how many MB were copied, and how many there are; None where nobody can tell."""


class Copied(NamedTuple):
    """What a finished copy says of itself.

    Attributes:
        schema_version: the number of its newest migration.
        newest_entry_ms: when its newest journal entry was written, in ms since 1970, UTC; None where it has none.
        key_check: the check of the encryption key, sealed; None where nothing was ever sealed.
    """

    schema_version: int
    newest_entry_ms: int | None
    key_check: bytes | None
