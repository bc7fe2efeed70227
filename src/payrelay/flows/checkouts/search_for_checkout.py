"""Searches the gateway for what came of a checkout that nobody told us of.

A customer paid, and the notification is lost:

1. The order's payments are searched. One that fits what was to be paid first, and belongs to no operation and no other
   checkout, is what a payment waits for. For most customers there is none, and that was all.
2. Of a plan the list of subscriptions must show exactly one of the order, for the amount that was asked, and the
   payments of that one must contain the payment that was found. Of several nothing is taken up: their notifications
   tell which is which.
3. A plan that begins on a later day has no payment yet. It is looked for in the list at once, and has begun by then
   where it goes on; what began on its own first day after all must show its payment.
4. The subscription is noted, and told of, before the checkout is completed: who dies in between does it again. A
   notification that comes before, meanwhile or later finds all of it known, and adds what only it tells.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from payrelay.core.calls import AllSubscriptions, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, Result, begins_after
from payrelay.core.checkouts.checkout_proof import first_payment, has_begun, is_as_asked, may_be_paid_by, plans_of
from payrelay.core.moments import day_at
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact, fact_of_installment
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.runtime.hooks import FlowPoint
from payrelay.store.subscriptions import SubscriptionOwner

INQUIRE_WITHIN_S: Final = 10.0
"""How long each question waits for a place in the gateway's budget."""


class NoObservationError(Refusal):
    """The gateway could not be asked, which proves nothing."""


async def search_for(relay: Relay, checkout: Checkout) -> Result | None:
    """Gives what surely came of a checkout, by what the gateway shows; of a plan everything is noted by then.

    None where nothing is shown, or it may be something else. Raises NoObservationError where the gateway can't be
    asked, and StoreError.
    """
    account = relay.account(checkout.account)
    if account.merchant != checkout.merchant:
        return None  # the name leads to another merchant by now
    eyes = _InquiringGateway(relay, account, checkout)
    if checkout.kind is not CheckoutKind.RECURRING:
        mine = await _unowned(relay, checkout, await eyes.payments(PaymentsOfOrder(order_id=checkout.order_id)))
        first = min(mine, key=lambda payment: payment.at_ms or 0, default=None)
        return None if first is None else Result(payment_id=first.payment_id)
    return await _search_for_plan(relay, checkout, eyes)


