"""One order, one line of time: everything that the database knows of it, in the order in which it happened.

Rules:

1. An order belongs to a merchant. Its accounts may have several names, and each name leads to one line of time.
2. What an order leads to is followed: a refund names a payment, a capture an authorization, an installment a plan.
3. A row whose digest is wrong is left out, as everywhere, and an operation with a forged history says so.
4. What names a customer is shown only to roles that may see it.
"""

import msgspec

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.console.roles import Act, may
from payrelay.core.console.timeline import Moment, Tone, of_checkout, of_notification, of_operation
from payrelay.core.payments.operation import AWAITS_OPERATOR, Operation
from payrelay.core.payments.sentences import FORGED_SENTENCE
from payrelay.errors import Code, OperationForged, Refusal
from payrelay.flows.console.cases import told_moments
from payrelay.flows.console.cases.order_rows import OrderRows, read_order_rows
from payrelay.flows.console.cases.parts import CaseParts
from payrelay.flows.console.parts import Actor
from payrelay.flows.orders.order_money import OrderMoney, read_order_money
from payrelay.store.subscriptions import SubscriptionSummary


class KnownCustomer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a customer, for roles that may see it: names and values."""

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
        customers: what is known of its customers, one list each; empty for roles that may not see it.
        hides_customers: whether the role may not see them.
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
        await parts.relay.lost_commits.require_known(None, "order")
        raise Refusal(Code.NOT_FOUND, f"nothing is known of an order {order_id} on the account {account}")
    moments = await _moments(parts, rows, merchants, money)
    tried = frozenset(each.payment_id for each in rows.installments if each.payment_id is not None)
    sees_customers = actor.operator is None or may(actor.operator.role, Act.LOOK_AT_CUSTOMERS)
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
        customers=await _customers(parts, rows) if sees_customers else [],
        hides_customers=not sees_customers,
        notes=rows.notes,
    )


async def _moments(parts: CaseParts, rows: OrderRows, merchants: frozenset[str], money: OrderMoney) -> list[Moment]:
    moments: list[Moment] = []
    for checkout in rows.checkouts:
        moments += of_checkout(checkout)
    for operation in rows.operations.values():
        moments += await _of_operation(parts, operation)
    for notification in rows.notifications.values():
        moments += of_notification(notification)
    for summary in rows.subscriptions:
        subscription = summary.subscription
        tried = await parts.searches.installments(subscription.merchant, subscription.subscription_id)
        rows.installments += tried
        moments += told_moments.of_subscription(summary, tried)
    for merchant in sorted(merchants):
        for payment_id in rows.payments:
            chargeback = await parts.relay.chargebacks.of_payment(merchant, payment_id)
            is_won = payment_id in money.won
            moments += [] if chargeback is None else [told_moments.of_chargeback(chargeback, is_won=is_won)]
        told = await parts.told.about(merchant, _subjects(rows))
        moments += told_moments.of_events(told.events, told.deliveries)
    return moments


async def _of_operation(parts: CaseParts, operation: Operation) -> list[Moment]:
    try:
        return of_operation(operation, await parts.relay.journal.history(operation.id))
    except OperationForged:
        return [
            Moment(
                at_ms=operation.created_at_ms,
                title=f"Operation {operation.id}",
                text=FORGED_SENTENCE,
                tone=Tone.DOUBT,
                link=operation.id,
            )
        ]


def _subjects(rows: OrderRows) -> list[str]:
    """Names the subjects of the events about an order."""
    return [
        *(f"operation:{each}" for each in rows.operations),
        *(f"checkout:{each.id}" for each in rows.checkouts),
        *(f"subscription:{each.subscription.subscription_id}" for each in rows.subscriptions),
        *(f"payment:{each}" for each in rows.payments),
    ]


async def _customers(parts: CaseParts, rows: OrderRows) -> list[KnownCustomer]:
    ids = {each.customer_id for each in rows.operations.values()} | {each.customer_id for each in rows.checkouts}
    known = []
    for customer_id in sorted(each for each in ids if each is not None):
        customer = await parts.relay.customers.get(customer_id)
        if customer is not None:
            shown = (
                ("Customer", customer.id),
                ("State", customer.state),
                ("Client's reference", customer.reference),
                ("Label", customer.label),
                ("Card", customer.card_no_masked),
                ("Method", customer.method),
                ("Card ends", customer.card_expiry),
            )
            known.append(KnownCustomer(rows=tuple((name, str(value)) for name, value in shown if value is not None)))
    references = {await parts.relay.checkouts.reference_of(each) for each in rows.checkouts} - {None}
    known += [KnownCustomer(rows=(("Reference of the checkout", str(each)),)) for each in sorted(map(str, references))]
    return known
