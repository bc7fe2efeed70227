import base64
from pathlib import Path

import pytest

from payrelay.core.access.client_token import USUAL_SCOPES
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.gateways.payhere.settings import PayHereSettings
from payrelay.settings import Settings, read_settings, require_serving, surroundings

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
GATEWAY = {"PAYRELAY_GATEWAYS__GATEWAY__APP_ID": "4OVx", "PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": "hush-hush"}


def of(directory: Path, **variables: str) -> Settings:
    """Reads settings given by their names without PAYRELAY_."""
    return read_settings({f"PAYRELAY_{name}": value for name, value in variables.items()}, directory)


def payhere(settings: Settings) -> PayHereSettings:
    """Gives what only PayHere has of the account called "a"."""
    own: object = settings.gateways["a"]
    assert isinstance(own, PayHereSettings)
    return own


def complaint(directory: Path, **variables: str) -> str:
    """Gives the line that ends the start."""
    with pytest.raises(SettingsError) as caught:
        of(directory, **variables)
    return str(caught.value)


def test_nothing_at_all_is_a_usable_configuration(tmp_path: Path) -> None:
    """Commands such as `keys create` need only a database, and there is a default for that."""
    settings = of(tmp_path)

    assert settings.embedded_path == Path("payrelay.db")
    assert settings.gateways == {}
    assert settings.repeat_window == 86_400


def test_a_gateway_has_its_documented_defaults(tmp_path: Path) -> None:
    """Two variables are enough to reach the sandbox."""
    gateway = read_settings(GATEWAY, tmp_path).gateways["gateway"]

    assert (gateway.kind, gateway.environment, gateway.base_url) == ("payhere", "sandbox", None)
    assert (gateway.rate_limit, gateway.timeout_s, gateway.queue_s) == (RateLimit(20, 10.0), 30, 5)
    assert gateway.timezone == "Asia/Colombo"


def test_where_events_may_go_is_read_and_checked(tmp_path: Path) -> None:
    """Nowhere but to public addresses by default; a mistyped name must not open or shut anything in silence."""
    assert not of(tmp_path).events.allowed_hosts.names
    allowed = of(tmp_path, EVENTS__ALLOWED_HOSTS="hooks.internal, 10.1.0.0/16").events.allowed_hosts
    assert (set(allowed.names), list(map(str, allowed.networks))) == ({"hooks.internal"}, ["10.1.0.0/16"])
    assert "PAYRELAY_EVENTS__ALLOWED_HOSTS" in complaint(tmp_path, EVENTS__ALLOWED_HOSTS="http://hooks.internal")
    assert complaint(tmp_path, EVENTS__ALLOWED_HOST="x") == "PAYRELAY_EVENTS__ALLOWED_HOST is not a setting"


def test_several_accounts_stand_side_by_side(tmp_path: Path) -> None:
    """Each is mounted at its own name, in small letters."""
    names = (
        "GATEWAYS__SHOP__APP_ID",
        "GATEWAYS__SHOP__APP_SECRET",
        "GATEWAYS__Two__APP_ID",
        "GATEWAYS__Two__APP_SECRET",
    )

    assert set(of(tmp_path, **dict.fromkeys(names, "x")).gateways) == {"shop", "two"}


def test_secrets_print_as_stars(tmp_path: Path) -> None:
    """Settings end up in logs and bug reports."""
    text = repr(
        read_settings(
            {
                **GATEWAY,
                "PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_SECRET": "hush-hush",
                "PAYRELAY_DATABASE_URL": "postgresql://me:hush-hush@host/db",
                "PAYRELAY_ENCRYPTION_KEY": KEY,
            },
            tmp_path,
        )
    )

    assert "hush-hush" not in text
    assert KEY not in text
    assert repr(bytes(range(32))) not in text


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
    assert complaint(tmp_path, **{name: "x"}) == f"PAYRELAY_{name} is not a setting"


