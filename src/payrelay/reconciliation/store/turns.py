"""The order in which statements are read and days are closed, of one merchant: one at a time, also across processes.

Rules:

1. Whoever stores something of a statement, or closes a day, takes a turn first, in the same unit of work.
2. A turn is held until the unit is stored. So lines are booked by the closings that there are, and a day is closed with
   the lines that there are.
3. The number of the turn tells a closing whether anything was read behind its comparison.
"""

from payrelay.reconciliation.rules.days import Closure
from payrelay.reconciliation.store.statements import differences as statements
from payrelay.store.engine.database import Database, Statement, Unit, Value, first_row
from payrelay.store.engine.rows import struct_of
from payrelay.store.statements.meta import GET_META


def take_turn(merchant: str) -> Unit[int]:
    """Takes a turn within a unit of work, and gives its number."""
    [[number]] = yield Statement(statements.TAKE_TURN, (_name(merchant),))
    return _number(number)


async def newest_turn(database: Database, merchant: str) -> int:
    """Reads the number of the newest turn; 0 where none was taken. Raises StoreError."""
    row = await database.read(first_row(Statement(GET_META, (_name(merchant),))))
    return 0 if row is None else _number(row[0])


def last_closure(merchant: str) -> Unit[Closure | None]:
    """Reads the newest closed day within a unit of work; None where none is."""
    rows = yield Statement(statements.LAST_CLOSED, (merchant,))
    return struct_of(rows[0], Closure) if rows else None


def _name(merchant: str) -> str:
    return f"books/{merchant}"


def _number(value: Value) -> int:
    return int(value or 0)
