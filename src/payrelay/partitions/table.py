"""Which partition has which account: decided from the settings alone."""

from collections.abc import Mapping
from typing import Final

import msgspec

from payrelay.errors import SettingsError
from payrelay.settings import PartitionSettings

EVERYBODYS: Final = frozenset({b"openapi.json", b"docs"})
"""Pages that every partition has alike."""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """An installation: its name, and the addresses of its processes or of its load balancer."""

    name: str
    addresses: tuple[str, ...]


class PartitionTable:
    """The partitions by their accounts.

    Args:
        settings: the partitions by their names, as the settings have them.

    Raises SettingsError where there is none. That no account is in two partitions is the settings' own rule.
    """

    def __init__(self, settings: Mapping[str, PartitionSettings]) -> None:
        if not settings:
            raise SettingsError(
                "no partition is configured: set PAYRELAY_PARTITIONS__A__ADDRESS and PAYRELAY_PARTITIONS__A__ACCOUNTS"
            )
        self.partitions = tuple(Partition(name=name, addresses=each.address) for name, each in sorted(settings.items()))
        by_name = {each.name: each for each in self.partitions}
        self._of_account = {
            account.encode(): by_name[name] for name, each in settings.items() for account in each.accounts
        }

    def partition_of(self, raw_path: bytes) -> Partition | None:
        """Gives the partition of the account that a path begins with; None for an account of no partition."""
        first = raw_path.split(b"/", 2)[1] if raw_path.startswith(b"/") else b""
        return self.partitions[0] if first in EVERYBODYS else self._of_account.get(first)
