"""Turns whatever was found into a hit: one line of the page that shows what a search found."""

from payrelay.console.rules.finding import Hit, Thing
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.customers.customer import Customer
from payrelay.core.notifications.notification import Notification
from payrelay.core.payments.operation import Operation
from payrelay.store.subscriptions import SubscriptionSummary


def of_operation(operation: Operation, found_by: str = "") -> Hit:
    """Gives the hit for an operation."""
    return Hit(
        noun=Thing.OPERATION,
        id=operation.id,
        found_by=found_by,
        account=operation.account,
        at_ms=operation.created_at_ms,
        kind=operation.kind,
        state=operation.state,
        order_id=operation.order_id,
        payment_id=operation.payment_id,
        subscription_id=operation.subscription_id,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
    )


def of_checkout(checkout: Checkout, found_by: str = "") -> Hit:
    """Gives the hit for a checkout."""
    return Hit(
        noun=Thing.CHECKOUT,
        id=checkout.id,
        found_by=found_by,
        account=checkout.account,
        at_ms=checkout.created_at_ms,
        kind=checkout.kind,
        state=checkout.state,
        order_id=checkout.order_id,
        payment_id=checkout.payment_id,
        subscription_id=checkout.subscription_id,
        amount_minor=checkout.amount_minor,
        currency=checkout.currency,
    )


def of_notification(notification: Notification, found_by: str) -> Hit:
    """Gives the hit for a notification."""
    return Hit(
        noun=Thing.NOTIFICATION,
        id=notification.id,
        found_by=found_by,
        account=notification.account,
        at_ms=notification.received_at_ms,
        kind=notification.kind,
        state=notification.state,
        order_id=notification.order_id,
        payment_id=notification.payment_id,
        subscription_id=notification.subscription_id,
        amount_minor=notification.amount_minor,
        currency=notification.currency,
    )


def of_subscription(summary: SubscriptionSummary, found_by: str) -> Hit:
    """Gives the hit for a subscription; its time is that of the latest report about it."""
    subscription = summary.subscription
    return Hit(
        noun=Thing.SUBSCRIPTION,
        id=subscription.subscription_id,
        found_by=found_by,
        account=subscription.account,
        at_ms=subscription.as_of_ms,
        state=subscription.state,
        order_id=subscription.order_id,
        subscription_id=subscription.subscription_id,
        amount_minor=subscription.amount_minor,
        currency=subscription.currency,
    )


def of_customer(customer: Customer, found_by: str) -> Hit:
    """Gives the hit for a stored customer: its handle and its first order, and nothing that names the person."""
    return Hit(
        noun=Thing.CUSTOMER,
        id=customer.id,
        found_by=found_by,
        account=customer.account,
        at_ms=customer.created_at_ms,
        state=customer.state,
        order_id=customer.order_id,
        payment_id=customer.payment_id,
    )
