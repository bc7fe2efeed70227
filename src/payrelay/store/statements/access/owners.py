"""The owners of payments, authorizations, plans and orders: found in the rows of what made them.

Behind its other columns a query gives whether the row counts, and the rows from which that follows, packed: one, and
another one or null. Rows that don't count are given too, because somebody may have written that they don't.
"""

# ruff: noqa: S608 - only our own states and kinds are put into the texts; values are always parameters

from typing import Final

from payrelay.core.checkouts.checkout import HOLDING_ORDER
from payrelay.core.payments.operation import PAYMENT_KINDS, TAKING_KINDS, State
from payrelay.store.engine.queries import batched_query, distinct, query
from payrelay.store.statements.payment_owners import (
    CHECKOUT_OWNS,
    IS_OPEN,
    IS_OPEN_PAGE,
    OPERATION_OWNS,
    TOOK_NO_EFFECT,
    WAS_NOT_EXECUTED,
    listed,
)
from payrelay.store.statements.payments.packed_rows import (
    ACCEPTED_TOKENS,
    CHECKOUTS,
    IMPORTED_PAYMENTS,
    INSTALLMENTS,
    OPERATIONS,
    PAYMENTS_SEEN,
    SUBSCRIPTIONS,
)

_HOLDS_FOR_GOOD: Final = """(
      payment_id IS NOT NULL OR subscription_id IS NOT NULL OR opened_at_ms IS NOT NULL
      OR EXISTS (SELECT 1 FROM signed_texts WHERE signed_texts.subject = checkouts.id)
    )"""
"""A checkout that was paid, or that can be paid for good: its page was shown, or its form given out."""
_HOLDS: Final = f"(state IN {listed(HOLDING_ORDER)} OR {_HOLDS_FOR_GOOD})"
"""A checkout that holds its order, for good or as long as it is open."""
_IS_PROVED: Final = f"kind IN {listed(TAKING_KINDS)} AND NOT {TOOK_NO_EFFECT}"
"""An operation whose payment the gateway's reply or records named."""
BY_IMPORT: Final = 2
"""In the place of what tells how an owner holds an order: a payment of it was imported."""
OF_PLAN: Final = 3
"""In the same place: the row tells of a payment, and not of the order. Its payment is of a plan."""
BY_FAILED: Final = 4
"""In the same place: an operation that counts as failed, and may prove to have paid."""
_SEEN_ELSEWHERE: Final = """EXISTS (
        SELECT 1 FROM payments_seen AS seen
        WHERE seen.merchant = $2 AND seen.payment_id = $1 AND seen.order_id <> {table}.order_id
      )"""


_OF_PLAN_ALONE: Final = """FROM subscriptions
    JOIN installments ON installments.merchant = subscriptions.merchant
      AND installments.subscription_id = subscriptions.subscription_id
    WHERE subscriptions.order_id = $1 AND subscriptions.merchant = $2 AND NOT EXISTS (
      SELECT 1 FROM checkouts WHERE checkouts.merchant = subscriptions.merchant
        AND checkouts.subscription_id = subscriptions.subscription_id)"""
"""The installments of order $1's subscriptions that no checkout began, such as imported ones."""
_PLAN_OWNS: Final = "installments.is_paid = 1 AND subscriptions.principal IS NOT NULL"
"""A subscription whose principal owns the installment."""


def _if(condition: str) -> str:
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


MAKERS_OF_PAYMENT: Final = query(
    f"""
    SELECT {_if(_IS_PROVED)}, {OPERATIONS.packed}, NULL::json FROM operations WHERE payment_id = $1 AND merchant = $2
    UNION ALL
    SELECT {_if(CHECKOUT_OWNS)}, {CHECKOUTS.packed}, NULL::json FROM checkouts WHERE payment_id = $1 AND merchant = $2
    UNION ALL
    SELECT {_if(_PLAN_OWNS)}, {SUBSCRIPTIONS.packed},
           {INSTALLMENTS.packed}
    FROM installments
    JOIN subscriptions ON subscriptions.merchant = installments.merchant
      AND subscriptions.subscription_id = installments.subscription_id
    WHERE installments.payment = $1 AND installments.merchant = $2""",
)
"""Finds the principals whose operation, checkout or plan made payment $1 of merchant $2, as the gateway showed."""

