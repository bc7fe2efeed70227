"""What any test may ask for: a real PostgreSQL server, on a Unix socket in a folder of its own, and commands.

Also the gates: every test belongs to exactly one of unit, smoke, story and integration, by its folder or by a mark.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from tests import draws
from tests.cli.commands import Ran, Run, run_inside
from tests.databases import Schemas
from tests.needed import lacking
from tests.no_process import no_process
from tests.postgresql_server import PostgresqlServer, ProgramsMissing, running_postgresql

from payrelay.cli.main import main

__all__ = ["PostgresqlServer"]

# No test has a time limit: an example that takes long on a busy machine is no failure.
# At the gates a law is tried with the same examples each time, at the desk with fewer; in a campaign with those of
# `--hypothesis-seed`.
settings.register_profile(
    "gate",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    max_examples=draws.examples(100),
)
settings.register_profile("campaign", settings.get_profile("gate"), derandomize=False, database=None, print_blob=True)
settings.load_profile("gate")

GATES: Final = ("unit", "smoke", "story", "integration")
GATE_OF: Final = {
    "scenarios": "story",
    "simulation": "story",
    "work": "story",
    "deploy": "story",
    "matrix": "integration",
    "clients": "integration",
    "drills": "integration",
}
"""Of folders with whole programs; of all others the tests are units. A mark puts a test elsewhere."""


def pytest_configure() -> None:
    """Settles the seed once, for all workers and all programs that tests start."""
    os.environ.setdefault(draws.SEED_NAME, draws.seed())


def pytest_report_header() -> str:
    """Names what makes this run the same again."""
    return f"draws: {draws.SEED_NAME}={draws.seed()} {draws.DEPTH_NAME}={draws.depth()}"


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts every test that no mark puts elsewhere into its folder's gate; two gates are a mistake.

    Coverage pauses in all but units: a story covers everything and proves little of a line.
    """
    here = Path(__file__).parent
    for item in items:
        gates = [gate for gate in GATES if item.get_closest_marker(gate)]
        if len(gates) > 1:
            raise pytest.UsageError(f"{item.nodeid} is in several gates: {', '.join(gates)}")
        if not gates:
            gates = [GATE_OF.get(item.path.relative_to(here).parts[0], "unit")]
            item.add_marker(gates[0])
        if gates != ["unit"]:
            item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Lets no unit start a process: it takes a hundred times as long, and so do all tests together before long."""
    if item.get_closest_marker("unit") and not item.get_closest_marker("process"):
        with no_process():
            return (yield)
    return (yield)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Starts a server for the session; skips where its programs are missing, but fails in CI."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_postgresql())
        except ProgramsMissing as missing:
            lacking(str(missing))
        yield server


@pytest.fixture(scope="session")
def postgresql_schemas(postgresql_server: PostgresqlServer) -> Schemas:
    """Gives the schemas of the server, of which one is migrated and used by test after test."""
    return Schemas(postgresql_server)


@pytest.fixture
async def postgresql_url(postgresql_schemas: Schemas) -> AsyncIterator[str]:
    """Gives a test a migrated schema without a row."""
    name = await postgresql_schemas.migrated()
    yield postgresql_schemas.url(name)
    await postgresql_schemas.give_back(name)


@pytest.fixture
async def empty_postgresql_url(postgresql_schemas: Schemas) -> AsyncIterator[str]:
    """Gives a test a schema of its own, without a table: for what is said of migrating."""
    name = await postgresql_schemas.new()
    yield postgresql_schemas.url(name)
    await postgresql_schemas.drop(name)


@pytest.fixture(scope="session")
def upgraded_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Makes a database with its key as ``db upgrade`` makes them, once for all tests."""
    folder = tmp_path_factory.mktemp("upgraded")
    assert run_inside(folder, {}, "db", "upgrade").code == 0
    return {name: (folder / name).read_bytes() for name in ("payrelay.db", "payrelay.db.key")}


@pytest.fixture
def upgraded_database(tmp_path: Path, upgraded_files: dict[str, bytes]) -> Path:
    """Puts a database without any content, and its key, into the folder in which commands are run."""
    for name, content in upgraded_files.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    return tmp_path / "payrelay.db"


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
