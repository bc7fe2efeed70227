"""Which of the configured accounts an installation serves, where the accounts are divided among several.

Rules:

1. An account is in one partition, and every configured account is in some.
2. Accounts of one merchant are in one partition: they share the gateway's budget, and their orders meet at the gateway.
3. An installation serves the accounts of its own partition, whatever else its settings name: one file may serve all.
"""

from collections.abc import Set as AbstractSet

from payrelay.errors import SettingsError
from payrelay.gateways.registry import KINDS
from payrelay.settings.identity import IdentitySettings
from payrelay.settings.model import GatewaySettings, Settings
from payrelay.settings.parse import PREFIX


def of_this_partition(settings: Settings) -> Settings:
    """Gives the settings with the accounts of this installation alone; raises SettingsError where a rule is broken."""
    if not settings.partitions:
        if settings.partition is not None:
            raise SettingsError(f"{PREFIX}PARTITION is set, and no {PREFIX}PARTITIONS__…__ACCOUNTS")
        return settings
    partition_of = _divided(settings)
    _require_merchants_whole(settings, partition_of)
    if settings.partition is None:
        return settings
    if settings.partition not in settings.partitions:
        raise SettingsError(f"{PREFIX}PARTITION names {settings.partition}, and no partition has that name")
    own = {name: each for name, each in settings.gateways.items() if partition_of[name] == settings.partition}
    for name in sorted(settings.partitions[settings.partition].accounts - own.keys()):
        raise SettingsError(f"partition {settings.partition} has the account {name}, but no gateway has that name")
    others = partition_of.keys() - own.keys()
    return settings.model_copy(update={"gateways": own, "identity": _without(settings.identity, others)})


def _without(identity: IdentitySettings | None, others: AbstractSet[str]) -> IdentitySettings | None:
    """Takes the accounts of other partitions from those of the identity provider, where it names any."""
    if identity is None or not identity.accounts:
        return identity
    # No account left must not become none named, which stands for all.
    left = identity.accounts - others
    return identity.model_copy(update={"accounts": left}) if left else None


def _divided(settings: Settings) -> dict[str, str]:
    """Gives the partition of each account."""
    partition_of: dict[str, str] = {}
    for partition, each in sorted(settings.partitions.items()):
        for account in sorted(each.accounts):
            if account in partition_of:
                raise SettingsError(f"the account {account} is in two partitions: {partition_of[account]}, {partition}")
            partition_of[account] = partition
    for account in sorted(settings.gateways.keys() - partition_of.keys()):
        raise SettingsError(f"the account {account} is in no partition")
    return partition_of


def _require_merchants_whole(settings: Settings, partition_of: dict[str, str]) -> None:
    first: dict[str, str] = {}
    for account, gateway in sorted(settings.gateways.items()):
        known = first.setdefault(_merchant_of(account, gateway), account)
        if partition_of[known] != partition_of[account]:
            raise SettingsError(
                f"{known} and {account} are accounts of one merchant, and in two partitions:"
                f" {partition_of[known]}, {partition_of[account]}"
            )


def _merchant_of(account: str, gateway: GatewaySettings) -> str:
    return KINDS[gateway.kind].identity(gateway.common(account), gateway).merchant
