"""Who owns a payment, and when it was learnt: defined once, in the core's words, for every query that asks for it."""

# ruff: noqa: S608 - only our own states, kinds and tables are put into the texts; values are always parameters

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Literal

from payrelay.core.checkouts.checkout import HOLDING_ORDER, CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.payments.operation import OPEN_STATES, PAYMENT_KINDS, WITHOUT_EFFECT, State
from payrelay.store.engine.queries import query


def listed(members: Iterable[StrEnum]) -> str:
    """Writes states or kinds as the right side of an IN."""
    return "(" + ", ".join(f"'{member}'" for member in sorted(members)) + ")"


TOOK_NO_EFFECT: Final = f"state IN {listed(WITHOUT_EFFECT)}"
"""An operation to which neither a payment nor a refund can belong, in its present state."""

WAS_NOT_EXECUTED: Final = f"state IN {listed(WITHOUT_EFFECT - {State.FAILED})}"
"""TOOK_NO_EFFECT without the failed operations, which may prove to have a payment after all."""

IS_OPEN: Final = f"state IN {listed(OPEN_STATES)}"
"""An operation whose outcome nobody knows yet."""

IS_OPEN_OR_FAILED: Final = f"state IN {listed(OPEN_STATES | {State.FAILED})}"
"""An operation whose outcome nobody knows yet, or that counts as failed."""

OPERATION_OWNS: Final = f"kind IN {listed(PAYMENT_KINDS)} AND NOT {TOOK_NO_EFFECT}"
"""An operation that owns the payment that it names. A refund names a payment too, and owns none."""

CHECKOUT_OWNS: Final = "kind IN ('payment', 'recurring') OR kind = 'preapproval' AND amount_minor IS NOT NULL"
"""A checkout whose payment the gateway shows."""

IS_OPEN_PAGE: Final = f"""(
      state IN {listed(HOLDING_ORDER - {CheckoutState.COMPLETED})}
      AND (kind <> '{CheckoutKind.PREAPPROVAL}' OR amount_minor IS NOT NULL)
    )"""
"""A checkout that asks for money, and that its customer may pay now or was told to hold."""


def owners_of_payment(asking: Literal["operations", "checkouts"], *, and_also: str = "") -> str:
    """Finds the owner of payment $1 of merchant $2, other than the operation or checkout $3 of the asking table.

    ``and_also`` is a further condition on the owner's row.

    No record of the gateway's shows the payment of an authorization, or of an approval that charges nothing. Its number
    comes from a report, and could be that of another order. So it counts only within its own order.
    """
    return f"""
    SELECT id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3 AND {OPERATION_OWNS} {and_also}
    UNION ALL
    SELECT id FROM checkouts
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3
      AND ({CHECKOUT_OWNS} OR order_id = (SELECT order_id FROM {asking} WHERE id = $3)) {and_also}
    LIMIT 1"""


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
