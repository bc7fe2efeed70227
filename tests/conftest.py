"""What any test may ask for: a real PostgreSQL server, on a Unix socket in a folder of its own, and commands."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import asyncpg
import pytest
from tests.commands import Ran, Run

from payrelay.cli import main

_INSTALLED: Final = Path("/usr/lib/postgresql")
_START_TIMEOUT_S: Final = 60
_SETTINGS: Final = (
    "listen_addresses=",
    "max_connections=200",
    "fsync=off",  # what a process wrote outlives its end all the same; only a machine's end would lose it
    "shared_buffers=32MB",
    "autovacuum=off",
)


class PostgresqlServer(NamedTuple):
    """A running server, and the folder that holds all of it."""

    folder: Path
    programs: Path

    def url(self, database: str = "postgres", **settings: str) -> str:
        """Gives the address of a database; settings such as ``search_path`` apply to its sessions."""
        options = "".join(f"&{name}={quote(value)}" for name, value in settings.items())
        return f"postgresql://payrelay@/{database}?host={quote(str(self.folder))}{options}"

    def start(self) -> None:
        """Starts it, and returns when it takes connections."""
        options = " ".join(f"-c {setting}" for setting in (*_SETTINGS, f"unix_socket_directories={self.folder}"))
        self._control("start", "-t", str(_START_TIMEOUT_S), "-l", str(self.folder / "log"), "-o", options)

    def stop(self) -> None:
        """Stops it by its own pid, at once, as a crash would."""
        self._control("stop", "-m", "immediate")

    def _control(self, *arguments: str) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", *arguments)

    def run(self, program: str, *arguments: str) -> None:
        """Runs one of the server's programs. As root it runs as another user, because they refuse root."""
        # The output goes to a file: a pipe would stay open in the server, and be waited for.
        with (self.folder / "output").open("ab") as output:
            command = [str(self.programs / program), *arguments]
            subprocess.run(command, check=True, cwd=self.folder, user=_user(), stdout=output, stderr=output)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Starts a server for the session; skips where its programs are missing, but fails in CI."""
    programs = _programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail("PostgreSQL server programs not found")
        pytest.skip("PostgreSQL server programs not found")
    # The path of a Unix socket has at most 107 bytes, which pytest's own folders may exceed.
    server = PostgresqlServer(Path(tempfile.mkdtemp(prefix="payrelay-pg-")), programs)
    try:
        user = _user()
        if user is not None:
            os.chown(server.folder, pwd.getpwnam(user).pw_uid, -1)
        server.run("initdb", "-D", str(server.folder / "data"), "-U", "payrelay", "-A", "trust", "-E", "UTF8", "-N")
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
async def postgresql_url(postgresql_server: PostgresqlServer) -> AsyncIterator[str]:
    """Gives a test an empty schema of its own."""
    schema = f"test_{secrets.token_hex(8)}"
    await _execute(postgresql_server, f"CREATE SCHEMA {schema}")
    yield postgresql_server.url(search_path=schema)
    await _execute(postgresql_server, f"DROP SCHEMA {schema} CASCADE")


async def _execute(server: PostgresqlServer, statement: str) -> None:
    connection = await asyncpg.connect(server.url())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _programs() -> Path | None:
    """Finds the folder with the server's programs, of the newest version that is installed."""
    newest = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]), reverse=True)
    found = str(newest[0]) if newest else shutil.which("initdb")
    return Path(found).parent if found else None


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


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
