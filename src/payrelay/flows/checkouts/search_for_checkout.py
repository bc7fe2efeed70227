"""Searches the gateway for the result of a checkout whose notification may be lost.

Rules:

1. The payments of the order are searched. The result is a payment that fits the first amount of the checkout, and that
   belongs to no operation and to no other checkout. For most customers there is none, and the search ends.
2. For a plan, the gateway must show exactly one subscription of the order. ``judge_plan`` compares it with what was
   asked for, and the payment that was found must be its first one. Where there are several subscriptions, none is
   accepted: only their notifications tell them apart.
3. A plan that begins on a later day has no payment yet. Its subscription is searched for at once. An active one has
   begun. One that began on its own first day must show its payment.
4. A subscription that contradicts what was asked for completes nothing: an operator is called.
5. A payment for one checkout that a lost charge may have made completes nothing: an operator is called.
6. The subscription and its events are stored before the checkout is completed; after a crash in between, both are done
   again. A notification that comes before, meanwhile or later adds only what it alone reports.
"""

from collections.abc import Iterable

import msgspec

from payrelay.core.calls import AllSubscriptions, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, Result, begins_after
from payrelay.core.checkouts.checkout_proof import (
    STOPPABLE,
    PlanRuling,
    begins_later,
    judge_plan,
    plans_of,
)
from payrelay.core.moments import day_at
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState, fact_of_installment
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.doubted_payments import undoubted, unowned
from payrelay.flows.order_search import OrderSearch
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import FlowPoint
from payrelay.store.subscriptions import SubscriptionOwner


class NoObservationError(Refusal):
    """The gateway could not be asked, which proves nothing."""


async def search_for_checkout(relay: Relay, checkout: Checkout, search: OrderSearch) -> Result | None:
    """Returns the result of a checkout that the gateway proves; a plan's subscription is stored before that.

    Returns None where the gateway shows no result, or one that may be of something else. Raises NoObservationError
    where the gateway can't be asked, or not before the order's next slot, and StoreError.
    """
    gateway = _InquiringGateway(search, checkout)
    if checkout.kind is not CheckoutKind.RECURRING:
        return await paid_by(relay, checkout, await gateway.payments(PaymentsOfOrder(order_id=checkout.order_id)))
    return await _search_for_plan(relay, checkout, gateway)


async def paid_by(relay: Relay, checkout: Checkout, payments: Iterable[Payment]) -> Result | None:
    """Returns the result of a checkout for one payment, among the payments that the gateway shows of its order.

    Returns None where none of them proves it. Raises StoreError.
    """
    own = await undoubted(relay, checkout, await unowned(relay, checkout, payments))
    first = min(own, key=lambda payment: payment.at_ms or 0, default=None)
    return None if first is None else Result(payment_id=first.payment_id)


async def shows_no_plan(relay: Relay, checkout: Checkout, search: OrderSearch) -> bool:
    """Tells whether the gateway surely shows no plan of a checkout's order; True where a payment would show it.

    Only a plan that begins later has no payment. An empty list of subscriptions shows nothing. Raises StoreError.
    """
    details = await relay.checkouts.details_of(checkout.id)
    if not begins_after(details, day_at(checkout.created_at_ms, search.account.timezone)):
        return True
    read = await search.read(AllSubscriptions(), for_id=checkout.id)
    if isinstance(read, NoObservation):
        return False
    reading, asked_ms = read
    shown = search.account.subscriptions_in(reading.raw_data or b"", seen_at_ms=asked_ms) if not reading.code else ()
    return bool(shown) and not plans_of(checkout, shown)


async def doubt_plan(relay: Relay, checkout: Checkout, subscription_id: str) -> None:
    """Calls an operator to a subscription that contradicts its checkout, once, unless its notification has done so.

    May be repeated. Raises StoreError.
    """
    with relay.hooks.passing(FlowPoint.NOTING, FlowPoint.NOTED, checkout.id):
        is_new = await relay.checkouts.doubt(checkout, subscription_id, at_ms=relay.clock.now_ms())
    if is_new:
        relay.log.error("checkout_plan_differs", checkout_id=checkout.id, subscription_ids=[subscription_id])


