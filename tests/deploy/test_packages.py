"""The simulator as a package of its own: built, and run where nothing else of Payrelay is."""

import os
import re
import subprocess
import sys
import tomllib
import urllib.request
import venv
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest
from tests.sources import ROOT

PACKAGING: Final = ROOT / "packaging/simulator"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def project(path: Path) -> dict[str, object]:
    """Reads the description of a package."""
    described: dict[str, object] = tomllib.loads(path.read_text())["project"]
    return described


def closure_of(names: list[str]) -> set[str]:
    """Gives the distributions that some need, and those that these need."""
    found: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop().lower())
        if name in found:
            continue
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another platform or version of Python
            continue
        found.add(name)
        names += [match[0] for each in needed if "extra ==" not in each and (match := _NAME.match(each))]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGING, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


def test_the_package_says_the_same_as_payrelays() -> None:
    """Two lists of one thing drift apart unless somebody compares them."""
    whole, alone = project(ROOT / "pyproject.toml"), project(PACKAGING / "pyproject.toml")

    assert alone["dependencies"] == whole["optional-dependencies"]["simulator"]  # type: ignore[index]
    assert [alone[name] for name in ("version", "license", "requires-python")] == [
        whole[name] for name in ("version", "license", "requires-python")
    ]


def test_it_has_all_of_the_simulator_and_nothing_else(wheel: Path) -> None:
    """Templates and the README included: without them it starts, and shows nobody a page."""
    names = zipfile.ZipFile(wheel).namelist()
    source = ROOT / "src/payrelay_simulator"
    files = {f"payrelay_simulator/{path.relative_to(source)}" for path in source.rglob("*") if path.is_file()}

    assert {name for name in names if ".dist-info/" not in name} == {
        name for name in files if "__pycache__" not in name
    }


def test_it_runs_where_nothing_but_its_own_dependencies_is(wheel: Path, tmp_path: Path) -> None:
    """Who installs it gets no service, no driver of a database and no server beside it."""
    venv.create(tmp_path / "venv", with_pip=False)
    [packages] = (tmp_path / "venv/lib").glob("python*/site-packages")
    for name in closure_of(["aiohttp", "jinja2", "msgspec"]):
        found = metadata.distribution(name)
        tops = {path.parts[0] for path in found.files or () if path.parts[0] not in {"..", "__pycache__"}}
        for top in tops:
            (packages / top).symlink_to(Path(str(found.locate_file(top))))
    zipfile.ZipFile(wheel).extractall(packages)
    python = tmp_path / "venv/bin/python"
    inside = "import importlib.util as u; print([u.find_spec(n) for n in ('payrelay', 'typer', 'granian', 'asyncpg')])"
    environment = {"PATH": os.environ["PATH"]}
    asked = subprocess.run([python, "-I", "-c", inside], env=environment, capture_output=True, text=True, check=True)
    assert asked.stdout == "[None, None, None, None]\n"

    started = "from payrelay_simulator.__main__ import script; script()"  # as the wheel's own program does
    command: list[str | Path] = [python, "-I", "-c", started, "--port", "0", "--demo", "--profile", "observed"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        with urllib.request.urlopen(f"{address}/_sim/") as page:  # noqa: S310  it says http
            assert "DemoOrder1" in page.read().decode()
        process.terminate()
    assert process.returncode == 0
