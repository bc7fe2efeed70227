"""What a Laravel application encrypted: opened with its key, or refused."""

import base64
import json

import pytest
from tests.laravel_shop import APP_KEY, APP_KEY_TEXT, sealed

from payrelay.core.secret import Secret
from payrelay.imports.rules.items import ItemRefusedError
from payrelay_tools.laravel.secrets import KEYS_MAX, NO_KEY, WRONG_KEY, AppKeys, app_keys_in

KEYS = AppKeys([Secret(APP_KEY_TEXT)])
OTHER = "base64:" + base64.b64encode(b"o" * 32).decode()


@pytest.mark.parametrize("is_gcm", [False, True])
def test_a_value_is_opened_with_the_shops_key(*, is_gcm: bool) -> None:
    """Laravel's two ways of encrypting, of which a shop chooses one."""
    assert KEYS.opened(sealed("320025000001", is_gcm=is_gcm)) == "320025000001"


def test_a_value_that_is_not_encrypted_stays_as_it_is() -> None:
    """Earlier versions of the package encrypted nothing, and a table may have rows of both."""
    assert KEYS.opened("320025000001") == "320025000001"


def test_an_earlier_key_opens_too() -> None:
    """An application that rotated its key still has rows that the earlier one sealed."""
    keys = app_keys_in(f'APP_NAME=Shop\nAPP_KEY="{OTHER}"\nAPP_PREVIOUS_KEYS={APP_KEY_TEXT}\n')

    assert keys.opened(sealed("token")) == "token"


def test_a_key_may_stand_alone_or_be_plain_text() -> None:
    """A file with nothing but the key is what a secret store gives."""
    assert app_keys_in(APP_KEY_TEXT + "\n").opened(sealed("token")) == "token"
    assert app_keys_in("k" * 32).opened(sealed("token", b"k" * 32)) == "token"


@pytest.mark.parametrize("text", ["", "\n", "APP_KEY=\n", "APP_KEY=short", "base64:!!", "base64:AAAA"])
def test_what_is_no_key_is_an_error_that_has_no_key_in_it(text: str) -> None:
    """The text of the error goes to a terminal."""
    with pytest.raises(ValueError, match="APP_KEY") as raised:
        app_keys_in(text)

    assert "AAAA" not in str(raised.value)


def test_a_name_without_a_key_takes_none_of_the_next_line() -> None:
    """As it stands in a file that was copied from Laravel's example."""
    keys = app_keys_in(f"APP_KEY=\r\nAPP_PREVIOUS_KEYS = '{APP_KEY_TEXT}' \r\n")

    assert keys.opened(sealed("token")) == "token"


def test_too_many_keys_are_refused() -> None:
    """Each value is tried with all of them."""
    text = "APP_PREVIOUS_KEYS=" + ",".join([APP_KEY_TEXT] * KEYS_MAX)
    assert app_keys_in(text).opened(sealed("token")) == "token"
    with pytest.raises(ValueError, match="more than 16 keys"):
        app_keys_in(text + ",k")


def test_without_a_key_the_row_is_refused() -> None:
    """An encrypted token that is taken for the token itself would charge nobody."""
    with pytest.raises(ItemRefusedError, match=NO_KEY):
        AppKeys().opened(sealed("token"))


def _changed(**members: str) -> str:
    envelope = json.loads(base64.b64decode(sealed("token"))) | members
    return base64.b64encode(json.dumps(envelope, separators=(",", ":")).encode()).decode()


@pytest.mark.parametrize(
    "value",
    [
        sealed("token", b"x" * 32),
        sealed("token", b"x" * 32, is_gcm=True),
        _changed(value=base64.b64encode(bytes(16)).decode()),
        _changed(mac="0" * 64),
        "eyJpdiI6!!",
        "eyJpdiI6" + base64.b64encode(b'"x"}').decode(),
        "eyJpdiI6" + "A" * 20_000,
        base64.b64encode(b'{"iv":"","x":' + b"[" * 7_000).decode(),
    ],
)
def test_what_has_another_key_or_was_changed_is_refused(value: str) -> None:
    """Nothing that the shop's own key doesn't vouch for becomes a token."""
    with pytest.raises(ItemRefusedError, match="was changed") as raised:
        KEYS.opened(value)

    assert str(raised.value) == WRONG_KEY
    assert APP_KEY
