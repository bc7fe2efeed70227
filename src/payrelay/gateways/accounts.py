"""Makes the client for a configured account by the kind of its gateway."""

from payrelay.clock import Clock
from payrelay.errors import SettingsError
from payrelay.gateways.payhere.account import KIND, Account
from payrelay.gateways.payhere.client import PayHere


def open_account(kind: str, account: Account, *, clock: Clock) -> PayHere:
    """Makes the client for an account. Raises SettingsError for a kind of gateway that isn't known."""
    if kind != KIND:
        raise SettingsError(f"PAYRELAY_GATEWAYS__{account.name.upper()}__KIND must be {KIND}, not {kind}")
    return PayHere(account, clock=clock)
