"""One order, one line of time: everything that the database knows of it, in the order in which it happened.

Rules:

1. An order belongs to a merchant. Its accounts may have several names, and each name leads to one line of time.
2. What an order leads to is followed: a refund names a payment, a capture an authorization, an installment a plan.
3. A row whose digest is wrong is left out, as everywhere, and an operation with a forged history says so.
4. What a role doesn't see (``core.console.roles``) is left out.
"""

import msgspec

from payrelay.console.flows.cases.order_moments import moments_of
from payrelay.console.flows.cases.order_rows import OrderRows, read_order_rows
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.rules.timeline import Moment
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.operators.roles import Act, Field
from payrelay.core.payments.operation import AWAITS_OPERATOR, Operation
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.parts import Actor
from payrelay.flows.operators.shown import facts_for
from payrelay.flows.orders.order_money import OrderMoney, read_order_money
from payrelay.store.subscriptions import SubscriptionSummary


class KnownCustomer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a customer, as far as the actor sees it: names and values."""

    rows: tuple[tuple[str, str], ...] = ()


class OneOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order with its line of time.

    Attributes:
        account: the name under which it was asked for.
        order_id: of the caller's order.
        is_configured: whether the account is configured still, so that the gateway can be asked.
        operations, checkouts, subscriptions: as they are now, newest first.
        payments: the ids of the payments that something here names.
        money: what its money is.
        moments: what happened, the oldest first.
        customers: what is known of its customers, one list each; empty where the actor doesn't see it.
        hides_customers: whether the actor doesn't see it.
        notes: sentences about what is not shown.
    """

    account: str
    order_id: str
    is_configured: bool
    operations: list[Operation]
    checkouts: list[Checkout]
    subscriptions: list[SubscriptionSummary]
    payments: frozenset[str]
    money: OrderMoney
    moments: list[Moment]
    customers: list[KnownCustomer]
    hides_customers: bool
    notes: list[str]

    @property
    def awaiting(self) -> list[Operation]:
        """The operations that need a person."""
        return [each for each in self.operations if each.state in AWAITS_OPERATOR]


async def show_order(parts: CaseParts, actor: Actor, account: str, order_id: str) -> OneOrder:
    """Shows an order. Raises Refusal (forbidden, not_found); StoreUnavailable.

    Raises Refusal (unavailable) for an unknown order that may be among lost commits.
    """
    actor.require(Act.LOOK)
    rows = OrderRows(order_id)
    merchants = await read_order_rows(parts, account, rows)
    money = await read_order_money(parts.relay, merchants, order_id)
    is_named = rows.operations or rows.checkouts or rows.notifications or rows.subscriptions
    if not (is_named or money.is_known):
        await parts.relay.database.lost_commits.require_known(None, "order")
        raise Refusal(Code.NOT_FOUND, f"nothing is known of an order {order_id} on the account {account}")
    moments = await moments_of(parts, actor, rows, merchants, money)
    tried = frozenset(each.payment_id for each in rows.installments if each.payment_id is not None)
    return OneOrder(
        account=account,
        order_id=order_id,
        is_configured=account in parts.relay.accounts,
        operations=sorted(rows.operations.values(), key=lambda each: each.id, reverse=True),
        checkouts=rows.checkouts,
        subscriptions=rows.subscriptions,
        payments=frozenset(rows.payments) | tried | money.numbers,
        money=money,
        moments=sorted(moments, key=lambda each: each.at_ms),
        customers=await _customers(parts, actor, rows),
        hides_customers=not actor.sees(Field.CUSTOMER),
        notes=rows.notes,
    )


async def _customers(parts: CaseParts, actor: Actor, rows: OrderRows) -> list[KnownCustomer]:
    ids = {each.customer_id for each in rows.operations.values()} | {each.customer_id for each in rows.checkouts}
    known = []
    for customer_id in sorted(each for each in ids if each is not None):
        customer = await parts.relay.customers.get(customer_id)
        if customer is not None:
            known.append(
                facts_for(
                    actor,
                    (Field.CUSTOMER, "Customer", customer.id),
                    (Field.CUSTOMER, "State", customer.state),
                    (Field.CUSTOMER, "Client's reference", customer.reference),
                    (Field.CUSTOMER, "Label", customer.label),
                    (Field.CARD, "Card", customer.card_no_masked),
                    (Field.CARD, "Method", customer.method),
                    (Field.CARD, "Card ends", customer.card_expiry),
                )
            )
    references = {await parts.relay.checkouts.reference_of(each) for each in rows.checkouts} - {None}
    known += [
        facts_for(actor, (Field.CUSTOMER, "Reference of the checkout", each)) for each in sorted(map(str, references))
    ]
    return [KnownCustomer(rows=shown) for shown in known if shown]
