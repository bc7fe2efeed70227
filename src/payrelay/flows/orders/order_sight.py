"""What of an order's payments, operations and pages a caller may read. It is what the routes of their own show.

A payment that is known to be another principal's is hidden, and so is one of another customer from a credential of one
customer: two customers may have tried to pay one order.
"""

from typing import NamedTuple

from payrelay.core.access.bounds import is_personal
from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.checkout import Checkout, is_within
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import FigureSource, OrderBalance, PaymentBalance
from payrelay.core.orders.joining import checkouts_of, operations_of
from payrelay.core.payments.operation import Operation
from payrelay.flows.access.ownership import foreign_among
from payrelay.flows.access.shown_payments import is_of_other_customer
from payrelay.flows.payments.find_operations import may_see
from payrelay.flows.relay import Relay, Request


class Sight(NamedTuple):
    """What a caller may read of an order.

    Attributes:
        operations, checkouts: those that it may read, by their ids.
        operations_all, checkouts_all: how many there are.
        hidden: the payments that it may not read, by what a balance calls them.
        is_personal: whether its credential is of one customer.
    """

    operations: dict[str, Operation]
    checkouts: dict[str, Checkout]
    operations_all: int
    checkouts_all: int
    hidden: frozenset[str]
    is_personal: bool

    def has(self, id_: str) -> bool:
        """Tells whether the caller may read an operation or a page."""
        return id_ in self.operations or id_ in self.checkouts


async def sight_of(
    relay: Relay, request: Request, facts: OrderFacts, balance: OrderBalance, owned: dict[str, frozenset[str]]
) -> Sight:
    """Says what a caller may read of an order; ``owned`` has the owners of payments by their numbers.

    Raises StoreError.
    """
    bound, scopes, hash_of = request.credential.bound, request.credential.scopes, relay.checkouts.reference_hash
    operations, checkouts = operations_of(facts), checkouts_of(facts)
    seen = [each for each in operations if Scope.OPERATIONS_READ in scopes and may_see(request, each)]
    pages = [
        each
        for each in checkouts
        if Scope.CHECKOUTS_READ in scopes
        and (each.account, each.principal) == (request.account, request.principal)
        and is_within(each, bound, hash_of)
    ]
    makers = {each.id: _makers(each, facts) for each in balance.payments}
    owners = {id_: frozenset(each.principal for each in made_by) for id_, made_by in makers.items() if made_by}
    hidden = await foreign_among(relay, request, owners | owned)
    if bound is not None and is_personal(bound):
        hidden |= {
            id_ for id_, made_by in makers.items() if any(is_of_other_customer(relay, each, bound) for each in made_by)
        }
    return Sight(
        operations={each.id: each for each in seen},
        checkouts={each.id: each for each in pages},
        operations_all=len(operations),
        checkouts_all=len(checkouts),
        hidden=hidden,
        is_personal=bound is not None and is_personal(bound),
    )


def _makers(payment: PaymentBalance, facts: OrderFacts) -> list[Operation | Checkout]:
    """Gives the operations and pages that a payment comes from; of an installment the page that began its plan."""
    ids = {each.id for each in payment.origins}
    plans = {each.id.partition("/")[0] for each in payment.origins if each.source is FigureSource.INSTALLMENT}
    made_by: list[Operation | Checkout] = [each for each in facts.operations if each.id in ids]
    made_by += [each for each in facts.checkouts if each.id in ids or each.subscription_id in plans]
    return made_by
