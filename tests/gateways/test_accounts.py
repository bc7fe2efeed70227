import pytest

from payrelay.clock import Clock
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.gateways.accounts import open_account
from payrelay.gateways.payhere.account import Account

ACCOUNT = Account(
    name="shop", environment="sandbox", base_url="http://gateway.invalid", app_id="app", app_secret=Secret("s")
)


async def test_an_account_is_opened_by_its_kind() -> None:
    """The name, the environment and the limits of the account stand on its client."""
    client = open_account("payhere", ACCOUNT, clock=Clock())
    assert (client.name, client.environment, client.timeout_s, client.queue_s) == ("shop", "sandbox", 30.0, 5.0)
    await client.close()


def test_an_unknown_kind_ends_the_start() -> None:
    """The line names the setting to be changed."""
    with pytest.raises(SettingsError, match="PAYRELAY_GATEWAYS__SHOP__KIND"):
        open_account("paypal", ACCOUNT, clock=Clock())
