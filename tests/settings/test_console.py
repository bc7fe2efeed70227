from pathlib import Path

import pytest
from tests.settings.given import GATEWAY, error_line, of

from payrelay.errors import SettingsError
from payrelay.settings import is_secure, read_settings, require_serving


def test_the_console_is_off_and_safe_unless_it_is_said(tmp_path: Path) -> None:
    """Nothing is served that nobody asked for, and a second factor is needed where nobody says otherwise."""
    console = of(tmp_path).console

    assert (console.enabled, console.address, console.public_url, console.second_factor) == (
        False,
        None,
        None,
        "required",
    )


def test_the_settings_of_the_console_are_read(tmp_path: Path) -> None:
    """Over https the cookies are the host's own."""
    console = of(
        tmp_path,
        CONSOLE__ENABLED="true",
        CONSOLE__ADDRESS="127.0.0.1:8090",
        CONSOLE__PUBLIC_URL="https://console.shop.example",
        CONSOLE__SECOND_FACTOR="optional",
    ).console

    assert (console.enabled, console.address, console.second_factor) == (True, ("127.0.0.1", 8090), "optional")
    assert is_secure(console.public_url)
    assert not is_secure("http://127.0.0.1:8090")
    assert not is_secure(None)


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"CONSOLE__PUBLIC_URL": "http://console.example"}, "PAYRELAY_CONSOLE__PUBLIC_URL must be https; "),
        ({"CONSOLE__PUBLIC_URL": "https://console.example/x"}, "PAYRELAY_CONSOLE__PUBLIC_URL must be an origin as "),
        ({"CONSOLE__ADDRESS": "8090"}, "PAYRELAY_CONSOLE__ADDRESS must be an address and a port"),
        ({"CONSOLE__SECOND_FACTOR": "off"}, "PAYRELAY_CONSOLE__SECOND_FACTOR must be 'required' or 'optional'"),
        ({"CONSOLE__ENABLED": "perhaps"}, "PAYRELAY_CONSOLE__ENABLED must be a valid boolean"),
        ({"CONSOLE__PASSWORD": "x"}, "PAYRELAY_CONSOLE__PASSWORD is not a setting"),
        ({"CONSOLE": "true"}, "PAYRELAY_CONSOLE is not a setting"),
        ({"CONSOLE__PROVIDER_ISSUER": "http://login.example"}, "PAYRELAY_CONSOLE__PROVIDER_ISSUER must be https; "),
        ({"CONSOLE__PROVIDER_ISSUER": "login.example"}, "PAYRELAY_CONSOLE__PROVIDER_ISSUER must be an absolute http"),
        ({"CONSOLE__PROVIDER_REQUIRES": "hd"}, "PAYRELAY_CONSOLE__PROVIDER_REQUIRES must be claims with their values"),
        ({"CONSOLE__PROVIDER_ONLY": "yes!"}, "PAYRELAY_CONSOLE__PROVIDER_ONLY must be a valid boolean"),
    ],
)
def test_a_wrong_setting_of_the_console_is_named(tmp_path: Path, variables: dict[str, str], line: str) -> None:
    """In one line, before anything is served."""
    assert line in error_line(tmp_path, **variables)


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"HOST": "192.0.2.1"}, "PAYRELAY_CONSOLE__PUBLIC_URL is missing"),
        ({"CONSOLE__ADDRESS": "10.0.0.1:8090"}, "PAYRELAY_CONSOLE__PUBLIC_URL is missing"),
        (
            {"GATEWAYS__CONSOLE__APP_ID": "4OVx", "GATEWAYS__CONSOLE__APP_SECRET": "hush"},
            "PAYRELAY_CONSOLE__ADDRESS is missing: an account is called console",
        ),
    ],
)
def test_a_console_that_others_reach_knows_its_address(tmp_path: Path, variables: dict[str, str], line: str) -> None:
    """Else its cookies would go over plain http, and another host's name could lead to it."""
    own = {f"PAYRELAY_{name}": value for name, value in variables.items()}
    settings = read_settings(GATEWAY | own | {"PAYRELAY_CONSOLE__ENABLED": "true"}, tmp_path)
    with pytest.raises(SettingsError, match=line):
        require_serving(settings)
    require_serving(read_settings(GATEWAY | own, tmp_path))
    require_serving(read_settings(GATEWAY | {"PAYRELAY_CONSOLE__ENABLED": "true"}, tmp_path))


PROVIDER = {
    "CONSOLE__ENABLED": "true",
    "CONSOLE__PUBLIC_URL": "https://console.shop.example",
    "CONSOLE__PROVIDER_ISSUER": "https://login.example/",
    "CONSOLE__PROVIDER_CLIENT_ID": "console",
    "CONSOLE__PROVIDER_CLIENT_SECRET": "hush",
}


def test_the_settings_of_a_provider_are_read(tmp_path: Path) -> None:
    """The issuer stays as it is written, the secret prints as stars, and nothing counts that nobody named."""
    console = of(tmp_path, **PROVIDER, CONSOLE__PROVIDER_REQUIRES="hd=shop.example, tid=7").console

    assert console.provider_issuer == "https://login.example/"
    assert console.provider_requires == (("hd", "shop.example"), ("tid", "7"))
    assert (console.provider_email_claim, console.provider_verified_claim) == ("email", "email_verified")
    assert (console.provider_second_factor, console.provider_only) == (frozenset(), False)
    assert "hush" not in repr(console)


def test_the_secret_of_a_provider_is_read_from_a_file(tmp_path: Path) -> None:
    """As every secret is."""
    path = tmp_path / "secret"
    path.write_text("hush\n")
    path.chmod(0o600)
    given = {name: value for name, value in PROVIDER.items() if name != "CONSOLE__PROVIDER_CLIENT_SECRET"}
    console = of(tmp_path, **given, CONSOLE__PROVIDER_CLIENT_SECRET_FILE=str(path)).console

    assert console.provider_client_secret is not None
    assert console.provider_client_secret.reveal() == "hush"


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("PROVIDER_ISSUER", "PAYRELAY_CONSOLE__PROVIDER_ISSUER is missing: PAYRELAY_CONSOLE__PROVIDER_CLIENT_ID says"),
        ("PROVIDER_CLIENT_ID", "PAYRELAY_CONSOLE__PROVIDER_CLIENT_ID is missing"),
        ("PROVIDER_CLIENT_SECRET", "PAYRELAY_CONSOLE__PROVIDER_CLIENT_SECRET is missing"),
        ("PUBLIC_URL", "PAYRELAY_CONSOLE__PUBLIC_URL is missing: the provider leads browsers back to it"),
    ],
)
def test_a_provider_that_lacks_a_setting_ends_the_start(tmp_path: Path, missing: str, line: str) -> None:
    """Also where it is the only way in: nobody is left before a sign-in that leads nowhere."""
    given = {f"PAYRELAY_{name}": value for name, value in PROVIDER.items()}
    require_serving(read_settings(GATEWAY | given, tmp_path))
    del given[f"PAYRELAY_CONSOLE__{missing}"]
    with pytest.raises(SettingsError, match=line):
        require_serving(read_settings(GATEWAY | given, tmp_path))
