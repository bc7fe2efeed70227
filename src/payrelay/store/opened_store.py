"""An opened database with its keys, as whoever makes stores on it is given it."""

from dataclasses import dataclass

from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import ChainStart


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """The database with its keys.

    Attributes:
        database: migrated and upgraded.
        seal: of the encryption key.
        chain: the key of the audit chain, of which all keyed digests are made, and when the chain began.
        rows: makes and checks the digests of rows.
    """

    database: Database
    seal: Seal
    chain: ChainStart
    rows: RowDigests
