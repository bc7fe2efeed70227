"""One notification that is being worked on, and how its payment is proved."""

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
from payrelay.core.payments.payment import NoObservation, Observation, Payment, PaymentsSeen
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.flows.relay import Relay
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
        relay: the rooms.
        account: that it came for.
        notification, content: what came, and what it says.
        checkouts: those of its order, the one that holds it first; none before they were read.
    """

    relay: Relay
    account: Gateway
    notification: Notification
    content: NotificationContent
    checkouts: tuple[Checkout, ...] = ()

    @property
    def asked_since_ms(self) -> int | None:
        """Tells when a customer was first asked for its order; None where nobody was."""
        return min((each.created_at_ms for each in self.checkouts), default=None)

    async def inquire(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> Observation:
        """Asks the gateway which payments there are; waits for a place in its budget as long as an effect may."""
        until_s = self.relay.clock.boot_s() + self.account.queue_s
        self.relay.hooks.passed(FlowPoint.INQUIRING, self.notification.id)
        observation = await self.account.inquire(call, until_s=until_s)
        self.relay.hooks.passed(FlowPoint.INQUIRED, self.notification.id)
        return observation

    async def accepts_token(self, kind: NotificationKind, token: str) -> bool:
        """Accepts a token for the order, once for each kind; False where it was another one before.

        May be repeated. Raises StoreError.
        """
        hooks, notification = self.relay.hooks, self.notification
        hooks.passed(FlowPoint.ACCEPTING_TOKEN, notification.id)
        is_accepted = await self.relay.inbox.accept_token(notification, kind, token, at_ms=self.relay.clock.now_ms())
        hooks.passed(FlowPoint.ACCEPTED_TOKEN, notification.id)
        return is_accepted

    @property
    def settled(self) -> CheckoutOutcome:
        """The news as a checkout is told of them, completed.

        Of what failed nothing tells an approval or a hold from a payment.
        """
        is_told = self.content.reported in GOOD or self.content.kind is NotificationKind.RECURRING
        return CheckoutOutcome(
            account=self.account.name,
            merchant=self.account.merchant,
            order_id=self.content.order_id,
            outcome=CheckoutState.COMPLETED,
            payment_id=self.content.payment_id,
            kind=_KINDS.get(self.content.kind) if is_told else None,
            # An amount that is none of ours, such as nothing at all, is another one than any that was asked for.
            amount_minor=self.content.amount_minor or 0,
            currency=self.content.currency,
        )


async def shown_payment(context: NotificationContext) -> Payment | NotificationReason:
    """Searches the order at the gateway for the payment that the news are of; gives it, or why it is no proof."""
    return await _shown(context, PaymentsOfOrder(order_id=context.content.order_id))


async def shown_installment(context: NotificationContext) -> Payment | NotificationReason:
    """The same of a subscription's payment, which must be shown with its subscription.

    Which subscription it is, is not signed, and two of one order may have payments that look alike.
    """
    if context.content.subscription_id is None:
        return await shown_payment(context)
    return await _shown(context, PaymentsOfSubscription(subscription_id=int(context.content.subscription_id)))


async def _shown(
    context: NotificationContext, call: PaymentsOfOrder | PaymentsOfSubscription
) -> Payment | NotificationReason:
    relay, account, content = context.relay, context.account, context.content
    asked_ms = relay.clock.now_ms()
    observation = await context.inquire(call)
    if isinstance(observation, NoObservation):
        return NotificationReason.UNSEEN
    if not isinstance(observation, PaymentsSeen):
        return NotificationReason.NOT_SHOWN
    await relay.read_cache.note_payments(account.merchant, observation.payments, seen_at_ms=asked_ms)
    owners = {
        payment.payment_id
        for payment in observation.payments
        if await relay.inbox.owner_of_payment(account.merchant, payment.payment_id) is not None
    }
    payment = payment_shown(content, observation.payments, frozenset(owners))
    if payment is None:
        return NotificationReason.NOT_SHOWN
    # Order ids are not unique at the gateway: an old payment under the same one pays for nothing that is asked now.
    is_older = None not in (payment.at_ms, context.asked_since_ms) and (
        (payment.at_ms or 0) < (context.asked_since_ms or 0) - TOLERANCE_MS
    )
    return NotificationReason.EARLIER_PAYMENT if is_older else payment
