"""Whom a payment belongs to: said once, in the core's words, for every query that asks it."""

# ruff: noqa: S608 - what is put into the texts are our own states, kinds and tables; values are always parameters

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Literal

from payrelay.core.payments.operation import OPEN_STATES, PAYMENT_KINDS, WITHOUT_EFFECT, State


def listed(members: Iterable[StrEnum]) -> str:
    """Writes states or kinds as the right side of an IN."""
    return "(" + ", ".join(f"'{member}'" for member in sorted(members)) + ")"


TOOK_NO_EFFECT: Final = f"state IN {listed(WITHOUT_EFFECT)}"
"""An operation to which no payment can belong, nor a refund, as it stands."""

WAS_NOT_EXECUTED: Final = f"state IN {listed(WITHOUT_EFFECT - {State.FAILED})}"
"""The same, but for what was only taken for failed, and may show itself after all."""

IS_OPEN: Final = f"state IN {listed(OPEN_STATES)}"
"""An operation of which nobody knows yet what became of it."""

IS_OPEN_OR_FAILED: Final = f"state IN {listed(OPEN_STATES | {State.FAILED})}"
"""The same, and what was only taken for failed."""

OPERATION_OWNS: Final = f"kind IN {listed(PAYMENT_KINDS)} AND NOT {TOOK_NO_EFFECT}"
"""An operation to which the payment belongs that it names: a refund names one too, and owns none."""

_CHECKOUT_OWNS: Final = "kind IN ('payment', 'recurring') OR kind = 'preapproval' AND amount_minor IS NOT NULL"
"""A checkout whose payment the gateway shows."""


def owners_of_payment(asking: Literal["operations", "checkouts"]) -> str:
    """Finds whom payment $1 of merchant $2 belongs to beside the operation or checkout $3 that asks, of this table.

    The payment of a hold, or of an approval that takes nothing, is shown by nothing: it is what somebody said, and
    could be that of another order. So it counts on its own order alone.
    """
    return f"""
    SELECT id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3 AND {OPERATION_OWNS}
    UNION ALL
    SELECT id FROM checkouts
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3
      AND ({_CHECKOUT_OWNS} OR order_id = (SELECT order_id FROM {asking} WHERE id = $3))
    LIMIT 1"""
