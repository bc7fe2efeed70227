"""Three packages: Payrelay, its simulator and its tools, each built and run where nothing else of ours is."""

import os
import re
import subprocess
import sys
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.laravel_shop import payment, write_sqlite
from tests.scenarios.program import Program, account
from tests.scenarios.waiting import DEADLINE_S
from tests.sources import ROOT

FOLDERS: Final[Mapping[str, Path]] = {
    "payrelay": ROOT,
    "payrelay-simulator": ROOT / "src/payrelay_simulator",
    "payrelay-tools": ROOT / "tools",
}
SOURCES: Final[Mapping[str, Path]] = {
    "payrelay": ROOT / "src/payrelay",
    "payrelay-simulator": ROOT / "src/payrelay_simulator",
    "payrelay-tools": ROOT / "tools/payrelay_tools",
}
LOCKED: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]+\])?==(\S+)", re.MULTILINE)

Wheels: TypeAlias = Mapping[str, Path]


def project(name: str) -> dict[str, Any]:
    """Reads the description of a package."""
    described: dict[str, Any] = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["project"]
    return described


def needs(name: str) -> dict[str, Requirement]:
    """Gives what a package needs, by the names."""
    needed = map(Requirement, project(name)["dependencies"])
    return {canonicalize_name(each.name): each for each in needed}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Builds the wheel of each package."""
    made = {}
    for name, folder in FOLDERS.items():
        out = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        [made[name]] = out.glob("*.whl")
    return made


def installed(folder: Path, wheels: Wheels, *names: str) -> Path:
    """Makes an environment with some of the packages, and with what they need from elsewhere; gives its programs."""
    venv.create(folder, with_pip=False)
    [packages] = (folder / "lib").glob("python*/site-packages")
    for name in _closure_of([each for package in names for each in needs(package)]):
        found = metadata.distribution(name)
        for top in {path.parts[0] for path in found.files or () if path.parts[0] not in {"..", "__pycache__"}}:
            (packages / top).symlink_to(Path(str(found.locate_file(top))))
    for name in names:
        zipfile.ZipFile(wheels[name]).extractall(packages)
        for script, entry in project(name).get("scripts", {}).items():
            module, _, function = entry.partition(":")
            text = f"#!{folder}/bin/python -I\nfrom {module} import {function}\n{function}()\n"
            (folder / "bin" / script).write_text(text)
            (folder / "bin" / script).chmod(0o755)
    return folder / "bin"


def _closure_of(names: list[str]) -> set[str]:
    """Gives the distributions that some need, and those that these need, but for our own."""
    found: set[str] = set()
    while names:
        name = canonicalize_name(names.pop())
        if name in found or name in FOLDERS:
            continue
        try:
            needed = [Requirement(each) for each in metadata.requires(name) or []]
        except metadata.PackageNotFoundError:  # for another platform or version of Python
            continue
        found.add(name)
        names += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def ran(command: list[str | Path], folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder, with these settings; one that serves in place of ending is stopped, and an error."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **settings}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S * 2
    )


def test_the_packages_go_with_each_other() -> None:
    """One number, one licence, one list of ranges: else the extras bring what was never tried together."""
    of_all = [[project(name)[each] for each in ("version", "license", "requires-python")] for name in FOLDERS]
    version = project("payrelay")["version"]

    assert of_all == [of_all[0]] * len(FOLDERS)
    extras = project("payrelay")["optional-dependencies"]
    assert (extras["simulator"], extras["tools"]) == (
        [f"payrelay-simulator=={version}"],
        [f"payrelay-tools=={version}"],
    )
    assert project("payrelay-tools")["dependencies"] == [f"payrelay=={version}"]
    whole = needs("payrelay")
    assert {name: whole.get(name) for name in needs("payrelay-simulator")} == needs("payrelay-simulator")


def test_one_lock_has_what_all_of_them_need() -> None:
    """Our own wheels are installed beside what is locked, and nothing else is asked for."""
    locked = {str(canonicalize_name(name)): version for name, version in LOCKED.findall(_text_of("service.lock"))}
    needed = {name: each for package in FOLDERS for name, each in needs(package).items() if name not in FOLDERS}

    assert [name for name, each in needed.items() if not each.specifier.contains(locked.get(name, "0"))] == []


def _text_of(lock: str) -> str:
    return (ROOT / "requirements" / lock).read_text()


def test_each_has_all_of_its_sources_and_nothing_else(wheels: Wheels) -> None:
    """Templates included: without them it starts, and shows nobody a page."""
    for name, wheel in wheels.items():
        source = SOURCES[name]
        files = {f"{source.name}/{path.relative_to(source)}" for path in source.rglob("*") if path.is_file()}
        mine = {each for each in files if "__pycache__" not in each and not each.endswith("pyproject.toml")}
        assert {each for each in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in each} == mine


NEEDING: Final[tuple[tuple[str, str], ...]] = (
    ("demo --port 0", "simulator"),
    ("simulate --port 0", "simulator"),
    ("check --sandbox-trial", "tools"),
    ("import shop.sqlite --principal shop --dry-run", "tools"),
    ("import dump.sql --principal shop --dry-run", "tools"),
    ("import postgresql://u:hunter2@127.0.0.1:9/x --principal shop --dry-run", "tools"),
    ("import cards.csv --principal shop --dry-run --app-key-file .env", "tools"),
)
"""Commands that need a package beside Payrelay, each with the extra that brings it."""


def test_payrelay_alone_serves_and_says_what_a_command_lacks(wheels: Wheels, tmp_path: Path) -> None:
    """Whoever runs a relay has no gateway of ours in it; each command that needs more says so in one line."""
    payrelay = installed(tmp_path / "venv", wheels, "payrelay") / "payrelay"
    settings = account("gateway", "http://127.0.0.1:9")
    service = Program(tmp_path, settings, command=[payrelay])
    service.start()
    assert service.stop() == 0
    assert ran([payrelay, "--help"], tmp_path).returncode == 0
    settings |= {"PAYRELAY_DATABASE_URL": f"sqlite:///{tmp_path}/payrelay.db"}
    assert ran([payrelay, "keys", "create", "--name", "shop"], tmp_path, **settings).returncode == 0
    write_sqlite(tmp_path / "shop.sqlite", [payment(1)])
    (tmp_path / "dump.sql").write_text("-- MySQL dump\n")
    (tmp_path / "cards.csv").write_text("customer_token\n")
    (tmp_path / "payments.csv").write_text("payment_id,order_id,amount,currency\n320025000001,A-1,5,LKR\n")

    own = ran([payrelay, "import", "payments.csv", "--principal", "shop", "--yes"], tmp_path, **settings)
    assert (own.returncode, own.stdout) == (0, "Imported for shop: 1 payment.\n")
    for typed, extra in NEEDING:
        lacking = ran([payrelay, *typed.split()], tmp_path, **settings)
        told = f"payrelay-{extra} is needed, which is not installed: pip install 'payrelay[{extra}]'\n"
        assert (lacking.returncode, lacking.stdout, lacking.stderr.count("\n")) == (2, "", 1), typed
        assert lacking.stderr.startswith("payrelay: ")
        assert lacking.stderr.endswith(told)
        assert "hunter2" not in lacking.stderr


def test_with_its_tools_it_reads_a_shops_tables(wheels: Wheels, tmp_path: Path) -> None:
    """The extra is all that the sentence asks for; the trial begins, and refuses an account that is live."""
    payrelay = installed(tmp_path / "venv", wheels, "payrelay", "payrelay-tools") / "payrelay"
    settings = account("gateway", "https://www.payhere.lk", MERCHANT_ID=str(payment(1)["merchant_id"]))
    settings |= {"PAYRELAY_DATABASE_URL": f"sqlite:///{tmp_path}/payrelay.db"}
    ran([payrelay, "db", "upgrade"], tmp_path, **settings)
    ran([payrelay, "keys", "create", "--name", "shop"], tmp_path, **settings)
    write_sqlite(tmp_path / "shop.sqlite", [payment(1)])

    read = ran([payrelay, "import", "shop.sqlite", "--principal", "shop", "--yes"], tmp_path, **settings)
    tried = ran([payrelay, "check", "--sandbox-trial"], tmp_path, **settings)

    assert (read.returncode, read.stdout) == (0, "Imported for shop: 1 payment.\n")
    assert "nothing was sent" in tried.stderr
    assert tried.returncode == 1


def test_the_simulator_runs_where_nothing_but_its_own_dependencies_is(wheels: Wheels, tmp_path: Path) -> None:
    """Who installs it gets no service, no driver of a database and no server beside it."""
    programs = installed(tmp_path / "venv", wheels, "payrelay-simulator")
    inside = "import importlib.util as u; print([u.find_spec(n) for n in ('payrelay', 'typer', 'granian', 'asyncpg')])"
    assert ran([programs / "python", "-I", "-c", inside], tmp_path).stdout == "[None, None, None, None]\n"

    command: list[str | Path] = [programs / "payrelay-simulator", "--port", "0", "--demo", "--profile", "observed"]
    assert_shows_the_demo(command)


def test_with_the_simulator_payrelay_starts_it(wheels: Wheels, tmp_path: Path) -> None:
    """As the extra brings it."""
    programs = installed(tmp_path / "venv", wheels, "payrelay", "payrelay-simulator")

    assert_shows_the_demo([programs / "payrelay", "simulate", "--port", "0"])


def assert_shows_the_demo(command: list[str | Path]) -> None:
    """Starts a simulator, looks at its page and stops it."""
    environment = {"PATH": os.environ["PATH"]}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        with urllib.request.urlopen(f"{address}/_sim/") as page:  # noqa: S310  it says http
            assert "DemoOrder1" in page.read().decode()
        process.terminate()
    assert process.returncode == 0
