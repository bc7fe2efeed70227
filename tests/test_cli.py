"""The commands as they are typed: the short ones in this process, the serving ones as programs of their own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import IO, Final, NamedTuple

import pytest

from payrelay.cli import main
from payrelay.core.credentials import DEFAULT_SCOPES, Scope, id_of_key
from payrelay_simulator import DEFAULT_MERCHANT

PROGRAM: Final = (sys.executable, "-m", "payrelay")
GATEWAY: Final = {
    "PAYRELAY_GATEWAYS__GATEWAY__APP_ID": DEFAULT_MERCHANT.app_id,
    "PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": DEFAULT_MERCHANT.app_secret,
}


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs commands in an empty folder, with no settings but those that are named."""
    monkeypatch.chdir(tmp_path)

    def run_one(*arguments: str, **variables: str) -> Ran:
        with monkeypatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            code = 0
            try:
                main(arguments)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_one


@contextmanager
def program(folder: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Starts a command in a folder, and ends it at last if the test did not."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYRELAY_")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def read_until(stream: IO[str] | None, pattern: str) -> str:
    """Reads lines until one fits; gives all of them."""
    assert stream is not None
    lines = ""
    for line in stream:
        lines += line
        if re.search(pattern, line):
            return lines
    pytest.fail(f"the program ended without {pattern!r} in {lines!r}")


def status_of(address: str) -> int:
    """Gives the HTTP status that a GET gets."""
    try:
        with urllib.request.urlopen(address, timeout=10) as response:  # noqa: S310  an address of our own making
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


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
    options = "--name shop --scope payments:read --account a --account b --max-amount 99.5 --rate 100/60s --expires 30d"
    run("keys", "create", *options.split())
    [row] = json.loads(run("keys", "list", "--json").out)

    assert row["scopes"] == ["payments:read"]
    assert row["accounts"] == ["a", "b"]
    assert (row["max_amount"], row["rate"]) == ("99.50", "100/60s")
    assert row["expires_at"] > row["created_at"]


def test_a_mistyped_scope_is_answered_with_the_right_ones(run: Run) -> None:
    """Nobody has to look them up."""
    ran = run("keys", "create", "--name", "shop", "--scope", "payments:write", COLUMNS="400")

    assert ran.code == 2
    assert all(scope in ran.err for scope in Scope)


