import base64
from pathlib import Path

import pytest
from tests.settings.given import GATEWAY, KEY, PROVIDER, error_line, of

from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.settings import read_settings


def test_where_events_may_go_is_read_and_checked(tmp_path: Path) -> None:
    """By default only to public addresses; a mistyped name must not allow or forbid anything unnoticed."""
    assert not of(tmp_path).events.allowed_hosts.names
    allowed = of(tmp_path, EVENTS__ALLOWED_HOSTS="hooks.internal, 10.1.0.0/16").events.allowed_hosts
    assert (set(allowed.names), list(map(str, allowed.networks))) == ({"hooks.internal"}, ["10.1.0.0/16"])
    assert "PAYRELAY_EVENTS__ALLOWED_HOSTS" in error_line(tmp_path, EVENTS__ALLOWED_HOSTS="http://hooks.internal")
    assert error_line(tmp_path, EVENTS__ALLOWED_HOST="x") == "PAYRELAY_EVENTS__ALLOWED_HOST is not a setting"


def test_the_ports_that_events_may_go_to_are_read_and_checked(tmp_path: Path) -> None:
    """At another port than that of https, a public address is somebody's mail server or database."""
    assert of(tmp_path).events.destinations.ports == {443}
    events = of(tmp_path, EVENTS__ALLOWED_PORTS="443, 8443", EVENTS__ALLOWED_HOSTS="hooks.internal").events
    assert events.destinations.ports == {443, 8443}
    assert events.destinations.names == {"hooks.internal"}
    (tmp_path / "payrelay.toml").write_text("[events]\nallowed_ports = [443, 9443]\n")
    assert of(tmp_path).events.destinations.ports == {443, 9443}
    for wrong in (",", "0", "65536", "443,x", "443 8443", "4_43", "-1", "https"):
        assert "PAYRELAY_EVENTS__ALLOWED_PORTS must be ports" in error_line(tmp_path, EVENTS__ALLOWED_PORTS=wrong)


def test_refunds_that_need_no_second_factor_are_read_and_checked(tmp_path: Path) -> None:
    """An amount without its currency would be one of every currency."""
    assert of(tmp_path).console.second_factor_above == {}
    assert of(tmp_path, CONSOLE__SECOND_FACTOR_ABOVE="LKR 50000, USD 200.50").console.second_factor_above == {
        "LKR": 5_000_000,
        "USD": 20_050,
    }
    for wrong in ("50000", "lkr 5", "LKR", "LKR -5", "LKR 5, LKR 6", "LKR 0", "LKR 1.234", "LKR x"):
        line = error_line(tmp_path, CONSOLE__SECOND_FACTOR_ABOVE=wrong)
        assert line.startswith("PAYRELAY_CONSOLE__SECOND_FACTOR_ABOVE ")


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
        ("GATEWAYS__GATEWAY__BASE_URL", "http://192.168.1.5:8600"),
        ("GATEWAYS__GATEWAY__SIMULATOR", "hush-hush"),
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


@pytest.mark.parametrize("address", ["http://127.0.0.1:9090/", "http://localhost:9090", "http://[::1]:9090"])
def test_plain_http_reaches_a_gateway_on_this_machine_only(tmp_path: Path, address: str) -> None:
    """The simulator needs no certificate; the real secrets never go out in clear."""
    settings = read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": address}, tmp_path)

    assert settings.gateways["gateway"].base_url == address.rstrip("/")


def test_the_rate_limit_can_be_off(tmp_path: Path) -> None:
    """For a test double, which counts nothing."""
    settings = read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT": "off"}, tmp_path)

    assert settings.gateways["gateway"].rate_limit is None


def test_networks_are_a_list(tmp_path: Path) -> None:
    """Single addresses are networks of one."""
    proxies = of(tmp_path, TRUSTED_PROXIES="10.0.0.0/8, 192.0.2.7,2001:db8::/32").trusted_proxies

    assert [str(network) for network in proxies] == ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]


def test_keys_rotate_with_the_first_one_sealing(tmp_path: Path) -> None:
    """The old key stays behind the new one until nothing is sealed with it."""
    text = f"{base64.urlsafe_b64encode(b'2' * 32).decode()},{KEY.rstrip('=')}"

    assert of(tmp_path, ENCRYPTION_KEY=text).encryption_key == Secret(text)


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
    assert error_line(tmp_path, ALERT_COMMAND=command).startswith("PAYRELAY_ALERT_COMMAND must be a command such as")


def test_an_alert_command_of_another_kind_is_named(tmp_path: Path) -> None:
    """In a file, too, such a mistake ends the start."""
    (tmp_path / "payrelay.toml").write_text("alert_command = [1]")

    assert error_line(tmp_path).startswith("PAYRELAY_ALERT_COMMAND must be a command such as")


@pytest.mark.parametrize(
    "url", ["https://hooks.example/x?token=hush-hush", "http://127.0.0.1:9/x", "http://localhost/"]
)
def test_an_alert_address_is_read_and_not_printed(tmp_path: Path, url: str) -> None:
    """Such addresses often hold a secret, in their query or in their path."""
    settings = of(tmp_path, ALERT_URL=url, ALERT_COMMAND="/bin/call hush-hush")

    assert settings.alert_url is not None
    assert settings.alert_url.reveal() == url
    assert "hush-hush" not in repr(settings)


