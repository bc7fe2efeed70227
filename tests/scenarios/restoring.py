"""The commands by which a dump of PostgreSQL is brought back, as the page of backups has them."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.doc_blocks import code_of
from tests.scenarios.program import PAYRELAY, Program, surroundings
from tests.sources import ROOT

PAGE: Final = ROOT / "docs" / "backup.md"
ADDRESS: Final = "postgresql://payrelay@db.example/payrelay"
BACKUP: Final = "/backups/2026-11-22/"
RECOVER: Final = "payrelay recover "


def commands_of_page(url: str, backup: Path) -> list[str]:
    """Gives the lines of the page for a database and a backup; the last one begins the recovery, and asks nothing."""
    (block,) = (each for each in code_of(PAGE, "sh") if "pg_restore" in each)
    assert all(block.count(each) == 1 for each in (ADDRESS, BACKUP, RECOVER)), block
    block = block.replace(ADDRESS, f"'{url}'").replace(BACKUP, f"{backup}/").replace(RECOVER, f"{RECOVER}--yes ")
    return block.splitlines()


def typed(program: Program, commands: Sequence[str]) -> int:
    """Types commands into one shell, where the program's settings are; gives the exit code of the first that fails."""
    return typed_in(program.folder, program.environment, commands)


def typed_in(folder: Path, environment: Mapping[str, str], commands: Sequence[str]) -> int:
    """Types commands into one shell in a folder; see ``typed``."""
    own = surroundings(dict(environment))
    path = {"PATH": f"{PAYRELAY.parent}:{own.get('PATH', os.defpath)}"}
    ran = subprocess.run(["sh", "-euc", "\n".join(commands)], cwd=folder, env=own | path, timeout=120, check=False)
    return ran.returncode
