"""One notification that is being worked on, and how its payment is proved."""

from dataclasses import dataclass
from typing import Final

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, Settled
from payrelay.core.notifications.notification import News, NewsKind, Notification, NotifiedStatus, Why, payment_shown
from payrelay.core.payments.payment import Payment, PaymentsSeen, Sight, Unseen
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.hooks import Passage

GOOD: Final = frozenset({NotifiedStatus.SUCCEEDED, NotifiedStatus.AUTHORIZED})
_KINDS: Final = {
    NewsKind.PAYMENT: CheckoutKind.PAYMENT,
    NewsKind.PREAPPROVAL: CheckoutKind.PREAPPROVAL,
    NewsKind.AUTHORIZATION: CheckoutKind.AUTHORIZATION,
    NewsKind.RECURRING: CheckoutKind.RECURRING,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A notification that is being worked on.

    Attributes:
        relay: the rooms.
        account: that it came for.
        notification, news: what came, and what it says.
        checkouts: those of its order, the one that holds it first; none before they were read.
    """

    relay: Relay
    account: Gateway
    notification: Notification
    news: News
    checkouts: tuple[Checkout, ...] = ()

    @property
    def asked_since_ms(self) -> int | None:
        """Tells when a customer was first asked for its order; None where nobody was."""
        return min((each.created_at_ms for each in self.checkouts), default=None)

    async def observe(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> Sight:
        """Asks the gateway which payments there are; waits for a place in its budget as long as an effect may."""
        until_s = self.relay.clock.boot_s() + self.account.queue_s
        self.relay.watch.passed(Passage.ASKING, self.notification.id)
        sight = await self.account.observe(call, until_s=until_s)
        self.relay.watch.passed(Passage.ASKED, self.notification.id)
        return sight

    async def accepts_token(self, kind: NewsKind, token: str) -> bool:
        """Accepts a token for the order, once for each kind; False where it was another one before.

        May be repeated. Raises StoreError.
        """
        watch, notification = self.relay.watch, self.notification
        watch.passed(Passage.BELIEVING, notification.id)
        is_accepted = await self.relay.inbox.accept_token(notification, kind, token, at_ms=self.relay.clock.now_ms())
        watch.passed(Passage.BELIEVED, notification.id)
        return is_accepted

    @property
    def settled(self) -> Settled:
        """The news as a checkout is told of them, completed.

        Of what failed nothing tells an approval or a hold from a payment.
        """
        is_told = self.news.told in GOOD or self.news.kind is NewsKind.RECURRING
        return Settled(
            account=self.account.name,
            merchant=self.account.merchant,
            order_id=self.news.order_id,
            outcome=CheckoutState.COMPLETED,
            payment_id=self.news.payment_id,
            kind=_KINDS.get(self.news.kind) if is_told else None,
            # An amount that is none of ours, such as nothing at all, is another one than any that was asked for.
            amount_minor=self.news.amount_minor or 0,
            currency=self.news.currency,
        )


async def shown_payment(arrival: Arrival) -> Payment | Why:
    """Searches the order at the gateway for the payment that the news are of; gives it, or why it is no proof."""
    return await _shown(arrival, PaymentsOfOrder(order_id=arrival.news.order_id))


async def shown_installment(arrival: Arrival) -> Payment | Why:
    """The same of a subscription's payment, which must be shown with its subscription.

    Which subscription it is, is not signed, and two of one order may have payments that look alike.
    """
    if arrival.news.subscription_id is None:
        return await shown_payment(arrival)
    return await _shown(arrival, PaymentsOfSubscription(subscription_id=int(arrival.news.subscription_id)))


async def _shown(arrival: Arrival, call: PaymentsOfOrder | PaymentsOfSubscription) -> Payment | Why:
    relay, account, news = arrival.relay, arrival.account, arrival.news
    asked_ms = relay.clock.now_ms()
    sight = await arrival.observe(call)
    if isinstance(sight, Unseen):
        return Why.UNSEEN
    if not isinstance(sight, PaymentsSeen):
        return Why.NOT_SHOWN
    await relay.readings.note_payments(account.merchant, sight.payments, seen_at_ms=asked_ms)
    owners = {
        payment.payment_id
        for payment in sight.payments
        if await relay.inbox.owner_of_payment(account.merchant, payment.payment_id) is not None
    }
    payment = payment_shown(news, sight.payments, frozenset(owners))
    if payment is None:
        return Why.NOT_SHOWN
    # Order ids are not unique at the gateway: an old payment under the same one pays for nothing that is asked now.
    is_older = None not in (payment.at_ms, arrival.asked_since_ms) and (
        (payment.at_ms or 0) < (arrival.asked_since_ms or 0) - TOLERANCE_MS
    )
    return Why.EARLIER_PAYMENT if is_older else payment
