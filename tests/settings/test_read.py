from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.settings.given import GATEWAY, KEY, error_line, of, payhere

from payrelay.errors import SettingsError
from payrelay.settings import Settings, child_environment, read_settings


def test_nothing_at_all_is_a_usable_configuration(tmp_path: Path) -> None:
    """Commands such as `keys create` need only a database, and there is a default for that."""
    settings = of(tmp_path)

    assert settings.embedded_path == Path("payrelay.db")
    assert settings.gateways == {}
    assert settings.repeat_window == 86_400


def test_several_accounts_stand_side_by_side(tmp_path: Path) -> None:
    """Each is mounted at its own name, in lower case."""
    names = (
        "GATEWAYS__SHOP__APP_ID",
        "GATEWAYS__SHOP__APP_SECRET",
        "GATEWAYS__Two__APP_ID",
        "GATEWAYS__Two__APP_SECRET",
    )

    assert set(of(tmp_path, **dict.fromkeys(names, "x")).gateways) == {"shop", "two"}


@pytest.mark.parametrize(
    "name",
    [
        "DATABSE_URL",
        "GATEWAYS",
        "GATEWAYS__GATEWAY",
        "GATEWAYS__GATEWAY__APP__ID",
        "DATABASE_URL__X",
        "GATEWAY__X__APP_ID",
        "GATEWAYS_FILE",
    ],
)
def test_what_is_not_a_setting_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """A mistyped setting that passes in silence leaves its default in force."""
    assert error_line(tmp_path, **{name: "x"}) == f"PAYRELAY_{name} is not a setting"


def test_a_mistyped_field_of_a_gateway_is_refused_by_name(tmp_path: Path) -> None:
    """A mistyped field of an account would leave its default in force as well."""
    with pytest.raises(SettingsError, match=r"^PAYRELAY_GATEWAYS__GATEWAY__APPSECRET is not a setting$"):
        read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__APPSECRET": "x"}, tmp_path)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """The line says what to set, in the form in which it is set."""
    line = error_line(tmp_path, GATEWAYS__SHOP__APP_ID="x")

    assert line == "PAYRELAY_GATEWAYS__SHOP__APP_SECRET is missing"


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    """Nobody starts a program six times to learn of six mistakes."""
    line = error_line(tmp_path, REPEAT_WINDOW="x", PUBLIC_URL="x")

    assert "PAYRELAY_REPEAT_WINDOW must" in line
    assert "PAYRELAY_PUBLIC_URL must" in line


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    """Compose files pass variables on whether they are set or not."""
    assert of(tmp_path, PUBLIC_URL="", ENCRYPTION_KEY="").public_url is None


def test_a_secret_can_be_a_file(tmp_path: Path) -> None:
    """Orchestrators mount secrets as files, mostly with a newline at the end."""
    secret = tmp_path / "secret"
    secret.write_text("hush-hush\n")
    variables = {"PAYRELAY_GATEWAYS__A__APP_ID": "x", "PAYRELAY_GATEWAYS__A__APP_SECRET_FILE": str(secret)}

    assert payhere(read_settings(variables, tmp_path)).app_secret.reveal() == "hush-hush"


def test_a_file_that_is_not_there_is_named_by_its_setting(tmp_path: Path) -> None:
    """The operator looks for the variable, not for the path."""
    line = error_line(tmp_path, ENCRYPTION_KEY_FILE=str(tmp_path / "none"))

    assert line == "PAYRELAY_ENCRYPTION_KEY_FILE names a file that can't be read (No such file or directory)"


@pytest.mark.parametrize("content", [b"x" * 65_537, b"\xff\xfe"])
def test_a_file_that_cannot_hold_a_setting_is_refused(tmp_path: Path, content: bytes) -> None:
    """A wrong path must not swallow a core dump."""
    path = tmp_path / "wrong"
    path.write_bytes(content)

    assert error_line(tmp_path, PUBLIC_URL_FILE=str(path)).startswith("PAYRELAY_PUBLIC_URL_FILE names a file ")


def test_a_value_and_its_file_exclude_each_other(tmp_path: Path) -> None:
    """Nobody can tell which one was meant."""
    line = error_line(tmp_path, PUBLIC_URL="https://a.example", PUBLIC_URL_FILE="x")

    assert line == "PAYRELAY_PUBLIC_URL and PAYRELAY_PUBLIC_URL_FILE are both set; one must go"


def test_the_file_in_the_working_directory_is_read(tmp_path: Path) -> None:
    """The file has the names of the variables, nested; numbers and lists may be written as such."""
    (tmp_path / "payrelay.toml").write_text(
        'repeat_window = 0\ntrusted_proxies = ["10.0.0.0/8"]\n'
        '[gateways.my-shop]\napp_id = "x"\napp_secret = "y"\ntimeout_s = 12\n'
    )
    settings = of(tmp_path)

    assert settings.repeat_window == 0
    assert len(settings.trusted_proxies) == 1
    assert settings.gateways["my-shop"].timeout_s == 12


@pytest.mark.parametrize(
    ("section", "member"),
    [
        (section, member)
        for section, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for member in field.annotation.model_fields
    ],
)
def test_each_member_of_each_section_can_be_set(tmp_path: Path, section: str, member: str) -> None:
    """A setting that the documents name, and that the program calls none, can't be set by anybody."""
    name = f"{section}__{member}".upper()
    assert "is not a setting" not in refusal_of(tmp_path, name)


