"""Checks of the high-water marks: whether they can be kept, and whether the database has all that they name."""

import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from payrelay.app import SharedResources
from payrelay.core.moments import spoken
from payrelay.errors import StoreError
from payrelay.flows.database.inspect_marks import inspect_marks
from payrelay.gateways.gateway import CheckResult
from payrelay.runtime.database.folder_calls import FolderCalls
from payrelay.settings import Settings

NO_FOLDER: Final = (
    "PAYRELAY_MARK_PATH is not set: after a restart, nothing shows that a restored backup or a promoted server lacks"
    " commits, and what clients repeat is charged again"
)
MARKED: Final = partial(CheckResult, subject="lost commits")


async def of_marks(settings: Settings, shared: SharedResources) -> AsyncIterator[CheckResult]:
    """Checks the marks in the folder of the settings, and whether a process has found the database behind."""
    folder = settings.marks_folder
    if folder is None:
        yield MARKED(is_right=True, is_warning=True, text=NO_FOLDER)
    else:
        try:
            is_usable = await FolderCalls().make(_is_usable, folder)
        except TimeoutError as error:
            yield MARKED(is_right=False, text=f"{folder} hangs: {error.strerror}; no mark is kept in it")
            return
        if not is_usable:
            text = f"{folder} can't be read and written: what a process was told of is kept in its memory only"
            yield MARKED(is_right=True, is_warning=True, text=text)
            folder = None
    try:
        shown = await inspect_marks(folder, shared.database, shared.seal, shared.chain.secret)
    except (OSError, StoreError) as error:
        yield MARKED(is_right=False, text=f"the marks can't be compared with the database: {error}")
        return
    for name in shown.unusable:
        yield MARKED(is_right=True, is_warning=True, text=f"{name} is no mark of this database, or was forged")
    if shown.reason is not None:
        text = f"the database is behind: {shown.reason}; nothing takes effect until an operator runs payrelay recover"
        yield MARKED(is_right=False, text=text)
    elif shown.newest_at_ms is not None:
        told = f"the newest of {spoken(shown.newest_at_ms)} UTC"
        yield MARKED(is_right=True, text=f"the database has all that the marks in {folder} name, {told}")
    elif folder is not None:
        yield MARKED(is_right=True, text=f"no mark is in {folder} yet")


def _is_usable(folder: Path) -> bool:
    return not folder.exists() or os.access(folder, os.R_OK | os.W_OK | os.X_OK)
