"""Alerts as the store keeps them: one for each time that somebody must be called.

About an operation or a notification that came to need a person, or an endpoint that was stopped. They are written in
the unit of work that made the change; here they are taken, tried again and ended.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from payrelay.store.engine.database import Database, Row, Statement, all_rows
from payrelay.store.engine.rows import moment_in
from payrelay.store.statements import alerts as statements

_SEPARATOR: Final = ","


class AlertSubject(StrEnum):
    """What an alert is about; each kind has a table of its own."""

    OPERATION = "operation"
    """It came to need a person."""
    NOTIFICATION = "notification"
    """It came to need a person, or so many were refused that one must look."""
    ENDPOINT = "endpoint"
    """It was stopped."""


_QUERIES: Final = {
    AlertSubject.OPERATION: statements.OF_OPERATIONS,
    AlertSubject.NOTIFICATION: statements.OF_NOTIFICATIONS,
    AlertSubject.ENDPOINT: statements.OF_ENDPOINTS,
}


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert that was taken, to be given now.

    Attributes:
        subject_id, version: the operation or notification, and its version that came to need a person; or the endpoint,
            and when it was stopped, in milliseconds.
        created_at_ms: when that was.
        leased_until_ms: until then nobody else takes it.
        attempts: how often it was tried before.
        given_to: the addressees that have it already.
    """

    subject_id: str
    version: int
    created_at_ms: int
    leased_until_ms: int
    attempts: int
    given_to: frozenset[str]

    @property
    def id(self) -> str:
        """Names it to its addressees: the same whenever it is given again."""
        return f"{self.subject_id}/{self.version}"


_Alerts: TypeAlias = list[Alert]


class Alerts:
    """Gives out the alerts of one kind that are due, to one process each."""

    def __init__(self, database: Database, about: AlertSubject) -> None:
        self.about = about
        self._database = database
        self._queries = _QUERIES[about]

    async def next_due_ms(self) -> int | None:
        """Tells when the next alert is to be given; None where none is."""
        return await self._database.read(moment_in(Statement(self._queries.next_due, ())))

    async def lease_due(self, now_ms: int, *, leased_until_ms: int, limit: int) -> _Alerts:
        """Takes at most ``limit`` alerts that are due, the longest due first; until then nobody else is given them."""
        statement = Statement(self._queries.lease_due, (now_ms, leased_until_ms, limit), is_whole=True)
        return [_alert(row) for row in await self._database.write(all_rows(statement))]

    async def end(self, alert: Alert, given_to: frozenset[str]) -> None:
        """Says that it is not given again, and to whom it was."""
        parameters = (alert.subject_id, alert.version, _names(given_to))
        await self._database.write(all_rows(Statement(self._queries.end, parameters, is_whole=True)))

    async def put_off(self, alert: Alert, given_to: frozenset[str], until_ms: int) -> None:
        """Says when it is tried again, and who has it already; nothing where somebody else has taken it meanwhile."""
        parameters = (alert.subject_id, alert.version, alert.leased_until_ms, until_ms, _names(given_to))
        await self._database.write(all_rows(Statement(self._queries.put_off, parameters, is_whole=True)))


def _names(names: frozenset[str]) -> str:
    return _SEPARATOR.join(sorted(names))


def _alert(row: Row) -> Alert:
    *members, given_to = row
    names = frozenset(name for name in str(given_to).split(_SEPARATOR) if name)
    return msgspec.convert(dict(zip(Alert.__struct_fields__, (*members, names), strict=True)), Alert)
