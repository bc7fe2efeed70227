"""Tells that an order was paid again, in the unit of work that stores the further payment.

Rules:

1. Event, alert and success are one commit. The alert's row is what makes it once: an event goes out with a new one
   alone.
2. The order stays locked from the look at its other payments to the end of the unit. So of two payments that succeed at
   once in two processes, the second sees the first.
3. Every unit takes the rows of operations and checkouts before the order's lock, so that no two wait for each other.
4. A row whose digest is wrong tells nothing.
5. A plan is told when its first payment comes to be known, by its page or by an installment, and no more after that.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from payrelay.core.orders.facts import OrderFacts, SeenFact
from payrelay.core.orders.paid_again import (
    OrderPayment,
    earlier_beside,
    events_of,
    made_by,
    of_import,
    paid_on,
    payments_in,
)
from payrelay.store.access.owners import owners_of_order
from payrelay.store.digests.rows import ALERT_VERSION, RowDigests, RowKey, RowVerifier
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.events import outbox
from payrelay.store.imports.payments import is_imported
from payrelay.store.orders.facts import facts_and_rows
from payrelay.store.payments.counted_payments import LOCK_ORDER
from payrelay.store.statements import alerts as statements
from payrelay.store.statements.checkouts import PAYMENT_IS_OWNED
from payrelay.store.statements.payments.packed_rows import IMPORTED_PAYMENTS, INSTALLMENTS, SUBSCRIPTIONS

__all__ = ["PAID_AGAIN_ROW", "OrderPayment", "PaidAgain", "PaidAgainAlert", "made_by", "paid_on", "told_in"]

PAID_AGAIN_ROW: Final = "paid_again/"
"""Begins the name of the row of an alert that an order was paid again; its merchant, its order and what names the
further payment within the order follow."""
TOLD_MAX: Final = 50
"""Orders that were paid again, of one list."""


class PaidAgainAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was paid again: what names the further payment within it, and when that was stored."""

    merchant: str
    order_id: str
    identity: str
    told_at_ms: int


class PaidAgain:
    """Stores that orders were paid again, and reads their payments; ``rows`` makes and checks the digests of rows."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def tell(self, further: OrderPayment, *, at_ms: int) -> bool:
        """Tells of a further payment that only the gateway's record shows, such as a second one on a page.

        False, and nothing is told, where it isn't one, where it was told before, and where it belongs to an operation,
        a checkout or a plan, or was imported. May be repeated. Raises StoreError.
        """
        return await self._database.write(_tell_unowned(further, at_ms, self._rows.key))

    async def of_order(self, merchant: str, order_id: str, *, now_ms: int) -> tuple[OrderFacts, list[OrderPayment]]:
        """Reads all that is stored of an order's money, and its payments that took money by that, the oldest first.

        Of those that only the gateway's record shows, the ones that were told are among them. Reports wrong rows.
        Raises StoreUnavailable.
        """
        return await self._rows.verified(lambda verifier: _with_told(merchant, order_id, verifier, now_ms))

    async def both(self, told: "PaidAgainAlert", *, now_ms: int) -> tuple[OrderPayment | None, OrderPayment | None]:
        """Reads the payments that an alert is about: the further one, and the oldest other one that counts.

        Each is None where it is gone. Raises StoreUnavailable.
        """
        _, known = await self.of_order(told.merchant, told.order_id, now_ms=now_ms)
        further = next((each for each in known if each.identity == told.identity), None)
        others = [each for each in known if further is None or not each.is_same(further)]
        return further, next((each for each in others if not each.is_given_back), others[0] if others else None)

    async def is_told(self, merchant: str, order_id: str, identity: str) -> bool:
        """Tells whether a payment was told as a further one of its order. Raises StoreUnavailable."""
        statement = Statement(statements.GET_ROW_ALERT, (_name(merchant, order_id, identity),))
        return bool(await self._database.read(all_rows(statement)))

    async def told(self, *, since_ms: int, limit: int = TOLD_MAX) -> list[PaidAgainAlert]:
        """Reads the further payments that were told since a time, the newest first. Raises StoreUnavailable."""
        rows = await self._database.read(all_rows(_newest(PAID_AGAIN_ROW, since_ms, limit)))
        return [msgspec.structs.replace(told_in(str(name)), told_at_ms=int(str(at_ms))) for name, at_ms in rows]


def told_in(row_name: str) -> PaidAgainAlert:
    """Reads the name of an alert's row; the time isn't in it."""
    merchant, _, rest = row_name.removeprefix(PAID_AGAIN_ROW).partition("/")
    order_id, _, identity = rest.rpartition("/")
    return PaidAgainAlert(merchant=merchant, order_id=order_id, identity=identity, told_at_ms=0)


def tell_if_paid_again(further: OrderPayment, *, at_ms: int, key: RowKey, of_plan: int = 1) -> Unit[bool]:
    """Writes the alert and the events where a payment is a further one of its order, once; a part of another unit.

    The payment may be stored by then, or not. ``of_plan`` is how many payments of its plan the unit stores, of which it
    is the first; 0 where it stores none. Gives whether anything was written.
    """
    yield Statement(LOCK_ORDER, (f"{further.merchant}/{further.order_id}",))
    _, known = yield from _of_order(further.merchant, further.order_id, RowVerifier(key), at_ms)
    plan = further.plan
    if not of_plan:
        plan = next((each.plan for each in known if each.payment_id == further.payment_id), None)
    if plan is not None and sum(each.plan == plan for each in known) > of_plan:
        return False
    earlier = earlier_beside(further, known)
    if earlier is None or any(each.identity == further.identity and each.is_given_back for each in known):
        return False
    name = _name(further.merchant, further.order_id, further.identity)
    if not (yield Statement(statements.ADD_ORDER_ALERT, (name, ALERT_VERSION, at_ms))):
        return False
    told = [further]
    if further.principal is None and earlier.principal is None:
        owners = yield from owners_of_order(further.merchant, further.order_id, key)
        told = [msgspec.structs.replace(further, principal=owner) for owner in sorted(owners)]
    for each in told:
        for event in events_of(each, earlier, at_ms=at_ms):
            yield from outbox.put(event, key)
    return True


def _tell_unowned(further: OrderPayment, at_ms: int, key: RowKey) -> Unit[bool]:
    payment_id = further.payment_id or ""
    if (yield Statement(PAYMENT_IS_OWNED, (payment_id, further.merchant, ""))):
        return False
    if (yield from is_imported(further.merchant, payment_id)):
        return False
    return (yield from tell_if_paid_again(further, at_ms=at_ms, key=key, of_plan=0))


def _name(merchant: str, order_id: str, identity: str) -> str:
    return f"{PAID_AGAIN_ROW}{merchant}/{order_id}/{identity}"


def _newest(names: str, since_ms: int, limit: int) -> Statement:
    """Reads the newest alerts since a time whose rows' names begin with ``names``, which end with a slash."""
    behind = names[:-1] + chr(ord(names[-1]) + 1)
    return Statement(statements.NEWEST_ROW_ALERTS, (names, behind, since_ms, limit))


