"""Keyed digests on rows that grant something or tell an outcome: who may write to the database can forge none.

Rules:

1. ``DIGESTED`` lists the tables whose rows have a digest, and ``UNDIGESTED`` every other table with the reason; tests
   compare both with the schema. A digest covers the table, the id, and every column that isn't listed as uncovered.
2. A statement that writes a covered column writes the digest with it, of values that were read with a right digest. So
   no later change makes a forged row right.
3. A row whose digest is missing or wrong counts as not existing, is an alert, once, and a line of each process's log.
   Of an operation nothing is concluded then (``store.payments.journal``), and what such a row names is open to nobody
   (``store.access.owners``).
4. A row that has ended grants nothing, and loses its digest. So nobody can bring it back.
5. A null is left out of the digest. So a nullable column that is added later changes no digest.

What a digest can't show is that a whole row was put back to what it was at an earlier time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from payrelay.clock import Clock
from payrelay.core.keyed_digest import DigestKey
from payrelay.store.digests.lookups import Lookups
from payrelay.store.engine.database import Database, Row, Statement, T, Unit, Value, all_rows
from payrelay.store.statements import alerts
from payrelay.store.statements.digests import rows as statements
from payrelay.store.statements.digests.columns import READ, SHOWN_OF_TOKENS

PURPOSE: Final = "stored row"
"""Of the keyed digest; never changed."""
PAGE: Final = 500
"""Rows that are read at once: few enough that a server which reads them delays no request."""
REPORTED_MAX: Final = 10_000
"""Wrong rows that a process remembers to have reported; reporting one again changes nothing."""
ALERT_VERSION: Final = 1
"""Of the one alert about a row."""


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_READ: Final = {name: tuple(columns.split(", ")) for name, columns in READ.items()}


class DigestedTable(NamedTuple):
    """A table whose rows have digests.

    Attributes:
        name: of the table.
        uncovered: those columns of the table that the digest leaves out, each with the reason.
        ended_by: the column that is set once a row grants nothing any more; None where rows don't end.
        keys: how many columns the key has; most tables have an id.
    """

    name: str
    uncovered: Mapping[str, str] = _NOTHING
    ended_by: str | None = None
    keys: int = 1

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that the store reads, in their order; the first ones are the key."""
        return _READ[self.name]


_SEALED: Final = "it is sealed, and bound to its row"
_TIMING: Final = "it says only when the service turns to the row again"

CREDENTIALS: Final = DigestedTable(
    "credentials",
    {"revoked_at_ms": "a row that was revoked has no digest"},
    ended_by="revoked_at_ms",
)
CLIENT_TOKENS: Final = DigestedTable(
    "client_tokens",
    {
        "revoked_at_ms": "a row that was revoked has no digest",
        **dict.fromkeys(sorted(SHOWN_OF_TOKENS), "the token's own text has it, signed; the row only shows it"),
    },
    ended_by="revoked_at_ms",
)
CUSTOMERS: Final = DigestedTable(
    "customers",
    {
        "token_hash": "a repeated approval is found by it, within one principal; charges take the sealed token",
        "sealed_token": _SEALED,
        "sealed_holder": _SEALED,
        "sealed_names": _SEALED,
    },
)
ENDPOINTS: Final = DigestedTable(
    "endpoints",
    {
        "label": "it is shown to its owner, and nothing more",
        "state": "it stops or resumes events to the same address",
        "reason": "it explains the state",
        "older_ends_at_ms": "it only says how long the older secret signs beside the newest",
        "failing_since_ms": _TIMING,
        "held_until_ms": _TIMING,
        "updated_at_ms": "it tells of changes that the digest leaves out",
        "sealed_url": f"{_SEALED}; the hash of what it holds is covered",
        "sealed_secret": _SEALED,
        "sealed_older": _SEALED,
    },
)
CHECKOUTS: Final = DigestedTable(
    "checkouts",
    {
        "guard": "it is the order, or nothing where another checkout holds the order; the audit compares it",
        "key_hash": "it is forgotten without a change of the checkout",
        "opened_at_ms": "it says when the page was first shown",
        "closed_at_ms": "it says why the checkout is cancelled; the state itself is covered",
        "ends_at_ms": _TIMING,
        "look_at_ms": _TIMING,
        "sealed": _SEALED,
        "sealed_reference": _SEALED,
    },
)
NOTIFICATIONS: Final = DigestedTable(
    "notifications",
    {
        "repeats": "it counts, and nothing follows from it",
        "last_at_ms": "it counts, and nothing follows from it",
        "next_at_ms": _TIMING,
        "sealed_body": _SEALED,
    },
)