@pytest.mark.parametrize(
    "options",
    ["--rate fast", "--expires 0", "--expires soon", "--max-amount lots", "--max-amount -1", "--account A/b"],
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
    key = run("keys", "create", "--name", "shop", "--rate", "100/60s", "--account", "main").out.strip()
    out = run("keys", "list", COLUMNS="200").out

    assert all(text in out for text in ("shop", "the default scopes", "100/60s", "on main", "never"))
    assert key[-40:] not in out


def test_the_database_is_made_by_whatever_comes_first(run: Run, tmp_path: Path) -> None:
    """There is no step to forget."""
    ran = run("db", "version")

    assert int(ran.out) >= 1
    assert (tmp_path / "payrelay.db").exists()
    assert run("db", "upgrade").code == 0


def test_the_version_is_told(run: Run) -> None:
    """The first question of every report of a fault."""
    assert run("version").out == f"payrelay {metadata.version('payrelay')}\n"


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({}, "payrelay: no gateway is configured: set PAYRELAY_GATEWAYS__GATEWAY__APP_ID and"),
        ({"PAYRELAY_REPEAT_WINDOW": "x"}, "payrelay: PAYRELAY_REPEAT_WINDOW must be"),
        ({**GATEWAY, "PAYRELAY_DATABASE_URL": "sqlite:///none/x.db"}, "payrelay: none/x.db"),
        ({**GATEWAY, "PAYRELAY_DATABASE_URL": "postgresql://127.0.0.1:1/x", "PAYRELAY_ENCRYPTION_KEY": "A" * 43}, ""),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(run: Run, variables: dict[str, str], line: str) -> None:
    """On standard error, with exit code 2, and without a traceback."""
    ran = run("serve", **variables)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(line)
    assert ran.err.count("\n") == 1


def test_check_names_everything_that_is_wrong(run: Run) -> None:
    """It goes on behind the first finding; nothing listens at that address."""
    ran = run("check", **GATEWAY, PAYRELAY_GATEWAYS__GATEWAY__BASE_URL="http://127.0.0.1:1")

    assert ran.code == 1
    assert "✓ settings: complete; gateway accounts: gateway (sandbox)" in ran.out
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


def test_check_notices_a_lost_encryption_key(run: Run, tmp_path: Path) -> None:
    """Before the server does not start."""
    assert "✓ encryption key: " in run("check").out
    (tmp_path / "payrelay.db.key").unlink()

    assert "✗ encryption key: payrelay.db.key" in run("check").out


@pytest.mark.slow
def test_serve_beside_commands_and_to_its_end(tmp_path: Path) -> None:
    """One server, checked and given keys while it runs, refuses a second one and ends cleanly when it is told to."""
    with program(tmp_path, "simulate", "--port", "0") as simulator:
        found = re.search(r"at (\S+)", read_until(simulator.stdout, "app_id="))
        assert found is not None
        variables = {**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": found[1]}
        with program(tmp_path, "serve", "--port", "0", **variables) as server:
            address = json.loads(read_until(server.stdout, "serving"))["address"]
            assert status_of(f"{address}/health/ready") == 200
            assert status_of(f"{address}/gateway/api/subscriptions") == 401

            assert ended(tmp_path, "check", **variables).code == 0
            assert ended(tmp_path, "keys", "create", "--name", "shop", **variables).code == 0
            second = ended(tmp_path, "serve", "--port", "0", **variables)
            assert (second.code, second.err.count("\n")) == (2, 1)
            assert "another Payrelay process" in second.err

            port_taken = ended(
                tmp_path,
                "serve",
                "--port",
                address.rpartition(":")[2],
                **variables,
                PAYRELAY_DATABASE_URL="sqlite:///b",
            )
            assert (port_taken.code, port_taken.err.count("\n")) == (2, 1)
            assert "can't listen on 127.0.0.1:" in port_taken.err

            server.send_signal(signal.SIGTERM)
            out, err = server.communicate(timeout=30)
            assert (server.returncode, err) == (0, "")
            assert '"has_finished":true' in out


def ended(folder: Path, *arguments: str, **variables: str) -> Ran:
    """Runs a command to its end, as a program of its own."""
    with program(folder, *arguments, **variables) as process:
        out, err = process.communicate(timeout=30)
        return Ran(process.returncode, out, err)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the calls are curl's")
def test_every_call_that_the_demo_prints_works_as_it_stands(tmp_path: Path) -> None:
    """It is the first thing that a newcomer does; twice, because people do things twice."""
    with program(tmp_path, "demo", "--port", "0") as demo:
        text = read_until(demo.stdout, "ends the")
        calls = re.findall(r"^curl .*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
        assert len(calls) == 9
        for call in calls * 2:
            answered = subprocess.run(["sh", "-c", call], capture_output=True, text=True, check=True, timeout=30)
            assert json.loads(answered.stdout)["status"] == 1

        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=30)
        assert (demo.returncode, err) == (0, "")


@pytest.mark.slow
def test_the_demo_begins_anew_and_beside_another_one(tmp_path: Path) -> None:
    """A second start in the same folder works; one elsewhere takes another port where the usual one is taken."""
    (tmp_path / "other").mkdir()
    for _ in range(2):
        with program(tmp_path, "demo") as demo, program(tmp_path / "other", "demo") as other:
            addresses = {re.search(r"http://\S+", read_until(each.stdout, "service")) for each in (demo, other)}
            assert len({found[0] for found in addresses if found}) == 2
            for each in (demo, other):
                each.send_signal(signal.SIGTERM)
                each.communicate(timeout=30)
                assert each.returncode == 0


@pytest.mark.slow
def test_a_second_demo_in_the_same_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    """It would remove the first one's data under it."""
    with program(tmp_path, "demo", "--port", "0") as demo:
        read_until(demo.stdout, "ends the")
        second = ended(tmp_path, "demo", "--port", "0")

        assert (second.code, second.err.count("\n")) == (2, 1)
        assert "another Payrelay process" in second.err
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=30)