REPORTED_MAKERS_OF_PAYMENT: Final = query(
    f"""
    SELECT 0, {_if(f"{OPERATION_OWNS} AND NOT {_SEEN_ELSEWHERE.format(table='operations')}")}, {OPERATIONS.packed},
           NULL::json
    FROM operations WHERE payment_id = $1 AND merchant = $2
    UNION ALL
    SELECT 0, {_if(f"NOT {_SEEN_ELSEWHERE.format(table='checkouts')}")}, {CHECKOUTS.packed}, NULL::json
    FROM checkouts WHERE payment_id = $1 AND merchant = $2
    UNION ALL
    SELECT {BY_IMPORT}, 1, {IMPORTED_PAYMENTS.packed}, NULL::json
    FROM imported_payments WHERE payment_id = $1 AND merchant = $2""",
)
"""Finds the principal for whom payment $1 was imported (BY_IMPORT), and the principals of authorizations and approvals
for which a report named it.

No record of the gateway's shows a payment that a report named, and the number could be that of another order. So such a
report counts where nobody proved the payment his, where it wasn't imported, and where the gateway did not show it for
another order."""

ORDER_OF_PAYMENT: Final = query(
    f"""
    SELECT order_id, 1, {PAYMENTS_SEEN.packed}, NULL FROM payments_seen
    WHERE payment_id = $1 AND merchant = $2""",
)
"""Finds the order for which the gateway showed a payment."""

OWNERS_OF_ORDER: Final = batched_query(
    f"""
    SELECT CASE WHEN {IS_OPEN} THEN 1 WHEN state = '{State.FAILED}' THEN {BY_FAILED} ELSE 0 END,
      {_if(f"NOT {IS_OPEN}")}, created_at_ms, id, NULL,
      {_if(f"kind IN {listed(PAYMENT_KINDS)} AND NOT {WAS_NOT_EXECUTED}")}, {OPERATIONS.packed}, NULL::json
    FROM operations WHERE order_id = $1 AND merchant = $2 AND id <> $3
    UNION ALL
    SELECT 0, {_if(_HOLDS_FOR_GOOD)}, created_at_ms, NULL, CASE WHEN {IS_OPEN_PAGE} THEN id END,
      {_if(_HOLDS)}, {CHECKOUTS.packed}, NULL::json
    FROM checkouts WHERE order_id = $1 AND merchant = $2
    UNION ALL
    SELECT {BY_IMPORT}, 1, imported_at_ms, NULL, NULL, 1, {IMPORTED_PAYMENTS.packed}, NULL::json
    FROM imported_payments WHERE order_id = $1 AND merchant = $2
    UNION ALL
    SELECT {OF_PLAN}, 0, 0, NULL, NULL, 1, {SUBSCRIPTIONS.packed}, NULL::json
    FROM subscriptions WHERE order_id = $1 AND merchant = $2""",
    "text",
    "text",
    "text",
)
"""Finds who made a payment of order $1 or holds it: by an open operation (1), by an import (BY_IMPORT), or else (0).
Also whether for good, and since when, and the id of the operation, or of a checkout that may be paid now. Beside these,
what makes nobody an owner, and may have paid the order: failed operations (BY_FAILED), and its plans (OF_PLAN).
Operation $3 is left out."""

PAYMENTS_OF_ORDER: Final = batched_query(
    f"""
    SELECT payment_id, {_if(OPERATION_OWNS)}, {OPERATIONS.packed}, NULL::json
    FROM operations WHERE order_id = $1 AND merchant = $2 AND payment_id IS NOT NULL
    UNION ALL
    SELECT payment_id, 1, {CHECKOUTS.packed}, NULL::json
    FROM checkouts WHERE order_id = $1 AND merchant = $2 AND payment_id IS NOT NULL
    UNION ALL
    SELECT installments.payment, 1, {CHECKOUTS.packed}, {INSTALLMENTS.packed} FROM checkouts
    JOIN installments ON installments.merchant = checkouts.merchant
      AND installments.subscription_id = checkouts.subscription_id
    WHERE checkouts.order_id = $1 AND checkouts.merchant = $2
    UNION ALL
    SELECT installments.payment, {_if(_PLAN_OWNS)}, {SUBSCRIPTIONS.packed}, {INSTALLMENTS.packed} {_OF_PLAN_ALONE}
    UNION ALL
    SELECT payment_id, 1, {IMPORTED_PAYMENTS.packed}, NULL::json
    FROM imported_payments WHERE order_id = $1 AND merchant = $2""",
    "text",
    "text",
)
"""Finds the known payments of order $1, each with its principal."""