PRINCIPAL_NAMES: Final = DigestedTable("principal_names")
PRINCIPAL_GROUPS: Final = DigestedTable("principal_groups")

ACCEPTED_TOKENS: Final = DigestedTable("accepted_tokens", {"sealed_token": _SEALED}, keys=3)
PAYMENTS_SEEN: Final = DigestedTable("payments_seen", keys=2)
RETURNS_SEEN: Final = DigestedTable("returns_seen", keys=3)
FAILED_REFUNDS: Final = DigestedTable("failed_refunds")
SUBSCRIPTIONS: Final = DigestedTable("subscriptions", keys=2)
INSTALLMENTS: Final = DigestedTable("installments", keys=3)
CHARGEBACKS: Final = DigestedTable("chargebacks", keys=2)
OUTBOX: Final = DigestedTable("outbox", {"seq": "it says which event is published first, and nothing else"})
EVENTS: Final = DigestedTable("events")
IMPORTED_PAYMENTS: Final = DigestedTable("imported_payments", keys=2)
SIGNED_TEXTS: Final = DigestedTable("signed_texts", {"at_ms": "it says when the text was stored"}, keys=3)

OPERATIONS: Final = DigestedTable(
    "operations",
    {
        "claim": "it is forgotten without a change of the operation; the audit compares it",
        "claim_ends_at_ms": "it is forgotten with the claim",
        "probe_at_ms": _TIMING,
        "sealed_call": _SEALED,
        "sealed_answer": _SEALED,
        "closed_history": "it is signed by the key of the chain, and the audit compares it",
    },
)

OPERATORS: Final = DigestedTable("operators", {"sealed_totp": _SEALED})
OPERATOR_INVITATIONS: Final = DigestedTable(
    "operator_invitations", {"ended_at_ms": "a row that ended has no digest"}, ended_by="ended_at_ms"
)
OPERATOR_PASSKEYS: Final = DigestedTable("operator_passkeys")
CONSOLE_SESSIONS: Final = DigestedTable(
    "console_sessions", {"ended_at_ms": "a row that ended has no digest"}, ended_by="ended_at_ms"
)
CONSOLE_CONFIRMATIONS: Final = DigestedTable("console_confirmations")

DIGESTED: Final = (
    *(CREDENTIALS, CLIENT_TOKENS, CUSTOMERS, ENDPOINTS, CHECKOUTS, NOTIFICATIONS, PRINCIPAL_NAMES, PRINCIPAL_GROUPS),
    *(ACCEPTED_TOKENS, PAYMENTS_SEEN, SUBSCRIPTIONS, INSTALLMENTS, OUTBOX, EVENTS, CHARGEBACKS),
    *(IMPORTED_PAYMENTS, RETURNS_SEEN, FAILED_REFUNDS, SIGNED_TEXTS, OPERATIONS),
    *(OPERATORS, OPERATOR_INVITATIONS, OPERATOR_PASSKEYS, CONSOLE_SESSIONS, CONSOLE_CONFIRMATIONS),
)
"""Every table whose rows have digests."""

_COVERED: Final = {
    table.name: tuple(None if name in table.uncovered else name for name in table.read) for table in DIGESTED
}
"""The names of the columns that are read, and None for one that isn't covered."""

_TABLES: Final = {table.name: table for table in DIGESTED}

