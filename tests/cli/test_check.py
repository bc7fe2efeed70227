import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.cli.commands import GATEWAY, Run

from payrelay.app import opened_database, seal_of
from payrelay.clock import Clock
from payrelay.core.secret import Secret
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.settings import Settings
from payrelay.store.database.identity import IdentityStore
from payrelay_simulator import DEFAULT_MERCHANT

pytestmark = pytest.mark.usefixtures("upgraded_database")


def test_check_names_everything_that_is_wrong(run: Run) -> None:
    """It goes on behind the first fault; nothing listens at that address."""
    ran = run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1")

    assert ran.code == 1
    assert "✓ settings: serve can start; gateway accounts: gateway (sandbox)" in ran.out
    assert "✓ database: sqlite:///payrelay.db can be used" in ran.out
    assert "✗ gateway: " in ran.out
    assert DEFAULT_MERCHANT.app_secret not in ran.out


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"PAYRELAY_REPEAT_WINDOW": "x"}, "✗ settings: PAYRELAY_REPEAT_WINDOW must be"),
        ({}, "✗ settings: no gateway is configured"),
        ({"PAYRELAY_DATABASE_URL": "sqlite:///none/x.db"}, "✗ database: none/x.db"),
        ({"PAYRELAY_DATABASE_URL": "postgresql://127.0.0.1:1/x"}, "✗ database: "),
    ],
)
def test_check_says_what_is_wrong(run: Run, variables: dict[str, str], line: str) -> None:
    """In the words in which the start would end."""
    ran = run("check", **variables)

    assert ran.code == 1
    assert line in ran.out


def test_check_warns_of_a_database_that_is_not_there(run: Run, upgraded_database: Path) -> None:
    """Before the first start nothing is wrong; in the wrong directory the line shows which file was meant."""
    upgraded_database.unlink()
    out = run("check").out

    assert "! database: payrelay.db: there is no database; PAYRELAY_DATABASE_URL says where it is" in out
    assert not upgraded_database.exists()


def test_check_says_that_a_newer_database_ends_the_start(run: Run, upgraded_database: Path) -> None:
    """Whoever goes back to the version before hears whether it can serve before the service is down."""
    with closing(sqlite3.connect(upgraded_database)) as database:
        database.execute("INSERT INTO schema_version VALUES (77, 'lanes', 'x', 1)")
        database.commit()
    ran = run("check", **GATEWAY)

    assert ran.code == 1
    assert "✗ database: payrelay.db: the schema has version 77" in ran.out


UNSET: Final = (
    "! alerts: neither PAYRELAY_ALERT_COMMAND nor PAYRELAY_ALERT_URL is set: what needs an operator is only written",
    "! public address: PAYRELAY_PUBLIC_URL is not set: the gateway is told no address for its notifications",
    "! gateway: notifications: MERCHANT_ID and MERCHANT_SECRET are not set: notifications can't be verified",
)


def test_check_warns_of_what_is_missing_and_says_what_that_means(run: Run) -> None:
    """Each of them was found out by a customer who waited, because everything was called complete."""
    out = run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1").out

    assert [line for line in UNSET if line not in " ".join(out.split("\n"))] == []


def test_check_is_content_where_nothing_is_missing(run: Run) -> None:
    """A warning that is always there is read by nobody; what can't be known is said, and is no tick."""
    more = {"MERCHANT_ID": "1", "MERCHANT_SECRET": "s", "BASE_URL": "http://127.0.0.1:1"}
    variables = {f"PAYRELAY_GATEWAYS__GATEWAY__{name}": value for name, value in more.items()}
    own = {"PAYRELAY_PUBLIC_URL": "http://127.0.0.1:9", "PAYRELAY_ALERT_COMMAND": "sh"}
    out = run("check", **GATEWAY, **variables, **own).out

    assert "✓ alerts: operators are told by PAYRELAY_ALERT_COMMAND" in out
    assert "! public address: http://127.0.0.1:9 is an address of this machine or of a private network" in out
    assert "! gateway: notifications: no genuine one has come lately: whether the gateway reaches this service" in out