def refusal_of(tmp_path: Path, name: str) -> str:
    """Gives why a setting can't have a value that few would take; empty where it is taken."""
    try:
        of(tmp_path, **{name: "?"})
    except SettingsError as error:
        return str(error)
    return ""


def test_the_days_of_the_books_may_end_in_another_zone(tmp_path: Path) -> None:
    """The zone decides to which day of the books a payment belongs."""
    assert of(tmp_path, RECONCILIATION__TIMEZONE="Europe/Lisbon").reconciliation.timezone == "Europe/Lisbon"
    line = error_line(tmp_path, RECONCILIATION__TIMEZONE="Mars/Base")
    assert line == "PAYRELAY_RECONCILIATION__TIMEZONE must be a time zone such as Asia/Colombo"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """One value can be changed for one start, setting by setting."""
    (tmp_path / "payrelay.toml").write_text('[gateways.a]\napp_id = "x"\napp_secret = "y"\n')
    gateway = payhere(of(tmp_path, GATEWAYS__A__APP_SECRET="z"))

    assert (gateway.app_id, gateway.app_secret.reveal()) == ("x", "z")


def test_the_file_can_stand_elsewhere(tmp_path: Path) -> None:
    """PAYRELAY_CONFIG names it."""
    (tmp_path / "other.toml").write_text('public_url = "https://pay.example"\n')

    assert of(tmp_path, CONFIG="other.toml").public_url == "https://pay.example"


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    """The default file may be absent; a named one must exist."""
    assert error_line(tmp_path, CONFIG="other.toml") == "PAYRELAY_CONFIG names a file that isn't there"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('database = "x"', "database in payrelay.toml is not a setting"),
        ("[gateways.a]\nappid = 1", "PAYRELAY_GATEWAYS__A__APP_ID is missing"),
        ("[gateways.A]\napp_id = 'x'\napp_secret = 'y'", "PAYRELAY_GATEWAYS__A must be a name of 1 to 32"),
        ("public_url = 'x'\npublic_url_file = 'y'", "PAYRELAY_PUBLIC_URL and PAYRELAY_PUBLIC_URL_FILE are both set"),
        ("[gateways.a]\nkind = ['payhere']", "PAYRELAY_GATEWAYS__A__KIND must be a known kind of gateway"),
        ("[gateways.a]\napp_id = 'x'\napp_secret = 1", "PAYRELAY_GATEWAYS__A__APP_SECRET must be text"),
        ("[gateways.a]\napp_id = 'x'\napp_secret = ''", "PAYRELAY_GATEWAYS__A__APP_SECRET must be text"),
        ("gateways = 1", "PAYRELAY_GATEWAYS must be a valid dictionary"),
        ("hush-hush = ", "payrelay.toml can't be read: "),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    """The file is checked as strictly as the variables are."""
    (tmp_path / "payrelay.toml").write_text(text)

    assert error_line(tmp_path).startswith(line)


def test_a_file_in_the_configuration_file_is_read(tmp_path: Path) -> None:
    """A secret needs no variable to stay out of the configuration file."""
    (tmp_path / "secret").write_text("hush-hush")
    (tmp_path / "payrelay.toml").write_text(f'[gateways.a]\napp_id = "x"\napp_secret_file = "{tmp_path}/secret"\n')

    assert payhere(of(tmp_path)).app_secret.reveal() == "hush-hush"


def test_a_program_that_we_start_sees_none_of_our_settings() -> None:
    """The keys to the gateway and to the database are none of its business."""
    environ = {"PATH": "/bin", "HOME": "/root", "PAYRELAY_ENCRYPTION_KEY": KEY, "payrelay_x": "1"}

    assert child_environment(environ) == {"PATH": "/bin", "HOME": "/root"}
    assert "PATH" in child_environment()
