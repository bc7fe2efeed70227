"""Checkouts."""

# ruff: noqa: S608 - what is put into the texts are columns named here; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.payment_owners import IS_OPEN_OR_FAILED, owners_of_payment

COLUMNS: Final = (
    "id, account, merchant, principal, kind, state, version, order_id, guard, amount_minor, first_minor, currency,"
    " secret_hash, idempotency_key, request_id, customer_reference, bound_customer_id, payment_id,"
    " subscription_id, customer_id, created_at_ms, updated_at_ms, expires_at_ms, opened_at_ms, ends_at_ms, look_at_ms"
)
_PLACES: Final = ", ".join(f"${number}" for number in range(1, 28))

ADD: Final = query(
    "add_checkout",
    f"INSERT INTO checkouts ({COLUMNS}, sealed) VALUES ({_PLACES}) ON CONFLICT DO NOTHING RETURNING id",
)
"""Stores a new checkout; gives no row where its order or its key is taken."""

GET: Final = query("get_checkout", f"SELECT {COLUMNS} FROM checkouts WHERE id = $1")
"""Reads one checkout."""

SEALED: Final = query("sealed_checkout", "SELECT sealed FROM checkouts WHERE id = $1")
"""Reads what is sealed of a checkout; null once it was forgotten."""

OF_KEY: Final = query(
    "checkout_of_key", f"SELECT {COLUMNS} FROM checkouts WHERE principal = $1 AND idempotency_key = $2"
)
"""Finds the checkout that a principal opened under an Idempotency-Key."""

HOLDER: Final = query("checkout_holder", f"SELECT {COLUMNS} FROM checkouts WHERE merchant = $1 AND guard = $2")
"""Finds the checkout that holds an order."""

OF_ORDER: Final = query(
    "checkouts_of_order",
    f"""
    SELECT {COLUMNS} FROM checkouts WHERE merchant = $1 AND order_id = $2
    ORDER BY (guard IS NULL), id DESC LIMIT $3""",
)
"""Finds the checkouts of an order: the one that holds it first, then the newest."""

LOCK_ORDER: Final = query(
    "lock_order", "SELECT id FROM checkouts WHERE merchant = $1 AND order_id = $2 ORDER BY id FOR UPDATE"
)
"""Keeps others from changing the checkouts of an order until the unit is over."""

CHANGE: Final = query(
    "change_checkout",
    """
    UPDATE checkouts SET state = $3, version = $2::bigint + 1, payment_id = $5, subscription_id = $6, customer_id = $7,
      updated_at_ms = $8,
      guard = CASE
        WHEN $4::text IS NULL THEN NULL
        WHEN EXISTS (
          SELECT 1 FROM checkouts AS other
          WHERE other.merchant = checkouts.merchant AND other.guard = $4::text AND other.id <> checkouts.id
        ) THEN NULL
        ELSE $4::text
      END
    WHERE id = $1 AND version = $2::bigint
    RETURNING id""",
)
"""Changes a checkout that has this version; gives no row where it has another. One that is completed after its order
was taken by another one holds it no more: that the order is paid twice is for people to see, not for an index."""

MARK_OPENED: Final = query(
    "mark_checkout_opened",
    """
    UPDATE checkouts SET opened_at_ms = $2, ends_at_ms = expires_at_ms + $3::bigint
    WHERE id = $1 AND opened_at_ms IS NULL AND state = 'open'
    RETURNING id""",
)
"""Notes that the page of a checkout was shown, the first time."""

LEASE_INQUIRY: Final = query(
    "take_look_at_checkout",
    "UPDATE checkouts SET look_at_ms = $3 WHERE id = $1 AND look_at_ms <= $2 RETURNING id",
)
"""Lets one of those who want to look at the gateway do so; gives no row to the others."""

LEASE_ENDING: Final = query(
    "take_ending_checkouts",
    f"""
    UPDATE checkouts SET ends_at_ms = $2
    WHERE id IN (
      SELECT id FROM checkouts WHERE state = 'open' AND ends_at_ms <= $1 ORDER BY ends_at_ms LIMIT $3
      FOR UPDATE SKIP LOCKED
    )
    RETURNING {COLUMNS}""",
)
"""Takes the checkouts whose time has ended; until then nobody else is given them."""

LEASE_OVERDUE: Final = query(
    "take_overdue_checkout",
    "UPDATE checkouts SET ends_at_ms = $3 WHERE id = $1 AND state = 'open' AND ends_at_ms <= $2 RETURNING id",
)
"""Takes one checkout whose time has ended; gives no row where it isn't that, or was taken by somebody else."""

ANY_ENDING: Final = query(
    "any_ending_checkout", "SELECT id FROM checkouts WHERE state = 'open' AND ends_at_ms <= $1 LIMIT 1"
)
"""Tells whether there is a checkout whose time has ended."""

FORGET: Final = query(
    "forget_checkouts",
    """
    UPDATE checkouts SET sealed = NULL, idempotency_key = NULL
    WHERE id IN (
      SELECT id FROM checkouts WHERE sealed IS NOT NULL AND state <> 'open' AND updated_at_ms < $1
      ORDER BY updated_at_ms LIMIT $2
    )
    RETURNING id""",
)
"""Forgets what is sealed of checkouts that have long had their outcome, and gives their keys back."""

FORGET_ORDER: Final = query(
    "forget_checkouts_of_order",
    """
    UPDATE checkouts SET sealed = NULL, customer_reference = NULL, idempotency_key = NULL
    WHERE merchant = $1 AND principal = $2 AND order_id = $3 AND state <> 'open'
    RETURNING id""",
)
"""Forgets who the customer of a principal's checkouts of an order was, of those that have their outcome; a key may have
a person's name in it."""

OF_CUSTOMER: Final = query(
    "checkouts_of_person",
    f"""
    SELECT {COLUMNS} FROM checkouts
    WHERE id IN (
      SELECT id FROM checkouts WHERE customer_id = $1
      UNION
      SELECT id FROM checkouts WHERE bound_customer_id = $1
      UNION
      SELECT id FROM checkouts WHERE merchant = $2 AND principal = $3 AND customer_reference = $4::text
    ) AND id > $5
    ORDER BY id LIMIT $6""",
)
"""Reads one page of the checkouts of a person, by their ids: those that made a customer, that its phone opened, and
that have the person's reference, where there is one."""

PAYMENT_IS_OWNED: Final = query("payment_is_owned", owners_of_payment(asking="checkouts"))
"""Tells whether a payment belongs to an operation or to another checkout."""

ORDER_HAS_COMPETING: Final = query(
    "order_has_rival",
    f"""
    SELECT id FROM operations
    WHERE order_id = $1 AND merchant = $2 AND kind IN ('charge', 'authorization') AND {IS_OPEN_OR_FAILED}
    UNION ALL
    SELECT id FROM checkouts
    WHERE order_id = $1 AND merchant = $2 AND id <> $3
      AND (state = 'open' OR kind = 'recurring'
           OR (kind <> 'payment' AND state <> 'completed' AND amount_minor IS NOT NULL))
    LIMIT 1""",
)
"""Tells whether a payment of an order may turn out to belong to a charge that is open, or that was taken for failed; or
to another checkout, at which the customer is now, or which asked for something else and may have been paid late. Of a
plan there may always be one payment more."""
