"""The schedules of the searches for orders, shared by all processes, and what the last search of each showed.

Rules:

1. Of several processes that ask for one slot, one gets it.
2. What a search showed is stored with the end of its slot, and whatever waits for the order becomes due with it. A
   reading has no description and no name, so it is stored in clear like the payments of operations.
3. A reading says who has paid. It counts only with its keyed digest, so that one that was written without the store's
   secret completes no checkout.
"""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from collections.abc import Iterable
from typing import Final

import msgspec

from payrelay.core.keyed_digest import DigestKey
from payrelay.core.payments.order_search import SearchSchedule, Slot, take_slot
from payrelay.core.payments.payment import Payment
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows, count_rows, first_row
from payrelay.store.engine.queries import query

READING_MAX: Final = 500
"""Payments of a reading that is stored. No order has so many; without a reading, each process waits for a slot."""

_SEPARATOR: Final = "\n"
_PURPOSE: Final = "order reading"
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(tuple[Payment, ...]).decode


class OrderReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the last search of an order showed: its payments, without descriptions, and when the search began."""

    payments: tuple[Payment, ...]
    read_at_ms: int


class OrderSearches:
    """Stores the schedules in a database; ``secret`` is the key of the audit chain."""

    def __init__(self, database: Database, secret: bytes) -> None:
        self._database = database
        self._key = DigestKey(secret, _PURPOSE)

    async def take(self, merchant: str, order_id: str, occasions: Iterable[str], *, now_ms: int) -> Slot:
        """Takes the slot of an order that is due, for one search; see ``core.payments.order_search.take_slot``.

        Of several callers at once, one gets it, and has it until it ends the search or the lease ends.
        """
        return await self._database.write(_take((merchant, order_id), tuple(occasions), now_ms))

    async def end(self, taken: SearchSchedule, payments: tuple[Payment, ...] | None, *, now_ms: int) -> None:
        """Ends the search of a slot that was taken, and stores the payments that it showed; None where it showed none.

        With a reading, every notification that waits for the order, and was not compared with it, is due at once; else
        with the next slot. Does nothing where the lease has ended and another process has the slot. May be repeated.
        """
        kept = None
        if payments is not None and len(payments) <= READING_MAX:
            # What customers bought stays out of the database.
            plain = _encode([msgspec.structs.replace(each, description="") for each in payments]).decode()
            kept = f"{self._key.digest(taken.merchant, taken.order_id, taken.asked_at_ms, plain)} {plain}"
        await self._database.write(_end(taken, kept, now_ms))

    async def reading(self, merchant: str, order_id: str) -> OrderReading | None:
        """Reads what the last search of an order showed; None where no reading is stored."""
        row = await self._database.read(first_row(Statement(GET, (merchant, order_id))))
        if row is None or not isinstance(row[-1], str):
            return None
        read_at_ms = _schedule_of(row[:-1]).read_at_ms
        digest, _, plain = row[-1].partition(" ")
        if read_at_ms is None or not self._key.fits(digest, merchant, order_id, read_at_ms, plain):
            return None
        return OrderReading(payments=_decode(plain), read_at_ms=read_at_ms)

    async def get(self, merchant: str, order_id: str) -> SearchSchedule | None:
        """Reads the schedule of an order; None where it has none."""
        row = await self._database.read(first_row(Statement(GET, (merchant, order_id))))
        return None if row is None else _schedule_of(row[:-1])

    async def bring_forward(self, merchant: str, order_id: str, *, now_ms: int) -> None:
        """Makes the next slot of an order due, for an operator. May be repeated."""
        statement = Statement(BRING_FORWARD, (merchant, order_id, now_ms), is_whole=True)
        await self._database.write(all_rows(statement))

    async def expire_leases(self, now_ms: int) -> None:
        """Frees the slots whose searches a dead process had begun, and makes the notifications due that wait for them.

        Only for the sole owner of the store, at its start. Atomic; may be repeated.
        """
        await self._database.write(_expire(now_ms))

    async def forget(self, before_ms: int, limit: int) -> int:
        """Removes at most ``limit`` schedules whose last search was before a time; gives their number."""
        return await self._database.write(count_rows(Statement(FORGET, (before_ms, limit), is_whole=True)))


def _take(order: tuple[str, str], occasions: tuple[str, ...], now_ms: int) -> Unit[Slot]:
    yield Statement(BEGIN, order)
    rows = yield Statement(LOCK, order)
    known = _schedule_of(rows[0])
    slot = take_slot(known, order, occasions, now_ms=now_ms)
    if slot.schedule != known:
        *plain, names = msgspec.structs.astuple(slot.schedule)
        yield Statement(CHANGE, (*plain, _SEPARATOR.join(names)))
    return slot


def _end(taken: SearchSchedule, kept: str | None, now_ms: int) -> Unit[None]:
    order = (taken.merchant, taken.order_id)
    if not (yield Statement(END, (*order, taken.asked_at_ms))):
        return
    due_ms = taken.next_at_ms
    if kept is not None:
        yield Statement(KEEP_READING, (*order, taken.asked_at_ms, kept))
        due_ms = now_ms
    yield Statement(WAKE, (*order, taken.asked_at_ms, due_ms))


def _expire(now_ms: int) -> Unit[None]:
    yield Statement(WAKE_INTERRUPTED, (now_ms,))
    yield Statement(EXPIRE_LEASES, (now_ms,))


def _schedule_of(row: Row) -> SearchSchedule:
    *plain, names = row
    members = dict(zip(SearchSchedule.__struct_fields__, plain, strict=False))
    occasions = tuple(each for each in str(names).split(_SEPARATOR) if each)
    return msgspec.convert({**members, "occasions": occasions}, SearchSchedule)


COLUMNS: Final = "merchant, order_id, searches, asked_at_ms, next_at_ms, leased_until_ms, read_at_ms, occasions"

BEGIN: Final = query(
    """
    INSERT INTO order_searches (merchant, order_id, searches, asked_at_ms, next_at_ms, occasions)
    VALUES ($1, $2, 0, 0, 0, '')
    ON CONFLICT (merchant, order_id) DO NOTHING""",
)
"""Makes sure that an order has a row, which can be locked. A row without a search in the last day is no schedule."""

LOCK: Final = query(f"SELECT {COLUMNS} FROM order_searches WHERE merchant = $1 AND order_id = $2 FOR UPDATE")
"""Reads the schedule of an order, and locks it until the transaction ends."""

GET: Final = query(f"SELECT {COLUMNS}, reading FROM order_searches WHERE merchant = $1 AND order_id = $2")
"""Reads the schedule of an order and its reading."""

CHANGE: Final = query(
    """
    UPDATE order_searches
    SET searches = $3, asked_at_ms = $4, next_at_ms = $5, leased_until_ms = $6, read_at_ms = $7, occasions = $8,
        reading = CASE WHEN $7::bigint IS NULL THEN NULL ELSE reading END
    WHERE merchant = $1 AND order_id = $2""",
)
"""Stores a schedule; one without a reading forgets that of an earlier schedule."""

END: Final = query(
    """
    UPDATE order_searches SET leased_until_ms = NULL
    WHERE merchant = $1 AND order_id = $2 AND asked_at_ms = $3 AND leased_until_ms IS NOT NULL
    RETURNING order_id""",
)
"""Ends the search that began at $3; gives no row where another process has taken the slot over."""

KEEP_READING: Final = query(
    "UPDATE order_searches SET read_at_ms = $3, reading = $4 WHERE merchant = $1 AND order_id = $2",
)
"""Stores what a search showed."""

WAKE: Final = query(
    """
    UPDATE notifications SET next_at_ms = $4::bigint
    WHERE merchant = $1 AND order_id = $2 AND state = 'waiting' AND next_at_ms > $4::bigint
      AND (updated_at_ms < $3 OR why = 'search_waits')""",
)
"""Makes the notifications of an order due at $4 that wait longer, and that nobody has worked on since $3, or that wait
for a search."""

BRING_FORWARD: Final = query(
    """
    UPDATE order_searches SET next_at_ms = $3::bigint
    WHERE merchant = $1 AND order_id = $2 AND next_at_ms > $3::bigint AND leased_until_ms IS NULL""",
)
"""Makes the next slot due."""

WAKE_INTERRUPTED: Final = query(
    """
    UPDATE notifications SET next_at_ms = $1::bigint
    WHERE state = 'waiting' AND next_at_ms > $1::bigint AND (merchant, order_id) IN (
        SELECT merchant, order_id FROM order_searches WHERE leased_until_ms > $1::bigint
    )""",
)
"""Makes the notifications due for whose orders a process that has died was searching."""

EXPIRE_LEASES: Final = query("UPDATE order_searches SET leased_until_ms = $1 WHERE leased_until_ms > $1")
"""Ends the leases of a process that has died."""

FORGET: Final = query(
    """
    DELETE FROM order_searches WHERE (merchant, order_id) IN (
        SELECT merchant, order_id FROM order_searches
        WHERE asked_at_ms < $1 AND (leased_until_ms IS NULL OR leased_until_ms < $1) ORDER BY asked_at_ms LIMIT $2
    )
    RETURNING order_id""",
)
"""Removes schedules without a search since a time, a limited number at a time."""
