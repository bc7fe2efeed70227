"""Reads what belongs to one order: rows of every noun that name it, and those that these lead to."""

from collections.abc import Iterable
from typing import Final

from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.store.searches import KnownInstallment
from payrelay.core.checkouts.checkout import Checkout, CheckoutFilter
from payrelay.core.notifications.notification import Notification, NotificationFilter
from payrelay.core.payments.operation import Operation, OperationFilter, captured_guard
from payrelay.store.subscriptions import SubscriptionFilter, SubscriptionSummary

OF_ORDER_MAX: Final = 100
"""Rows of one kind that are read of an order; no order has so many."""
PAYMENTS_MAX: Final = 50
"""Payments of one order whose refunds are looked for."""
_MORE: Final = f"More than {OF_ORDER_MAX} rows of one kind belong to this order; the newest {OF_ORDER_MAX} are shown."


class OrderRows:
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


async def read_order_rows(parts: CaseParts, account: str, rows: OrderRows) -> frozenset[str]:
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


async def _follow(parts: CaseParts, rows: OrderRows, merchants: frozenset[str]) -> None:
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
