"""The payments that are known here: seen at the gateway, or made by an operation, a checkout or a subscription."""

# ruff: noqa: S608 - only our own states and kinds are put into the texts; values are always parameters

from functools import cache
from typing import Final, NamedTuple

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import PAYMENT_KINDS, TAKING_KINDS, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.store.engine.queries import Query, batched_query, distinct, query
from payrelay.store.statements.payment_owners import CHECKOUT_OWNS, OPERATION_OWNS, TOOK_NO_EFFECT, listed
from payrelay.store.statements.payments.packed_rows import (
    CHECKOUTS,
    IMPORTED_PAYMENTS,
    INSTALLMENTS,
    OPERATIONS,
    PAYMENTS_SEEN,
    SUBSCRIPTIONS,
)

_INSTALLMENTS: Final = """
    FROM installments
    JOIN subscriptions
      ON subscriptions.merchant = installments.merchant
        AND subscriptions.subscription_id = installments.subscription_id"""

KNOWN_PAYMENT: Final = query(
    f"""
    SELECT order_id, currency, status, maker, link FROM (
      SELECT 1 AS source, order_id, currency, status, {PAYMENTS_SEEN.packed} AS maker, NULL::json AS link
      FROM payments_seen WHERE payment_id = $1 AND merchant = $2
      UNION ALL
      SELECT 2, order_id, currency, 'RECEIVED', {OPERATIONS.packed}, NULL::json FROM operations
      WHERE payment_id = $1 AND merchant = $2 AND kind IN ('charge', 'capture') AND state = 'succeeded'
        AND order_id IS NOT NULL
      UNION ALL
      SELECT 3, order_id, currency, NULL, {CHECKOUTS.packed}, NULL::json FROM checkouts
      WHERE payment_id = $1 AND merchant = $2 AND ({CHECKOUT_OWNS})
      UNION ALL
      SELECT 4, subscriptions.order_id, subscriptions.currency, NULL, {SUBSCRIPTIONS.packed}, {INSTALLMENTS.packed}
      {_INSTALLMENTS}
      WHERE installments.payment = $1 AND installments.merchant = $2 AND subscriptions.order_id IS NOT NULL
      UNION ALL
      SELECT 5, order_id, currency, NULL, {IMPORTED_PAYMENTS.packed}, NULL::json FROM imported_payments
      WHERE payment_id = $1 AND merchant = $2
    ) AS known
    ORDER BY source""",
)
"""Finds what is known of a payment: as it was last seen, or as the operation, checkout or subscription that made it,
or as it was imported; with the rows from which that follows.

Only what was seen, and an operation whose success the gateway answered, say that it was received.
"""

_PAID_BY_OPERATION: Final = f"payment_id IS NOT NULL AND kind IN {listed(PAYMENT_KINDS)}"
_PAID_INSTALLMENT: Final = "is_paid = 1 AND payment NOT LIKE 'ntf:%'"

MERCHANTS_OF_PAYMENTS: Final = query(
    f"""
    {distinct("payments_seen", "merchant")}
    UNION {distinct("operations", "merchant", _PAID_BY_OPERATION)}
    UNION {distinct("checkouts", "merchant", "payment_id IS NOT NULL")}
    UNION {distinct("installments", "merchant", _PAID_INSTALLMENT)}
    UNION {distinct("imported_payments", "merchant")}""",
)
"""Finds the merchant accounts of which any payment is known."""


class PaymentSource(NamedTuple):
    """A table by which payments are known.

    Attributes:
        table: its name.
        payment: the column with the payment's id.
        where: which rows count, the condition of the partial index first.
        of_order: the condition for those of an order, before the order's parameter.
        joined: what is joined to the table for those of an order.
    """

    table: str
    payment: str
    where: str
    of_order: str = "order_id ="
    joined: str = ""


_SEEN: Final = PaymentSource("payments_seen", "payment_id", "true")
_PLAN: Final = (
    "subscriptions.merchant = installments.merchant AND subscriptions.subscription_id = installments.subscription_id"
)
PAYMENT_SOURCES: Final = (
    _SEEN,
    PaymentSource("operations", "payment_id", f"{_PAID_BY_OPERATION} AND NOT {TOOK_NO_EFFECT}"),
    PaymentSource("checkouts", "payment_id", "payment_id IS NOT NULL"),
    PaymentSource(
        "installments",
        "payment",
        f"{_PAID_INSTALLMENT} AND EXISTS (SELECT 1 FROM subscriptions WHERE {_PLAN})",
        of_order="subscriptions.order_id =",
        joined=f" JOIN subscriptions ON {_PLAN}",
    ),
    PaymentSource("imported_payments", "payment_id", "true"),
)


@cache
def newest_of(source: PaymentSource, columns: tuple[str, ...]) -> Query:
    """Reads the newest payments of merchant account $1 by one source; the filter's columns and the limit follow it.

    Ids grow. A payment that isn't in ``payments_seen`` has no status.
    """
    numbers = {column: f"${number}" for number, column in enumerate(columns, 2)}
    table, payment, rows = source.table, f"{source.table}.{source.payment}", source.table
    clauses = [f"{table}.merchant = $1", source.where]
    if "order_id" in numbers:
        rows += source.joined
        clauses.append(f"{source.of_order} {numbers['order_id']}")
    if "payment_id" in numbers:
        clauses.append(f"{payment} = {numbers['payment_id']}")
    if "status" in numbers:
        status = numbers["status"]
        seen = f"SELECT 1 FROM payments_seen AS seen WHERE seen.merchant = $1 AND seen.payment_id = {payment}"
        clauses.append(f"status = {status}" if source is _SEEN else f"EXISTS ({seen} AND seen.status = {status})")
    return query(
        f"""
        SELECT {payment} FROM {rows} WHERE {" AND ".join(clauses)}
        GROUP BY length({payment}), {payment}
        ORDER BY length({payment}) DESC, {payment} DESC LIMIT ${len(columns) + 2}""",
    )


