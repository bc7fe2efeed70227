"""Keeps what is known of subscriptions in step: with notifications, and with whatever is read of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfSubscription
from payrelay.core.checkouts import Checkout
from payrelay.core.notifications import News, Notification, Why
from payrelay.core.outcomes import Reading
from payrelay.core.proof import RECEIVED
from payrelay.core.subscriptions import Fact, SubscriptionState, fact_of_news
from payrelay.errors import StoreError
from payrelay.gateways.governor import Priority
from payrelay.gateways.payhere.client import PayHere
from payrelay.gateways.payhere.plans import facts_in
from payrelay.gateways.payhere.records import payments_in
from payrelay.gateways.payhere.replies import WrongShape
from payrelay.operations.readings import Question
from payrelay.operations.relay import Relay
from payrelay.operations.watch import Passage
from payrelay.store.subscriptions import Subscriptions, Whose


async def note_news(
    relay: Relay, account: PayHere, notification: Notification, news: News, checkout: Checkout | None
) -> Why | None:
    """Notes what a genuine notification tells of a subscription; None where it tells of none. May be repeated.

    ``checkout`` is that of its order, and tells whose subscription it is. Raises StoreError.
    """
    fact = fact_of_news(news, notification)
    if fact is None or relay.subscriptions is None:
        return None
    principal = None if checkout is None else checkout.principal
    whose = Whose(account=account.name, merchant=account.merchant, principal=principal)
    relay.watch.passed(Passage.NOTING, notification.id)
    await relay.subscriptions.note(whose, [fact], now_ms=relay.clock.now_ms())
    relay.watch.passed(Passage.NOTED, notification.id)
    return Why.SUBSCRIPTION_NOTED


async def note_cancelled(relay: Relay, account_name: str, subscription_id: str) -> None:
    """Notes that a subscription was cancelled through us; raises nothing, because the answer is worth more than that.

    Where the store fails the next read or notification tells it.
    """
    if relay.subscriptions is None:
        return
    now_ms = relay.clock.now_ms()
    fact = Fact(subscription_id=subscription_id, at_ms=now_ms, is_seen=True, state=SubscriptionState.STOPPED)
    whose = Whose(account=account_name, merchant=relay.account(account_name).merchant)
    try:
        await relay.subscriptions.note(whose, [fact], now_ms=now_ms)
    except StoreError as error:
        relay.log.warning("cancellation_not_noted", subscription_id=subscription_id, reason=str(error))


async def shows_plan(relay: Relay, account: PayHere, call: OneSubscription, news: News) -> bool:
    """Tells whether the gateway shows the subscription as one of the news' order and currency; notes what it shows."""
    asked_ms = relay.clock.now_ms()
    until_s = relay.clock.boot_s() + account.queue_s
    reading = await account.read(call, priority=Priority.SETTLE, until_s=until_s)
    if reading.code is not None:
        return False
    facts = facts_in(reading.raw_data or b"", seen_at_ms=asked_ms)
    if relay.subscriptions is not None and facts:
        whose = Whose(account=account.name, merchant=account.merchant)
        await relay.subscriptions.note(whose, facts, now_ms=relay.clock.now_ms())
    return any(fact.order_id == news.order_id and fact.currency == news.currency for fact in facts)


@dataclass(frozen=True, slots=True)
class ReadingNotes:
    """Notes what passes by in answers to reads; ``accounts`` tell under which name a merchant is configured."""

    subscriptions: Subscriptions
    accounts: Mapping[str, PayHere]

    async def __call__(self, question: Question, reading: Reading, read_at_ms: int) -> None:
        """Notes what a positive answer shows of subscriptions, as of the moment of the question. Raises StoreError."""
        facts = facts_of_reading(question, reading, read_at_ms)
        name = next((name for name, each in self.accounts.items() if each.merchant == question.merchant), None)
        if facts and name is not None:
            whose = Whose(account=name, merchant=question.merchant)
            await self.subscriptions.note(whose, facts, now_ms=read_at_ms)


def facts_of_reading(question: Question, reading: Reading, read_at_ms: int) -> tuple[Fact, ...]:
    """Gives what an answer shows of subscriptions; nothing where it is about something else, or not whole."""
    raw_data = reading.raw_data or b""
    match question.call:
        case AllSubscriptions() | OneSubscription():
            return facts_in(raw_data, seen_at_ms=read_at_ms)
        case PaymentsOfSubscription(subscription_id=subscription_id):
            return _payments(str(subscription_id), raw_data, question.timezone, read_at_ms)
    return ()


def _payments(subscription_id: str, raw_data: bytes, timezone: str, read_at_ms: int) -> tuple[Fact, ...]:
    try:
        payments = payments_in(raw_data, timezone)
    except WrongShape:
        return ()
    return tuple(
        Fact(
            subscription_id=subscription_id,
            at_ms=read_at_ms,
            is_seen=True,
            order_id=payment.order_id,
            currency=payment.currency,
            payment=payment.payment_id,
            is_paid=True,
            payment_minor=payment.amount_minor,
            payment_at_ms=payment.at_ms,
        )
        for payment in payments
        if payment.status == RECEIVED
    )
