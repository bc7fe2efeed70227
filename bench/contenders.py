"""Who is measured: each knows how to start itself in front of the gateway, and what it can be asked for."""

import base64
import contextlib
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec

import postgresql
import programs
import upstream

HERE = Path(__file__).parent
READY_PATH = "/health/ready"


class Kind(StrEnum):
    """What is asked for."""

    READ = "read"
    """The payments of an order that nobody asked for before."""
    CHARGE = "charge"
    """A charge of a new order, under a new Idempotency-Key."""
    REPLAY = "replay"
    """A charge that was made before, under the same Idempotency-Key."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A contender that is up.

    Attributes:
        port: where it listens.
        key: what the caller presents.
        pid: the root of its process tree; None where nothing of it is measured.
        database_pid: the root of its database's process tree, where it has one.
    """

    port: int
    key: str
    pid: int | None = None
    database_pid: int | None = None


class Contender(Protocol):
    """One row of the table."""

    @property
    def name(self) -> str:
        """What it is called in the table."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What it can be asked for."""

    @property
    def is_loaded(self) -> bool:
        """Whether its throughput is measured, and not its latency alone."""

    def served(self) -> contextlib.AbstractContextManager[Served]:
        """Starts it, alone on the server's core, and ends it with the block."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all contenders have in common."""

    folder: Path
    cores: programs.Cores
    gateway: upstream.Gateway


DIRECT = "gateway, asked directly"
NGINX = "nginx, plain proxy"
USUAL = "FastAPI + httpx"
BARE = "bare relay"
SQLITE = "Payrelay, SQLite"
POSTGRESQL = "Payrelay, PostgreSQL"
NAMES = (DIRECT, NGINX, USUAL, BARE, SQLITE, POSTGRESQL)
"""All of them, in the table's order."""

KEY_OF_EQUAL_LENGTH = f"prk_test_{secrets.token_hex(24)}"
"""What is sent where no Payrelay key is asked for, so that all requests are of about the same size."""


class Direct:
    """The gateway itself: what latency is added to."""

    name = DIRECT
    kinds = (Kind.READ, Kind.CHARGE)
    is_loaded = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @contextlib.contextmanager
    def served(self) -> Iterator[Served]:
        """Gives what is up anyway."""
        yield Served(port=self._setting.gateway.port, key=KEY_OF_EQUAL_LENGTH)


class Nginx:
    """The limit: nginx that passes on, with one worker and kept connections."""

    name = NGINX
    kinds = (Kind.READ, Kind.CHARGE)
    is_loaded = True

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @contextlib.contextmanager
    def served(self) -> Iterator[Served]:
        """Runs it."""
        port = programs.free_port()
        places = {"PORT": str(port), "GATEWAY_PORT": str(self._setting.gateway.port)}
        launch = upstream.nginx_launch("proxy", self._setting.folder, self._setting.cores.server, places)
        with programs.running(launch) as process:
            programs.wait_ready(process, launch, port, READY_PATH)
            yield Served(port=port, key=KEY_OF_EQUAL_LENGTH, pid=process.pid)


class Usual:
    """The relay that most people would write, on one uvicorn process without its access log, which spares it work."""

    name = USUAL
    kinds = (Kind.READ, Kind.CHARGE)
    is_loaded = True

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @contextlib.contextmanager
    def served(self) -> Iterator[Served]:
        """Runs it."""
        uvicorn = [sys.executable, "-m", "uvicorn", "usual_relay:app", "--app-dir", str(HERE)]
        uvicorn += ["--no-access-log", "--log-level", "warning", "--host", programs.HOST, "--port"]
        with relay_served(self._setting, "usual", uvicorn) as served:
            yield served


class Bare:
    """The fastest relay that an expert would write without a journal, in one process."""

    name = BARE
    kinds = (Kind.READ, Kind.CHARGE)
    is_loaded = True

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @contextlib.contextmanager
    def served(self) -> Iterator[Served]:
        """Runs it."""
        bare = [sys.executable, str(HERE / "bare_relay.py"), programs.HOST]
        with relay_served(self._setting, "bare", bare) as served:
            yield served


