"""What a drill runs on: the gateway, a database, the service's processes, and an operator at the command line."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.drills.customers import Customers
from tests.drills.intentions import Intention
from tests.drills.judge import BookEntry, Evidence, Verdict, judge
from tests.drills.shop import Shop
from tests.drills.watch.watch import Watch, watching
from tests.matrix.books import read_books
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.stores import SEALING_KEY
from tests.postgresql_server import PostgresqlServer, running_postgresql
from tests.scenarios.program import PAYRELAY, Program, free_port, surroundings

COMMAND_S_MAX: Final = 120.0
START_S_MAX: Final = 60.0
SETTINGS: Final = {
    "PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT": "off",
    "PAYRELAY_GATEWAYS__GATEWAY__TIMEOUT_S": "2",
    "PAYRELAY_RECOVERY_LAG": "2s",
    "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY,
}
"""The simulator shows every effect at once, and the drill's own budget would be the slowest part of it."""
DATABASE: Final = "drill"


@dataclass(frozen=True, kw_only=True)
class Edition:
    """A version of the service: how it is run, and the settings that it has more."""

    command: tuple[str, ...] = (str(PAYRELAY),)
    settings: Mapping[str, str] = field(default_factory=dict)


THIS: Final = Edition()


class CommandFailedError(Exception):
    """A command ended with an exit code other than 0; its text is what it said."""


class Site:
    """A service of one or more processes on one database, with all that belongs to it."""

    def __init__(self, folder: Path, gateway: Gateway, watch: Watch) -> None:
        self.folder = folder
        self.gateway = gateway
        self.watch = watch
        self._public_port = free_port()
        places = {
            "PAYRELAY_MARK_PATH": str(folder / "marks"),
            "PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{self._public_port}",
        }
        self.environment = gateway.account | SETTINGS | places
        self.programs: list[Program] = []
        self._retired: list[Program] = []

    def start(self, processes: int = 1, edition: Edition = THIS) -> list[int]:
        """Starts so many processes more; gives the ports of all."""
        for _ in range(processes):
            home = self.folder / f"service-{len(self.programs)}"
            home.mkdir()
            program = Program(home, self._environment_of(edition), edition.command, start_within_s=START_S_MAX)
            program.start(None if self.programs else self._public_port)
            self.programs.append(program)
        self._watch()
        return self.ports

    def retire(self, program: Program) -> None:
        """Stops a process for good: nobody watches it any more."""
        self._retired.append(program)
        self._watch()
        code = program.stop()
        assert code == 0, program.log()

    def _watch(self) -> None:
        self.watch.targets([each.port for each in self.programs if each not in self._retired])

    @property
    def ports(self) -> list[int]:
        """Where the processes listen."""
        return [program.port for program in self.programs]

    def pids(self) -> list[int]:
        """Gives the processes that run or ran last."""
        return [program._process.pid for program in self.programs if program._process is not None]

    def kill(self) -> None:
        """Kills all processes, as a power cut does."""
        for program in self.programs:
            program.kill()

    def stop(self) -> None:
        """Asks all processes to end, and waits until they have."""
        for program in self.programs:
            program.stop()

    def start_again(self) -> None:
        """Starts all of them again where they listened."""
        for program in self.programs:
            program.start(program.port)

    def new_shop(self) -> Shop:
        """Gives a principal with all scopes of a shop, before a process runs."""
        key = self.command("keys", "create", "--name", "shop").strip()
        return Shop(key=key, ports=[], customers=Customers(self.gateway))

    def _environment_of(self, edition: Edition) -> dict[str, str]:
        return self.environment | dict(edition.settings)

    def command(self, *arguments: str, edition: Edition = THIS) -> str:
        """Runs a command as an operator; gives what it printed. Raises CommandFailedError."""
        done = subprocess.run(
            [*edition.command, *arguments],
            cwd=self.folder,
            env=surroundings(self._environment_of(edition)),
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        if done.returncode:
            raise CommandFailedError(f"{arguments[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def books(self) -> tuple[list[BookEntry], list[str]]:
        """Reads every operation with its history, and what the audit finds."""
        books = read_books(self.environment, self.folder)
        entries = [
            BookEntry(
                id=each.id,
                kind=str(each.kind),
                key=each.idempotency_key,
                order_id=each.order_id,
                states=[str(line.state) for line in books.histories[each.id]],
            )
            for each in books.operations
        ]
        return entries, list(books.faults())

    def verdict(self, shop: Shop, intentions: Sequence[Intention]) -> Verdict:
        """Judges what happened here."""
        books, findings = self.books()
        return judge(
            Evidence(
                intentions=intentions,
                ledger=self.gateway.ledger(),
                told=shop.told,
                books=books,
                findings=findings,
                unknown_reads=shop.unknown_reads,
                decided=shop.decided,
            )
        )

    def recovery(self) -> dict[str, Any]:
        """Tells where the recovery stands."""
        status: dict[str, Any] = json.loads(self.command("recover", "status", "--json"))
        return status


@contextmanager
def embedded_site(settings: dict[str, str] | None = None, folder: Path | None = None) -> Iterator[Site]:
    """Gives a site on an embedded database, in a folder of its own where none is named."""
    with _site(folder) as site:
        place = f"sqlite:///{site.folder}/payrelay.db"
        site.environment |= {"PAYRELAY_DATABASE_URL": place} | (settings or {})
        yield site


@contextmanager
def shared_site(server: PostgresqlServer, settings: dict[str, str] | None = None) -> Iterator[Site]:
    """Gives a site on a PostgreSQL server whose address is a link, so that it can move."""
    with _site(None) as site:
        server.create(DATABASE)
        lead(site, server)
        address = f"postgresql://payrelay@/{DATABASE}?host={quote(str(site.folder / 'address'))}"
        site.environment |= {"PAYRELAY_DATABASE_URL": address} | (settings or {})
        yield site


def lead(site: Site, server: PostgresqlServer) -> None:
    """Has the database's address lead to a server from now on, at once."""
    new = site.folder / "address.new"
    new.symlink_to(server.folder)
    new.replace(site.folder / "address")


@contextmanager
def postgresql_site(settings: dict[str, str] | None = None) -> Iterator[Site]:
    """Gives a site on a PostgreSQL server of its own. Raises ProgramsMissing."""
    with running_postgresql() as server, shared_site(server, settings) as site:
        yield site


@contextmanager
def _site(folder: Path | None) -> Iterator[Site]:
    with ExitStack() as stack:
        place = folder or Path(tempfile.mkdtemp(prefix="payrelay-drill-"))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        # A socket's path is short, and the server's own user must reach it by the link.
        place.chmod(0o755)
        site = Site(place, stack.enter_context(simulating()), stack.enter_context(watching()))
        stack.callback(site.kill)
        yield site
