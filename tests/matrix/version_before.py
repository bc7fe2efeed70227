"""The version before this one, built from history: to see that both serve one database."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.scenarios.program import surroundings

BEFORE: Final = "eeb76352722387685d4aa771cc6e2a4fadf5345c"
"""The version before: the newest commit of it. After a release this is the release's commit. A migration that this
commit can't work with, because it doesn't know what a name with ``since`` means, needs a newer one here."""
ROOT: Final = Path(__file__).parents[2]


class VersionMissing(Exception):
    """The version before is not in the history that is here."""


def version_before(folder: Path, commit: str = BEFORE) -> dict[str, str]:
    """Puts its sources into a new folder; gives the settings with which ``python -m payrelay`` runs them.

    Takes those of an earlier commit where one is named. Raises VersionMissing.
    """
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        raise VersionMissing("the version before is not here: this is no git repository, or a shallow clone")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    settings = {"PYTHONPATH": str(folder / "src")}
    asked = [sys.executable, "-c", "import payrelay; print(payrelay.__file__)"]
    found = subprocess.run(asked, env=surroundings(settings), capture_output=True, text=True, check=True)
    assert Path(found.stdout).is_relative_to(folder)
    return settings
