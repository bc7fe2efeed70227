"""The owner of a payment: defined once, in the core's words, for every query that asks for it."""

# ruff: noqa: S608 - only our own states, kinds and tables are put into the texts; values are always parameters

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Literal

from payrelay.core.payments.operation import OPEN_STATES, PAYMENT_KINDS, WITHOUT_EFFECT, State


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