def test_a_mistyped_field_of_a_gateway_is_refused_by_name(tmp_path: Path) -> None:
    """The same inside an account."""
    with pytest.raises(SettingsError, match=r"^PAYRELAY_GATEWAYS__GATEWAY__APPSECRET is not a setting$"):
        read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__APPSECRET": "x"}, tmp_path)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """The line says what to set, in the form in which it is set."""
    line = complaint(tmp_path, GATEWAYS__SHOP__APP_ID="x")

    assert line == "PAYRELAY_GATEWAYS__SHOP__APP_SECRET is missing"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://me:hush-hush@host/db"),
        ("DATABASE_URL", "sqlite:///"),
        ("REPEAT_WINDOW", "hush-hush"),
        ("REPEAT_WINDOW", "31d"),
        ("ENCRYPTION_KEY", "hush-hush"),
        ("ENCRYPTION_KEY", f"{KEY},hush-hush"),
        ("PUBLIC_URL", "hush-hush"),
        ("PUBLIC_URL", "https://me:hush-hush@host/"),
        ("PUBLIC_URL", "https://host:hush-hush/"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,hush-hush"),
        ("METRICS_NETWORKS", "hush-hush"),
        ("BROWSER_ORIGINS", "hush-hush"),
        ("BROWSER_ORIGINS", "https://shop.example/hush-hush"),
        ("BROWSER_ORIGINS", "https://shop.example/"),
        ("BROWSER_ORIGINS", "https://hush-hush.example:443"),
        ("BROWSER_ORIGINS", "https://Hush-Hush.example"),
        ("GATEWAYS__GATEWAY__KIND", "hush-hush"),
        ("GATEWAYS__GATEWAY__ENVIRONMENT", "hush-hush"),
        ("GATEWAYS__GATEWAY__BASE_URL", "ftp://hush-hush/"),
        ("GATEWAYS__GATEWAY__BASE_URL", "http://hush-hush.example/"),
        ("GATEWAYS__GATEWAY__RATE_LIMIT", "hush-hush"),
        ("GATEWAYS__GATEWAY__RATE_LIMIT", "0/10s"),
        ("GATEWAYS__GATEWAY__TIMEOUT_S", "hush-hush"),
        ("GATEWAYS__GATEWAY__TIMEOUT_S", "0.09"),
        ("GATEWAYS__GATEWAY__TIMEOUT_S", "121"),
        ("GATEWAYS__GATEWAY__TIMEOUT_S", "nan"),
        ("GATEWAYS__GATEWAY__QUEUE_S", "-1"),
        ("GATEWAYS__GATEWAY__QUEUE_S", "61"),
        ("GATEWAYS__GATEWAY__TIMEZONE", "hush-hush"),
        ("GATEWAYS__GATEWAY__TIMEZONE", "../../etc/passwd"),
    ],
)
def test_a_wrong_value_is_named_and_not_shown(tmp_path: Path, name: str, value: str) -> None:
    """One line, with the setting's name; the value may be a secret that was put in the wrong place."""
    with pytest.raises(SettingsError) as caught:
        read_settings({**GATEWAY, f"PAYRELAY_{name}": value}, tmp_path)

    line = str(caught.value)
    assert line.startswith(f"PAYRELAY_{name} must be ")
    assert "hush-hush" not in line
    assert "\n" not in line


def test_an_unknown_kind_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    """Whoever mistyped it reads what to write; the fields of a kind that isn't there can't be judged."""
    line = complaint(tmp_path, GATEWAYS__A__KIND="payther", GATEWAYS__A__COLOUR="red")

    assert line == "PAYRELAY_GATEWAYS__A__KIND must be a kind of gateway that there is: payhere"


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    """Nobody starts a program six times to learn of six mistakes."""
    line = complaint(tmp_path, REPEAT_WINDOW="x", PUBLIC_URL="x")

    assert "PAYRELAY_REPEAT_WINDOW must" in line
    assert "PAYRELAY_PUBLIC_URL must" in line


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    """Compose files pass variables on whether they are set or not."""
    assert of(tmp_path, PUBLIC_URL="", ENCRYPTION_KEY="").public_url is None


