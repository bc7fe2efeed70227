"""One order, one line of time: everything that the database knows of it, in the order in which it happened.

Rules:

1. An order belongs to a merchant. Its accounts may have several names, and each name leads to one line of time.
2. What an order leads to is followed: a refund names a payment, a capture an authorization, an installment a plan.
3. A row whose digest is wrong is left out, as everywhere, and an operation with a forged history says so.
4. What names a customer is shown only to roles that may see it.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, CheckoutFilter
from payrelay.core.console.roles import Act, may
from payrelay.core.console.timeline import Moment, Tone, of_checkout, of_notification, of_operation
from payrelay.core.notifications.notification import Notification, NotificationFilter
from payrelay.core.payments.operation import AWAITS_OPERATOR, Operation, OperationFilter, captured_guard
from payrelay.core.payments.sentences import FORGED_SENTENCE
from payrelay.errors import Code, OperationForged, Refusal
from payrelay.flows.console.cases import told_moments
from payrelay.flows.console.cases.parts import CaseParts
from payrelay.flows.console.parts import Actor
from payrelay.store.console.searches import KnownInstallment
from payrelay.store.subscriptions import SubscriptionFilter, SubscriptionSummary

OF_ORDER_MAX: Final = 100
"""Rows of one kind that are read of an order; no order has so many."""
PAYMENTS_MAX: Final = 50
"""Payments of one order whose refunds are looked for."""
_MORE: Final = f"More than {OF_ORDER_MAX} rows of one kind belong to this order; the newest {OF_ORDER_MAX} are shown."


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
    moments: list[Moment]
    customers: list[KnownCustomer]
    hides_customers: bool
    notes: list[str]

    @property
    def awaiting(self) -> list[Operation]:
        """The operations that need a person."""
        return [each for each in self.operations if each.state in AWAITS_OPERATOR]


class _Rows:
    """The rows of one order, each once."""

    def __init__(self, order_id: str) -> None:
        self.order_id = order_id
        self.operations: dict[str, Operation] = {}
        self.checkouts: list[Checkout] = []
        self.notifications: dict[str, Notification] = {}
        self.subscriptions: list[SubscriptionSummary] = []
        self.installments: list[KnownInstallment] = []
        self.notes: list[str] = []

    def add(self, operations: Iterable[Operation], merchants: frozenset[str]) -> None:
        """Adds those operations that belong to the order's merchants."""
        self.operations |= {each.id: each for each in operations if each.merchant in merchants}

    @property
    def payments(self) -> list[str]:
        """The payments that anything of the order names."""
        ids = {each.payment_id for each in self.operations.values()}
        ids |= {each.payment_id for each in self.checkouts}
        ids |= {each.payment_id for each in self.notifications.values()}
        return sorted(each for each in ids if each is not None)


async def show_order(parts: CaseParts, actor: Actor, account: str, order_id: str) -> OneOrder:
    """Shows an order. Raises Refusal (forbidden, not_found); StoreUnavailable.

    Raises Refusal (unavailable) for an unknown order that may be among lost commits.
    """
    actor.require(Act.LOOK)
    rows = _Rows(order_id)
    merchants = await _read(parts, account, rows)
    if not (rows.operations or rows.checkouts or rows.notifications or rows.subscriptions):
        await parts.relay.lost_commits.require_known(None, "order")
        raise Refusal(Code.NOT_FOUND, f"nothing is known of an order {order_id} on the account {account}")
    moments = await _moments(parts, rows, merchants)
    tried = frozenset(each.payment_id for each in rows.installments if each.payment_id is not None)
    sees_customers = actor.operator is None or may(actor.operator.role, Act.LOOK_AT_CUSTOMERS)
    return OneOrder(
        account=account,
        order_id=order_id,
        is_configured=account in parts.relay.accounts,
        operations=sorted(rows.operations.values(), key=lambda each: each.id, reverse=True),
        checkouts=rows.checkouts,
        subscriptions=rows.subscriptions,
        payments=frozenset(rows.payments) | tried,
        moments=sorted(moments, key=lambda each: each.at_ms),
        customers=await _customers(parts, rows) if sees_customers else [],
        hides_customers=not sees_customers,
        notes=rows.notes,
    )


