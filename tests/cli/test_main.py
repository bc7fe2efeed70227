import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module, metadata
from pathlib import Path
from typing import Final

import pytest
import typer
from tests.cli.commands import GATEWAY, Ran, Run
from tests.sources import OURS, module_name

from payrelay.cli.main import FILES
from payrelay.cli.terminal.messages import missing_package

HEAVY: Final = {
    *("aiohttp", "asyncpg", "cryptography", "granian", "jinja2", "joserfc", "rich", "sqlite3", "structlog", "uvloop"),
}
"""What takes long to load: web server and client, databases' drivers, cryptography, pages, tables."""
NEVER_FOR_THE_LIST: Final = {"asyncio", "pydantic"}
"""What the list of all commands does without, so that it stays within 0.3 s of processor time."""
LISTS_LOADED: Final = """
import json, sys
from payrelay.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


READING: Final = (
    ("operations", "list"),
    ("operations", "show", "op_1"),
    ("operations", "decide", "op_1", "failed", "--reason", "gone", "--yes"),
    ("payments", "list"),
    ("payments", "show", "320"),
    ("checkouts", "list"),
    ("checkouts", "show", "chk_1"),
    ("subscriptions", "list"),
    ("subscriptions", "show", "420"),
    ("customers", "list"),
    ("customers", "erase", "cus_1", "--yes"),
    ("notifications", "list"),
    ("endpoints", "list"),
    ("events", "list", "--name", "shop"),
    ("keys", "list"),
    ("keys", "revoke", "abcdefghijkl"),
    ("audit", "verify"),
    ("seal", "status"),
    ("client-tokens", "rotate-key"),
    ("db", "version"),
    ("resume", "gateway"),
)


@pytest.mark.parametrize("typed", READING, ids=" ".join)
def test_a_database_that_is_not_there_is_named_and_not_made(run: Run, tmp_path: Path, typed: tuple[str, ...]) -> None:
    """A command in the wrong directory would otherwise say of an empty database that nothing needs an operator."""
    ran = run(*typed, **GATEWAY)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("payrelay: payrelay.db: there is no database; PAYRELAY_DATABASE_URL says where it is")
    assert list(tmp_path.iterdir()) == []


def test_what_makes_keys_makes_the_database(run: Run, tmp_path: Path) -> None:
    """Whoever sets the service up begins with a key, and there is no step to forget before it."""
    assert run("keys", "create", "--name", "shop").out.startswith("prk_")
    assert (tmp_path / "payrelay.db").exists()
    assert int(run("db", "version").out) >= 1


def test_an_upgrade_beforehand_does_all_that_a_start_does(run: Run, tmp_path: Path) -> None:
    """A start after it has nothing left to do."""
    assert run("db", "upgrade").code == 0

    with closing(sqlite3.connect(tmp_path / "payrelay.db")) as database:
        names = {row[0] for row in database.execute("SELECT name FROM meta")}
    assert names >= {"key_check", "chain_key"}


@pytest.mark.parametrize("typed", ["version", "--version"])
def test_the_version_is_told(run: Run, typed: str) -> None:
    """The first question of every report of a fault."""
    assert run(typed) == Ran(0, f"payrelay {metadata.version('payrelay')}\n", "")


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({}, "no gateway is configured: set PAYRELAY_GATEWAYS__GATEWAY__APP_ID and"),
        ({"PAYRELAY_REPEAT_WINDOW": "x"}, "PAYRELAY_REPEAT_WINDOW must be"),
        ({**GATEWAY, "PAYRELAY_DATABASE_URL": "sqlite:///none/x.db"}, "none/x.db"),
        ({**GATEWAY, "PAYRELAY_DATABASE_URL": "postgresql://127.0.0.1:1/x"}, "PAYRELAY_ENCRYPTION_KEY is"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(run: Run, variables: dict[str, str], line: str) -> None:
    """On standard error, with exit code 2, and without a traceback: for people as text, for programs as their log."""
    as_text, as_json = run("serve", "--log-format", "text", **variables), run("serve", **variables)

    assert (as_text.code, as_text.out, as_text.err.count("\n")) == (2, "", 1)
    assert as_text.err.startswith(f"payrelay: {line}")
    told = json.loads(as_json.err)
    assert (as_json.code, as_json.out, told["level"], told["event"]) == (2, "", "error", "start_failed")
    assert told["reason"].startswith(line)


def test_a_mistyped_start_is_a_line_of_the_log(run: Run) -> None:
    """A collector of logs that meets plain text there drops it, or the whole batch."""
    assert "No such option" in json.loads(run("serve", "--prot", "80").err)["reason"].replace("no such", "No such")


@pytest.mark.process
@pytest.mark.parametrize(
    "typed", [["--help"], ["-h"], ["keys", "--help"], ["operations", "decide", "--help"]], ids=" ".join
)
def test_help_waits_for_nothing_that_it_does_not_need(typed: list[str]) -> None:
    """Whoever asks how a command is typed has the answer at once; a server or a database takes seconds to load."""
    ended = subprocess.run(
        [sys.executable, "-c", LISTS_LOADED, *typed], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(ended.stderr.splitlines()[-1]))

    assert "Usage: payrelay" in ended.stdout
    assert loaded & HEAVY == set()
    assert loaded & {"payrelay.app", "payrelay.store", "payrelay.settings", "payrelay_simulator"} == set()
    assert loaded & NEVER_FOR_THE_LIST == set() or len(typed) > 1


@pytest.mark.process
def test_a_command_loads_no_other_groups_file() -> None:
    """A group's file is read when the group is named."""
    ended = subprocess.run(
        [sys.executable, "-c", LISTS_LOADED, "keys", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(ended.stderr.splitlines()[-1]))

    groups = {name for name in loaded if re.fullmatch(r"payrelay\.cli\.\w+", name)}
    assert groups == {"payrelay.cli.keys", "payrelay.cli.main", "payrelay.cli.session", "payrelay.cli.terminal"}


def test_every_command_that_a_file_declares_is_named() -> None:
    """One that `main` forgot could not be typed; one that no file declares would end in a traceback."""
    declaring = {module_name(source) for source in OURS if re.search(r"^app = group\(", source.text, re.MULTILINE)}
    declared: dict[str | None, str] = {}
    for name in declaring:
        group = typer.main.get_group(import_module(name).app)
        declared |= dict.fromkeys([group.name] if group.name else group.commands, name)

    assert declared == {name.rpartition(" ")[2]: module for name, module in FILES.items()}


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(run: Run) -> None:
    """Of all that there are, though none of them was loaded."""
    ran = run("operation")

    assert ran.code == 2
    assert "Did you mean 'operations'" in ran.err


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (("operations", "list", "--stat", "x"), "no such option: --stat (Possible options: --state). See payrelay op"),
        (("keys", "create"), "missing option '--name'. See payrelay keys create --help"),
        (("operations", "list", "--limit"), "option '--limit' requires an argument. See payrelay operations list"),
        (("operations", "decide", "x", "y"), "invalid value for 'OUTCOME': 'y' is not one of 'succeeded', 'failed'. S"),
        (("op\x1b[31m",), "no such command 'op\\x1b[31m'. See payrelay --help"),
        (("completion", "csh"), "invalid value for 'SHELL': 'csh' is not one of 'bash', 'zsh', 'fish'. See payrelay"),
    ],
)
def test_what_is_typed_wrong_is_told_in_one_line(run: Run, typed: tuple[str, ...], line: str) -> None:
    """Like every other error: on standard error, with exit code 2, and with the way to the command's help."""
    ran = run(*typed)

    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"payrelay: {line}")


