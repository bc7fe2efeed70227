import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulation.storage import new_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """Gives an empty folder, in memory where there is such a place: hundreds of lives commit many times each."""
    path = new_folder()
    yield path
    shutil.rmtree(path)