def test_check_warns_of_a_database_that_anybody_on_the_way_can_be(run: Run) -> None:
    """The host is named, and neither the user nor the password."""
    url = {"PAYRELAY_DATABASE_URL": "postgresql://hush-user:hush-hush@192.0.2.1:1/x?sslmode=require&connect_timeout=1"}
    line = "! way to the database: PAYRELAY_DATABASE_URL doesn't ask for sslmode=verify-full: whoever is on the way to"
    local = {"PAYRELAY_DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    out = run("check", **GATEWAY, **url).out

    assert f"{line} 192.0.2.1 " in out
    assert "hush" not in out
    assert "way to the database" not in run("check", **GATEWAY, **local).out
    elsewhere = {"PAYRELAY_DATABASE_URL": "postgresql:///x?connect_timeout=1", "PGHOST": "192.0.2.1", "PGPORT": "1"}
    assert f"{line} 192.0.2.1 " in run("check", **GATEWAY, **elsewhere).out


def test_check_warns_of_a_console_behind_a_proxy_that_is_not_trusted(run: Run) -> None:
    """There all operators are one address, and one guesser keeps them all out."""
    console = {"PAYRELAY_CONSOLE__ENABLED": "true", "PAYRELAY_CONSOLE__PUBLIC_URL": "https://console.example"}
    trusted = {"PAYRELAY_TRUSTED_PROXIES": "10.0.0.1"}

    assert (
        "! console: https://console.example is behind a proxy, and PAYRELAY_TRUSTED"
        in run("check", **GATEWAY, **console).out
    )
    assert "! console" not in run("check", **GATEWAY, **console, **trusted).out
    assert "! console" not in run("check", **GATEWAY).out


def test_check_tells_which_accounts_are_paused(run: Run) -> None:
    """Whoever wonders why nothing is charged looks here first."""
    run("pause", "gateway", "--reason", "wrong prices", "--by", "ann", **GATEWAY)
    out = run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1").out

    assert "! gateway: paused since 20" in out
    assert "by ann, because “wrong prices”" in out


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("sh -c hush-hush", "✓ alert command: sh can be run"),
        ("/none/such hush-hush", "✗ alert command: /none/such is not a program that can be run"),
    ],
)
def test_check_looks_for_the_alert_command(run: Run, command: str, line: str) -> None:
    """Else the first alert would be the one that shows that it is mistyped."""
    out = run("check", PAYRELAY_ALERT_COMMAND=command).out

    assert line in out
    assert "hush-hush" not in out


@pytest.mark.parametrize("name", ["payrelay.db", "payrelay.db.key"])
def test_check_warns_of_files_that_others_can_read(run: Run, tmp_path: Path, name: str) -> None:
    """A backup that was put back with the usual rights shows every user of the machine what was sealed."""
    assert "! files" not in run("check").out
    (tmp_path / name).chmod(0o644)
    out = run("check").out

    assert f"! files: {name} may be read or changed by other users of this machine (mode 0644): chmod 600" in out
    assert "✓ database" in out


def test_check_notices_a_lost_encryption_key(run: Run, tmp_path: Path) -> None:
    """Before the server does not start."""
    assert "✓ encryption key: " in run("check").out
    (tmp_path / "payrelay.db.key").unlink()

    assert "✗ encryption key: payrelay.db.key" in run("check").out


SIGNING = {
    **GATEWAY,
    "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": "http://127.0.0.1:1",
    "PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_ID": DEFAULT_MERCHANT.merchant_id,
    "PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_SECRET": DEFAULT_MERCHANT.merchant_secret,
}
ELSEWHERE = "PAYRELAY_GATEWAYS__GATEWAY__SIGNS_ELSEWHERE"


@pytest.mark.parametrize(
    ("chosen", "line"),
    [
        ({}, f"! gateway: signed texts: {ELSEWHERE} is not set, which counts as true: an authorization whose reply"),
        ({ELSEWHERE: "true"}, f"✓ gateway: signed texts: {ELSEWHERE} is true: an authorization whose reply is lost"),
        ({ELSEWHERE: "false"}, "✓ gateway: signed texts: nothing but Payrelay signs: a notification can prove"),
    ],
)
def test_check_says_what_a_notification_can_prove(run: Run, chosen: dict[str, str], line: str) -> None:
    """Whoever has chosen nothing learns what that means before the first reply is lost."""
    assert line in run("check", **SIGNING, **chosen).out


async def test_check_says_that_signed_texts_are_lost_with_commits(run: Run, upgraded_database: Path) -> None:
    """The operator promised that nobody else signs, and wonders why each lost authorization is put before him."""
    settings = Settings(database_url=Secret(f"sqlite:///{upgraded_database}"))
    async with opened_database(settings, Clock()) as database:
        identities = IdentityStore(database, await seal_of(settings, database))
        await begin_recovery(identities, Clock(), lost_since_ms=0, operator="dana", note="")
    out = (await asyncio.to_thread(run, "check", **SIGNING, **{ELSEWHERE: "false"})).out

    assert "! gateway: signed texts: the database lost commits, and signed texts with them" in out


def test_check_says_nothing_of_signatures_where_no_notification_is_believed(run: Run) -> None:
    """Without a secret there is nothing to choose."""
    assert "signed texts" not in run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1").out
