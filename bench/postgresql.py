"""A PostgreSQL server of the bench's own: real, local, durable, in a folder that goes away with the run."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import programs

ROLE = "payrelay"
USER_FOR_ROOT = "postgres"
"""The server refuses to run as root; Debian's package makes this user."""


class Cluster:
    """A data folder with databases in it; ``running`` serves it."""

    def __init__(self, folder: Path) -> None:
        found = _programs()
        if found is None:
            raise programs.ProgramError("PostgreSQL's server programs are missing: run bench/install.sh")
        self._programs = found
        self._folder = folder / "postgresql"
        self._user = USER_FOR_ROOT if os.geteuid() == 0 else None
        self._port = programs.free_port()
        self._folder.mkdir()
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._run("initdb", "-D", str(self._data), "-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale=C")

    @contextlib.contextmanager
    def running(self, core: int) -> Iterator[int]:
        """Serves on one core with the settings that initdb wrote, and gives the server's process id."""
        arguments = [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self._port)]
        arguments += ["-c", f"listen_addresses={programs.HOST}", "-c", f"unix_socket_directories={self._folder}"]
        launch = programs.Launch(
            name="server",
            arguments=arguments,
            core=core,
            folder=self._folder,
            user=self._user,
            stop_signal=signal.SIGINT,  # its "fast" shutdown
        )
        with programs.running(launch) as process:
            self._wait(launch)
            yield process.pid

    def make(self, database: str) -> str:
        """Makes a database unless it is there, and gives its address; the server must run. Raises ProgramError."""
        here = ("-h", programs.HOST, "-p", str(self._port), "-U", ROLE)
        names = self._run("psql", *here, "-d", "postgres", "-Atc", "SELECT datname FROM pg_database")
        if database not in names.splitlines():
            self._run("createdb", *here, database)
        return f"postgresql://{ROLE}@{programs.HOST}:{self._port}/{database}"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _wait(self, launch: programs.Launch) -> None:
        end_s = time.monotonic() + programs.START_S_MAX
        command = [str(self._programs / "pg_isready"), "-q", "-h", programs.HOST, "-p", str(self._port)]
        while subprocess.run(command, check=False).returncode != 0:
            if time.monotonic() > end_s:
                raise programs.ProgramError(f"PostgreSQL didn't start:\n{programs.log_end(launch)}")
            time.sleep(programs.POLL_S)

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            cwd=self._folder,
            env=programs.plain_environment({}),
            user=self._user,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise programs.ProgramError(f"{program}: {done.stderr.strip()}")
        return done.stdout


def version() -> str:
    """Gives what the server calls itself; empty where there is none."""
    found = _programs()
    if found is None:
        return ""
    return subprocess.run([found / "postgres", "--version"], check=True, capture_output=True, text=True).stdout.strip()


def _programs() -> Path | None:
    """Finds the newest server programs that Debian's packages have installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None
