"""When it became known here that a page or an installment was paid: once for each, whatever is learnt of it later."""

from typing import Final

from payrelay.store.engine.queries import query

LEARN: Final = query(
    """
    INSERT INTO payments_learnt (merchant, subject, learnt_at_ms) VALUES ($1, $2, $3)
    ON CONFLICT (merchant, subject) DO NOTHING
    RETURNING subject""",
)
"""Stores when something was learnt to be paid; the first time holds."""

LEARNT_SINCE: Final = query(
    """
    SELECT subject, learnt_at_ms FROM payments_learnt
    WHERE merchant = $1 AND learnt_at_ms >= $2 AND (learnt_at_ms, subject) > ($2, $3)
    ORDER BY learnt_at_ms, subject LIMIT $4""",
)
"""Reads what was learnt of a merchant behind a time and a subject, the oldest first."""

OF_CHECKOUT: Final = """(
    SELECT learnt_at_ms FROM payments_learnt
    WHERE payments_learnt.merchant = checkouts.merchant AND payments_learnt.subject = checkouts.id)"""
"""When a checkout was learnt to be paid, as a column beside those of ``checkouts``."""

OF_INSTALLMENT: Final = """(
    SELECT learnt_at_ms FROM payments_learnt
    WHERE payments_learnt.merchant = installments.merchant
      AND payments_learnt.subject = 'sub/' || installments.subscription_id || '/' || installments.payment)"""
"""When an installment was learnt to be paid, as a column beside those of ``installments``."""


def installment_subject(subscription_id: str, payment: str) -> str:
    """Gives what the books call an installment."""
    return f"sub/{subscription_id}/{payment}"
