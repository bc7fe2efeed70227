"""Puts together what the commands work with that back up, restore and copy the database."""

from functools import partial

from payrelay.app import configured_seal
from payrelay.backups.flows.back_up import BackupSource
from payrelay.backups.flows.copy_database import CopyOrder
from payrelay.backups.flows.restore import RestorePlace
from payrelay.core.database.database_url import embedded_file
from payrelay.core.database.marks import MarksShown
from payrelay.errors import SettingsError
from payrelay.flows.database.inspect_marks import inspect_marks
from payrelay.settings import Settings, child_environment
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.sqlite_file import require_there
from payrelay.store.meta import chain_key


def backup_source(settings: Settings) -> BackupSource:
    """Returns what the command that backs up works with. Raises SettingsError, StoreUnusable, DatabaseNotReady."""
    if settings.embedded_path is not None:
        require_there(settings.embedded_path)
    return BackupSource(settings.database_url.reveal(), configured_seal(settings), child_environment())


def restore_place(settings: Settings) -> RestorePlace:
    """Returns what the command that restores works with."""

    async def look_at_marks(database: Database, seal: Seal) -> MarksShown:
        chain = await chain_key(database, seal)
        return await inspect_marks(settings.marks_folder, database, seal, chain.secret)

    return RestorePlace(
        settings.database_url.reveal(),
        partial(configured_seal, settings),
        settings.anchor_path,
        look_at_marks,
    )


def copy_order(settings: Settings, url: str, operator: str) -> CopyOrder:
    """Returns what the command that copies the database works with. Raises SettingsError, StoreUnusable."""
    if settings.embedded_path is None:
        raise SettingsError("PAYRELAY_DATABASE_URL is no sqlite:// address, and only an embedded database is copied")
    if embedded_file(url) is not None:
        raise SettingsError("--to takes a postgresql:// address")
    require_there(settings.embedded_path)
    return CopyOrder(settings.embedded_path, url, configured_seal(settings), operator)
