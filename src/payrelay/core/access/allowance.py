"""What a bound credential may pay: the kind, the exact amount and currency, and how many payments of its order.

Rules:

1. The shop's server names what is paid. An app that asks for anything else is refused, for less too.
2. Only where the server says so in a word of its own is the amount open: then the app chooses it.
3. How many payments an order has is counted over all of them (``core.checkouts.counted_payments``), not by token.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from payrelay.core.money import decimal_text
from payrelay.errors import Code, Refusal

PAYMENTS_MAX: Final = 100
"""The most payments of one order that a token may name: more than any order has."""

PaymentKind: TypeAlias = Literal["payment", "preapproval", "recurring", "authorization"]
"""What a customer is asked for, in the words of ``core.checkouts.hosted_payment.CheckoutKind``."""


class PlanTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The plan of a subscription: how often it is charged, for how long, and what the first payment adds.

    ``startup_fee_minor`` is in hundredths; below 0 it is subtracted, and None where there is none.
    """

    recurrence: str
    duration: str
    startup_fee_minor: int | None = None


class Allowance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a bound credential may pay for its order.

    Attributes:
        kind: what the customer is asked for.
        amount_minor: the exact amount in hundredths; None where it is open, or where a preapproval charges nothing.
        is_open: the app chooses the amount, and of a subscription also the plan.
        amount_max_minor: the largest amount that the app may choose; None for no limit but the issuing key's.
        currency: the only currency.
        payments_max: how many payments the order may have, whoever makes them.
        plan: of a subscription whose amount isn't open; else None.
    """

    kind: PaymentKind = "payment"
    amount_minor: int | None = None
    is_open: bool = False
    amount_max_minor: int | None = None
    currency: str
    payments_max: int = 1
    plan: PlanTerms | None = None

    @property
    def is_consistent(self) -> bool:
        """False where the members contradict each other, or are out of range."""
        is_exact = self.amount_minor is not None
        charges_nothing = self.kind == "preapproval" and not is_exact and not self.is_open
        has_one_amount = is_exact + self.is_open + charges_nothing == 1
        return (
            has_one_amount
            and all(amount is None or amount > 0 for amount in (self.amount_minor, self.amount_max_minor))
            and (self.amount_max_minor is None or self.is_open)
            and (self.plan is not None) == (self.kind == "recurring" and is_exact)
            and 1 <= self.payments_max <= PAYMENTS_MAX
        )


class AskedPayment(msgspec.Struct, frozen=True, kw_only=True):
    """What an app asks to pay.

    Attributes:
        kind: what the customer is asked for.
        amount_minor: in hundredths; None for a preapproval that charges nothing.
        currency: of the amount.
        plan: of a subscription, else None.
        has_more_terms: it names further terms of a plan, such as the day of the first payment.
    """

    kind: PaymentKind
    amount_minor: int | None
    currency: str
    plan: PlanTerms | None = None
    has_more_terms: bool = False


def require_allowed(allowance: Allowance | None, asked: AskedPayment) -> Allowance:
    """Gives the allowance; raises Refusal (forbidden), saying what is allowed, where it doesn't cover what is asked.

    ``amount_max_minor`` is not compared: it is part of the credential's own limit
    (``core.access.credential.require_amount``).
    """
    if allowance is None:
        raise Refusal(Code.FORBIDDEN, "the token names no amount to pay")
    if allowance.kind != asked.kind:
        raise Refusal(Code.FORBIDDEN, f"the token is for the type {allowance.kind}, not {asked.kind}")
    if allowance.currency != asked.currency:
        raise Refusal(Code.FORBIDDEN, f"the token may pay in {allowance.currency} only")
    if allowance.is_open:
        return allowance
    if asked.amount_minor != allowance.amount_minor:
        exact = "nothing now" if allowance.amount_minor is None else f"exactly {decimal_text(allowance.amount_minor)}"
        raise Refusal(Code.FORBIDDEN, f"the token is for {exact}")
    if asked.plan != allowance.plan or asked.has_more_terms:
        raise Refusal(Code.FORBIDDEN, "the token is for another plan")
    return allowance
