"""The PHP client as people install it: an archive of composer's, in a shop of its own, held to the stories."""

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest
from clients.conformance.play import Driver
from clients.conformance.service import Service
from clients.conformance.stories import Story
from tests.clients.playing import STORIES, played
from tests.needed import lacking
from tests.sources import ROOT

SOURCES: Final = ROOT / "clients" / "php"
LARAVEL_MISSING: Final = 77
SHOP: Final = """{
    "repositories": [{"type": "path", "url": "../package", "options": {"symlink": false}}, {"packagist.org": false}],
    "require": {"payrelay/client": "*"}
}"""


def run(folder: Path, *command: str) -> str:
    """Runs a command to its end; what it says is in the failure."""
    surroundings = ["env", "COMPOSER_ALLOW_SUPERUSER=1", "COMPOSER_NO_INTERACTION=1"]
    ended = subprocess.run([*surroundings, *command], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{' '.join(command)}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for everything, where PHP and composer are installed."""
    for program in ("php", "composer"):
        if shutil.which(program) is None:
            lacking(f"{program} isn't installed: apt-get install php-cli php-curl php-sqlite3 composer")
    return tmp_path_factory.mktemp("php")


@pytest.fixture(scope="module")
def shop(folder: Path) -> Path:
    """A shop into which the archive was installed."""
    copy = folder / "sources"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("vendor", "composer.lock"))
    run(copy, "composer", "archive", "--format=tar", "--file=package")
    with tarfile.open(copy / "package.tar") as archive:
        archive.extractall(folder / "package", filter="data")
    made = folder / "shop"
    made.mkdir()
    (made / "composer.json").write_text(SHOP)
    run(made, "composer", "install", "--quiet")
    return made


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_a_story_ends_as_it_is_told(story: Story, service: Service, shop: Path) -> None:
    """Whatever is lost and whoever dies: the ledger has what the story allows, which is one charge."""
    autoload = f"PAYRELAY_AUTOLOAD={shop}/vendor/autoload.php"
    driver = Driver(["env", autoload, "php", str(SOURCES / "conformance" / "driver.php")], shop)

    assert played(story, service, driver) != []


def test_its_own_tests_pass(folder: Path, shop: Path) -> None:
    """They hold what no story shows: digits, keys, stores and signatures."""
    assert shop.exists()
    run(folder / "sources", "composer", "dump-autoload", "--quiet")

    assert "all passed" in run(folder / "sources", "php", "tests/run.php")


def test_the_provider_gives_laravel_a_client(folder: Path, shop: Path) -> None:
    """Its keys stand in the application's database, and never inside of a transaction."""
    assert shop.exists()
    run(folder / "sources", "composer", "dump-autoload", "--quiet")
    tried = subprocess.run(
        ["php", "tests/laravel.php"], cwd=folder / "sources", capture_output=True, text=True, check=False
    )
    if tried.returncode == LARAVEL_MISSING:
        lacking(
            "apt-get install php-illuminate-database php-illuminate-config php-illuminate-events php-vlucas-phpdotenv"
        )

    assert tried.returncode == 0, tried.stdout + tried.stderr
