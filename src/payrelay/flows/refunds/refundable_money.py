"""Reads what is known of one payment's money: what a refund of it is planned by, and refused by. Asks no gateway."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from payrelay.core.access.bounds import has_operation
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import DoubtKind, Figure, OrderBalance, PaymentBalance
from payrelay.core.orders.refunding import Obstacle, RefundPlan, figures_sentence, payment_in, refusal_sentence
from payrelay.core.payments.operation import Operation
from payrelay.errors import Code, Refusal
from payrelay.flows.order_balance import balance_now
from payrelay.flows.relay import Relay, Request

AFTER_A_LOOK_S: Final = 600
"""Retry-After where a later look decides: the first ones are within minutes, and a second one counts after an hour."""


class RefundableMoney(NamedTuple):
    """What is known of one payment's money: all that is stored of it, and the balance that follows."""

    facts: OrderFacts
    balance: OrderBalance

    @property
    def payment(self) -> PaymentBalance | None:
        """What a refund is planned by; see ``payment_in``."""
        return payment_in(self.balance, self.facts.payment_id or "")

    @property
    def is_recovering(self) -> bool:
        """True while a recovery from lost commits lasts."""
        return any(each.kind is DoubtKind.LOST_COMMITS for each in self.balance.doubts)

    @property
    def is_in_question(self) -> bool:
        """True where the gateway's record showed that the payment went back, and then that it didn't."""
        return self.payment is not None and any(each.kind is DoubtKind.RECEIVED_AGAIN for each in self.payment.doubts)


async def read_money(relay: Relay, merchant: str, payment_id: str, *, but_for: str = "") -> RefundableMoney:
    """Reads what is known of a payment's money; ``but_for`` is an operation that is left out.

    ``payment_id`` has no zeros in front. Raises StoreError.
    """
    facts = (await relay.money.orders.facts_of_payment(merchant, payment_id)).without(but_for)
    return RefundableMoney(facts, await balance_now(relay, facts))


def all_of(money: RefundableMoney) -> str:
    """Tells the figures of a payment to a person, who sees every refund of it."""
    return figures_sentence(money.payment, [each.id for each in money.facts.operations])


def refusal_of(money: RefundableMoney, plan: RefundPlan, request: Request) -> Refusal:
    """Makes the refusal of a refund: in_progress where a later look at the gateway's record decides, else conflict.

    It names the refunds that were made here where they are the caller's own.
    """
    assert money.payment is not None  # noqa: S101, nothing is in the way of what nobody knows
    assert plan.obstacle is not None  # noqa: S101, as the callers ask
    own = frozenset(_own(money.facts.operations, request))
    named = [each.id for each in money.payment.of(Figure.GIVEN_BACK) if each.id in own]
    sentence = refusal_sentence(money.payment, plan.obstacle, own)
    if plan.obstacle is Obstacle.NOT_SEEN_YET:
        return Refusal(Code.IN_PROGRESS, sentence, retry_after_s=AFTER_A_LOOK_S)
    return Refusal(Code.CONFLICT, sentence, operation_id=max(named, default=None))


def _own(operations: Iterable[Operation], request: Request) -> Iterable[str]:
    """Gives the operations that the caller may see; an operator sees all."""
    for each in operations:
        is_own = each.principal == request.principal and has_operation(request.credential.bound, each)
        if is_own or request.operator is not None:
            yield each.id