class _InquiringGateway:
    """Asks the gateway for one checkout: as a read, behind all effects and their settling.

    Pages that look again must not take the places of charges.
    """

    def __init__(self, relay: Relay, account: Gateway, checkout: Checkout) -> None:
        self._relay = relay
        self._account = account
        self._checkout = checkout

    @property
    def timezone(self) -> str:
        """The zone of the gateway's dates."""
        return self._account.timezone

    async def installments(self, plan: Fact, *, may_lack: bool) -> tuple[Payment, ...]:
        """Gives the payments of a subscription, none yet where ``may_lack``. Raises NoObservationError."""
        try:
            return await self.payments(PaymentsOfSubscription(subscription_id=int(plan.subscription_id)))
        except NoObservationError as error:
            # In which words the gateway says that there are none is not documented.
            if may_lack and error.code is Code.NOT_FOUND:
                return ()
            raise

    async def payments(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> tuple[Payment, ...]:
        """Gives the payments of an order or of a subscription. Raises NoObservationError."""
        self._passed(FlowPoint.ASKING)
        observation = await self._account.inquire(call, until_s=self._until_s, priority=Priority.READ)
        self._passed(FlowPoint.ASKED)
        if isinstance(observation, NoObservation):
            raise _not_seen(observation.code)
        return observation.payments if isinstance(observation, PaymentsSeen) else ()

    async def plans(self, *, is_any: bool) -> tuple[Fact, ...]:
        """Gives the subscriptions of the order, as of the moment of the question.

        Raises NoObservationError, also where the gateway says that there is none although ``is_any`` says that one was
        paid: the gateway's words for that are not documented, and may be those of an error.
        """
        asked_ms = self._relay.clock.now_ms()
        self._passed(FlowPoint.ASKING)
        reading = await self._account.read(AllSubscriptions(), until_s=self._until_s, priority=Priority.READ)
        self._passed(FlowPoint.ASKED)
        if reading.code is Code.NOT_FOUND and not is_any:
            return ()
        if reading.code is not None:
            raise _not_seen(reading.code)
        order_id = self._checkout.order_id
        return self._account.subscriptions_in(reading.raw_data or b"", seen_at_ms=asked_ms, order_id=order_id)

    @property
    def _until_s(self) -> float:
        return self._relay.clock.boot_s() + INQUIRE_WITHIN_S

    def _passed(self, crash_point: FlowPoint) -> None:
        self._relay.hooks.passed(crash_point, self._checkout.id)


def _not_seen(code: Code) -> NoObservationError:
    return NoObservationError(code, "the gateway could not be asked what came of the checkout")


async def _search_for_plan(relay: Relay, checkout: Checkout, eyes: _InquiringGateway) -> Result | None:
    if await relay.checkouts.has_competing(checkout):
        return None
    details = await relay.checkouts.details_of(checkout.id)
    found: frozenset[str] | None = None
    if not begins_after(details, day_at(checkout.created_at_ms, eyes.timezone)):
        paid = await _unowned(relay, checkout, await eyes.payments(PaymentsOfOrder(order_id=checkout.order_id)))
        found = frozenset(payment.payment_id for payment in paid)
    if found == frozenset():
        return None
    plan = _only_one(relay, checkout, await eyes.plans(is_any=found is not None))
    if plan is None or plan.began_at_ms is None:
        return None
    # It may have been asked for on one day and begun on the next one.
    is_later = begins_after(details, day_at(plan.began_at_ms, eyes.timezone))
    installments = await eyes.installments(plan, may_lack=is_later)
    both = [payment for payment in installments if found is None or payment.payment_id in found]
    # Whose they are is looked up once more: the gateway took its time.
    first = first_payment(checkout, plan, await _unowned(relay, checkout, both))
    if not has_begun(plan, first, begins_later=is_later) or await relay.checkouts.has_competing(checkout):
        return None
    await _note(relay, checkout, plan, installments)
    return Result(subscription_id=plan.subscription_id, payment_id=None if first is None else first.payment_id)


async def _unowned(relay: Relay, checkout: Checkout, payments: Iterable[Payment]) -> tuple[Payment, ...]:
    """Gives those of the payments that may be the checkout's, and are nobody else's."""
    fitting = tuple(payment for payment in payments if may_be_paid_by(checkout, payment))
    return await relay.checkouts.unowned(checkout, fitting) if fitting else ()


def _only_one(relay: Relay, checkout: Checkout, shown: Iterable[Fact]) -> Fact | None:
    """Chooses the subscription that began with the checkout; what keeps it from being known is told to the log."""
    plans = plans_of(checkout, shown)
    ids = sorted({plan.subscription_id for plan in plans})
    if len(ids) > 1:
        relay.log.warning("checkout_has_several_plans", checkout_id=checkout.id, subscription_ids=ids)
        return None
    if plans and not is_as_asked(checkout, plans[0]):
        relay.log.warning("checkout_plan_differs", checkout_id=checkout.id, subscription_ids=ids)
        return None
    return next(iter(plans), None)


async def _note(relay: Relay, checkout: Checkout, plan: Fact, installments: Iterable[Payment]) -> None:
    """Notes the subscription as it is shown, with its paid installments, for whoever opened the checkout."""
    facts = [
        # Each knows how it stands: what has ended by then is not told to go on for a moment.
        msgspec.structs.replace(
            fact_of_installment(plan.subscription_id, each, plan.at_ms),
            state=plan.state,
            amount_minor=plan.amount_minor,
        )
        for each in installments
        if each.status == PaymentStatus.RECEIVED
    ]
    whose = SubscriptionOwner(account=checkout.account, merchant=checkout.merchant, principal=checkout.principal)
    relay.hooks.passed(FlowPoint.NOTING, checkout.id)
    await relay.subscriptions.note(whose, facts or [plan], now_ms=relay.clock.now_ms())
    relay.hooks.passed(FlowPoint.NOTED, checkout.id)