@pytest.mark.parametrize("address", ["http://127.0.0.1:9090/", "http://localhost:9090", "http://[::1]:9090"])
def test_plain_http_reaches_a_gateway_on_this_machine_only(tmp_path: Path, address: str) -> None:
    """The simulator needs no certificate; the real secrets never go out in clear."""
    settings = read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": address}, tmp_path)

    assert settings.gateways["gateway"].base_url == address.rstrip("/")


def test_the_rate_limit_can_be_off(tmp_path: Path) -> None:
    """For a test double, which counts nothing."""
    settings = read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT": "off"}, tmp_path)

    assert settings.gateways["gateway"].rate_limit is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "payhere"),
        ("environment", "live"),
        ("base_url", "https://pay.example/base"),
        ("merchant_id", "1210000"),
        ("merchant_secret", Secret("hush-hush")),
        ("rate_limit", RateLimit(5, 60.0)),
        ("timeout_s", 1.5),
        ("queue_s", 0),
        ("timezone", "Europe/Paris"),
    ],
)
def test_every_setting_of_a_gateway_can_be_given(tmp_path: Path, name: str, value: object) -> None:
    """As text, like everything in the environment."""
    text = {Secret("hush-hush"): "hush-hush", RateLimit(5, 60.0): "5/60s"}.get(value, str(value))
    settings = read_settings({**GATEWAY, f"PAYRELAY_GATEWAYS__GATEWAY__{name.upper()}": text}, tmp_path)

    assert getattr(settings.gateways["gateway"], name) == value


def test_networks_are_a_list(tmp_path: Path) -> None:
    """Single addresses are networks of one."""
    proxies = of(tmp_path, TRUSTED_PROXIES="10.0.0.0/8, 192.0.2.7,2001:db8::/32").trusted_proxies

    assert [str(network) for network in proxies] == ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]


def test_keys_rotate_with_the_first_one_sealing(tmp_path: Path) -> None:
    """The old key stays behind the new one until nothing is sealed with it."""
    text = f"{base64.urlsafe_b64encode(b'2' * 32).decode()},{KEY.rstrip('=')}"

    assert of(tmp_path, ENCRYPTION_KEY=text).encryption_key == Secret(text)


def test_a_secret_can_be_a_file(tmp_path: Path) -> None:
    """Orchestrators mount secrets as files, mostly with a newline at the end."""
    secret = tmp_path / "secret"
    secret.write_text("hush-hush\n")
    variables = {"PAYRELAY_GATEWAYS__A__APP_ID": "x", "PAYRELAY_GATEWAYS__A__APP_SECRET_FILE": str(secret)}

    assert payhere(read_settings(variables, tmp_path)).app_secret.reveal() == "hush-hush"


def test_a_file_that_is_not_there_is_named_by_its_setting(tmp_path: Path) -> None:
    """The operator looks for the variable, not for the path."""
    line = complaint(tmp_path, ENCRYPTION_KEY_FILE=str(tmp_path / "none"))

    assert line == "PAYRELAY_ENCRYPTION_KEY_FILE names a file that can't be read (No such file or directory)"


@pytest.mark.parametrize("content", [b"x" * 65_537, b"\xff\xfe"])
def test_a_file_that_cannot_hold_a_setting_is_refused(tmp_path: Path, content: bytes) -> None:
    """A wrong path must not swallow a core dump."""
    path = tmp_path / "wrong"
    path.write_bytes(content)

    assert complaint(tmp_path, PUBLIC_URL_FILE=str(path)).startswith("PAYRELAY_PUBLIC_URL_FILE names a file ")


def test_a_value_and_its_file_exclude_each_other(tmp_path: Path) -> None:
    """Nobody can tell which one was meant."""
    line = complaint(tmp_path, PUBLIC_URL="https://a.example", PUBLIC_URL_FILE="x")

    assert line == "PAYRELAY_PUBLIC_URL and PAYRELAY_PUBLIC_URL_FILE are both set; one must go"