def test_a_group_without_a_command_is_answered_with_its_help(run: Run) -> None:
    """On standard error, because it is no answer to what was asked; the exit code says so too."""
    ran = run("keys")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == run("keys", "--help").out


@pytest.mark.process
def test_a_service_without_tracing_loads_nothing_of_it() -> None:
    """Who traces nothing installs no library for it, and pays nothing."""
    loaded = "import payrelay.server, payrelay.cli.program, sys; print('opentelemetry' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.process
def test_a_service_without_a_console_loads_nothing_of_it() -> None:
    """Every restart waits for what is loaded: passkeys, forms and templates of the console are a tenth of that."""
    loaded = "import payrelay.server, payrelay.cli.program, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60, check=True)
    loaded_modules = set(ran.stdout.split())
    assert "payrelay.app" in loaded_modules
    assert loaded_modules & {"payrelay.console.opening", "fido2", "segno"} == set()


@pytest.mark.process
def test_a_service_with_an_embedded_database_loads_no_servers_driver_no_client_and_no_colours(tmp_path: Path) -> None:
    """Each stays in memory as long as the process: seventeen megabytes of ninety, which nothing uses."""
    code = """if True:
        import asyncio, sys
        from payrelay.cli.session import loading
        with loading():
            from payrelay import server
            from payrelay.cli.terminal.stray_lines import service_log
        from payrelay.clock import Clock
        from payrelay.store import open_database, status_of, watch_server

        async def opened(url):
            database = await open_database(url, clock=Clock(), owner=True)
            watch_server(database, None)
            assert status_of(database) is not None
            await database.close()

        with service_log(is_text=False, level=20):
            asyncio.run(opened(sys.argv[1]))
        print(*sys.modules)
    """
    url = f"sqlite:///{tmp_path / 'payrelay.db'}"
    ran = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, timeout=60, check=True)
    loaded_modules = set(ran.stdout.split())
    assert "payrelay.app" in loaded_modules
    assert loaded_modules & {"aiohttp", "asyncpg", "rich", "pygments"} == set()


def test_only_a_package_of_ours_is_said_to_be_missing() -> None:
    """An installation that is broken otherwise shows where, and nobody is sent to install what is there."""
    said = missing_package(ModuleNotFoundError("", name="payrelay_tools"))
    assert said == "payrelay-tools is needed, which is not installed: pip install 'payrelay[tools]'"
    for name in ("rich", "payrelay_tools.laravel.rows", "payrelay.core", None):
        with pytest.raises(ModuleNotFoundError):
            missing_package(ModuleNotFoundError("", name=name))
