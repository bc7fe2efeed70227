"""Alerts in the store: one for each time that an operator is needed.

An alert is about an operation, a notification or a checkout that came to need an operator, or an endpoint that was
stopped. The unit of work that makes the change writes the alert. ``store.digests`` writes those about rows. The audit's
anchors go out in the same way, once a day where that is set. This module leases alerts, puts them off and ends them.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from payrelay.store.engine.database import Database, Row, Statement, all_rows
from payrelay.store.engine.rows import moment_in
from payrelay.store.statements import alerts as statements

SERVER_ROW: Final = "servers/"
"""Begins the name of the row of an alert that another server took the writes; the words for that server follow."""
BEHIND_ROW: Final = "incarnations/"
"""Begins the name of the row of an alert that the database is behind; the number of its incarnation follows."""
ORDER_ROW: Final = "orders/"
"""Begins the name of the row of an alert about a payment that nothing here explains; merchant and order follow."""
LOST_CUSTOMERS_ROW: Final = "lost_customers/"
"""Begins the name of the row of an alert that stored customers may be lost; an incarnation and the merchant follow."""
_SEPARATOR: Final = ","


class AlertSubject(StrEnum):
    """The subject of an alert; each kind of subject has a table of its own."""

    OPERATION = "operation"
    """An operation that came to need attention."""
    NOTIFICATION = "notification"
    """A notification that came to need attention, or so many refused ones that an operator must look."""
    ENDPOINT = "endpoint"
    """An endpoint that was stopped."""
    CHECKOUT = "checkout"
    """A checkout of whose order a subscription began that contradicts what was asked for, or a payment is shown that
    nothing explains since commits were lost."""
    ROW = "row"
    """A stored row whose digest is wrong, the database as a whole where it is behind (BEHIND_ROW), or an order that was
    paid again."""
    ANCHOR = "anchor"
    """The newest anchor of the audit, to be kept outside the database."""


_QUERIES: Final = {
    AlertSubject.OPERATION: statements.OF_OPERATIONS,
    AlertSubject.NOTIFICATION: statements.OF_NOTIFICATIONS,
    AlertSubject.ENDPOINT: statements.OF_ENDPOINTS,
    AlertSubject.CHECKOUT: statements.OF_CHECKOUTS,
    AlertSubject.ROW: statements.OF_ROWS,
    AlertSubject.ANCHOR: statements.OF_ANCHORS,
}


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert that this process has leased, to be given now.

    Attributes:
        subject_id, version: the operation or notification, and its version that came to need attention. Of an endpoint
            it is the time of its stop, in milliseconds. Of a checkout it is the number of the subscription, or minus
            the number of the payment. Of a row it is 1, and the row is named by its table and id. Of an anchor, named
            by its number and digest, it is the day since 1970 on which it is told.
        created_at_ms: the time of that change.
        leased_until_ms: no other process leases it before this time.
        attempts: how often it was tried before.
        given_to: the alert channels that have it already.
    """

    subject_id: str
    version: int
    created_at_ms: int
    leased_until_ms: int
    attempts: int
    given_to: frozenset[str]

    @property
    def id(self) -> str:
        """Names it to the alert channels: equal whenever the alert is given again."""
        return f"{self.subject_id}/{self.version}"


_Alerts: TypeAlias = list[Alert]


class Alerts:
    """Leases the due alerts about one kind of subject, each to one process."""

    def __init__(self, database: Database, about: AlertSubject) -> None:
        self.about = about
        self._database = database
        self._queries = _QUERIES[about]

    async def next_due_ms(self) -> int | None:
        """Gives the time at which the next alert is due; None where none waits."""
        return await self._database.read(moment_in(Statement(self._queries.next_due, ())))

    async def lease_due(self, now_ms: int, *, leased_until_ms: int, limit: int) -> _Alerts:
        """Leases at most ``limit`` alerts that are due, the longest due first; no other process gets them meanwhile."""
        statement = Statement(self._queries.lease_due, (now_ms, leased_until_ms, limit), is_whole=True)
        return [_alert(row) for row in await self._database.write(all_rows(statement))]

    async def end(self, alert: Alert, given_to: frozenset[str]) -> None:
        """Ends an alert, which is not given again, and stores which channels have it."""
        parameters = (alert.subject_id, alert.version, _names(given_to))
        await self._database.write(all_rows(Statement(self._queries.end, parameters, is_whole=True)))

    async def put_off(self, alert: Alert, given_to: frozenset[str], until_ms: int) -> None:
        """Stores when an alert is due again and which channels have it.

        Does nothing where another process has leased it meanwhile.
        """
        parameters = (alert.subject_id, alert.version, alert.leased_until_ms, until_ms, _names(given_to))
        await self._database.write(all_rows(Statement(self._queries.put_off, parameters, is_whole=True)))


def _names(names: frozenset[str]) -> str:
    return _SEPARATOR.join(sorted(names))


def _alert(row: Row) -> Alert:
    *members, given_to = row
    names = frozenset(name for name in str(given_to).split(_SEPARATOR) if name)
    return msgspec.convert(dict(zip(Alert.__struct_fields__, (*members, names), strict=True)), Alert)