def test_the_file_in_the_working_directory_is_read(tmp_path: Path) -> None:
    """The same names, nested; numbers and lists may be written as such."""
    (tmp_path / "payrelay.toml").write_text(
        'repeat_window = 0\ntrusted_proxies = ["10.0.0.0/8"]\n'
        '[gateways.my-shop]\napp_id = "x"\napp_secret = "y"\ntimeout_s = 12\n'
    )
    settings = of(tmp_path)

    assert settings.repeat_window == 0
    assert len(settings.trusted_proxies) == 1
    assert settings.gateways["my-shop"].timeout_s == 12


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
    """The usual one need not be; one that was asked for is missed."""
    assert complaint(tmp_path, CONFIG="other.toml") == "PAYRELAY_CONFIG names a file that isn't there"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('database = "x"', "database in payrelay.toml is not a setting"),
        ("[gateways.a]\nappid = 1", "PAYRELAY_GATEWAYS__A__APP_ID is missing"),
        ("[gateways.A]\napp_id = 'x'\napp_secret = 'y'", "PAYRELAY_GATEWAYS__A must be a name of 1 to 32"),
        ("public_url = 'x'\npublic_url_file = 'y'", "PAYRELAY_PUBLIC_URL and PAYRELAY_PUBLIC_URL_FILE are both set"),
        ("[gateways.a]\nkind = ['payhere']", "PAYRELAY_GATEWAYS__A__KIND must be a kind of gateway that there is"),
        ("[gateways.a]\napp_id = 'x'\napp_secret = 1", "PAYRELAY_GATEWAYS__A__APP_SECRET must be text"),
        ("[gateways.a]\napp_id = 'x'\napp_secret = ''", "PAYRELAY_GATEWAYS__A__APP_SECRET must be text"),
        ("gateways = 1", "PAYRELAY_GATEWAYS must be a valid dictionary"),
        ("hush-hush = ", "payrelay.toml can't be read: "),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    """The same strictness as for variables."""
    (tmp_path / "payrelay.toml").write_text(text)

    assert complaint(tmp_path).startswith(line)


def test_a_file_in_the_configuration_file_is_read(tmp_path: Path) -> None:
    """A secret needs no variable to stay out of the configuration file."""
    (tmp_path / "secret").write_text("hush-hush")
    (tmp_path / "payrelay.toml").write_text(f'[gateways.a]\napp_id = "x"\napp_secret_file = "{tmp_path}/secret"\n')

    assert payhere(of(tmp_path)).app_secret.reveal() == "hush-hush"


def test_serving_needs_a_gateway(tmp_path: Path) -> None:
    """A server without one answers nothing but errors; the line says which variables to set."""
    with pytest.raises(SettingsError, match="PAYRELAY_GATEWAYS__GATEWAY__APP_ID and PAYRELAY_GATEWAYS__GATEWAY__APP_S"):
        require_serving(of(tmp_path))


def test_a_shared_database_needs_a_key_of_its_own(tmp_path: Path) -> None:
    """Beside the embedded one a key can be made; several processes must be given the same."""
    shared = {**GATEWAY, "PAYRELAY_DATABASE_URL": "postgresql://me@host/db"}

    with pytest.raises(SettingsError, match=r"^PAYRELAY_ENCRYPTION_KEY is missing"):
        require_serving(read_settings(shared, tmp_path))
    require_serving(read_settings({**shared, "PAYRELAY_ENCRYPTION_KEY": KEY}, tmp_path))


def test_a_database_is_shown_without_its_password(tmp_path: Path) -> None:
    """It stands in logs and in what `check` prints."""
    shown = of(tmp_path, DATABASE_URL="postgresql://me:hush-hush@host:5432/db?password=hush-hush").shown_database

    assert shown == "postgresql://me@host:5432/db"


def test_one_live_account_makes_new_keys_live_keys(tmp_path: Path) -> None:
    """A key that can move real money says so in its first letters."""
    live = read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__ENVIRONMENT": "live"}, tmp_path)

    assert live.key_environment == "live"
    assert of(tmp_path).key_environment == "sandbox"


def test_an_alert_command_is_split_as_a_shell_would(tmp_path: Path) -> None:
    """But no shell runs it, so that nothing in it is expanded."""
    assert of(tmp_path, ALERT_COMMAND="/bin/call 'the boss' $HOME").alert_command == ("/bin/call", "the boss", "$HOME")