def _with_told(
    merchant: str, order_id: str, verifier: RowVerifier, now_ms: int
) -> Unit[tuple[OrderFacts, list[OrderPayment]]]:
    rows = yield _newest(_name(merchant, order_id, ""), 0, TOLD_MAX)
    told = [told_in(str(name)) for name, _ in rows]
    numbers = frozenset(each.identity for each in told if each.order_id == order_id)
    return (yield from _of_order(merchant, order_id, verifier, now_ms, told=numbers))


def _of_order(
    merchant: str, order_id: str, verifier: RowVerifier, now_ms: int, *, told: frozenset[str] = frozenset()
) -> Unit[tuple[OrderFacts, list[OrderPayment]]]:
    """Reads an order's facts, and its payments that took money, the oldest first, and each as often as it is known.

    Of those that only the gateway's record shows, it gives the ones whose numbers are in ``told``.
    """
    facts, rows = yield from facts_and_rows(merchant, OrderFacts(order_id=order_id), verifier)
    imported = map(IMPORTED_PAYMENTS.value, rows.get(IMPORTED_PAYMENTS.name, ()))
    more = [*map(of_import, imported), *_installments(rows)]
    known = payments_in(facts, more, now_ms=now_ms)
    unowned = told - {each.payment_id for each in known}
    of_record = [_recorded(merchant, each, known) for each in facts.seen if each.payment_id in unowned]
    if of_record:
        known = payments_in(facts, [*more, *of_record], now_ms=now_ms)
    return facts, known


def _recorded(merchant: str, record: SeenFact, known: Sequence[OrderPayment]) -> OrderPayment:
    return OrderPayment(
        merchant=merchant,
        order_id=record.order_id,
        account=next((each.account for each in known), ""),
        principal=None,
        payment_id=record.payment_id,
        amount_minor=record.amount_minor,
        currency=record.currency,
        at_ms=record.seen_at_ms,
    )


def _installments(rows: Mapping[str, Sequence[Row]]) -> list[OrderPayment]:
    """Gives the paid installments of the plans that are known; each is a payment of its plan's order."""
    plans = {row[1]: SUBSCRIPTIONS.members(row) for row in rows.get(SUBSCRIPTIONS.name, ())}
    found = []
    for row in rows.get(INSTALLMENTS.name, ()):
        installment = INSTALLMENTS.members(row)
        plan, number = plans.get(installment["subscription_id"]), str(installment["payment"])
        if plan is None:
            continue
        members = {
            **{name: plan[name] for name in ("merchant", "order_id", "account", "principal", "currency")},
            "payment_id": number if number.isdigit() else None,
            "plan": installment["subscription_id"],
            "amount_minor": installment["amount_minor"],
            "at_ms": installment["at_ms"],
        }
        if members["order_id"] is not None:
            found.append(msgspec.convert(members, OrderPayment))
    return found
