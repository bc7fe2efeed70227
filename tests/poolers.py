"""A real PgBouncer of the tests' own, in transaction mode, in front of a server of theirs."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.postgresql_server import PostgresqlServer, ProgramsMissing, give_to_server

_START_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.02
_SETTINGS: Final = """
[databases]
* = host={server}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
pool_mode = transaction
default_pool_size = 3
auth_type = trust
auth_file = {folder}/users
logfile = {folder}/log
"""


@contextmanager
def running_pgbouncer(server: PostgresqlServer) -> Iterator[str]:
    """Runs one while the context is open; gives the folder of its socket. Raises ProgramsMissing."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        raise ProgramsMissing("pgbouncer not found")
    folder = Path(tempfile.mkdtemp(prefix="payrelay-pgb-"))
    (folder / "users").write_text('"payrelay" ""\n')
    (folder / "settings.ini").write_text(_SETTINGS.format(folder=folder, server=server.folder))
    user = give_to_server(folder)
    process = subprocess.Popen(
        [program, "-q", str(folder / "settings.ini")], user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end_s = time.monotonic() + _START_TIMEOUT_S
        while not (folder / ".s.PGSQL.6432").exists():
            if process.poll() is not None or time.monotonic() > end_s:
                raise AssertionError(f"pgbouncer did not start: {(folder / 'log').read_text()}")
            time.sleep(_POLL_S)  # nothing tells that it listens
        yield str(folder)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def pooled_url(folder: str, database: str) -> str:
    """Gives the address of a database behind the pooler."""
    return f"postgresql://payrelay@/{database}?host={quote(folder)}&port=6432"
