"""Signed texts, and what has one."""

# ruff: noqa: S608 - only our own conditions are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.payment_owners import WAS_NOT_EXECUTED
from payrelay.store.statements.payments.operations import OPERATIONS

SIGNED_TEXTS: Final = Table(
    name="signed_texts",
    columns=("merchant", "digest", "subject", "kind", "texts"),
    keys=3,
    uncovered={"at_ms": "it says when the text was stored"},
)

PUT_SIGNED_TEXT: Final = query(
    f"""
    INSERT INTO signed_texts ({SIGNED_TEXTS.read}, at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (merchant, digest, subject) DO UPDATE
    SET kind = excluded.kind, texts = excluded.texts, row_digest = excluded.row_digest""",
)
"""Stores that a checkout or an operation has a text, and how many it has in all."""

LOCK_CHECKOUT: Final = query("SELECT state FROM checkouts WHERE id = $1 FOR UPDATE")
"""Lets one transaction at a time store the texts of a checkout, and none beside it change the state that it reads."""

TEXTS_OF: Final = query(f"{SIGNED_TEXTS.select} WHERE subject = $1 ORDER BY digest")
"""Reads the texts that a checkout or an operation has."""

TEXT_HOLDERS: Final = query(
    f"""
    SELECT {SIGNED_TEXTS.packed},
           (SELECT {CHECKOUTS.packed} FROM checkouts WHERE checkouts.id = signed_texts.subject COLLATE "default"),
           (SELECT {OPERATIONS.packed} FROM operations WHERE operations.id = signed_texts.subject),
           CASE WHEN EXISTS (
               SELECT 1 FROM operations WHERE operations.id = signed_texts.subject AND {WAS_NOT_EXECUTED}
           ) THEN 0 ELSE 1 END
    FROM signed_texts WHERE signed_texts.merchant = $1 AND signed_texts.digest = $2""",
)
"""Finds what has the text of a digest, each with its row, and whether it counts: an operation that was surely not
executed had nothing signed. The subject has another collation than the ids of checkouts: without the cast their
index would not serve."""

CHECKOUTS_LIKE: Final = query(
    f"""
    SELECT {CHECKOUTS.packed}, CASE WHEN amount_minor = $3 OR first_minor = $3 THEN 1 ELSE 0 END,
           CASE WHEN state = 'expired' AND updated_at_ms < expires_at_ms THEN 0 ELSE 1 END
    FROM checkouts
    WHERE merchant = $1 AND order_id = $2 AND currency = $4
      AND (kind = 'recurring' OR amount_minor IS NULL OR amount_minor = $3)""",
)
"""Finds the checkouts of an order whose forms may have an amount, whether they name it, and whether they count. One
that expired before its time was withdrawn before anybody was told of it: no form of it has left."""

CALLS_LIKE: Final = query(
    f"""
    SELECT {OPERATIONS.packed}, CASE WHEN {WAS_NOT_EXECUTED} THEN 0 ELSE 1 END
    FROM operations
    WHERE order_id = $2 AND merchant = $1 AND amount_minor = $3 AND currency = $4
      AND kind IN ('charge', 'authorization')""",
)
"""Finds the calls of an order and an amount, and whether they count."""