ORDER_AND_PAYMENTS: Final = batched_query(
    f"""
    SELECT payment_id, {_if(IS_OPEN)}, {_if(OPERATION_OWNS)}, {_if(f"payment_id IS NOT NULL AND {OPERATION_OWNS}")},
      {_if(OPERATION_OWNS)}, {OPERATIONS.packed}, NULL::json
    FROM operations WHERE order_id = $1 AND merchant = $2
    UNION ALL
    SELECT payment_id, 0, {_if(_HOLDS)}, {_if("payment_id IS NOT NULL")},
      {_if(f"payment_id IS NOT NULL OR {_HOLDS}")}, {CHECKOUTS.packed}, NULL::json
    FROM checkouts WHERE order_id = $1 AND merchant = $2
    UNION ALL
    SELECT installments.payment, {OF_PLAN}, 0, 1, 1, {CHECKOUTS.packed}, {INSTALLMENTS.packed} FROM checkouts
    JOIN installments ON installments.merchant = checkouts.merchant
      AND installments.subscription_id = checkouts.subscription_id
    WHERE checkouts.order_id = $1 AND checkouts.merchant = $2
    UNION ALL
    SELECT installments.payment, {OF_PLAN}, 0, {_if(_PLAN_OWNS)}, {_if(_PLAN_OWNS)}, {SUBSCRIPTIONS.packed},
           {INSTALLMENTS.packed}
    {_OF_PLAN_ALONE}
    UNION ALL
    SELECT payment_id, {BY_IMPORT}, 1, 1, 1, {IMPORTED_PAYMENTS.packed}, NULL::json
    FROM imported_payments WHERE order_id = $1 AND merchant = $2""",
    "text",
    "text",
)
"""Finds what OWNERS_OF_ORDER and PAYMENTS_OF_ORDER find, by one reading of each row: its payment, how it holds order $1
(OF_PLAN where it doesn't), whether it counts for the order, and whether for the payment."""

MAKERS_OF_AUTHORIZATION: Final = query(
    f"SELECT 1, {OPERATIONS.packed}, NULL FROM operations WHERE result_ref = $1 AND merchant = $2",
)
"""Finds the principals whose operation yielded the authorization token with hash $1."""

ACCEPTED_BY: Final = query(
    f"""
    SELECT {_if("checkouts.kind = 'authorization'")}, {CHECKOUTS.packed}, {ACCEPTED_TOKENS.packed} FROM accepted_tokens
    JOIN checkouts ON checkouts.merchant = accepted_tokens.merchant AND checkouts.order_id = accepted_tokens.order_id
    WHERE accepted_tokens.token_hash = $1 AND accepted_tokens.merchant = $2 AND accepted_tokens.kind = 'authorization'
    ORDER BY accepted_tokens.accepted_at_ms, (checkouts.state NOT IN ('notified', 'completed')),
      (checkouts.guard IS NULL), checkouts.id DESC""",
)
"""Finds the checkouts that had the authorization token with hash $1 accepted, the first one first. Of several checkouts
of the order the first is one that was told of the authorization."""

MAKERS_OF_PLAN: Final = query(
    f"""
    SELECT {_if("principal IS NOT NULL")}, {SUBSCRIPTIONS.packed}, NULL
    FROM subscriptions WHERE subscription_id = $1 AND merchant = $2
    UNION ALL
    SELECT 1, {CHECKOUTS.packed}, NULL FROM checkouts WHERE subscription_id = $1 AND merchant = $2""",
)
"""Finds the principals whose checkout began subscription $1."""

ORDER_OF_PLAN: Final = query(
    f"""
    SELECT order_id, {_if("order_id IS NOT NULL")}, {SUBSCRIPTIONS.packed}, NULL
    FROM subscriptions WHERE subscription_id = $1 AND merchant = $2""",
)
"""Finds the order of a subscription."""

KNOWN_PRINCIPALS: Final = query(
    f"""
    SELECT principal AS value FROM credentials
    UNION {distinct("operations", "principal")}
    UNION {distinct("checkouts", "principal")}
    UNION {distinct("customers", "principal")}
    UNION {distinct("imported_payments", "principal")}
    ORDER BY value LIMIT $1""",
)
"""Finds the names under which anything is stored."""
