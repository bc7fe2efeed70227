"""The payments of an order that count against what a client token allows: see ``core.checkouts.counted_payments``."""

# ruff: noqa: S608 - only our own states and kinds are put into the texts; values are always parameters

from typing import Final

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.counted_payments import CHARGES, UNPAID_CHECKOUTS, Noun
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import State
from payrelay.store.engine.queries import query
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.payment_owners import TOOK_NO_EFFECT, listed
from payrelay.store.statements.payments.operations import CHAINED_DIGEST, OPERATIONS

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
        {OPERATIONS.packed(CHAINED_DIGEST)} AS row
      FROM operations WHERE order_id = $2 AND merchant = $1 AND id <> $3
      UNION ALL
      SELECT '{Noun.CHECKOUT}' AS noun, id, created_at_ms,
        CASE WHEN state = '{CheckoutState.OPEN}' THEN 0 ELSE 1 END AS is_made,
        CASE WHEN {_HOSTED} THEN 1 ELSE 0 END AS counts,
        {CHECKOUTS.packed()} AS row
      FROM checkouts WHERE order_id = $2 AND merchant = $1 AND id <> $3
    ) AS counted
    ORDER BY is_made, created_at_ms, noun""",
)
"""Finds what an order has, other than $3: whether it counts as a payment, and its packed row. Those that are open come
first, then the oldest."""
