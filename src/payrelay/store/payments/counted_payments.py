"""Counts the payments of an order, in the transaction that begins the next one by a client token."""

# ruff: noqa: S608 - only our own states and kinds are put into the texts; values are always parameters

from typing import Final

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.counted_payments import CHARGES, UNPAID_CHECKOUTS, CountedPayment, Noun, PaymentLimit
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import State
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.payment_owners import TOOK_NO_EFFECT, listed
from payrelay.store.statements.payments.operations import OPERATIONS
from payrelay.store.statements.payments.packed_rows import unpacked


class TooManyPayments(Exception):
    """Undoes a unit that would begin one payment too many; ``payment`` stands in its way."""

    def __init__(self, payment: CountedPayment) -> None:
        super().__init__()
        self.payment = payment


def require_room(limit: PaymentLimit, key: RowKey, begun_id: str) -> Unit[None]:
    """Raises TooManyPayments where the order already has as many payments as it may, beside the one just stored.

    For use inside a unit that has stored the operation or checkout ``begun_id``. The order stays locked until the
    unit ends, so that of several that begin at once each sees those before it. ``key`` checks the rows: one that was
    forged stands in the way, as an open payment does, because nobody knows what it was.
    """
    yield Statement(LOCK_ORDER, (f"{limit.merchant}/{limit.order_id}",))
    rows = yield Statement(COUNTED, (limit.merchant, limit.order_id, begun_id))
    counted = []
    for noun, id_, is_made, counts, packed in rows:
        is_right = key.fits(*unpacked(packed))
        if counts or not is_right:
            counted.append(CountedPayment(noun=Noun(str(noun)), id=str(id_), is_made=bool(is_made) and is_right))
    in_the_way = limit.standing_in_the_way(counted[: limit.payments_max])
    if in_the_way is not None:
        raise TooManyPayments(in_the_way)


LOCK_ORDER: Final = query(
    "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
    sqlite=("SELECT 1 WHERE $1 IS NOT NULL",),
)
"""Lets one transaction at a time begin a payment by a client token under the name $1, until it ends. A charge and a
checkout are rows of different tables, and no index makes one of them wait for the other. SQLite has one writer
anyway."""

_CHARGED: Final = f"kind IN {listed(CHARGES)} AND NOT {TOOK_NO_EFFECT}"
_HOSTED: Final = f"""(kind <> '{CheckoutKind.PREAPPROVAL}' OR amount_minor IS NOT NULL)
          AND NOT state IN {listed(UNPAID_CHECKOUTS)}"""

COUNTED: Final = query(
    f"""
    SELECT noun, id, is_made, counts, row FROM (
      SELECT '{Noun.OPERATION}' AS noun, id, created_at_ms,
        CASE WHEN state = '{State.SUCCEEDED}' THEN 1 ELSE 0 END AS is_made,
        CASE WHEN {_CHARGED} THEN 1 ELSE 0 END AS counts,
        {OPERATIONS.packed} AS row
      FROM operations WHERE order_id = $2 AND merchant = $1 AND id <> $3
      UNION ALL
      SELECT '{Noun.CHECKOUT}' AS noun, id, created_at_ms,
        CASE WHEN state = '{CheckoutState.OPEN}' THEN 0 ELSE 1 END AS is_made,
        CASE WHEN {_HOSTED} THEN 1 ELSE 0 END AS counts,
        {CHECKOUTS.packed} AS row
      FROM checkouts WHERE order_id = $2 AND merchant = $1 AND id <> $3
    ) AS counted
    ORDER BY is_made, created_at_ms, noun""",
)
"""Finds what an order has, other than $3: whether it counts as a payment, and its packed row. Those that are open come
first, then the oldest."""
