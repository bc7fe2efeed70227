"""One notification that is being worked on, and how its payment is proved."""

from dataclasses import dataclass

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.checkouts import CheckoutState, Settled
from payrelay.core.notifications import News, Notification, Why, payment_shown
from payrelay.core.payments import Payment, Seen, Unseen
from payrelay.gateways.payhere.client import PayHere
from payrelay.operations.relay import Relay
from payrelay.store.inbox import Inbox


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A notification that is being worked on: the rooms, the account that it came for, and what it says."""

    relay: Relay
    inbox: Inbox
    account: PayHere
    notification: Notification
    news: News

    @property
    def settled(self) -> Settled:
        """The news as a checkout is told of them, completed; without the payment, which is to be proved."""
        return Settled(
            account=self.account.name,
            merchant=self.account.merchant,
            order_id=self.news.order_id,
            outcome=CheckoutState.COMPLETED,
            amount_minor=self.news.amount_minor,
            currency=self.news.currency,
        )


async def shown_payment(arrival: Arrival) -> Payment | Why:
    """Searches the order at the gateway for the payment that the news are of; gives it, or why it is no proof."""
    relay, account, news = arrival.relay, arrival.account, arrival.news
    asked_ms = relay.clock.now_ms()
    until_s = relay.clock.boot_s() + account.queue_s
    sight = await account.observe(PaymentsOfOrder(order_id=news.order_id), until_s=until_s)
    if isinstance(sight, Unseen):
        return Why.UNSEEN
    if not isinstance(sight, Seen):
        return Why.NOT_SHOWN
    if relay.readings is not None:
        await relay.readings.note_payments(account.merchant, sight.payments, seen_at_ms=asked_ms)
    owners = {
        payment.payment_id
        for payment in sight.payments
        if await arrival.inbox.owner_of_payment(account.merchant, payment.payment_id) is not None
    }
    return payment_shown(news, sight.payments, frozenset(owners)) or Why.NOT_SHOWN