class _InquiringGateway:
    """Inquires at the gateway about one checkout, as far as the slot of its order goes."""

    def __init__(self, search: OrderSearch, checkout: Checkout) -> None:
        self._search = search
        self._checkout = checkout

    @property
    def timezone(self) -> str:
        """The zone of the gateway's dates."""
        return self._search.account.timezone

    async def installments(self, plan: Fact, *, may_lack: bool) -> tuple[Payment, ...]:
        """Returns a subscription's payments; ``may_lack`` takes "not found" for none. Raises NoObservationError."""
        try:
            return await self.payments(PaymentsOfSubscription(subscription_id=int(plan.subscription_id)))
        except NoObservationError as error:
            # How the gateway says that there are none is not documented.
            if may_lack and error.code is Code.NOT_FOUND:
                return ()
            raise

    async def payments(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> tuple[Payment, ...]:
        """Returns the payments of an order or of a subscription. Raises NoObservationError."""
        observation = await self._search.inquire(call, for_id=self._checkout.id)
        if isinstance(observation, NoObservation):
            raise _no_observation(observation.code)
        return observation.payments if isinstance(observation, PaymentsSeen) else ()

    async def subscriptions(self, *, is_any: bool) -> tuple[Fact, ...]:
        """Returns the subscriptions of the order, as of the moment of the call.

        Raises NoObservationError, also where the gateway finds none although ``is_any`` says that one was paid: how the
        gateway says "none" is not documented, and its reply may be an error.
        """
        if is_any:
            self._search.count_as_own()
        read = await self._search.read(AllSubscriptions(), for_id=self._checkout.id)
        if isinstance(read, NoObservation):
            raise _no_observation(read.code)
        reading, asked_ms = read
        if reading.code is Code.NOT_FOUND and not is_any:
            return ()
        if reading.code is not None:
            raise _no_observation(reading.code)
        order_id, account = self._checkout.order_id, self._search.account
        shown = account.subscriptions_in(reading.raw_data or b"", seen_at_ms=asked_ms, order_id=order_id)
        if shown:
            self._search.count_as_own()
        return shown


def _no_observation(code: Code) -> NoObservationError:
    return NoObservationError(code, "the gateway could not be asked for the result of the checkout")


async def _search_for_plan(relay: Relay, checkout: Checkout, gateway: _InquiringGateway) -> Result | None:
    if await relay.checkouts.has_competing(checkout):
        return None
    details = await relay.checkouts.details_of(checkout.id)
    found: frozenset[str] | None = None
    if not begins_after(details, day_at(checkout.created_at_ms, gateway.timezone)):
        paid = await unowned(relay, checkout, await gateway.payments(PaymentsOfOrder(order_id=checkout.order_id)))
        found = frozenset(payment.payment_id for payment in paid)
    if found == frozenset():
        return None
    plan = _only_one(relay, checkout, await gateway.subscriptions(is_any=found is not None))
    if plan is None or plan.began_at_ms is None:
        return None
    # The checkout may have been opened on one day, and the plan have begun on the next one.
    is_later = begins_later(details, plan, gateway.timezone)
    installments = await gateway.installments(plan, may_lack=is_later)
    judged = judge_plan(checkout, details, plan, installments, timezone=gateway.timezone)
    if judged.ruling in STOPPABLE:
        await _note_contradicting(relay, checkout, plan, installments)
        return None
    first = judged.first
    is_another = found is not None and first is not None and first.payment_id not in found
    if judged.ruling is not PlanRuling.AS_ASKED or is_another:
        return None
    # The owner of the payment is read again: it may have changed during the calls to the gateway.
    is_owned = first is not None and not await unowned(relay, checkout, [first])
    if is_owned or await relay.checkouts.has_competing(checkout):
        return None
    await _note_subscription(relay, checkout, plan, installments)
    return Result(subscription_id=plan.subscription_id, payment_id=None if first is None else first.payment_id)


async def _note_contradicting(relay: Relay, checkout: Checkout, plan: Fact, installments: Iterable[Payment]) -> None:
    """Calls an operator to a subscription that isn't as requested; stores it where it was stopped, perhaps by one."""
    if await relay.checkouts.has_competing(checkout):
        return
    if plan.state is SubscriptionState.STOPPED:
        await _note_subscription(relay, checkout, plan, installments)
    else:
        await doubt_plan(relay, checkout, plan.subscription_id)


def _only_one(relay: Relay, checkout: Checkout, shown: Iterable[Fact]) -> Fact | None:
    """Returns the only subscription that may have begun with the checkout; else None, and logs several."""
    plans = plans_of(checkout, shown)
    ids = sorted({plan.subscription_id for plan in plans})
    if len(ids) > 1:
        relay.log.warning("checkout_has_several_plans", checkout_id=checkout.id, subscription_ids=ids)
        return None
    return next(iter(plans), None)


async def _note_subscription(relay: Relay, checkout: Checkout, plan: Fact, installments: Iterable[Payment]) -> None:
    """Stores the subscription that the gateway shows, with its paid installments, for the checkout's principal."""
    facts = [
        # Each fact has the current state, so that no event reports an ended subscription as active.
        msgspec.structs.replace(
            fact_of_installment(plan.subscription_id, each, plan.at_ms),
            state=plan.state,
            amount_minor=plan.amount_minor,
        )
        for each in installments
        if each.status == PaymentStatus.RECEIVED
    ]
    owner = SubscriptionOwner(account=checkout.account, merchant=checkout.merchant, principal=checkout.principal)
    with relay.hooks.passing(FlowPoint.NOTING, FlowPoint.NOTED, checkout.id):
        await relay.subscriptions.note(owner, facts or [plan], now_ms=relay.clock.now_ms())
