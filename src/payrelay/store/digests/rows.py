"""Keyed digests on rows that grant something or tell an outcome: who may write to the database can forge none.

Rules:

1. ``DIGESTED`` lists the tables whose rows have a digest, and ``UNDIGESTED`` every other table with the reason; tests
   compare both with the schema. A digest covers the table, the id, and every column that isn't listed as uncovered.
2. A statement that writes a covered column writes the digest with it, of values that were read with a right digest. So
   no later change makes a forged row right.
3. A row whose digest is missing or wrong counts as not existing, and is an alert, once.
4. A row that has ended grants nothing, and loses its digest. So nobody can bring it back.
5. A null is left out of the digest. So a nullable column that is added later changes no digest.

What a digest can't show is that a whole row was put back to what it was at an earlier time.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from payrelay.clock import Clock
from payrelay.core.keyed_digest import DigestKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.statements import alerts, checkouts, customers, inbox
from payrelay.store.statements.access import client_tokens, credentials, principals
from payrelay.store.statements.digests import rows as statements
from payrelay.store.statements.events import endpoints

PURPOSE: Final = "stored row"
"""Of the keyed digest; never changed."""
PAGE: Final = 500
"""Rows that are read at once: few enough that a server which reads them delays no request."""
REPORTED_MAX: Final = 10_000
"""Wrong rows that a process remembers to have reported; reporting one again changes nothing."""
ALERT_VERSION: Final = 1
"""Of the one alert about a row."""


_encode: Final = msgspec.json.Encoder().encode
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class DigestedTable(NamedTuple):
    """A table whose rows have digests.

    Attributes:
        name: of the table.
        read: the columns that the store reads, in their order; the first is the id.
        uncovered: those columns of the table that the digest leaves out, each with the reason.
        ended_by: the column that is set once a row grants nothing any more; None where rows don't end.
    """

    name: str
    read: tuple[str, ...]
    uncovered: Mapping[str, str] = _NOTHING
    ended_by: str | None = None


def _names(columns: str) -> tuple[str, ...]:
    return tuple(columns.split(", "))


_SEALED: Final = "it is sealed, and bound to its row"
_TIMING: Final = "it says only when the service turns to the row again"

CREDENTIALS: Final = DigestedTable(
    "credentials",
    _names(credentials.CREDENTIAL_COLUMNS),
    {"revoked_at_ms": "a row that was revoked has no digest"},
    ended_by="revoked_at_ms",
)
CLIENT_TOKENS: Final = DigestedTable(
    "client_tokens",
    ("id", "principal", "credential_id", "revoked_at_ms"),
    {
        "revoked_at_ms": "a row that was revoked has no digest",
        **dict.fromkeys(
            sorted({*_names(client_tokens.ISSUED_COLUMNS)} - {"id", "principal", "credential_id", "revoked_at_ms"}),
            "the token's own text has it, signed; the row only shows it",
        ),
    },
    ended_by="revoked_at_ms",
)
CUSTOMERS: Final = DigestedTable(
    "customers",
    (*_names(customers.COLUMNS), "reference_hash"),
    {
        "token_hash": "a repeated approval is found by it, within one principal; charges take the sealed token",
        **dict.fromkeys(("method", "card_no_masked", "card_expiry"), "it is sealed with the names, and only shown"),
        "sealed_token": _SEALED,
        "sealed_holder": _SEALED,
        "sealed_names": _SEALED,
    },
)
ENDPOINTS: Final = DigestedTable(
    "endpoints",
    _names(endpoints.ENDPOINT_COLUMNS),
    {
        "label": "it is shown to its owner, and nothing more",
        "state": "it stops or resumes events to the same address",
        "reason": "it explains the state",
        "older_ends_at_ms": "it only says how long the older secret signs beside the newest",
        "failing_since_ms": _TIMING,
        "held_until_ms": _TIMING,
        "updated_at_ms": "it tells of changes that the digest leaves out",
        "sealed_secret": _SEALED,
        "sealed_older": _SEALED,
    },
)
CHECKOUTS: Final = DigestedTable(
    "checkouts",
    _names(checkouts.COLUMNS),
    {
        "guard": "it is the order, or nothing where another checkout holds the order; the audit compares it",
        "idempotency_key": "it is forgotten without a change of the checkout",
        "customer_reference": "it is forgotten without a change of the checkout",
        "opened_at_ms": "it says when the page was first shown",
        "ends_at_ms": _TIMING,
        "look_at_ms": _TIMING,
        "sealed": _SEALED,
    },
)
NOTIFICATIONS: Final = DigestedTable(
    "notifications",
    _names(inbox.NOTIFICATION_COLUMNS),
    {
        "repeats": "it counts, and nothing follows from it",
        "last_at_ms": "it counts, and nothing follows from it",
        "next_at_ms": _TIMING,
        "sealed_body": _SEALED,
    },
)

PRINCIPAL_NAMES: Final = DigestedTable("principal_names", _names(principals.NAME_COLUMNS))
PRINCIPAL_GROUPS: Final = DigestedTable("principal_groups", _names(principals.MEMBER_COLUMNS))
GRANDFATHERED: Final = DigestedTable("grandfathered", _names(principals.PAIR_COLUMNS))

DIGESTED: Final = (
    *(CREDENTIALS, CLIENT_TOKENS, CUSTOMERS, ENDPOINTS, CHECKOUTS, NOTIFICATIONS),
    *(PRINCIPAL_NAMES, PRINCIPAL_GROUPS, GRANDFATHERED),
)
"""Every table whose rows have digests."""

_COVERED: Final = {
    table.name: tuple((index, name) for index, name in enumerate(table.read) if name not in table.uncovered)
    for table in DIGESTED
}

UNDIGESTED: Final[Mapping[str, str]] = {
    "operations": "the audit chain covers it",
    "history": "the audit chain covers it",
    "anchors": "each covers the one before; the newest is compared with what was noted outside",
    "meta": "every value is sealed under its name",
    "schema_version": "it names migrations; a wrong one ends the start",
    "accepted_tokens": "the token is sealed; a removed row lets the next approval in, which the gateway has signed",
    "access_tokens": "every token is sealed for its account",
    "readings": "every reading is sealed for its question",
    "payments_seen": "it only tells whether a payment changed; what is shown was read at the gateway",
    "paused_accounts": "a pause that is removed leaves nothing to be checked; the log tells of each",
    "data_keys": "every key is sealed for its owner",
    "key_residues": "it says which files are still to be cleared of destroyed keys",
    "order_searches": "its readings have digests of their own, see store.payments.order_searches",
    "signed_texts": "its digests are keyed; one that is missing makes a signature prove less",
    "places": "it is the budget of calls, which the gateway keeps too",
    "bumps": "it counts what makes readings outdated",
    "chargebacks": "it shows a chargeback beside a payment, and moves no money",
    "subscriptions": "it shows what was reported of a subscription; no digest covers who began it, and may act on it",
    "installments": "it shows what was reported of a subscription, and moves no money",
    "outbox": "an event says what to look at; what it tells is read from the row that it names",
    "events": "an event says what to look at; what it tells is read from the row that it names",
    "feed": "it is the last position that an event was given",
    "deliveries": "it says which events an endpoint still gets; where to is the endpoint's row",
    "alerts": "it says which operators are still to be told",
    "notification_alerts": "it says which operators are still to be told",
    "checkout_alerts": "it says which operators are still to be told",
    "endpoint_alerts": "it says which operators are still to be told",
    "row_alerts": "it says which operators are still to be told",
    "anchor_alerts": "it says which operators are still to be told",
}
"""Every other table, and why its rows have no digest."""


class CheckedRow(NamedTuple):
    """A row that the audit has checked: its table and id, and whether its digest is right."""

    name: str
    is_right: bool


class RowKey:
    """Makes and compares the digests of rows, and does nothing else: also in the midst of a unit of work.

    ``secret`` is the key of the audit chain.
    """

    def __init__(self, secret: bytes) -> None:
        self._key = DigestKey(secret, PURPOSE)

    def of(self, table: DigestedTable, values: Sequence[Value]) -> str:
        """Gives the digest of a row that has the columns ``read`` of its table, in their order."""
        return self._key.digest(*_packed(table, values))

    def fits(self, table: DigestedTable, row: Row) -> bool:
        """Tells whether the digest behind the columns ``read`` is right; a row that has ended needs none."""
        *values, digest = row
        return _has_ended(table, values) or self._key.fits(str(digest), *_packed(table, values))


class RowDigests:
    """Makes and checks the digests of rows; reports wrong ones.

    ``secret`` is the key of the audit chain, and ``clock`` dates the reports.
    """

    def __init__(self, database: Database, secret: bytes, clock: Clock) -> None:
        self._database = database
        self._key = RowKey(secret)
        self._clock = clock
        self._reported: set[str] = set()

    def of(self, table: DigestedTable, row: Sequence[Value]) -> str:
        """Gives the digest of a row that has the columns ``read`` of its table, in their order."""
        return self._key.of(table, row)

    async def trusted(self, table: DigestedTable, rows: Sequence[Row]) -> list[Row]:
        """Gives those rows whose digest is right, without it; it is the last column, behind the columns ``read``.

        The others are reported, once for each row. Raises StoreUnavailable.
        """
        return [row[:-1] for row in rows if await self.is_right(table, row)]

    async def is_right(self, table: DigestedTable, row: Row) -> bool:
        """Tells whether the digest behind the columns ``read`` is right; reports the row where it isn't.

        A row that has ended is right without a digest. Raises StoreUnavailable.
        """
        if self._key.fits(table, row):
            return True
        await self.report(_name(table, row))
        return False

    async def report(self, name: str) -> None:
        """Stores the alert about a row, once; ``name`` is the table and the id. Raises StoreUnavailable."""
        if name in self._reported:
            return
        now_ms = self._clock.now_ms()
        added = Statement(alerts.ADD_ROW_ALERT, (name, ALERT_VERSION, now_ms, now_ms), is_whole=True)
        await self._database.write(all_rows(added))
        if len(self._reported) < REPORTED_MAX:
            self._reported.add(name)

    async def check(self, table: DigestedTable) -> AsyncIterator[CheckedRow]:
        """Reads all rows of a table, in the order of their ids, and tells of each whether its digest is right.

        Raises StoreUnavailable.
        """
        after: Value = ""
        query = statements.page_of(table.name, (*table.read, "row_digest"))
        while rows := await self._database.read(all_rows(Statement(query, (after, PAGE)))):
            for row in rows:
                yield CheckedRow(_name(table, row), self._key.fits(table, row))
            after = rows[-1][0]
            await asyncio.sleep(0)  # the embedded database reads without waiting: a server's requests have their turn

    def add_missing(self, table: DigestedTable) -> Unit[int]:
        """Gives a digest to every row that has none and needs one, as the row stands; gives how many rows there are.

        Only for the upgrade of a database whose rows never had digests.
        """
        after: Value = ""
        found = 0
        page = statements.locked_page_of(table.name, (*table.read, "row_digest"))
        while rows := (yield Statement(page, (after, PAGE))):
            missing = {
                str(values[0]): self.of(table, values)
                for *values, digest in rows
                if digest == "" and not _has_ended(table, values)
            }
            yield Statement(statements.add_digests(table.name), (_encode(missing).decode(),))
            found += len(rows)
            after = rows[-1][0]
        return found


def _name(table: DigestedTable, values: Sequence[Value]) -> str:
    return f"{table.name}/{values[0]!s}"


def _has_ended(table: DigestedTable, values: Sequence[Value]) -> bool:
    return table.ended_by is not None and values[table.read.index(table.ended_by)] is not None


def _packed(table: DigestedTable, values: Sequence[Value]) -> list[Value]:
    """Gives the table, and the name and value of each covered column that isn't null."""
    packed: list[Value] = [table.name]
    for index, name in _COVERED[table.name]:
        value = values[index]
        if value is not None:
            packed += (name, value)
    return packed
