import msgspec
import pytest

from payrelay.core.secret import Secret
from payrelay.gateways.payhere.account import BASE_URLS, Account, app_of, merchant_of

ACCOUNT = Account(
    name="shop",
    environment="sandbox",
    base_url=BASE_URLS["sandbox"],
    app_id="app",
    app_secret=Secret("app-secret"),
    merchant_id="1211149",
)


def test_a_merchant_is_the_same_under_every_name() -> None:
    """Two configured names of one merchant share its guards: a capture under one bars a capture under the other."""
    other = msgspec.structs.replace(ACCOUNT, name="other", app_id="second-key", base_url="https://SANDBOX.payhere.lk/")
    assert merchant_of(other) == merchant_of(ACCOUNT)
    assert len(merchant_of(ACCOUNT)) == 16


@pytest.mark.parametrize("changed", [{"merchant_id": "1211150"}, {"base_url": BASE_URLS["live"]}])
def test_other_merchants_are_others(changed: dict[str, str]) -> None:
    """The same number in the sandbox and live is not the same merchant."""
    assert merchant_of(msgspec.structs.replace(ACCOUNT, **changed)) != merchant_of(ACCOUNT)


def test_without_a_merchant_id_the_key_stands_for_the_merchant() -> None:
    """The merchant id is only needed for hashes and may be missing."""
    nameless = msgspec.structs.replace(ACCOUNT, merchant_id=None)
    assert merchant_of(nameless) != merchant_of(msgspec.structs.replace(nameless, app_id="other"))


def test_an_app_is_the_same_whatever_is_said_of_its_merchant() -> None:
    """The store knows the merchant of its first use by it, and keeps that merchant."""
    nameless = msgspec.structs.replace(ACCOUNT, merchant_id=None, name="other")
    assert app_of(nameless) == app_of(ACCOUNT)
    assert app_of(msgspec.structs.replace(ACCOUNT, base_url=BASE_URLS["live"])) != app_of(ACCOUNT)
    assert merchant_of(msgspec.structs.replace(nameless, known_as=merchant_of(ACCOUNT))) == merchant_of(ACCOUNT)


def test_the_live_address_has_its_www() -> None:
    """Without it the gateway answers with an error page."""
    assert BASE_URLS["live"] == "https://www.payhere.lk"


def test_secrets_are_not_printed() -> None:
    """An account that ends in a traceback gives nothing away."""
    assert "app-secret" not in repr(ACCOUNT)