@pytest.mark.parametrize("url", ["http://hooks.example/x", "ftp://hooks.example", "hooks.example", "https://x/?a\nb"])
def test_an_alert_address_that_others_could_read_is_refused(tmp_path: Path, url: str) -> None:
    """An alert tells who paid how much for what."""
    assert error_line(tmp_path, ALERT_URL=url).startswith("PAYRELAY_ALERT_URL must be an absolute")


def test_return_links_are_read_and_an_unsafe_one_ends_the_start(tmp_path: Path) -> None:
    """A page leads customers to no other links."""
    links = of(tmp_path, RETURN_LINKS="https://shop.example/*, myshop://").return_links

    assert [(link.scheme, link.host) for link in links] == [("https", "shop.example"), ("myshop", None)]
    for wrong in ("http://shop.example/*", "javascript://", "shop.example", "https://*"):
        assert "PAYRELAY_RETURN_LINKS must" in error_line(tmp_path, RETURN_LINKS=wrong)
    assert "at most 100 links" in error_line(tmp_path, RETURN_LINKS="a://," * 101)


def test_return_links_may_stand_as_a_list(tmp_path: Path) -> None:
    """In the file."""
    (tmp_path / "payrelay.toml").write_text('return_links = ["myshop://"]\n')
    assert [link.scheme for link in of(tmp_path).return_links] == ["myshop"]
    (tmp_path / "payrelay.toml").write_text("return_links = [7]\n")
    assert "PAYRELAY_RETURN_LINKS must be links" in error_line(tmp_path)


def test_a_providers_keys_may_lie_on_this_machine_and_have_a_query(tmp_path: Path) -> None:
    """For a test double, and for providers that name a policy there; with order and price in the token it may pay."""
    changes = {
        "IDENTITY__JWKS_URL": "http://127.0.0.1:9/jwks?policy=1",
        "IDENTITY__ORDER_CLAIM": "order",
        "IDENTITY__AMOUNT_CLAIM": "amount",
        "IDENTITY__CURRENCY_CLAIM": "currency",
        "IDENTITY__SCOPES": " payments:charge , payments:read",
    }
    identity = of(tmp_path, **(PROVIDER | changes)).identity

    assert identity is not None
    assert identity.jwks_url == changes["IDENTITY__JWKS_URL"]
    assert identity.scopes == {"payments:charge", "payments:read"}


@pytest.mark.parametrize(
    "address",
    ["http://192.168.1.5:8600", "http://10.0.0.7", "http://127.0.0.2:1", "http://[fd00::1]:1", "https://sim.example"],
)
def test_a_simulator_may_stand_on_a_private_network(tmp_path: Path, address: str) -> None:
    """A phone must open the simulator's page, and nothing that is worth anything is sent to it."""
    own = {"PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": address, "PAYRELAY_GATEWAYS__GATEWAY__SIMULATOR": "true"}
    settings = read_settings(GATEWAY | own, tmp_path)

    assert settings.gateways["gateway"].base_url == address


@pytest.mark.parametrize(
    "address", ["http://8.8.8.8:8600", "http://sim.example", "http://0.0.0.0:8600", "http://[2001:4860::1]"]
)
def test_a_simulator_is_never_asked_in_clear_elsewhere(tmp_path: Path, address: str) -> None:
    """The setting is for a machine in the same room: a mistyped number must not carry secrets into the world."""
    line = error_line(tmp_path, GATEWAYS__GATEWAY__BASE_URL=address, GATEWAYS__GATEWAY__SIMULATOR="true")

    assert "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL" in line


def test_a_simulator_is_not_the_live_gateway(tmp_path: Path) -> None:
    """A shop that goes live with the simulator's settings would hand over goods for nothing."""
    line = error_line(
        tmp_path,
        GATEWAYS__GATEWAY__BASE_URL="http://192.168.1.5:8600",
        GATEWAYS__GATEWAY__SIMULATOR="true",
        GATEWAYS__GATEWAY__ENVIRONMENT="live",
    )

    assert "simulator" in line


def test_customers_go_back_by_http_only_where_all_accounts_are_simulated(tmp_path: Path) -> None:
    """One real account beside a simulated one has real customers, who must not be led over an open network."""
    near = {
        "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": "http://192.168.1.5:8600",
        "PAYRELAY_GATEWAYS__GATEWAY__SIMULATOR": "true",
        "PAYRELAY_RETURN_LINKS": "http://192.168.1.5:8090/*",
    }
    other = {name.replace("__GATEWAY__", "__OTHER__"): value for name, value in GATEWAY.items()}

    assert read_settings(GATEWAY | near, tmp_path).return_links[0].host == "192.168.1.5:8090"
    for settings in (GATEWAY | near | other, GATEWAY | {"PAYRELAY_RETURN_LINKS": near["PAYRELAY_RETURN_LINKS"]}):
        with pytest.raises(SettingsError, match="PAYRELAY_RETURN_LINKS must be https"):
            read_settings(settings, tmp_path)
