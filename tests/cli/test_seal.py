"""The commands for what is sealed: counted by key, and brought under another one."""

import base64
import io
import json
import sqlite3
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console
from tests.cli.commands import GATEWAY, Ran, Run

from payrelay.cli.terminal.pages import progress_bar

OLD: Final = base64.urlsafe_b64encode(b"o" * 32).decode()
NEW: Final = base64.urlsafe_b64encode(b"n" * 32).decode()


def seal(run: Run, *arguments: str, keys: str) -> Ran:
    """Runs a command with these keys."""
    return run("seal", *arguments, PAYRELAY_ENCRYPTION_KEY=keys, **GATEWAY)


def status(run: Run, *, keys: str) -> dict[str, dict[str, int]]:
    """Gives what the status says, where anything is sealed."""
    shown = json.loads(seal(run, "status", "--json", keys=keys).out)
    return {name: counts for name, counts in shown["sealed"].items() if counts}


@pytest.fixture
def begun(run: Run) -> Run:
    """Begins a database under the old key."""
    assert run("db", "upgrade", PAYRELAY_ENCRYPTION_KEY=OLD).code == 0
    return run


def test_a_new_key_is_one_that_the_setting_takes(run: Run) -> None:
    """Nobody should have to know how 32 bytes are written; two are never the same."""
    first, second = run("seal", "new-key"), run("seal", "new-key")

    assert (first.code, len(base64.urlsafe_b64decode(first.out.strip())), first.out == second.out) == (0, 32, False)
    assert run("db", "upgrade", PAYRELAY_ENCRYPTION_KEY=first.out.strip()).code == 0
    assert seal(run, "status", keys=first.out.strip()).code == 0


def test_everything_comes_under_the_first_key(begun: Run) -> None:
    """Then the older key opens nothing, and the newer one alone is enough."""
    assert set(status(begun, keys=f"{NEW},{OLD}")) == {"meta.value"}
    ran = seal(begun, "rotate", keys=f"{NEW},{OLD}")
    again = seal(begun, "rotate", keys=f"{NEW},{OLD}")

    assert (ran.code, again.code, ran.out) == (0, 0, "")
    assert ran.err.startswith("All ")
    assert again.err.startswith("All 0 values")
    assert seal(begun, "status", keys=NEW).code == 0
    refused = seal(begun, "status", keys=OLD)
    assert (refused.code, "is not the key that this database was sealed with" in refused.err) == (2, True)


def test_the_status_names_each_key(begun: Run) -> None:
    """An operator sees which key may be taken away."""
    shown = seal(begun, "status", keys=f"{NEW},{OLD}").out.splitlines()

    assert shown[0].split()[2::2] == ["seals", "opens"]
    assert shown[2].split()[0] == "meta.value"


def _spoil(folder: Path) -> None:
    connection = sqlite3.connect(folder / "payrelay.db")
    connection.execute("INSERT INTO meta (name, value) VALUES ('strange', ?)", (b"\x01xxxx" + bytes(64),))
    connection.commit()
    connection.close()


def test_what_can_not_be_opened_is_named(begun: Run, tmp_path: Path) -> None:
    """It is left alone, and the exit code says that not all is well."""
    _spoil(tmp_path)
    ran = seal(begun, "rotate", keys=f"{NEW},{OLD}")

    assert ran.code == 1
    assert "meta.value strange: can't be opened with any of the keys" in ran.err
    assert "unknown" in seal(begun, "status", keys=f"{NEW},{OLD}").out


def test_neither_command_shows_a_key(begun: Run, tmp_path: Path) -> None:
    """What they name of a key is four bytes of a hash."""
    _spoil(tmp_path)
    shown = [*seal(begun, "status", keys=f"{NEW},{OLD}"), *seal(begun, "rotate", keys=f"{NEW},{OLD}")]

    assert not any(key in str(text) for key in (OLD, NEW, "oooo", "nnnn") for text in shown)


def test_a_person_sees_a_bar() -> None:
    """A large database takes minutes; whoever looks on sees how far it is."""
    stream = io.StringIO()
    with progress_bar(Console(file=stream, force_terminal=True, width=80)) as bar:
        task = bar.add_task("sealing", total=4)
        bar.update(task, advance=2, description="operations.sealed_call")

    assert "2/4" in stream.getvalue()
