"""Counts the payments of an order, in the transaction that begins the next one by a client token."""

from payrelay.core.checkouts.counted_payments import CountedPayment, Noun, PaymentLimit
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.statements.payments import counted_payments as statements
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
    yield Statement(statements.LOCK_ORDER, (f"{limit.merchant}/{limit.order_id}",))
    rows = yield Statement(statements.COUNTED, (limit.merchant, limit.order_id, begun_id))
    counted = []
    for noun, id_, is_made, counts, packed in rows:
        is_right = key.fits(*unpacked(packed))
        if counts or not is_right:
            counted.append(CountedPayment(noun=Noun(str(noun)), id=str(id_), is_made=bool(is_made) and is_right))
    in_the_way = limit.standing_in_the_way(counted[: limit.payments_max])
    if in_the_way is not None:
        raise TooManyPayments(in_the_way)