async def _read(parts: CaseParts, account: str, rows: _Rows) -> frozenset[str]:
    """Reads what names the order, and then what that leads to; gives the merchants whose order it is."""
    relay, order_id, limit = parts.relay, rows.order_id, OF_ORDER_MAX
    operations = await relay.journal.list(OperationFilter(order_id=order_id), before=None, limit=limit)
    checkouts = await relay.checkouts.list(CheckoutFilter(order_id=order_id), before=None, limit=limit)
    notifications = await relay.inbox.list(NotificationFilter(order_id=order_id), before=None, limit=limit)
    wanted = SubscriptionFilter(order_id=order_id)
    subscriptions = await relay.subscriptions.list_for_operator(wanted, after=("", ""), limit=limit)
    if limit in {len(operations), len(checkouts), len(notifications), len(subscriptions)}:
        rows.notes.append(_MORE)
    gateway = relay.accounts.get(account)
    named = [each.merchant for each in operations if each.account == account]
    named += [each.merchant for each in checkouts if each.account == account]
    named += [each.merchant for each in notifications if each.account == account]
    named += [each.subscription.merchant for each in subscriptions if each.subscription.account == account]
    merchants = frozenset([*named, *([] if gateway is None else [gateway.merchant])])
    rows.add(operations, merchants)
    rows.checkouts = [each for each in checkouts if each.merchant in merchants]
    rows.notifications = {each.id: each for each in notifications if each.merchant in merchants}
    rows.subscriptions = [each for each in subscriptions if each.subscription.merchant in merchants]
    await _follow(parts, rows, merchants)
    return merchants


async def _follow(parts: CaseParts, rows: _Rows, merchants: frozenset[str]) -> None:
    """Reads what names a payment, an authorization or a subscription of the order, and not the order itself."""
    relay, limit = parts.relay, OF_ORDER_MAX
    plans = {each.subscription.subscription_id for each in rows.subscriptions}
    plans |= {each.subscription_id for each in rows.checkouts if each.subscription_id is not None}
    for subscription_id in sorted(plans)[:PAYMENTS_MAX]:
        wanted = OperationFilter(subscription_id=subscription_id)
        rows.add(await relay.journal.list(wanted, before=None, limit=limit), merchants)
    for operation in list(rows.operations.values()):
        if operation.result_ref is not None:
            subject = f"authorization/{operation.result_ref}"
            for guard in (subject, captured_guard(subject)):
                holder = await relay.journal.find_guard(operation.merchant, guard)
                rows.add([] if holder is None else [holder.operation], merchants)
    payments = rows.payments
    if len(payments) > PAYMENTS_MAX:
        rows.notes.append(f"Of {len(payments)} payments, the refunds of {PAYMENTS_MAX} are shown.")
    for payment_id in payments[:PAYMENTS_MAX]:
        rows.add(await relay.journal.list(OperationFilter(payment_id=payment_id), before=None, limit=limit), merchants)
        wanted_of_payment = NotificationFilter(payment_id=payment_id)
        found = await relay.inbox.list(wanted_of_payment, before=None, limit=limit)
        rows.notifications |= {each.id: each for each in found if each.merchant in merchants}


async def _moments(parts: CaseParts, rows: _Rows, merchants: frozenset[str]) -> list[Moment]:
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
            moments += [] if chargeback is None else [told_moments.of_chargeback(chargeback)]
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


def _subjects(rows: _Rows) -> list[str]:
    """Names the subjects of the events about an order."""
    return [
        *(f"operation:{each}" for each in rows.operations),
        *(f"checkout:{each.id}" for each in rows.checkouts),
        *(f"subscription:{each.subscription.subscription_id}" for each in rows.subscriptions),
        *(f"payment:{each}" for each in rows.payments),
    ]


async def _customers(parts: CaseParts, rows: _Rows) -> list[KnownCustomer]:
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
