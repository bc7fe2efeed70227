"""The context of one notification that is being worked on, and the proof of its payment."""

from dataclasses import dataclass
from typing import Final

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutOutcome, CheckoutState
from payrelay.core.notifications.notification import (
    Notification,
    NotificationContent,
    NotificationKind,
    NotificationReason,
    ReportedStatus,
    payment_shown,
)
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.payment import NoObservation, Observation, Payment, PaymentsSeen
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.flows.checkouts.doubted_payments import may_be_of_charge
from payrelay.flows.order_search import OrderSearch
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resolve import resolve_one
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.hooks import FlowPoint

GOOD: Final = frozenset({ReportedStatus.SUCCEEDED, ReportedStatus.AUTHORIZED})
_KINDS: Final = {
    NotificationKind.PAYMENT: CheckoutKind.PAYMENT,
    NotificationKind.PREAPPROVAL: CheckoutKind.PREAPPROVAL,
    NotificationKind.AUTHORIZATION: CheckoutKind.AUTHORIZATION,
    NotificationKind.RECURRING: CheckoutKind.RECURRING,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class NotificationContext:
    """A notification that is being worked on.

    Attributes:
        relay: gives access to stores, gateways and hooks.
        account: the gateway account that the notification is for.
        search: the search for the order, which all its notifications share.
        notification, content: the stored notification, and the content of its body.
        checkouts: those of its order, the one that holds the order first; empty before they were read.
        is_contested: it may be about checkouts of several principals that don't act for each other.
    """

    relay: Relay
    account: Gateway
    search: OrderSearch
    notification: Notification
    content: NotificationContent
    checkouts: tuple[Checkout, ...] = ()
    is_contested: bool = False

    @property
    def first_opened_ms(self) -> int | None:
        """When the first checkout of the order was opened; None where there is none."""
        return min((each.created_at_ms for each in self.checkouts), default=None)

    async def inquire(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> Observation:
        """Gives the payments that the gateway shows, by one call for all that waits for the order.

        Gives NoObservation where the gateway can't be asked, or not before the order's next slot. Raises StoreError.
        """
        notification = self.notification
        return await self.search.inquire(call, for_id=notification.id, since_ms=notification.received_at_ms)

    async def inquire_about(self, operation: Operation) -> bool:
        """Makes a status inquiry about an operation of the order out of turn; False where the order has no slot for it.

        The operation's own schedule brings its next inquiry in any case. Raises StoreError.
        """
        if not await self.search.has_slot():
            return False
        await resolve_one(self.relay, operation, is_urgent=True, inquire=self.inquire)
        return True

    async def accepts_token(self, kind: NotificationKind, token: str, *, in_place: bool = False) -> bool:
        """Accepts a token for the order, once for each kind; False where another token was accepted before.

        With ``in_place`` it takes the place of that one. May be repeated. Raises StoreError.
        """
        hooks, notification = self.relay.hooks, self.notification
        with hooks.passing(FlowPoint.ACCEPTING_TOKEN, FlowPoint.ACCEPTED_TOKEN, notification.id):
            now_ms = self.relay.clock.now_ms()
            return await self.relay.inbox.accept_token(notification, kind, token, at_ms=now_ms, in_place=in_place)

    async def reason_of_second(self, payment_id: str | None) -> NotificationReason:
        """Gives the reason of a payment beside the order's; where it was told as paid again, nobody is called twice.

        Raises StoreError.
        """
        merchant, order_id = self.account.merchant, self.content.order_id
        is_told = await self.relay.money.paid_again.is_told(merchant, order_id, payment_id or "")
        return NotificationReason.PAID_AGAIN if is_told else NotificationReason.SECOND_PAYMENT

    @property
    def checkout_outcome(self) -> CheckoutOutcome:
        """The outcome "completed" for a checkout of the order, with what the notification reports.

        The kind of a reported failure is known for a subscription only: a failed approval, authorization and payment
        look alike.
        """
        has_kind = self.content.reported in GOOD or self.content.kind is NotificationKind.RECURRING
        return CheckoutOutcome(
            account=self.account.name,
            merchant=self.account.merchant,
            order_id=self.content.order_id,
            outcome=CheckoutState.COMPLETED,
            payment_id=self.content.payment_id,
            kind=_KINDS.get(self.content.kind) if has_kind else None,
            # A missing amount counts as 0, which differs from every requested amount.
            amount_minor=self.content.amount_minor or 0,
            currency=self.content.currency,
        )


async def shown_payment(context: NotificationContext) -> Payment | NotificationReason:
    """Searches the order at the gateway for the notification's payment; returns it, or the reason why none is proved.

    Raises StoreError.
    """
    return await _shown(context, PaymentsOfOrder(order_id=context.content.order_id))


async def shown_payment_of(context: NotificationContext, checkout: Checkout) -> Payment | NotificationReason:
    """Searches for the notification's payment as ``shown_payment``, as the payment of a checkout that asks for one.

    MAY_BE_LOST where a charge that is lost may have made it: both have the same signature. Raises StoreError.
    """
    shown = await shown_payment(context)
    if isinstance(shown, Payment) and await may_be_of_charge(context.relay, checkout, shown):
        return NotificationReason.MAY_BE_LOST
    return shown


async def shown_installment(context: NotificationContext) -> Payment | NotificationReason:
    """Searches the subscription at the gateway for the notification's payment; returns it, or why none is proved.

    A notification without a subscription is searched for by its order. The subscription's id is not signed, and two
    subscriptions of one order may have payments that look alike. Raises StoreError.
    """
    if context.content.subscription_id is None:
        return await shown_payment(context)
    return await _shown(context, PaymentsOfSubscription(subscription_id=int(context.content.subscription_id)))


async def _shown(
    context: NotificationContext, call: PaymentsOfOrder | PaymentsOfSubscription
) -> Payment | NotificationReason:
    relay, account, content = context.relay, context.account, context.content
    observation = await context.inquire(call)
    if isinstance(observation, NoObservation):
        return NotificationReason.UNSEEN
    if not isinstance(observation, PaymentsSeen):
        return NotificationReason.NOT_SHOWN
    owners = {
        payment.payment_id
        for payment in observation.payments
        if await relay.inbox.owner_of_payment(account.merchant, payment.payment_id) is not None
    }
    payment = payment_shown(content, observation.payments, frozenset(owners))
    if payment is None:
        return NotificationReason.NOT_SHOWN
    # Order ids are not unique at the gateway: a payment from before the first checkout pays for none of them.
    opened_ms = context.first_opened_ms
    is_earlier = payment.at_ms is not None and opened_ms is not None and payment.at_ms < opened_ms - TOLERANCE_MS
    return NotificationReason.EARLIER_PAYMENT if is_earlier else payment
