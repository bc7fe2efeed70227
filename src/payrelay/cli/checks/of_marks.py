"""Checks of the high-water marks: whether they can be kept, and whether the database has all that they name."""

import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from payrelay.app import SharedResources, lost_commits_of, marks_of
from payrelay.clock import Clock
from payrelay.core.moments import spoken
from payrelay.core.recovery.marks import MarksShown
from payrelay.errors import StoreError
from payrelay.gateways.gateway import CheckResult
from payrelay.settings import Settings

NO_FOLDER: Final = (
    "PAYRELAY_MARK_PATH is not set: after a restart, nothing shows that a restored backup or a promoted server lacks"
    " commits, and what clients repeat is charged again"
)
MARKED: Final = partial(CheckResult, subject="lost commits")


async def of_marks(settings: Settings, shared: SharedResources, clock: Clock) -> AsyncIterator[CheckResult]:
    """Checks the marks in the folder of the settings, and whether a process has found the database behind."""
    log = structlog.wrap_logger(None, wrapper_class=structlog.make_filtering_bound_logger("critical"))
    lost_commits = lost_commits_of(shared, clock, log)
    folder = settings.marks_folder
    if folder is None:
        yield MARKED(is_right=True, is_warning=True, text=NO_FOLDER)
    elif folder.exists() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        text = f"{folder} can't be read and written: what a process was told of is kept in its memory only"
        yield MARKED(is_right=True, is_warning=True, text=text)
        folder = None
    try:
        current = (await lost_commits.identity()).current
        if current.behind:
            yield MARKED(is_right=False, text=_told(current.behind))
        elif folder is not None:
            for result in _of_shown(await marks_of(settings, shared, lost_commits, clock, log).shown(), folder):
                yield result
    except (OSError, StoreError) as error:
        yield MARKED(is_right=False, text=f"the marks can't be compared with the database: {error}")


def _of_shown(shown: MarksShown, folder: Path) -> list[CheckResult]:
    unusable = [
        MARKED(is_right=True, is_warning=True, text=f"{name} is no mark of this database, or was forged; remove it")
        for name in shown.unusable
    ]
    if shown.reason is not None:
        return [MARKED(is_right=False, text=_told(shown.reason)), *unusable]
    if shown.newest_at_ms is None:
        return [MARKED(is_right=True, text=f"no mark is in {folder} yet"), *unusable]
    text = f"the database has all that the marks in {folder} name, the newest of {spoken(shown.newest_at_ms)} UTC"
    return [MARKED(is_right=True, text=text), *unusable]


def _told(reason: str) -> str:
    return f"the database is behind: {reason}; nothing takes effect until an operator runs payrelay recover"