def sources_for(columns: tuple[str, ...]) -> tuple[PaymentSource, ...]:
    """Gives the sources that have all payments of a filter: every payment with a status is in ``payments_seen``."""
    return (_SEEN,) if "status" in columns and "order_id" not in columns else PAYMENT_SOURCES


PAYMENT_SEEN: Final = query(
    """
    SELECT order_id, status, seen_at_ms FROM payments_seen
    WHERE merchant = $1 AND payment_id = $2""",
)
"""Reads a payment as it was last seen at the gateway."""

OWNERS_OF: Final = query(
    f"""
    SELECT 'operation', id, state, account, order_id FROM operations
    WHERE merchant = $1 AND payment_id = $2 AND {OPERATION_OWNS}
    UNION ALL
    SELECT 'checkout', id, state, account, order_id FROM checkouts
    WHERE merchant = $1 AND payment_id = $2
    UNION ALL
    SELECT 'subscription', subscriptions.subscription_id, NULL, subscriptions.account, subscriptions.order_id
    {_INSTALLMENTS}
    WHERE installments.merchant = $1 AND installments.payment = $2 AND installments.is_paid = 1
    UNION ALL
    SELECT 'import', place, NULL, account, order_id FROM imported_payments
    WHERE merchant = $1 AND payment_id = $2""",
)
"""Finds the operations, checkouts, subscriptions and the import that a payment belongs to, as far as is known here."""

REFUNDS_OF: Final = query(
    """
    SELECT id, state, amount_minor FROM operations WHERE merchant = $1 AND payment_id = $2 AND kind = 'refund'
    ORDER BY id""",
)
"""Finds the refunds of a payment that were asked for here, whatever became of them."""

TAKEN_MAX: Final = 1_000
"""Payments of one order or subscription that are read; no order has so many."""

_TOOK_MONEY: Final = f"kind IN {listed(TAKING_KINDS)} AND state = '{State.SUCCEEDED}'"
"""An operation that took money."""
_PAGE_TOOK_MONEY: Final = f"""
      state = '{CheckoutState.COMPLETED}'
      AND (payment_id IS NOT NULL AND kind <> '{CheckoutKind.PREAPPROVAL}'
        OR kind = '{CheckoutKind.PAYMENT}' OR kind = '{CheckoutKind.PREAPPROVAL}' AND amount_minor IS NOT NULL)"""
"""A checkout whose customer has paid. One for an authorization completes when its amount is captured. One for a plan
completes when the plan begins, and that may be before the first payment."""
_OF_PLAN: Final = f"""
    SELECT installments.payment, 'subscription/' || installments.subscription_id, installments.at_ms,
      {SUBSCRIPTIONS.packed}, {INSTALLMENTS.packed} {_INSTALLMENTS}
    WHERE installments.is_paid = 1"""

TAKEN_OF_ORDER: Final = batched_query(
    f"""
    SELECT payment_id, id, updated_at_ms, {OPERATIONS.packed}, NULL::json
    FROM operations WHERE order_id = $1 AND merchant = $2 AND {_TOOK_MONEY}
    UNION ALL
    SELECT payment_id, id, updated_at_ms, {CHECKOUTS.packed}, NULL::json
    FROM checkouts WHERE order_id = $1 AND merchant = $2 AND ({_PAGE_TOOK_MONEY})
    UNION ALL
    SELECT installments.payment, checkouts.id, installments.at_ms, {CHECKOUTS.packed}, {INSTALLMENTS.packed}
    FROM checkouts
    JOIN installments ON installments.merchant = checkouts.merchant
      AND installments.subscription_id = checkouts.subscription_id
    WHERE checkouts.order_id = $1 AND checkouts.merchant = $2 AND installments.is_paid = 1
    UNION ALL {_OF_PLAN} AND subscriptions.order_id = $1 AND subscriptions.merchant = $2 AND NOT EXISTS (
      SELECT 1 FROM checkouts WHERE checkouts.subscription_id = subscriptions.subscription_id
        AND checkouts.merchant = subscriptions.merchant)
    UNION ALL
    SELECT payment_id, place, imported_at_ms, {IMPORTED_PAYMENTS.packed}, NULL::json
    FROM imported_payments WHERE order_id = $1 AND merchant = $2 AND status = '{PaymentStatus.RECEIVED}'
    LIMIT {TAKEN_MAX}""",
    "text",
    "text",
)
"""Finds the payments of order $1 that took money: of each its number, what made it, since when that is known, and the
rows from which it follows. An import tells of what its file calls received."""

TAKEN_OF_PLAN: Final = query(
    f"""
    {_OF_PLAN} AND installments.subscription_id = $1 AND installments.merchant = $2
    UNION ALL
    SELECT payment_id, id, updated_at_ms, {OPERATIONS.packed}, NULL::json
    FROM operations WHERE subscription_id = $1 AND merchant = $2 AND {_TOOK_MONEY}
    LIMIT {TAKEN_MAX}""",
)
"""Finds the payments of subscription $1 that took money, as TAKEN_OF_ORDER does."""