def test_an_alert_command_can_be_a_list(tmp_path: Path) -> None:
    """In a file there is no need for quoting."""
    (tmp_path / "payrelay.toml").write_text('alert_command = ["/bin/call", "the boss"]')

    assert of(tmp_path).alert_command == ("/bin/call", "the boss")


@pytest.mark.parametrize("command", ["'open", " ", "''  'x"])
def test_an_alert_command_that_is_none_is_named(tmp_path: Path, command: str) -> None:
    """Else the first alert would be the one that shows it."""
    assert complaint(tmp_path, ALERT_COMMAND=command).startswith("PAYRELAY_ALERT_COMMAND must be a command such as")


def test_an_alert_command_of_another_kind_is_named(tmp_path: Path) -> None:
    """The same in a file."""
    (tmp_path / "payrelay.toml").write_text("alert_command = [1]")

    assert complaint(tmp_path).startswith("PAYRELAY_ALERT_COMMAND must be a command such as")


@pytest.mark.parametrize(
    "url", ["https://hooks.example/x?token=hush-hush", "http://127.0.0.1:9/x", "http://localhost/"]
)
def test_an_alert_address_is_kept_and_not_printed(tmp_path: Path, url: str) -> None:
    """Such addresses often hold a secret, in their query or in their path."""
    settings = of(tmp_path, ALERT_URL=url, ALERT_COMMAND="/bin/call hush-hush")

    assert settings.alert_url is not None
    assert settings.alert_url.reveal() == url
    assert "hush-hush" not in repr(settings)


@pytest.mark.parametrize("url", ["http://hooks.example/x", "ftp://hooks.example", "hooks.example", "https://x/?a\nb"])
def test_an_alert_address_that_others_could_read_is_refused(tmp_path: Path, url: str) -> None:
    """An alert tells who paid how much for what."""
    assert complaint(tmp_path, ALERT_URL=url).startswith("PAYRELAY_ALERT_URL must be an absolute")


def test_a_program_that_we_start_sees_none_of_our_settings() -> None:
    """The keys to the gateway and to the database are none of its business."""
    environ = {"PATH": "/bin", "HOME": "/root", "PAYRELAY_ENCRYPTION_KEY": KEY, "payrelay_x": "1"}

    assert surroundings(environ) == {"PATH": "/bin", "HOME": "/root"}
    assert "PATH" in surroundings()


def test_return_links_are_read_and_an_unsafe_one_ends_the_start(tmp_path: Path) -> None:
    """A page of ours goes on to nothing else."""
    links = of(tmp_path, RETURN_LINKS="https://shop.example/*, myshop://").return_links

    assert [(link.scheme, link.host) for link in links] == [("https", "shop.example"), ("myshop", None)]
    for wrong in ("http://shop.example/*", "javascript://", "shop.example", "https://*"):
        assert "PAYRELAY_RETURN_LINKS must" in complaint(tmp_path, RETURN_LINKS=wrong)
    assert "at most 100 links" in complaint(tmp_path, RETURN_LINKS="a://," * 101)


def test_return_links_may_stand_as_a_list(tmp_path: Path) -> None:
    """In the file."""
    (tmp_path / "payrelay.toml").write_text('return_links = ["myshop://"]\n')
    assert [link.scheme for link in of(tmp_path).return_links] == ["myshop"]
    (tmp_path / "payrelay.toml").write_text("return_links = [7]\n")
    assert "PAYRELAY_RETURN_LINKS must be links" in complaint(tmp_path)


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("PREAPPROVAL_AMOUNT_LKR", 1_000),
        ("PREAPPROVAL_AMOUNT_OTHER", 51),
        ("TRIAL_AMOUNT_LKR", 1_000),
        ("TRIAL_AMOUNT_OTHER", 50),
    ],
)
def test_the_gateways_own_amounts_are_settings(tmp_path: Path, name: str, usual: int) -> None:
    """They differ between its environments, and have changed without notice."""
    variable = f"PAYRELAY_GATEWAYS__GATEWAY__{name}"

    assert getattr(read_settings(GATEWAY, tmp_path).gateways["gateway"], name.lower()) == usual
    assert getattr(read_settings({**GATEWAY, variable: "1.01"}, tmp_path).gateways["gateway"], name.lower()) == 101
    for wrong in ("a rupee", "0", "1.001", "-1"):
        with pytest.raises(SettingsError, match=f"{variable} must be an amount such as 10.00"):
            read_settings({**GATEWAY, variable: wrong}, tmp_path)


