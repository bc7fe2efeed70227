from pathlib import Path

import pytest
from tests.settings.given import GATEWAY, KEY, PROVIDER, error_line, of

from payrelay.core.access.client_token import USUAL_SCOPES
from payrelay.core.checkouts.shop import UNNAMED_SHOP, Shop, logo_of
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.settings import read_settings, require_serving


def test_a_gateway_has_its_documented_defaults(tmp_path: Path) -> None:
    """Two variables are enough to reach the sandbox."""
    gateway = read_settings(GATEWAY, tmp_path).gateways["gateway"]

    assert (gateway.kind, gateway.environment, gateway.base_url) == ("payhere", "sandbox", None)
    assert (gateway.rate_limit, gateway.timeout_s, gateway.queue_s) == (RateLimit(20, 10.0), 30, 5)
    assert gateway.timezone == "Asia/Colombo"


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


def test_an_unknown_kind_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    """The operator who mistyped it reads what to write; the fields of an unknown kind can't be checked."""
    line = error_line(tmp_path, GATEWAYS__A__KIND="payther", GATEWAYS__A__COLOUR="red")

    assert line == "PAYRELAY_GATEWAYS__A__KIND must be a known kind of gateway: payhere"


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


def test_a_shop_has_a_name_a_logo_and_a_colour(tmp_path: Path) -> None:
    """The pages of a customer look like it; without them they name no shop."""
    logo = tmp_path / "logo.png"
    logo.write_bytes(b"\x89PNG\r\n\x1a\n")
    of_shop = {"SHOP_NAME": " තේ නිවස ", "SHOP_LOGO": str(logo), "SHOP_COLOUR": "#0b5cad"}
    given = {f"PAYRELAY_GATEWAYS__GATEWAY__{name}": text for name, text in of_shop.items()}
    shop = read_settings({**GATEWAY, **given}, tmp_path).gateways["gateway"].shop

    assert shop == Shop(name="තේ නිවස", logo=logo_of(logo.read_bytes()), colour=(0x0B, 0x5C, 0xAD))
    assert read_settings(GATEWAY, tmp_path).gateways["gateway"].shop == UNNAMED_SHOP


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"SHOP_NAME": "   "}, "SHOP_NAME must be a name of 1 to 60 characters, in one line"),
        ({"SHOP_NAME": "x" * 61}, "SHOP_NAME must be a name of 1 to 60 characters, in one line"),
        ({"SHOP_NAME": "Tea\nHouse"}, "SHOP_NAME must be a name of 1 to 60 characters, in one line"),
        ({"SHOP_COLOUR": "blue"}, "SHOP_COLOUR must be a colour such as #0b5cad"),
        ({"SHOP_NAME": "Tea", "SHOP_LOGO": "/no/such.png"}, "SHOP_LOGO names a file that can't be read (No such file"),
        ({"SHOP_NAME": "Tea", "SHOP_LOGO": "payrelay.toml"}, "SHOP_LOGO must be a PNG, JPEG or WebP picture"),
        ({"SHOP_LOGO": "payrelay.toml"}, "SHOP_LOGO needs SHOP_NAME beside it"),
    ],
)
def test_a_wrong_look_of_a_shop_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], problem: str
) -> None:
    """With a line that says what to write; no customer sees a broken picture."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "payrelay.toml").write_text("")
    variables = {f"PAYRELAY_GATEWAYS__GATEWAY__{name}": text for name, text in given.items()}

    with pytest.raises(SettingsError) as caught:
        read_settings({**GATEWAY, **variables}, tmp_path)
    assert f"PAYRELAY_GATEWAYS__GATEWAY__{problem}" in str(caught.value)


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
    """Logs have it, and `check` prints it."""
    shown = of(tmp_path, DATABASE_URL="postgresql://me:hush-hush@host:5432/db?password=hush-hush").shown_database

    assert shown == "postgresql://me@host:5432/db"


def test_one_live_account_makes_new_keys_live_keys(tmp_path: Path) -> None:
    """A key that can move real money says so in its first letters."""
    live = read_settings({**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__ENVIRONMENT": "live"}, tmp_path)

    assert live.key_environment == "live"
    assert of(tmp_path).key_environment == "sandbox"


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
    for wrong in ("a rupee", "0", "1.001", "-1", "12,50", "1e1", "1_0"):
        with pytest.raises(SettingsError, match=f"{variable} must be an amount such as 10.00"):
            read_settings({**GATEWAY, variable: wrong}, tmp_path)


@pytest.mark.parametrize(
    ("text", "amounts"),
    [("", set()), ("0.00", {0}), ("0, 1.00,1.01", {0, 100, 101}), ("10.00,10.00", {1_000}), ("0,0.0", {0})],
)
def test_amounts_of_approvals_are_listed(tmp_path: Path, text: str, amounts: set[int]) -> None:
    """An operator writes down what the gateway was seen to notify, and that may be nothing."""
    variable = "PAYRELAY_GATEWAYS__GATEWAY__APPROVAL_AMOUNTS"
    account = read_settings({**GATEWAY, variable: text}, tmp_path).gateways["gateway"]

    assert account.approval_amounts == amounts  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", ["a rupee", "1.001", "-1", "1e1", "0e9", "1_0", "1.00;2.00", ",".join(["1"] * 21)])
def test_a_wrong_list_of_amounts_is_no_empty_one(tmp_path: Path, wrong: str) -> None:
    """Approvals would go to an operator one by one, and nobody would know why."""
    variable = "PAYRELAY_GATEWAYS__GATEWAY__APPROVAL_AMOUNTS"
    with pytest.raises(SettingsError, match=f"{variable} must be"):
        read_settings({**GATEWAY, variable: wrong}, tmp_path)


@pytest.mark.parametrize(("text", "chosen"), [("", None), ("true", True), ("false", False)])
def test_whether_others_sign_is_chosen_or_not(tmp_path: Path, text: str, chosen: object) -> None:
    """Not chosen is no false: whoever says nothing is asked for nothing, and believed nothing."""
    variable = "PAYRELAY_GATEWAYS__GATEWAY__SIGNS_ELSEWHERE"

    assert (
        getattr(read_settings({**GATEWAY, variable: text}, tmp_path).gateways["gateway"], variable[-15:].lower())
        is chosen
    )


def test_an_identity_provider_needs_four_settings(tmp_path: Path) -> None:
    """With them, bearers of its tokens may read, and pay nothing; without them there is no identity provider."""
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
        (
            {"IDENTITY__SCOPES": "checkouts:create", "IDENTITY__ORDER_CLAIM": "order"},
            "PAYRELAY_IDENTITY__SCOPES has checkouts:create, which needs PAYRELAY_IDENTITY__AMOUNT_CLAIM",
        ),
        (
            {
                "IDENTITY__SCOPES": "checkouts:create",
                "IDENTITY__ORDER_CLAIM": "order",
                "IDENTITY__AMOUNT_CLAIM": "amount",
            },
            "PAYRELAY_IDENTITY__SCOPES has checkouts:create, which needs PAYRELAY_IDENTITY__CURRENCY_CLAIM",
        ),
        ({"IDENTITY__CUSTOMER_CLAIM_IS": "email"}, "PAYRELAY_IDENTITY__CUSTOMER_CLAIM_IS must be "),
        ({"IDENTITY__SECRET": "x"}, "PAYRELAY_IDENTITY__SECRET is not a setting"),
        ({"IDENTITY__A__B": "x"}, "PAYRELAY_IDENTITY__A__B is not a setting"),
    ],
)
def test_a_wrong_setting_of_a_provider_is_named(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    """Tokens that are accepted by mistake cost customers' money."""
    assert error_line(tmp_path, **(PROVIDER | changes)).startswith(line)


def test_a_provider_is_for_accounts_that_are_there(tmp_path: Path) -> None:
    """A mistyped name would refuse all bearers of its tokens."""
    variables = {f"PAYRELAY_{name}": value for name, value in (PROVIDER | {"IDENTITY__ACCOUNTS": "gatewy"}).items()}

    with pytest.raises(SettingsError, match="PAYRELAY_IDENTITY__ACCOUNTS names gatewy, but no gateway has that name"):
        require_serving(read_settings(GATEWAY | variables, tmp_path))