UNDIGESTED: Final[Mapping[str, str]] = {
    "history": "the audit chain covers it",
    "anchors": "each covers the one before; the newest is compared with what was noted outside",
    "anchor_checkpoints": "each is signed by the key of the chain, and the audit compares it",
    "clearing": "it says how far the clearing has come; what is cleared is judged by its own row",
    "clearing_skipped": "it says what the clearing tries again; what is cleared is judged by its own row",
    "meta": "every value is sealed under its name",
    "schema_version": "it names migrations; a wrong one ends the start",
    "access_tokens": "every token is sealed for its account",
    "readings": "every reading is sealed for its question",
    "paused_accounts": "a pause that is removed leaves nothing to be checked; the log tells of each",
    "data_keys": "every key is sealed for its owner",
    "key_residues": "it says which files are still to be cleared of destroyed keys",
    "order_searches": "its readings have digests of their own, see store.payments.order_searches",
    "places": "it is the budget of calls, which the gateway keeps too",
    "bumps": "it counts what makes readings outdated",
    "feed": "it is the last position that an event was given",
    "deliveries": "it says what was tried, and what is still to be sent; only a right event of the endpoint's owner is",
    "operator_acts": "each line is chained to the one before, see store.console.acts",
    "operator_act_subjects": "it finds lines about a thing; the lines themselves are chained",
    "sign_in_tries": "it counts tries; who writes there may guess more often, and still has to guess",
    "console_challenges": "what a browser must answer is made from its own cookie, see core.console.sign_in.provider",
    "statement_files": "it says which files were read, and by whom; what was said of them is in operator_acts",
    "statement_lines": "it shows what others say, and moves no money; whoever keeps the files can read them anew",
    "statement_days": "what a person said of a day is in operator_acts too",
    "statement_searches": "it says when the gateway was asked, and the gateway can be asked again",
    "payments_learnt": "it says on which day of the books something is told; what was paid is read from its own row",
    "differences": "a run finds them again; who closed one is in operator_acts",
    "reconciled_days": "the digest of a closed day's report is in operator_acts",
    "heartbeats": "each shows its own process that the database takes writes",
    "alerts": "it says which operators are still to be told",
    "notification_alerts": "it says which operators are still to be told",
    "checkout_alerts": "it says which operators are still to be told",
    "endpoint_alerts": "it says which operators are still to be told",
    "row_alerts": "it says which operators are still to be told",
    "anchor_alerts": "it says which operators are still to be told",
}
"""Every other table, and why its rows have no digest."""


class PackedRow(NamedTuple):
    """A row with its digest behind it, which a statement gave as one value (``packed`` of ``store.engine.queries``)."""

    table: DigestedTable
    row: Row

    @property
    def name(self) -> str:
        """Names the row in alerts: its table and its key."""
        return _name(self.table, self.row)

    def value(self, column: str) -> Value:
        """Gives a column of the row; None also where the table has no such column."""
        return self.row[self.table.read.index(column)] if column in self.table.read else None


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
        values = row[:-1]
        return _has_ended(table, values) or self._key.fits(str(row[-1]), *_packed(table, values))


class RowSieve:
    """Picks the rows with right digests within a unit of work, where nobody can be told yet.

    Attributes:
        wrong: the names of the others, to be reported once the unit has ended (``RowDigests.report_all``).
    """

    def __init__(self, key: RowKey) -> None:
        self._key = key
        self.wrong: list[str] = []

    def right(self, table: DigestedTable, rows: Sequence[Row]) -> list[Row]:
        """Gives the rows whose digest is right, without it; it is the last column, behind the columns ``read``."""
        found = []
        for row in rows:
            if self._key.fits(table, row):
                found.append(row[:-1])
            else:
                self.wrong.append(_name(table, row))
        return found


def unpacked(value: Value) -> PackedRow:
    """Gives the row that a statement gave as one value."""
    name, *row = msgspec.json.decode(str(value))
    return PackedRow(_TABLES[name], row)


