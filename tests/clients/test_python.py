"""The Python client as people install it: a wheel, in a folder of its own, held to the stories with both clients."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from clients.conformance.play import Driver
from clients.conformance.service import Service
from clients.conformance.stories import Story
from tests.clients.playing import STORIES, played
from tests.sources import ROOT

SOURCES: Final = ROOT / "clients" / "python"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of the built wheel, and nothing else."""
    made, folder = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("shop")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)]
    subprocess.run(build, cwd=SOURCES, capture_output=True, check=True)
    (wheel,) = made.glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run(install, capture_output=True, check=True)
    return folder


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_a_story_ends_as_it_is_told(story: Story, kind: str, service: Service, installed: Path) -> None:
    """Whatever is lost and whoever dies: the ledger has what the story allows, which is one charge."""
    surroundings = [f"PYTHONPATH={installed}", f"PAYRELAY_DRIVER={kind}"]
    driver = Driver(["env", *surroundings, sys.executable, str(SOURCES / "conformance" / "driver.py")], installed)

    assert played(story, service, driver) != []


def test_the_wheel_tells_its_types(installed: Path, tmp_path: Path) -> None:
    """A shop's own type checker finds a float for money, and an outcome that nobody has asked for."""
    shop = tmp_path / "shop.py"
    shop.write_text(
        "from payrelay_client import Payrelay\n"
        "def pay(payrelay: Payrelay) -> str | None:\n"
        "    outcome = payrelay.payments.charge(order_id='A', items='I', currency='LKR', amount='1.00')\n"
        "    return outcome.data.payment_id if outcome.is_done else outcome.reason\n"
    )
    check = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(shop)]
    surroundings = os.environ | {"MYPYPATH": str(installed)}
    good = subprocess.run(check, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False)
    shop.write_text(shop.read_text().replace("'1.00'", "1.5").replace("if outcome.is_done else outcome.reason", ""))
    wrong = subprocess.run(check, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert good.returncode == 0, good.stdout
    assert ("arg-type" in wrong.stdout, "union-attr" in wrong.stdout) == (True, True), wrong.stdout