PROVIDER = {
    "IDENTITY__JWKS_URL": "https://login.example/jwks.json",
    "IDENTITY__ISSUER": "https://login.example/",
    "IDENTITY__AUDIENCE": "payrelay",
    "IDENTITY__PRINCIPAL": "shop",
}


def test_an_identity_provider_needs_four_settings(tmp_path: Path) -> None:
    """With them its people may look, and pay nothing; without them there is none."""
    identity = of(tmp_path, **PROVIDER).identity

    assert of(tmp_path).identity is None
    assert identity is not None
    assert (identity.customer_claim, identity.customer_claim_is, identity.order_claim) == ("sub", "reference", None)
    assert identity.scopes == USUAL_SCOPES
    assert identity.accounts == frozenset()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"IDENTITY__ISSUER": ""}, "PAYRELAY_IDENTITY__ISSUER is missing"),
        ({"IDENTITY__JWKS_URL": "http://login.example/"}, "PAYRELAY_IDENTITY__JWKS_URL must be an absolute https"),
        ({"IDENTITY__JWKS_URL": "login.example"}, "PAYRELAY_IDENTITY__JWKS_URL must be an absolute https"),
        ({"IDENTITY__SCOPES": "payments:refund"}, "PAYRELAY_IDENTITY__SCOPES must be some of checkouts:create, "),
        ({"IDENTITY__SCOPES": "everything"}, "PAYRELAY_IDENTITY__SCOPES must be some of checkouts:create, "),
        ({"IDENTITY__SCOPES": ","}, "PAYRELAY_IDENTITY__SCOPES must be some of checkouts:create, "),
        (
            {"IDENTITY__SCOPES": "payments:read,payments:charge"},
            "PAYRELAY_IDENTITY__SCOPES has payments:charge, which needs PAYRELAY_IDENTITY__ORDER_CLAIM",
        ),
        ({"IDENTITY__CUSTOMER_CLAIM_IS": "email"}, "PAYRELAY_IDENTITY__CUSTOMER_CLAIM_IS must be "),
        ({"IDENTITY__SECRET": "x"}, "PAYRELAY_IDENTITY__SECRET is not a setting"),
        ({"IDENTITY__A__B": "x"}, "PAYRELAY_IDENTITY__A__B is not a setting"),
    ],
)
def test_a_wrong_setting_of_a_provider_is_named(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    """Tokens that are taken by mistake are customers' money."""
    assert complaint(tmp_path, **(PROVIDER | changes)).startswith(line)


def test_a_providers_keys_may_lie_on_this_machine_and_have_a_query(tmp_path: Path) -> None:
    """For a test double, and for providers that name a policy there; with an order in the token it may be paid."""
    changes = {
        "IDENTITY__JWKS_URL": "http://127.0.0.1:9/jwks?policy=1",
        "IDENTITY__ORDER_CLAIM": "order",
        "IDENTITY__SCOPES": " payments:charge , payments:read",
    }
    identity = of(tmp_path, **(PROVIDER | changes)).identity

    assert identity is not None
    assert identity.jwks_url == changes["IDENTITY__JWKS_URL"]
    assert identity.scopes == {"payments:charge", "payments:read"}


def test_a_provider_is_for_accounts_that_are_there(tmp_path: Path) -> None:
    """A mistyped name would shut all of its people out."""
    variables = {f"PAYRELAY_{name}": value for name, value in (PROVIDER | {"IDENTITY__ACCOUNTS": "gatewy"}).items()}

    with pytest.raises(SettingsError, match="PAYRELAY_IDENTITY__ACCOUNTS names gatewy, and no gateway is called so"):
        require_serving(read_settings(GATEWAY | variables, tmp_path))
