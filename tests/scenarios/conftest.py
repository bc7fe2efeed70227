"""Whole stories over real sockets: the program as an operator starts it, and a gateway that can be told what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, settings_for


@pytest.fixture(scope="session")
def gateway() -> Iterator[GatewayDouble]:
    """The scripted gateway; scripts and counts are by subject, so that tests don't meet in it."""
    with GatewayDouble() as double:
        yield double


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the module's own."""
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def scene(folder: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """One service for the module."""
    program = Program(folder, settings_for(gateway))
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@pytest.fixture
def own(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service of the test's own, for those that stop or kill it."""
    program = Program(tmp_path, settings_for(gateway))
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.kill()
