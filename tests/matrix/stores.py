"""Where a service of the matrix keeps its books: copies of a database that was made once, with a client's key in it."""

import asyncio
import base64
import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from tests.draws import drawn_uuid
from tests.identities import begin_where_it_is
from tests.matrix.service import Service
from tests.postgresql_server import PostgresqlServer
from tests.scenarios import program
from tests.scenarios.waiting import until

SEALING_KEY: Final = base64.b64encode(bytes(range(32))).decode()
NOBODY: Final = {
    "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": "http://127.0.0.1:9",
    "PAYRELAY_GATEWAYS__GATEWAY__APP_ID": "nobody",
    "PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": "nobody",
}
"""An account for as long as the template is made; nothing is asked of it."""


class Store(Protocol):
    """Gives out fresh databases.

    Attributes:
        name: what it is called in tables.
        key: the client's, the same in each.
    """

    name: str
    key: str

    def fresh(self, folder: Path) -> dict[str, str]:
        """Makes a database for a service in the folder, and gives its settings."""
        ...

    def drop(self, environment: dict[str, str]) -> None:
        """Removes a database again."""
        ...


class Sqlite:
    """The embedded database, a file beside each service."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._template = folder / "sqlite-template"
        self._template.mkdir()
        self.key = prepared(self._template, self._settings(self._template))

    def fresh(self, folder: Path) -> dict[str, str]:
        """Copies the files."""
        for path in self._template.glob("payrelay.db*"):
            shutil.copy(path, folder)
        return self._settings(folder)

    def drop(self, environment: dict[str, str]) -> None:
        """Leaves it to the folder's end."""

    def _settings(self, folder: Path) -> dict[str, str]:
        return {"PAYRELAY_DATABASE_URL": f"sqlite:///{folder}/payrelay.db"}


class Postgresql:
    """Databases of a server."""

    name = "postgresql"

    def __init__(self, folder: Path, server: PostgresqlServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._prefix = f"matrix_{drawn_uuid().hex}"
        template = folder / self._prefix
        template.mkdir()
        server.create(self._prefix)
        self.key = prepared(template, self._settings(self._prefix))

    def fresh(self, folder: Path) -> dict[str, str]:  # noqa: ARG002 - the folder is the embedded one's matter
        """Copies the database inside the server, and has it count as one that was made there."""
        name = f"{self._prefix}_{next(self._numbers)}"
        self._server.create(name, self._prefix)
        asyncio.run(begin_where_it_is(self._server.url(name), SEALING_KEY))
        return self._settings(name)

    def drop(self, environment: dict[str, str]) -> None:
        """Removes the database with all that is in it."""
        address = environment["PAYRELAY_DATABASE_URL"].partition("?")[0]
        self._server.drop(address.rpartition("/")[2])

    def _settings(self, name: str) -> dict[str, str]:
        return {"PAYRELAY_DATABASE_URL": self._server.url(name), "PAYRELAY_ENCRYPTION_KEY": SEALING_KEY}


def prepared(folder: Path, settings: dict[str, str]) -> str:
    """Makes a database that has seen a key being made and a service come and go; gives the key."""
    environment = NOBODY | settings
    made = program.run(folder, environment, "keys", "create", "--name", "shop")
    assert made.returncode == 0, made.stderr
    service = Service(folder, environment).start()
    service.ask_to_stop()
    until(service.is_dead, "the service has stopped")
    assert service.exit_code() == 0, service.log()
    return made.stdout.strip()


@contextmanager
def database_in(store: Store, folder: Path) -> Iterator[dict[str, str]]:
    """Gives the settings of a fresh database while the context is open."""
    environment = store.fresh(folder)
    try:
        yield environment
    finally:
        store.drop(environment)
