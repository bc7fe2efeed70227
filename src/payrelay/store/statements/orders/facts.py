"""All that is stored of an order's money, or of one payment, in one statement: so all of it is of one moment."""

# ruff: noqa: S608 - only tables, columns and kinds named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.payments.operation import Kind, captured_guard
from payrelay.store.engine.queries import query
from payrelay.store.statements.payments.packed_rows import (
    ACCEPTED_TOKEN,
    CHARGEBACK,
    CHECKOUT,
    FAILED_REFUND,
    IMPORTED_PAYMENT,
    INSTALLMENT,
    NOTIFICATION,
    OPERATION,
    PAYMENT_SEEN,
    RETURN_SEEN,
    SUBSCRIPTION,
)

_PAID: Final = "installments.is_paid = 1"
_MOVES_MONEY: Final = f"kind <> '{Kind.CANCEL.stored}'"
_OF_PAYMENTS: Final = 'IN (SELECT payment_id COLLATE "default" FROM paid)'
"""Some tables have another collation than others: without the cast PostgreSQL uses no index of the others."""
_IS_HOLD: Final = f"payment_id {_OF_PAYMENTS} AND merchant = $1 AND result_ref IS NOT NULL"
_CAPTURING: Final = "'authorization/'"
_CAPTURED: Final = f"'{captured_guard('authorization/')}'"
"""What an open and a successful capture of a hold guard, or its void; the capture may have no payment's number."""
_OF_ORDERS: Final = 'order_id IN (SELECT order_id COLLATE "default" FROM orders)'
_TOLD: Final = "kind = 'chargeback' AND verdict = 'genuine' AND state IN ('received', 'waiting')"
"""Of a chargeback that the gateway notified, and that no record proves yet. One for each payment is enough: however
many a stranger posts again with other unsigned members, they don't fill what is added up."""
_OF_PLANS: Final = "IN (SELECT subscription_id FROM plans)"


def _first(rows: str) -> str:
    """Gives one row more than may be read of a kind, so that more of them are noticed."""
    return f"SELECT * FROM ({rows} LIMIT $4) AS found"


def _numbers(source: str) -> str:
    return f"UNION SELECT payment_id FROM (SELECT {source} LIMIT $4) AS named"


FACTS: Final = query(
    f"""
    WITH plans AS (
      SELECT subscription_id FROM subscriptions WHERE order_id = $2::text AND merchant = $1
      UNION
      SELECT subscription_id FROM checkouts
      WHERE merchant = $1 AND order_id = $2::text AND subscription_id IS NOT NULL
    ),
    paid AS (
      SELECT $3::text AS payment_id
      {_numbers("payment_id FROM operations WHERE order_id = $2::text AND merchant = $1 AND payment_id IS NOT NULL")}
      {_numbers("payment_id FROM checkouts WHERE merchant = $1 AND order_id = $2::text AND payment_id IS NOT NULL")}
      {
        _numbers(f'''payment AS payment_id FROM plans JOIN installments
          ON installments.merchant = $1 AND installments.subscription_id = plans.subscription_id WHERE {_PAID}''')
    }
      {_numbers("payment_id FROM imported_payments WHERE order_id = $2::text AND merchant = $1")}
      {_numbers("payment_id FROM payments_seen WHERE merchant = $1 AND order_id = $2::text")}
    ),
    orders AS (
      SELECT order_id FROM (
        SELECT $2::text AS order_id
        UNION SELECT order_id FROM operations WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
        UNION SELECT order_id FROM checkouts WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
        UNION SELECT order_id FROM payments_seen WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}
        UNION SELECT order_id FROM imported_payments WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}
      ) AS named WHERE order_id IS NOT NULL
    ),
    takers AS (
      SELECT {_CAPTURED} || result_ref AS guard FROM operations WHERE {_IS_HOLD}
      UNION ALL
      SELECT {_CAPTURING} || result_ref AS guard FROM operations WHERE {_IS_HOLD}
    )
    {
        _first(f'''
      SELECT {OPERATION} AS row_and_digest FROM operations WHERE id IN (
        SELECT id FROM operations WHERE order_id = $2::text AND merchant = $1
        UNION SELECT id FROM operations WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
        UNION SELECT id FROM operations WHERE subscription_id {_OF_PLANS} AND merchant = $1
        UNION SELECT id FROM operations WHERE merchant = $1 AND guard IN (SELECT guard FROM takers)
      ) AND {_MOVES_MONEY}''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {CHECKOUT} FROM checkouts WHERE id IN (
        SELECT id FROM checkouts WHERE merchant = $1 AND order_id = $2::text
        UNION SELECT id FROM checkouts WHERE payment_id {_OF_PAYMENTS} AND merchant = $1
      )''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {SUBSCRIPTION} FROM subscriptions WHERE merchant = $1 AND subscription_id IN (
        SELECT subscription_id FROM plans
        UNION SELECT subscription_id FROM installments WHERE payment {_OF_PAYMENTS} AND merchant = $1
      )''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {INSTALLMENT} FROM plans JOIN installments
        ON installments.merchant = $1 AND installments.subscription_id = plans.subscription_id WHERE {_PAID}''')
    }
    UNION ALL
    {
        _first(f'''
      SELECT {INSTALLMENT} FROM installments WHERE payment {_OF_PAYMENTS} AND merchant = $1 AND {_PAID}''')
    }
    UNION ALL
    {_first(f"SELECT {IMPORTED_PAYMENT} FROM imported_payments WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {_first(f"SELECT {PAYMENT_SEEN} FROM payments_seen WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {_first(f"SELECT {RETURN_SEEN} FROM returns_seen WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {_first(f"SELECT {FAILED_REFUND} FROM failed_refunds WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    {
        _first(f'''
      SELECT {NOTIFICATION} FROM notifications WHERE id IN (
        SELECT min(id) FROM notifications
        WHERE merchant = $1 AND {_TOLD} AND (payment_id IS NULL OR payment_id {_OF_PAYMENTS})
          AND ({_OF_ORDERS} OR NOT EXISTS (SELECT 1 FROM orders))
        GROUP BY payment_id
      )''')
    }
    UNION ALL
    {_first(f"SELECT {CHARGEBACK} FROM chargebacks WHERE merchant = $1 AND payment_id {_OF_PAYMENTS}")}
    UNION ALL
    SELECT {ACCEPTED_TOKEN} FROM accepted_tokens
    WHERE merchant = $1 AND order_id = $2::text AND kind = 'authorization'""",
)
"""Reads all rows about the money of merchant $1's order $2, or of payment $3 alone, each with its table and its digest.

At most $4 rows of each kind. A row that follows from another is read whatever that row's digest is: whoever sorts them
believes none that follows from a wrong one alone.
"""
