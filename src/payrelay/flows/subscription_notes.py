"""Stores the facts about subscriptions that replies to reads, and cancellations through Payrelay, show."""

from collections.abc import Mapping
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfSubscription
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState, fact_of_installment
from payrelay.errors import StoreError
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.read_cache import Question
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions


async def note_cancelled(
    subscriptions: Subscriptions,
    owner: SubscriptionOwner,
    subscription_id: str,
    *,
    now_ms: int,
    log: FilteringBoundLogger,
) -> None:
    """Notes that a subscription was cancelled through Payrelay.

    A failing store is only logged, so that the client gets its answer; the next read or notification shows the same.
    """
    fact = Fact(subscription_id=subscription_id, at_ms=now_ms, is_seen=True, state=SubscriptionState.STOPPED)
    try:
        await subscriptions.note(owner, [fact], now_ms=now_ms)
    except StoreError as error:
        log.warning("cancellation_not_noted", subscription_id=subscription_id, reason=str(error))


@dataclass(frozen=True, slots=True)
class ReadingNotes:
    """Notes what answers to reads show of subscriptions; ``accounts`` are the configured accounts by name."""

    subscriptions: Subscriptions
    accounts: Mapping[str, Gateway]

    async def __call__(self, question: Question, reading: Reading, read_at_ms: int) -> None:
        """Notes what a positive answer shows, as of the moment of the question. Raises StoreError.

        Nothing is noted where the merchant is not configured.
        """
        facts = facts_of_reading(question, reading, read_at_ms)
        name = next((name for name, each in self.accounts.items() if each.merchant == question.merchant), None)
        if facts and name is not None:
            owner = SubscriptionOwner(account=name, merchant=question.merchant)
            await self.subscriptions.note(owner, facts, now_ms=read_at_ms)


def facts_of_reading(question: Question, reading: Reading, read_at_ms: int) -> tuple[Fact, ...]:
    """Returns what an answer shows of subscriptions; nothing where it is about something else, or incomplete."""
    raw_data = reading.raw_data or b""
    match question.call:
        case AllSubscriptions() | OneSubscription():
            return question.gateway.subscriptions_in(raw_data, seen_at_ms=read_at_ms)
        case PaymentsOfSubscription(subscription_id=subscription_id):
            payments = question.gateway.payments_in(raw_data) or ()
            return tuple(
                fact_of_installment(str(subscription_id), payment, read_at_ms)
                for payment in payments
                if payment.status == PaymentStatus.RECEIVED
            )
    return ()
