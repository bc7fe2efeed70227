import json
import shutil
from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Ran, Run

from payrelay.core.access.credential import DEFAULT_SCOPES, Scope, id_of_key

pytestmark = pytest.mark.usefixtures("upgraded_database")


def test_a_key_stands_alone_on_standard_output(run: Run) -> None:
    """`KEY=$(payrelay keys create …)` must hold the key and nothing else; no gateway needs to be configured."""
    ran = run("keys", "create", "--name", "shop")

    assert ran.code == 0
    assert id_of_key(ran.out.removesuffix("\n")) is not None
    assert ran.out.startswith("prk_sandbox_")
    assert "shown this once" in ran.err


def test_a_key_of_a_live_account_says_so(run: Run) -> None:
    """Whoever finds it in a log must see that it moves real money."""
    ran = run("keys", "create", "--name", "shop", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__ENVIRONMENT="live")

    assert ran.out.startswith("prk_live_")


def test_a_key_has_the_usual_scopes_where_none_is_named(run: Run) -> None:
    """All that a shop needs, and not what looks into other people's operations."""
    run("keys", "create", "--name", "shop")
    [row] = json.loads(run("keys", "list", "--json").out)

    assert set(row["scopes"]) == DEFAULT_SCOPES
    assert (row["name"], row["is_usable"], row["accounts"], row["expires_at"]) == ("shop", True, None, None)


def test_a_key_has_the_limits_that_were_named(run: Run) -> None:
    """Each option arrives in the store."""
    options = "--name shop --scope payments:read --max-amount 99.5 --rate 100/60s --payments-max 3 --expires 30d"
    other = {name.replace("GATEWAY__A", "OTHER__A"): value for name, value in GATEWAY.items()}
    run("keys", "create", *options.split(), "--account", "gateway", "--account", "other", **GATEWAY, **other)
    [row] = json.loads(run("keys", "list", "--json").out)

    assert row["scopes"] == ["payments:read"]
    assert row["accounts"] == ["gateway", "other"]
    assert (row["max_amount"], row["rate"], row["payments_max"]) == ("99.50", "100/60s", 3)
    assert "3 for an order" in run("keys", "list", COLUMNS="200").out
    assert row["expires_at"] > row["created_at"]


def test_an_account_that_is_not_there_is_named(run: Run) -> None:
    """The name is mistyped: every call with the key would be refused."""
    ran = run("keys", "create", "--name", "shop", "--account", "gatewey", "--account", "gateway", **GATEWAY)

    assert ran == Ran(2, "", "payrelay: no account is called gatewey here; configured: gateway\n")
    assert run("keys", "list", "--json").out.strip() == "[]"


def test_a_mistyped_scope_is_answered_with_the_right_ones(run: Run) -> None:
    """Nobody has to look them up."""
    ran = run("keys", "create", "--name", "shop", "--scope", "payments:write", COLUMNS="400")

    assert ran.code == 2
    assert all(scope in ran.err for scope in Scope)


@pytest.mark.parametrize(
    "options",
    [
        *("--rate fast", "--payments-max 0", "--payments-max 101", "--expires 0", "--expires soon", "--account A/b"),
        *(f"--max-amount {typed}" for typed in ("lots", "-1", "0", "12,50", "1_0", "1e1", "\u0661\u0660", "1.005")),
    ],
)
def test_a_wrong_limit_makes_no_key(run: Run, options: str) -> None:
    """A key without the limit that was meant would be worse than none."""
    ran = run("keys", "create", "--name", "shop", *options.split())

    assert (ran.code, ran.out) == (2, "")
    assert json.loads(run("keys", "list", "--json").out) == []


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101])
def test_a_name_can_be_read(run: Run, name: str) -> None:
    """It stands in logs and lists."""
    assert run("keys", "create", "--name", name).code == 2


def test_a_revoked_key_is_listed_as_such(run: Run) -> None:
    """It stays in the list, because its operations do."""
    key_id = id_of_key(run("keys", "create", "--name", "shop").out.strip())
    ran = run("keys", "revoke", str(key_id))
    [row] = json.loads(run("keys", "list", "--json").out)

    assert ran.code == 0
    assert row["revoked_at"] is not None
    assert "revoked" in run("keys", "list", COLUMNS="200").out


def test_an_unknown_key_cannot_be_revoked(run: Run) -> None:
    """Whoever mistypes an id must not believe that the key is gone."""
    ran = run("keys", "revoke", "000000000000")

    assert ran == Ran(2, "", "payrelay: there is no key 000000000000 that could be revoked\n")


def test_the_list_shows_limits_and_no_secret(run: Run) -> None:
    """It is shown in meetings."""
    key = run("keys", "create", "--name", "shop", "--rate", "100/60s", "--account", "gateway", **GATEWAY).out.strip()
    out = run("keys", "list", COLUMNS="200").out

    assert all(text in out for text in ("shop", "the default scopes", "100/60s", "on gateway", "never"))
    assert key[-40:] not in out


def test_a_revocation_that_is_not_in_the_list_outside_says_so(run: Run, upgraded_database: Path) -> None:
    """The key is revoked, and a backup from before would bring it back: the operator can still mend the folder."""
    key_id = str(id_of_key(run("keys", "create", "--name", "shop").out.strip()))
    marks = upgraded_database.with_name("payrelay.db.marks")
    shutil.rmtree(marks, ignore_errors=True)
    marks.write_bytes(b"a file in the folder's place")
    ran = run("keys", "revoke", key_id)

    assert ran.code == 0
    assert f"The key {key_id} is revoked.\n" in ran.err
    assert "payrelay.db.marks can't be written: a backup from before would have the key valid again" in ran.err
