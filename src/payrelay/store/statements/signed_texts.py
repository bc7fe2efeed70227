"""Signed texts, and what has one."""

# ruff: noqa: S608 - only our own conditions are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.payment_owners import WAS_NOT_EXECUTED

ADD_SIGNED_TEXT: Final = query(
    """
    INSERT INTO signed_texts (merchant, digest, subject, kind, at_ms) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING RETURNING digest""",
)
"""Stores that a checkout or an operation has a text; gives no row where that is stored already."""

DIGESTS_OF: Final = query("SELECT digest FROM signed_texts WHERE subject = $1")
"""Reads the digests of the texts that a checkout or an operation has."""

TEXT_HOLDERS: Final = query(
    f"""
    SELECT held.subject, held.kind, COALESCE(checkouts.kind, operations.kind),
           COALESCE(checkouts.order_id, operations.order_id)
    FROM signed_texts AS held
    LEFT JOIN checkouts ON checkouts.id = held.subject
    LEFT JOIN operations ON operations.id = held.subject
    WHERE held.merchant = $1 AND held.digest = $2
      AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.id = held.subject AND {WAS_NOT_EXECUTED})""",
)
"""Finds what has the text of a digest. An operation that was surely not executed had nothing signed."""

UNLISTED_HOLDERS: Final = query(
    f"""
    SELECT id, 'form', kind, order_id, CASE WHEN amount_minor = $3 OR first_minor = $3 THEN 1 ELSE 0 END
    FROM checkouts
    WHERE merchant = $1 AND order_id = $2 AND currency = $4
      AND (kind = 'recurring' OR amount_minor IS NULL OR amount_minor = $3)
      AND NOT EXISTS (SELECT 1 FROM signed_texts AS held WHERE held.subject = checkouts.id)
    UNION ALL
    SELECT id, 'call', kind, order_id, 1
    FROM operations
    WHERE order_id = $2 AND merchant = $1 AND amount_minor = $3 AND currency = $4
      AND kind IN ('charge', 'authorization') AND NOT {WAS_NOT_EXECUTED}
      AND NOT EXISTS (SELECT 1 FROM signed_texts AS held WHERE held.subject = operations.id)""",
)
"""Finds what an order and an amount may be of, and has no text in the list: charges that are made at once, and what a
process of an earlier version stored after the upgrade."""

IS_INCOMPLETE: Final = query("SELECT 1 FROM signed_texts WHERE merchant = $1 AND digest = '' LIMIT 1")
"""Tells whether a merchant has anything of which the text isn't known."""

CHECKOUTS_AFTER: Final = query(
    """
    SELECT id, merchant, kind, order_id, amount_minor, first_minor, currency FROM checkouts
    WHERE id > $1 ORDER BY id LIMIT $2""",
)
"""Reads one page of what the forms of all checkouts were made of."""

AUTHORIZATIONS_AFTER: Final = query(
    """
    SELECT id, merchant, kind, order_id, amount_minor, NULL, currency FROM operations
    WHERE kind = 'authorization' AND id > $1 ORDER BY id LIMIT $2""",
)
"""Reads one page of what the calls of all authorizations were made of."""