class RowDigests:
    """Makes and checks the digests of rows; reports wrong ones.

    ``secret`` is the key of the audit chain, and ``clock`` dates the reports. ``lookups`` makes hashes by which rows
    are found.
    """

    def __init__(self, database: Database, secret: bytes, clock: Clock) -> None:
        self._database = database
        self.key = RowKey(secret)
        self.lookups = Lookups(secret)
        self._clock = clock
        self._reported: set[str] = set()
        self._tell: Callable[[str], None] = _tell_nobody

    def tell_of_wrong(self, tell: Callable[[str], None]) -> None:
        """Has ``tell`` called once with the name of each wrong row that is met from now on, such as to log it."""
        self._tell = tell

    def of(self, table: DigestedTable, row: Sequence[Value]) -> str:
        """Gives the digest of a row that has the columns ``read`` of its table, in their order."""
        return self.key.of(table, row)

    async def trusted(self, table: DigestedTable, rows: Sequence[Row]) -> list[Row]:
        """Gives those rows whose digest is right, without it; it is the last column, behind the columns ``read``.

        The others are reported, once for each row. Raises StoreUnavailable.
        """
        return [row[:-1] for row in rows if await self.is_right(table, row)]

    async def is_right(self, table: DigestedTable, row: Row) -> bool:
        """Tells whether the digest behind the columns ``read`` is right; reports the row where it isn't.

        A row that has ended is right without a digest. Raises StoreUnavailable.
        """
        if self.key.fits(table, row):
            return True
        await self.report(_name(table, row))
        return False

    async def report(self, name: str) -> None:
        """Tells of a wrong row, and stores the alert about it, each once; ``name`` is the table and the key.

        Somebody who writes the row may also write its alert as one that was given: so the log tells of it besides.
        Raises StoreUnavailable.
        """
        if name in self._reported:
            return
        self._tell(name)
        now_ms = self._clock.now_ms()
        added = Statement(alerts.ADD_ROW_ALERT, (name, ALERT_VERSION, now_ms, now_ms), is_whole=True)
        await self._database.write(all_rows(added))
        if len(self._reported) < REPORTED_MAX:
            self._reported.add(name)

    def sieve(self) -> RowSieve:
        """Gives what picks the right rows within a unit of work."""
        return RowSieve(self.key)

    async def sifted(self, unit: Callable[[RowSieve], Unit[T]], *, is_page: bool = False) -> T:
        """Carries out a reading unit that picks the right rows, as a list with ``is_page``, and reports the others.

        Raises StoreUnavailable.
        """
        sieve = self.sieve()
        found = await (self._database.read_page if is_page else self._database.read)(unit(sieve))
        await self.report_all(sieve.wrong)
        return found

    async def report_all(self, names: Sequence[str]) -> None:
        """Reports each of some wrong rows, as ``report`` does. Raises StoreUnavailable."""
        for name in names:
            await self.report(name)

    async def check(self, table: DigestedTable) -> AsyncIterator[CheckedRow]:
        """Reads all rows of a table, in the order of their keys, and tells of each whether its digest is right.

        Raises StoreUnavailable.
        """
        after: Row = ()
        while rows := await self._database.read(all_rows(_page(table, after))):
            for row in rows:
                yield CheckedRow(_name(table, row), self.key.fits(table, row))
            after = rows[-1][: table.keys]
            await asyncio.sleep(0)  # the embedded database reads without waiting: a server's requests have their turn


def without(table: DigestedTable, values: Sequence[Value], *columns: str) -> list[Value]:
    """Gives the columns ``read`` of a row with nulls for some of them, as a digest that doesn't cover them has them."""
    return [None if name in columns else value for name, value in zip(table.read, values, strict=False)]


def _tell_nobody(_: str) -> None:
    """Takes the name of a wrong row where nobody is told of it."""


def _page(table: DigestedTable, after: Row) -> Statement:
    """Reads the rows behind a key; the first ones for an empty key."""
    query = statements.page_of(table.name, (*table.read, "row_digest"), table.keys, is_first=not after)
    return Statement(query, (PAGE, *after))


def _name(table: DigestedTable, values: Sequence[Value]) -> str:
    return "/".join([table.name, *map(str, values[: table.keys])])


def _has_ended(table: DigestedTable, values: Sequence[Value]) -> bool:
    return table.ended_by is not None and values[table.read.index(table.ended_by)] is not None


def _packed(table: DigestedTable, values: Sequence[Value]) -> list[Value]:
    """Gives the table, and the name and value of each covered column that isn't null."""
    # Once for each row that is read or written: a list of pairs that is flattened takes twice the time.
    packed: list[Value] = [table.name]
    for name, value in zip(_COVERED[table.name], values, strict=False):
        if value is not None and name is not None:
            packed += name, value
    return packed
