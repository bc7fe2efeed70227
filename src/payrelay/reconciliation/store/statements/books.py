"""Our books, as a reconciliation reads them: what was made in a time, and all there is of some orders and payments."""

# ruff: noqa: S608 - only columns and kinds named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.payments.operation import TAKING_KINDS, Kind
from payrelay.store.engine.queries import query, query_among
from payrelay.store.statements.chargebacks import CHARGEBACKS
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.imports.payments import IMPORTED_PAYMENTS
from payrelay.store.statements.payment_owners import CHECKOUT_OWNS, OF_CHECKOUT, OF_INSTALLMENT, listed
from payrelay.store.statements.payments.operations import READ_COLUMNS as OPERATION_READ
from payrelay.store.statements.subscriptions import INSTALLMENTS, SUBSCRIPTIONS

_MOVES_MONEY: Final = f"kind IN {listed(TAKING_KINDS | {Kind.REFUND})}"
_PAYS: Final = f"({CHECKOUT_OWNS})"
_SHOWS_MONEY: Final = "kind IN ('payment', 'recurring', 'preapproval')"
"""A checkout of whose order a statement may have money: what it asks for, or the fee of an approval."""
_INSTALLMENT_READ: Final = (
    f"{INSTALLMENTS.qualified}, installments.row_digest, {SUBSCRIPTIONS.qualified}, subscriptions.row_digest,"
    f" {OF_INSTALLMENT}"
)
_CHECKOUT_READ: Final = f"{OF_CHECKOUT}, {CHECKOUTS.read}"
_PLAN: Final = (
    "subscriptions.merchant = installments.merchant AND subscriptions.subscription_id = installments.subscription_id"
)
_IS_PAID: Final = "installments.is_paid = 1 AND installments.payment NOT LIKE 'ntf:%'"

OPERATIONS_BETWEEN: Final = query(
    f"""
    SELECT {OPERATION_READ} FROM operations
    WHERE id > $2 AND id < $3 AND merchant = $1 AND {_MOVES_MONEY} ORDER BY id LIMIT $4""",
)
"""Reads a merchant's operations that move money, between two ids."""

CHECKOUTS_BETWEEN: Final = query(
    f"""
    SELECT {_CHECKOUT_READ} FROM checkouts
    WHERE id > $2 AND id < $3 AND merchant = $1 AND state = 'completed' AND {_PAYS} ORDER BY id LIMIT $4""",
)
"""Reads a merchant's paid checkouts between two ids."""

INSTALLMENTS_BEFORE: Final = query(
    f"""
    SELECT {_INSTALLMENT_READ} FROM installments LEFT JOIN subscriptions ON {_PLAN}
    WHERE installments.merchant = $1 AND {_IS_PAID}
      AND (length(installments.payment), installments.payment) < (length($2::text), $2::text)
    ORDER BY length(installments.payment) DESC, installments.payment DESC LIMIT $3""",
    sqlite=(
        f"""
        SELECT {_INSTALLMENT_READ} FROM installments INDEXED BY installments_paid LEFT JOIN subscriptions ON {_PLAN}
        WHERE installments.merchant = $1 AND {_IS_PAID}
          AND (length(installments.payment), installments.payment) < (length($2), $2)
        ORDER BY length(installments.payment) DESC, installments.payment DESC LIMIT $3""",
    ),
)
"""Reads a merchant's paid installments before a payment, the newest first; ids grow."""

CHARGEBACKS_AFTER: Final = query(
    f"""
    {CHARGEBACKS.select}
    WHERE merchant = $1 AND payment_id > $2 ORDER BY payment_id LIMIT $3""",
)
"""Reads a merchant's chargebacks behind a payment."""

FAILED_SINCE: Final = query(
    """
    SELECT operation_id, known_at_ms FROM failed_refunds
    WHERE merchant = $1 AND known_at_ms >= $2 AND (known_at_ms, operation_id) > ($2, $3)
    ORDER BY known_at_ms, operation_id LIMIT $4""",
)
"""Reads the refunds of a merchant of which it became known behind a time and an operation that they failed."""

OPERATIONS_NAMED: Final = query_among(f"SELECT {OPERATION_READ} FROM operations WHERE id @2 AND merchant = $1")
"""Reads some operations."""