@contextlib.contextmanager
def relay_served(setting: Setting, name: str, arguments: list[str]) -> Iterator[Served]:
    """Runs a program beside ours; its last argument is the port, and its settings begin with its name."""
    port, prefix = programs.free_port(), name.upper()
    environment = {
        f"{prefix}_BASE_URL": setting.gateway.url,
        f"{prefix}_APP_ID": "bench",
        f"{prefix}_APP_SECRET": "bench",
        f"{prefix}_API_KEY": KEY_OF_EQUAL_LENGTH,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    launch = programs.Launch(
        name=name,
        arguments=[*arguments, str(port)],
        core=setting.cores.server,
        folder=setting.folder,
        environment=environment,
    )
    with programs.running(launch) as process:
        programs.wait_ready(process, launch, port, READY_PATH)
        yield Served(port=port, key=KEY_OF_EQUAL_LENGTH, pid=process.pid)


class _Payrelay:
    """Payrelay with everything on: credentials, journal, sealing, logs, metrics; one process, default settings."""

    kinds = (Kind.READ, Kind.CHARGE, Kind.REPLAY)
    is_loaded = True

    def __init__(self, setting: Setting, name: str) -> None:
        self._setting = setting
        self._folder = setting.folder / name
        self._folder.mkdir()
        self._program = str(Path(sys.executable).parent / "payrelay")
        if not Path(self._program).exists():
            raise programs.ProgramError(f"{self._program} is missing: run make")
        self._encryption_key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        self._key: str | None = None

    @contextlib.contextmanager
    def _served(self, database_url: str, database_pid: int | None = None) -> Iterator[Served]:
        environment = self._environment(database_url)
        if self._key is None:
            self._key = self._made_key(environment)
        port = programs.free_port()
        launch = programs.Launch(
            name="payrelay",
            arguments=[self._program, "serve", "--host", programs.HOST, "--port", str(port)],
            core=self._setting.cores.server,
            folder=self._folder,
            environment=environment,
        )
        with programs.running(launch) as process:
            programs.wait_ready(process, launch, port, READY_PATH)
            yield Served(port=port, key=self._key, pid=process.pid, database_pid=database_pid)

    def _made_key(self, environment: dict[str, str]) -> str:
        """Makes the key of a client by the command, and gives it."""
        done = subprocess.run(
            [self._program, "keys", "create", "--name", "bench"],
            cwd=self._folder,
            env=programs.plain_environment(environment),
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 or not done.stdout.strip():
            raise programs.ProgramError(f"payrelay keys create: {done.stderr.strip()[-1000:]}")
        return done.stdout.strip()

    def _environment(self, database_url: str) -> dict[str, str]:
        prefix = "PAYRELAY_GATEWAYS__GATEWAY__"
        return {
            "PAYRELAY_DATABASE_URL": database_url,
            "PAYRELAY_ENCRYPTION_KEY": self._encryption_key,
            "PAYRELAY_METRICS_NETWORKS": "127.0.0.1",
            f"{prefix}BASE_URL": self._setting.gateway.url,
            f"{prefix}APP_ID": "bench",
            f"{prefix}APP_SECRET": "bench",
            f"{prefix}MERCHANT_ID": "1210000",
            f"{prefix}MERCHANT_SECRET": "bench",
            f"{prefix}RATE_LIMIT": "off",
        }


class PayrelaySqlite(_Payrelay):
    """Payrelay on its embedded database."""

    name = SQLITE

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "sqlite")

    def served(self) -> contextlib.AbstractContextManager[Served]:
        """Runs it on the database file of this run, which grows from round to round."""
        return self._served(f"sqlite:///{self._folder / 'payrelay.db'}")


class PayrelayPostgresql(_Payrelay):
    """Payrelay on PostgreSQL, which runs on the other core, as it would on a machine of its own; its work is shown."""

    name = POSTGRESQL

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "payrelay_postgresql")
        self._cluster = postgresql.Cluster(setting.folder)

    @contextlib.contextmanager
    def served(self) -> Iterator[Served]:
        """Runs the database and then the service."""
        with (
            self._cluster.running(self._setting.cores.load) as database_pid,
            self._served(self._cluster.make("payrelay"), database_pid) as served,
        ):
            yield served


BY_NAME: dict[str, Callable[[Setting], Contender]] = {
    "direct": Direct,
    "nginx": Nginx,
    "usual": Usual,
    "bare": Bare,
    "sqlite": PayrelaySqlite,
    "postgresql": PayrelayPostgresql,
}
"""The contenders under their names on the command line, in the table's order."""
