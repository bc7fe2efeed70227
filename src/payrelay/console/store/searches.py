"""What people look for in the console: read beside what charges need, for a limited time.

A row whose digest is wrong counts as not existing, as everywhere.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.console.store.statements import searches as statements
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.payments.operation import Operation, claim_of_key
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Value, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.statements.checkouts import LIST_CHECKOUTS
from payrelay.store.statements.pagination import Listing, ListWindow, WindowPage, columns_of, read_window
from payrelay.store.statements.payments.operations import LIST_OPERATIONS
from payrelay.store.statements.payments.packed_rows import CHECKOUTS, INSTALLMENTS, OPERATIONS

_TIME_DIGITS: Final = 12
"""Of an id, behind its prefix."""
FOUND_MAX: Final = 100
"""Rows of one kind that a search gives; whoever meets more names something narrower."""
LOOKED_MAX: Final = 10_000
"""Rows that one look through a list passes over: some 30 ms beside the charges."""

_Operations: TypeAlias = list[Operation]
_Checkouts: TypeAlias = list[Checkout]
_Installments: TypeAlias = "list[KnownInstallment]"


class Narrowing(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of a list must be equal in; None for whatever. ``kind`` and ``state`` are stored words."""

    account: str | None = None
    state: str | None = None
    kind: str | None = None
    amount_minor: int | None = None
    currency: str | None = None


class Began(NamedTuple):
    """The time in which something began: from the first on and before the second, and below an id; None for no end."""

    since_ms: int | None = None
    until_ms: int | None = None
    before: str | None = None


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What one look through a list found, newest first.

    Attributes:
        operations, checkouts: what fits.
        rows: how many rows fit, those with a wrong digest among them.
        last_id: the id of the last one; None where none fits.
        edge_id: the id of the last row that was looked at, where the look ended before the list did.
    """

    operations: list[Operation] = []
    checkouts: list[Checkout] = []
    rows: int
    last_id: str | None
    edge_id: str | None


class KnownInstallment(msgspec.Struct, frozen=True, kw_only=True):
    """One installment that was tried; the payment's id is None where it has none."""

    payment_id: str | None
    is_paid: bool
    amount_minor: int | None
    at_ms: int


class Searches:
    """Reads for the console. Every method raises StoreUnavailable, also where it takes longer than a list may."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def look_through_operations(self, narrowing: Narrowing, span: Began, *, limit: int) -> Looked:
        """Looks through the operations for at most ``limit`` that fit, newest first."""
        page = await self._look(LIST_OPERATIONS, narrowing, _window("op", span), limit)
        found = await self._operations(page.rows)
        return Looked(operations=found, rows=len(page.rows), last_id=_last_id(page.rows), edge_id=page.edge)

    async def look_through_checkouts(self, narrowing: Narrowing, span: Began, *, limit: int) -> Looked:
        """Looks through the checkouts for at most ``limit`` that fit, newest first."""
        page = await self._look(LIST_CHECKOUTS, narrowing, _window("chk", span), limit)
        found = await self._checkouts(page.rows)
        return Looked(checkouts=found, rows=len(page.rows), last_id=_last_id(page.rows), edge_id=page.edge)

    async def operations_of_request(self, request_id: str) -> _Operations:
        """Finds the operations that a request began."""
        return await self._operations(await self._read(statements.OPERATIONS_OF_REQUEST, request_id, FOUND_MAX))

    async def operations_of_key(self, idempotency_key: str) -> _Operations:
        """Finds the operations of all principals under an Idempotency-Key."""
        parameters = (idempotency_key, claim_of_key(idempotency_key), FOUND_MAX)
        return await self._operations(await self._read(statements.OPERATIONS_OF_KEY, *parameters))

    async def checkouts_of_key(self, idempotency_key: str) -> _Checkouts:
        """Finds the checkouts of all principals under an Idempotency-Key."""
        return await self.checkouts_of("key_hash", self._rows.lookups.key(idempotency_key))

    async def checkouts_of_reference(self, reference: str) -> _Checkouts:
        """Finds the checkouts of all principals with a client's own name for the customer."""
        return await self.checkouts_of("reference_hash", self._rows.lookups.reference(reference))

    async def checkouts_of(self, column: str, value: str) -> _Checkouts:
        """Finds the checkouts that have a value in one of the columns of ``CHECKOUTS_OF``."""
        return await self._checkouts(await self._read(statements.CHECKOUTS_OF[column], value, FOUND_MAX))

    async def plans_of_payment(self, payment_id: str) -> list[tuple[str, str]]:
        """Finds the merchants and ids of the subscriptions of which a payment is an installment."""
        rows = await self._read(statements.PLANS_OF_PAYMENT, payment_id, FOUND_MAX)
        return [(str(merchant), str(subscription_id)) for merchant, subscription_id in rows]

    async def installments(self, merchant: str, subscription_id: str) -> _Installments:
        """Reads the newest installments of a subscription, the newest first."""
        rows = await self._read(statements.INSTALLMENTS_OF, merchant, subscription_id, FOUND_MAX)
        found = []
        for _, _, payment, is_paid, amount_minor, at_ms in await self._rows.trusted(INSTALLMENTS, rows):
            named = str(payment) if str(payment).isdigit() else None
            members: dict[str, Value] = {"payment_id": named, "is_paid": bool(is_paid)}
            members |= {"amount_minor": amount_minor, "at_ms": at_ms}
            found.append(msgspec.convert(members, KnownInstallment))
        return found

    async def _look(self, listing: Listing, narrowing: Narrowing, within: ListWindow, limit: int) -> WindowPage:
        return await read_window(
            self._database, listing, columns_of(narrowing), within, looked_max=LOOKED_MAX, limit=limit
        )

    async def _read(self, query: Query, *parameters: Value) -> list[Row]:
        return await self._database.read_page(all_rows(Statement(query, parameters)))

    async def _operations(self, rows: Sequence[Row]) -> _Operations:
        return await self._rows.values(OPERATIONS, rows)

    async def _checkouts(self, rows: Sequence[Row]) -> _Checkouts:
        return await self._rows.values(CHECKOUTS, rows)


def _last_id(rows: Sequence[Row]) -> str | None:
    return str(rows[-1][0]) if rows else None


def _window(prefix: str, span: Began) -> ListWindow:
    """Gives the ids of a span: they sort by the time that they begin with."""
    ends = [None if at_ms is None else f"{prefix}_{max(at_ms, 0):012x}" for at_ms in (span.since_ms, span.until_ms)]
    before = [end for end in (ends[1], span.before) if end is not None]
    return ListWindow(first=ends[0], before=min(before, default=None))


def time_of_id(id_: str) -> int | None:
    """Gives the time in an id, in milliseconds; None where it has none."""
    try:
        return int(id_.partition("_")[2][:_TIME_DIGITS], 16)
    except ValueError:
        return None
