"""Inspects the high-water marks for an operator, and for the commands that begin a recovery."""

from pathlib import Path

import msgspec

from payrelay.core.database.marks import MarksShown
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.runtime.database.mark_files import MarkFiles
from payrelay.runtime.database.marks import shown_by
from payrelay.store.database.identity import IdentityStore
from payrelay.store.database.marked_rows import MarkedRows
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Trail


async def inspect_marks(folder: Path | None, database: Database, seal: Seal, chain_secret: bytes) -> MarksShown:
    """Returns what the marks in a folder show of a database, and from when on commits may be lost; changes nothing.

    It also says what a process has found before; that is stored in the database. ``folder`` is None where no marks are
    kept, and ``chain_secret`` the key of the audit chain. Raises StoreError, and OSError where the folder can't be
    read.
    """
    identity = await IdentityStore(database, seal).read()
    rows = MarkedRows(database, Trail(database, seal, ChainKey(chain_secret)))
    shown = await shown_by(await MarkFiles(folder, chain_secret).read(), identity, rows)
    return msgspec.structs.replace(shown, found_before=identity.current.behind)