OPERATIONS_OF: Final = query_among(
    f"""
    SELECT {OPERATION_READ} FROM operations WHERE id IN (
        SELECT id FROM operations WHERE payment_id @2 AND merchant = $1 AND {_MOVES_MONEY}
        UNION
        SELECT id FROM operations WHERE order_id @3 AND merchant = $1 AND {_MOVES_MONEY}
    )""",
)
"""Reads all operations that move money, of some payments and some orders."""

CHECKOUTS_OF: Final = query_among(
    f"""
    SELECT {_CHECKOUT_READ} FROM checkouts WHERE id IN (
        SELECT id FROM checkouts WHERE payment_id @2 AND merchant = $1 AND {_PAYS}
        UNION
        SELECT id FROM checkouts WHERE order_id @3 AND merchant = $1 AND {_SHOWS_MONEY}
    )""",
)
"""Reads all checkouts of some payments and some orders, of whose order a statement may have money."""

CHECKOUTS_NAMED: Final = query_among(
    f"SELECT {_CHECKOUT_READ} FROM checkouts WHERE id @2 AND merchant = $1 AND state = 'completed' AND {_PAYS}",
)
"""Reads the paid checkouts among some."""

INSTALLMENTS_OF: Final = query_among(
    f"""
    SELECT {_INSTALLMENT_READ} FROM installments LEFT JOIN subscriptions ON {_PLAN}
    WHERE installments.payment @2 AND installments.merchant = $1 AND {_IS_PAID}
    UNION
    SELECT {_INSTALLMENT_READ} FROM subscriptions JOIN installments ON {_PLAN}
    WHERE subscriptions.order_id @3 AND subscriptions.merchant = $1 AND {_IS_PAID}""",
)
"""Reads all paid installments of some payments and some orders."""

IMPORTED_OF: Final = query_among(
    f"{IMPORTED_PAYMENTS.select} WHERE merchant = $1 AND payment_id @2",
)
"""Reads those of some payments that were imported. Nothing else reads them: our books of a time never miss one."""

INSTALLMENTS_NAMED: Final = query_among(
    f"""
    SELECT {_INSTALLMENT_READ} FROM installments LEFT JOIN subscriptions ON {_PLAN}
    WHERE installments.payment @2 AND installments.merchant = $1 AND {_IS_PAID}""",
)
"""Reads the paid installments of some payments."""

CHARGEBACKS_OF: Final = query_among(
    f"{CHARGEBACKS.select} WHERE merchant = $1 AND payment_id @2",
)
"""Reads the chargebacks of some payments."""

_STORED_ENTRIES: Final = """
      SELECT operation_id AS changed_id, version AS changed_version, at_ms AS changed_at_ms FROM history
      WHERE at_ms >= $2 AND (at_ms, operation_id) > ($2, $3)"""
_CLOSED_ENTRIES: Final = """
      SELECT id, version, updated_at_ms FROM operations
      WHERE closed_history IS NOT NULL AND updated_at_ms >= $2 AND (updated_at_ms, id) > ($2, $3)"""
_IN_ORDER: Final = "ORDER BY changed_at_ms, changed_id LIMIT $5"


def _operations_changed(entries: str) -> str:
    return f"""
    SELECT {OPERATION_READ}, changed.changed_at_ms, changed.changed_id
    FROM ({entries} {_IN_ORDER}) AS changed LEFT JOIN operations
      ON operations.id = CASE WHEN changed.changed_id < $4 THEN changed.changed_id END
        AND operations.version = changed.changed_version AND operations.merchant = $1 AND operations.{_MOVES_MONEY}"""


OPERATIONS_CHANGED: Final = query(
    _operations_changed(
        f"""SELECT * FROM ({_STORED_ENTRIES} {_IN_ORDER}) AS stored
      UNION ALL
      SELECT * FROM ({_CLOSED_ENTRIES} ORDER BY updated_at_ms, id LIMIT $5) AS closed"""
    ),
    sqlite=(_operations_changed(f"{_STORED_ENTRIES} UNION ALL {_CLOSED_ENTRIES}"),),
)
"""Reads history behind one entry, each row with its operation: of that merchant, below an id, and as it is now.

All rows of the history are given, in any order, also those without an operation: so a page has a bound, whatever else
is in between. The newest entry of a closed history is in the row of its operation. SQLite merges both as they are;
PostgreSQL has to be told that it needs no more of each than a page.
"""
