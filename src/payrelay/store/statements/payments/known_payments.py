"""The payments that are known here: seen at the gateway, or made by an operation, a checkout or a subscription."""

# ruff: noqa: S608 - only our own states and kinds are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.payment_owners import CHECKOUT_OWNS, OPERATION_OWNS
from payrelay.store.statements.payments.packed_rows import CHECKOUT, INSTALLMENT, OPERATION, SUBSCRIPTION
from payrelay.store.statements.payments.packed_rows import PAYMENT_SEEN as SEEN_ROW

_INSTALLMENTS: Final = """
    FROM installments
    JOIN subscriptions
      ON subscriptions.merchant = installments.merchant
        AND subscriptions.subscription_id = installments.subscription_id"""

KNOWN_PAYMENT: Final = query(
    f"""
    SELECT order_id, currency, status, maker, link FROM (
      SELECT 1 AS source, order_id, currency, status, {SEEN_ROW} AS maker, NULL::json AS link
      FROM payments_seen WHERE payment_id = $1 AND merchant = $2
      UNION ALL
      SELECT 2, order_id, currency, 'RECEIVED', {OPERATION}, NULL::json FROM operations
      WHERE payment_id = $1 AND merchant = $2 AND kind IN ('charge', 'capture') AND state = 'succeeded'
        AND order_id IS NOT NULL
      UNION ALL
      SELECT 3, order_id, currency, NULL, {CHECKOUT}, NULL::json FROM checkouts
      WHERE payment_id = $1 AND merchant = $2 AND ({CHECKOUT_OWNS})
      UNION ALL
      SELECT 4, subscriptions.order_id, subscriptions.currency, NULL, {SUBSCRIPTION}, {INSTALLMENT} {_INSTALLMENTS}
      WHERE installments.payment = $1 AND installments.merchant = $2 AND subscriptions.order_id IS NOT NULL
    ) AS known
    ORDER BY source""",
)
"""Finds what is known of a payment: as it was last seen, or as the operation, checkout or subscription that made it;
with the rows from which that follows.

Only what was seen, and an operation whose success the gateway answered, say that it was received.
"""

LIST_PAYMENTS: Final = query(
    f"""
    SELECT known.merchant, known.payment_id FROM (
      SELECT merchant, payment_id, order_id FROM payments_seen
      UNION
      SELECT merchant, payment_id, order_id FROM operations WHERE payment_id IS NOT NULL AND {OPERATION_OWNS}
      UNION
      SELECT merchant, payment_id, order_id FROM checkouts WHERE payment_id IS NOT NULL
      UNION
      SELECT installments.merchant, installments.payment, subscriptions.order_id {_INSTALLMENTS}
      WHERE installments.is_paid = 1 AND installments.payment NOT LIKE 'ntf:%'
    ) AS known
    LEFT JOIN payments_seen AS seen ON seen.merchant = known.merchant AND seen.payment_id = known.payment_id
    WHERE ($1::text IS NULL OR known.merchant = $1::text) AND ($2::text IS NULL OR known.order_id = $2::text)
      AND ($3::text IS NULL OR seen.status = $3::text) AND ($4::text IS NULL OR known.payment_id = $4::text)
    GROUP BY known.merchant, known.payment_id
    ORDER BY length(known.payment_id) DESC, known.payment_id DESC, known.merchant LIMIT $5""",
)
"""Finds known payments, newest first: ids grow. Of one merchant, order, last seen status or id, where these are given.
"""

PAYMENT_SEEN: Final = query(
    """
    SELECT order_id, status, currency, amount_minor, seen_at_ms FROM payments_seen
    WHERE merchant = $1 AND payment_id = $2""",
)
"""Reads a payment as it was last seen at the gateway."""

OWNERS_OF: Final = query(
    f"""
    SELECT 'operation', id, state, account, order_id, currency, amount_minor FROM operations
    WHERE merchant = $1 AND payment_id = $2 AND {OPERATION_OWNS}
    UNION ALL
    SELECT 'checkout', id, state, account, order_id, currency, first_minor FROM checkouts
    WHERE merchant = $1 AND payment_id = $2
    UNION ALL
    SELECT 'subscription', subscriptions.subscription_id, NULL, subscriptions.account, subscriptions.order_id,
      subscriptions.currency, installments.amount_minor
    {_INSTALLMENTS}
    WHERE installments.merchant = $1 AND installments.payment = $2 AND installments.is_paid = 1""",
)
"""Finds the operations, checkouts and subscriptions that a payment belongs to, as far as is known here."""

CHARGED_BACK_AT: Final = query("SELECT max(noted_at_ms) FROM chargebacks WHERE merchant = $1 AND payment_id = $2")
"""Tells when a payment's chargeback was stored; null where it has none."""

REFUNDS_OF: Final = query(
    """
    SELECT id, state, amount_minor FROM operations WHERE merchant = $1 AND payment_id = $2 AND kind = 'refund'
    ORDER BY id""",
)
"""Finds the refunds of a payment that were asked for here, whatever became of them."""
