"""A real PostgreSQL server of the tests' own, on a Unix socket in a folder that goes away with it."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

_INSTALLED: Final = Path("/usr/lib/postgresql")
_START_TIMEOUT_S: Final = 60
_GONE_WITHIN_S: Final = 30.0
_POLL_S: Final = 0.05
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

    def start(self, *settings: str) -> None:
        """Starts it, with more settings where it needs them, and returns when it takes connections."""
        settings = (*_SETTINGS, f"unix_socket_directories={self.folder}", *settings)
        options = " ".join(f"-c {setting}" for setting in settings)
        self._control("start", "-t", str(_START_TIMEOUT_S), "-l", str(self.folder / "log"), "-o", options)

    def stop(self) -> None:
        """Stops it by its own pid, at once, as a crash would."""
        self._control("stop", "-m", "immediate")

    def kill(self) -> None:
        """Kills its main process, which can't tell anybody; returns when the ones that it leaves have noticed."""
        pid_file = self.folder / "data" / "postmaster.pid"
        pid = int(pid_file.read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        end_s = time.monotonic() + _GONE_WITHIN_S
        while any(_living(self.folder / "data")):
            if time.monotonic() > end_s:
                raise AssertionError("the server's processes did not end with it")
            time.sleep(_POLL_S)  # nothing tells of the end of processes that aren't our children
        # Where nobody reaps orphans, the pid in its locks looks alive for ever, and the next one would not start.
        for lock in (pid_file, *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink()

    def promote(self) -> None:
        """Makes a standby take writes, on a timeline of its own; returns when it does."""
        self._control("promote")

    def pids(self) -> list[int]:
        """Gives all of its processes, those of its connections among them."""
        return [int(path.parent.name) for path in _living(self.folder / "data")]

    def ask(self, sql: str, database: str = "postgres") -> None:
        """Carries out a statement."""
        self.run("psql", "-h", str(self.folder), "-U", "payrelay", "-d", database, "-q", "-c", sql)

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the running server, for good."""
        self.ask(f"ALTER SYSTEM SET {name} = '{value}'")
        self.ask("SELECT pg_reload_conf()")

    def create(self, database: str, template: str = "template0") -> None:
        """Makes a database, as a copy of another one that nobody is connected to."""
        self.run("createdb", "-h", str(self.folder), "-U", "payrelay", "-T", template, database)

    def drop(self, database: str) -> None:
        """Removes a database, whoever is connected to it."""
        self.run("dropdb", "-h", str(self.folder), "-U", "payrelay", "--force", database)

    def _control(self, *arguments: str) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", *arguments)

    def run(self, program: str, *arguments: str) -> None:
        """Runs one of the server's programs. As root it runs as another user, because they refuse root."""
        # The output goes to a file: a pipe would stay open in the server, and be waited for.
        with (self.folder / "output").open("ab") as output:
            command = [str(self.programs / program), *arguments]
            subprocess.run(command, check=True, cwd=self.folder, user=_user(), stdout=output, stderr=output)


class ProgramsMissing(Exception):
    """PostgreSQL's server programs are not installed."""


@contextmanager
def running_postgresql() -> Iterator[PostgresqlServer]:
    """Runs a server while the context is open; raises ProgramsMissing."""
    with _folder() as server:
        server.run("initdb", "-D", str(server.folder / "data"), "-U", "payrelay", "-A", "trust", "-E", "UTF8", "-N")
        server.start()
        yield server
        server.stop()


@contextmanager
def running_on_small_disk(mebibytes: int) -> Iterator[PostgresqlServer]:
    """Runs a server on a disk of its own in memory, which a test may fill; raises ProgramsMissing."""
    with _folder() as server:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0777", "payrelay-test", str(server.folder)]
        if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
            raise ProgramsMissing("a disk in memory can't be made without root's rights")
        try:
            server.run("initdb", "-D", str(server.folder / "data"), "-U", "payrelay", "-A", "trust", "-E", "UTF8", "-N")
            server.start()
            yield server
            server.stop()
        finally:
            subprocess.run(["umount", "--lazy", str(server.folder)], check=False)


@contextmanager
def running_standby(primary: PostgresqlServer) -> Iterator[PostgresqlServer]:
    """Runs a standby that follows a server, asynchronously, while the context is open."""
    with _folder() as server:
        place = ("-h", str(primary.folder), "-U", "payrelay", "-D", str(server.folder / "data"))
        server.run("pg_basebackup", *place, "-R", "-X", "stream", "-c", "fast", "-N")
        server.start()
        yield server
        server.stop()


@contextmanager
def _folder() -> Iterator[PostgresqlServer]:
    programs = _programs()
    if programs is None:
        raise ProgramsMissing("PostgreSQL server programs not found")
    # The path of a Unix socket has at most 107 bytes, which pytest's own folders may exceed.
    server = PostgresqlServer(Path(tempfile.mkdtemp(prefix="payrelay-pg-")), programs)
    try:
        give_to_server(server.folder)
        yield server
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


def give_to_server(folder: Path) -> str | None:
    """Gives a folder to the user that servers run as; gives that user, None where it is our own."""
    user = _user()
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    return user


def _living(data: Path) -> Iterator[Path]:
    """Finds the processes that live in a data folder: all of a server's do."""
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has ended meanwhile
            if path.readlink() == data:
                yield path


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
