"""Inspects the database for an operator: whether it can be used, its schema's version, and the paused accounts."""

from collections.abc import Mapping
from typing import Final

import msgspec

from payrelay.core.gateways.pauses import Pause
from payrelay.core.notifications.notification import Authenticity, NotificationFilter
from payrelay.flows.operators.manage_principals import undecided
from payrelay.store.access.principals import Principals
from payrelay.store.data_keys.residues import KeyResidues
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.postgresql.hosts import unverified_hosts
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.inbox import Inbox
from payrelay.store.meta import schema_version

NEWEST_READ: Final = 100
"""Notifications among which the last genuine one is searched for, the newest."""


FILE_IS_LEFT: Final = (
    "the database's file still has what an earlier version deleted or sealed in it, because the disk had no room to"
    " write it anew: make room for a second copy, stop the service, and run payrelay db upgrade"
)


def unverified_in_words(url: str, environment: Mapping[str, str]) -> str | None:
    """Tells on the way to which servers of PostgreSQL somebody may pose as one; None where none is.

    ``environment`` has what the URL leaves out. Raises SettingsError for a URL that can't be read.
    """
    hosts = unverified_hosts(url, environment)
    if not hosts:
        return None
    named = ", ".join(hosts)
    return (
        f"PAYRELAY_DATABASE_URL doesn't ask for sslmode=verify-full: whoever is on the way to {named} can read and"
        " change all that is stored"
    )


class DatabaseState(msgspec.Struct, frozen=True, kw_only=True):
    """A database that can be used: the version of its schema, and the accounts that are paused."""

    schema_version: int
    pauses: list[Pause]


async def last_notification_ms(database: Database, seal: Seal, rows: RowDigests, account: str) -> int | None:
    """Tells when the last genuine notification for an account came, in ms since 1970, UTC.

    None where none of the newest NEWEST_READ was genuine. Raises StoreUnavailable.
    """
    of_account = NotificationFilter(account=account)
    newest = await Inbox(database, seal, rows).list(of_account, before=None, limit=NEWEST_READ)
    return next((each.last_at_ms for each in newest if each.authenticity is Authenticity.GENUINE), None)


async def inspect_database(database: Database) -> DatabaseState:
    """Reads the state of a database, after a check that it can be written to. Raises StoreUnavailable."""
    await database.ping()
    return DatabaseState(schema_version=await schema_version(database), pauses=await Pauses(database).list())


async def is_file_left(database: Database) -> bool:
    """Tells whether the file of an embedded database still has what an earlier version deleted or sealed in it."""
    return await KeyResidues(database).is_whole_file_left()


async def clear_file(database: Database) -> bool:
    """Writes the file of an embedded database anew, which nobody else may use meanwhile; False where it can't be done.

    Raises StoreUnavailable.
    """
    residues = KeyResidues(database)
    await residues.clear_whole_file()
    return not await residues.is_whole_file_left()


async def undecided_in_words(database: Database, digests: RowDigests) -> list[str]:
    """Returns a text for each pair of principals that nobody decided about, with the commands that decide.

    Raises StoreUnavailable.
    """
    return await undecided(Principals(database, digests))
