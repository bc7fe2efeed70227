"""Which of the configured accounts an installation serves, where the accounts are divided among several.

Rules:

1. An account is in one partition, and every configured account is in some.
2. Accounts of one merchant are in one partition: they share the gateway's budget, and their orders meet at the gateway.
3. An installation serves the accounts of its own partition, whatever else its settings name: one file may serve all.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from payrelay.errors import SettingsError
from payrelay.gateways.registry import KINDS
from payrelay.settings.identity import IdentitySettings
from payrelay.settings.model import GatewaySettings, Settings
from payrelay.settings.parse import PREFIX


def of_this_partition(settings: Settings) -> Settings:
    """Gives the settings with the accounts of this installation alone; raises SettingsError where a rule is broken."""
    name, partition_of = settings.partition, settings.partition_map
    if name is None and partition_of is None:
        return settings
    if name is None or partition_of is None:
        raise SettingsError(f"{PREFIX}PARTITION and {PREFIX}PARTITION_MAP are set together or not at all")
    for account in sorted(settings.gateways.keys() - partition_of.keys()):
        raise SettingsError(f"the account {account} is in no partition of {PREFIX}PARTITION_MAP")
    _require_merchants_whole(settings, partition_of)
    own = {account for account, partition in partition_of.items() if partition == name}
    if not own:
        raise SettingsError(f"{PREFIX}PARTITION names {name}, which has no account in {PREFIX}PARTITION_MAP")
    for account in sorted(own - settings.gateways.keys()):
        raise SettingsError(f"partition {name} has the account {account}, but no gateway has that name")
    gateways = {account: settings.gateways[account] for account in settings.gateways if account in own}
    identity = _without(settings.identity, partition_of.keys() - own)
    return settings.model_copy(update={"gateways": gateways, "identity": identity})


def _without(identity: IdentitySettings | None, others: AbstractSet[str]) -> IdentitySettings | None:
    """Takes the accounts of other partitions from those of the identity provider, where it names any."""
    if identity is None or not identity.accounts:
        return identity
    # No account left must not become none named, which stands for all.
    left = identity.accounts - others
    return identity.model_copy(update={"accounts": left}) if left else None


def _require_merchants_whole(settings: Settings, partition_of: Mapping[str, str]) -> None:
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
