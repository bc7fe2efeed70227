import pytest

from payrelay.core.seal_keys import key_text, parse_keys
from payrelay.errors import SettingsError

KEY = bytes(range(32))
OTHER = bytes(32)


@pytest.mark.parametrize("text", ["{key}", "{key}\n", " {key} ", "{bare}", "{key},{other}", "{other} , {key}"])
def test_keys_are_read_in_the_usual_spellings(text: str) -> None:
    """With and without padding, one or several."""
    keys = parse_keys(text.format(key=key_text(KEY), bare=key_text(KEY).rstrip("="), other=key_text(OTHER)).strip())

    assert KEY in keys


@pytest.mark.parametrize(
    "text", ["", "SECRET", "SECRET" * 20, key_text(KEY) + ",", key_text(KEY)[:-4], "ö" * 43, "*" * 44]
)
def test_a_bad_key_is_named_but_not_shown(text: str) -> None:
    """The message ends in logs."""
    with pytest.raises(SettingsError, match="PAYRELAY_ENCRYPTION_KEY") as raised:
        parse_keys(text)
    assert "SECRET" not in str(raised.value)


def test_too_many_keys_are_refused() -> None:
    """Everything has a maximum."""
    with pytest.raises(SettingsError, match="more than 16"):
        parse_keys(",".join([key_text(KEY)] * 17))
