from importlib import metadata
from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Run


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
