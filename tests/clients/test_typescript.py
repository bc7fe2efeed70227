"""The TypeScript client as people install it: built, packed, put into an empty folder, and held to the stories."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from clients.conformance.play import Driver
from clients.conformance.service import Service
from clients.conformance.stories import Story
from tests.clients.playing import STORIES, played
from tests.needed import lacking
from tests.sources import ROOT

SOURCES: Final = ROOT / "clients" / "typescript"
MADE: Final = ("node_modules", "dist", "*.tgz")


def run(folder: Path, *command: str) -> str:
    """Runs a command to its end; what it says is in the failure."""
    quiet = os.environ | {"npm_config_update_notifier": "false", "NO_COLOR": "1"}
    ended = subprocess.run(command, cwd=folder, env=quiet, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{' '.join(command)}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with what they are built with, by the lock alone, and what they are built to."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            lacking(f"{program} isn't installed: apt-get install nodejs npm")
    folder = tmp_path_factory.mktemp("sources") / "typescript"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns(*MADE))
    run(folder, "npm", "ci", "--ignore-scripts")
    run(folder, "npm", "run", "build")
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder into which the packed package was installed."""
    package = run(built, "npm", "pack", "--silent").strip().splitlines()[-1]
    folder = tmp_path_factory.mktemp("shop")
    (folder / "package.json").write_text('{"name": "shop", "private": true, "type": "module"}')
    run(folder, "npm", "install", "--offline", "--no-package-lock", str(built / package))
    shutil.copy(SOURCES / "conformance" / "driver.mjs", folder)
    return folder


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_a_story_ends_as_it_is_told(story: Story, service: Service, installed: Path) -> None:
    """Whatever is lost and whoever dies: the ledger has what the story allows, which is one charge."""
    driver = Driver(["node", "driver.mjs"], installed)

    assert played(story, service, driver) != []


def test_the_package_depends_on_nothing(installed: Path) -> None:
    """What it needed at run time would be a second party to every payment of its users."""
    assert [path.name for path in (installed / "node_modules").iterdir() if not path.name.startswith(".")] == [
        "payrelay-client"
    ]


def test_its_own_tests_pass(built: Path) -> None:
    """They hold what no story shows: digits, pauses, lists, streams, signatures and stores."""
    run(built, "npm", "test")


def test_the_example_shop_has_what_is_built(built: Path) -> None:
    """Its page needs no build, so a copy stands beside it: an old one would show the rules of an old client."""
    copied = ROOT / "examples" / "shop" / "page" / "payrelay"
    made = {path.relative_to(built / "dist"): path.read_text() for path in (built / "dist").rglob("*.js")}
    stands = {path.relative_to(copied): path.read_text() for path in copied.rglob("*") if path.is_file()}

    assert made == stands, "make shop-client writes it anew"


def test_the_lock_names_no_address() -> None:
    """A lock with addresses binds every build to one registry."""
    assert "http" not in (SOURCES / "package-lock.json").read_text()
