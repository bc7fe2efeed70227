"""Checks of the database: whether it can be used with its keys, who can read it, and what it knows of the gateway."""

import stat
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from payrelay.app import SharedResources, opened_database, resources_of
from payrelay.cli.checks.of_marks import of_marks
from payrelay.clock import Clock
from payrelay.core.moments import spoken
from payrelay.errors import DatabaseMissing, DatabaseNotReady, SettingsError, StoreError
from payrelay.flows.operators.inspect_database import (
    inspect_database,
    last_notification_ms,
    unverified_in_words,
)
from payrelay.flows.operators.pause_account import in_words
from payrelay.gateways.gateway import CheckResult, Gateway
from payrelay.settings import Settings, child_environment

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""The rights of all users but the owner of a file."""


async def of_database(
    settings: Settings, clock: Clock, stack: AsyncExitStack
) -> tuple[list[CheckResult], SharedResources | None]:
    """Checks the database, and gives it where it can be used; it stays open as long as the stack."""
    try:
        database = await stack.enter_async_context(opened_database(settings, clock))
        state = await inspect_database(database)
    except DatabaseNotReady as error:
        return [_not_ready(error)], None
    except (SettingsError, StoreError) as error:
        return [CheckResult(subject="database", is_right=False, text=str(error))], None
    text = f"{settings.shown_database} can be used; its schema has version {state.schema_version}"
    right = CheckResult(subject="database", is_right=True, text=text)
    paused = [
        CheckResult(
            subject=pause.account,
            is_right=True,
            is_warning=True,
            text=f"paused {in_words(pause)}: no new operation begins there",
        )
        for pause in state.pauses
    ]
    try:
        shared = await resources_of(settings, database, clock)
    except DatabaseNotReady as error:
        return [right, *paused, _not_ready(error)], None
    except (SettingsError, StoreError) as error:
        return [right, *paused, CheckResult(subject="encryption key", is_right=False, text=str(error))], None
    key = CheckResult(subject="encryption key", is_right=True, text="it opens what this database holds")
    marks = [result async for result in of_marks(settings, shared)]
    return [right, *paused, key, *marks], shared


def _not_ready(error: DatabaseNotReady) -> CheckResult:
    """A missing database is made at the first start; an old one ends the start."""
    is_missing = isinstance(error, DatabaseMissing)
    return CheckResult(subject="database", is_right=is_missing, is_warning=is_missing, text=str(error))


def of_way(settings: Settings) -> Iterator[CheckResult]:
    """Checks whether somebody on the way to PostgreSQL could pose as it; says nothing of a URL that can't be read."""
    text = None
    if settings.embedded_path is None:
        with suppress(SettingsError):
            text = unverified_in_words(settings.database_url.reveal(), child_environment())
    if text is not None:
        yield CheckResult(subject="way to the database", is_right=True, is_warning=True, text=text)


def of_files(path: Path | None) -> Iterator[CheckResult]:
    """Checks who may read the embedded database and the key beside it; Payrelay makes both for their owner alone."""
    for file in () if path is None else (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}.key")):
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0
        if mode & OTHERS:
            text = f"{file} may be read or changed by other users of this machine (mode {mode:04o}): chmod 600 {file}"
            yield CheckResult(subject="files", is_right=True, is_warning=True, text=text)


async def of_notifications(account: Gateway, shared: SharedResources | None) -> CheckResult:
    """Says whether notifications of the gateway can be verified, and when the last genuine one came."""
    unset = account.capabilities.unset_for_checkouts
    if unset:
        verb = "are" if len(unset) > 1 else "is"
        text = f"{' and '.join(unset)} {verb} not set: notifications can't be verified, and no checkout can be opened"
        return CheckResult(subject="notifications", is_right=True, is_warning=True, text=text)
    last_ms = None
    if shared is not None:
        last_ms = await last_notification_ms(shared.database, shared.seal, shared.rows, account.name)
    if last_ms is None:
        text = "no genuine one has come lately: whether the gateway reaches this service is not known"
        return CheckResult(subject="notifications", is_right=True, is_warning=True, text=text)
    return CheckResult(
        subject="notifications", is_right=True, text=f"the last genuine one came on {spoken(last_ms)} UTC"
    )
