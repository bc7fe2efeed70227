"""Inspects the database for an operator: whether it can be used, its schema's version, and the paused accounts."""

from collections.abc import Mapping
from typing import Final

import msgspec

from payrelay.core.gateways.pauses import Pause
from payrelay.core.notifications.notification import Authenticity, NotificationFilter
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.postgresql.hosts import unverified_hosts
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.inbox import Inbox
from payrelay.store.meta import schema_version

NEWEST_READ: Final = 100
"""Notifications among which the last genuine one is searched for, the newest."""


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
