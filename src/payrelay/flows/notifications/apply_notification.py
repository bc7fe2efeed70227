"""Does what follows from a genuine notification: to the order's operation, its checkout, its subscription.

Rules:

1. Only five fields are signed. Money counts when the gateway's own records show exactly that payment; a token, which no
   record shows, counts once for an order that is waiting for one, and a second one is for a person.
2. An operation is changed by nothing but ``apply``, with the notification as evidence.
3. That something failed, was cancelled or is pending is told on, and disproves nothing.
4. Each step may be done again: the process may have died after it.
"""

from dataclasses import replace
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, addressee, begins_after, fits
from payrelay.core.moments import day_at
from payrelay.core.notifications.notification import ExpectedAmount, MessageType, NewsKind, NotifiedStatus, Why, differs
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report
from payrelay.core.payments.idempotency import secret_hash
from payrelay.core.payments.operation import PROBED, TAKING, Event, Kind, Operation, OperationFilter, State
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import TOLERANCE_MS, Seen
from payrelay.core.payments.resolved_answers import BY_PROOF, settled_answer
from payrelay.flows.checkouts.finish_checkout import finish_by_notification, finish_with
from payrelay.flows.notifications.context import GOOD, Arrival, shown_installment, shown_payment
from payrelay.flows.notifications.ingest_approval import take_approval
from payrelay.flows.notifications.keep_chargeback import keep_chargeback
from payrelay.flows.notifications.note_subscription import note_news
from payrelay.flows.resolution.case import open_case
from payrelay.flows.resolution.resolve import settle_one

OPERATIONS_MAX: Final = 50
"""Operations of one order, or of one subscription, that are looked through: the newest."""
_UNDER_WAY: Final = frozenset({State.ACCEPTED, State.SENDING})
_OF_FIRST: Final = frozenset({None, MessageType.AUTHORIZATION_SUCCESS, MessageType.AUTHORIZATION_FAILED})
"""News of what a customer does on the gateway's page; all other ones are of what comes later."""
_HINTS: Final = {NotifiedStatus.CANCELLED: CheckoutState.CANCELLED, NotifiedStatus.FAILED: CheckoutState.FAILED}


async def apply_news(arrival: Arrival) -> Why:
    """Does what follows, and tells why the notification then stands where it stands. May be repeated.

    Raises StoreError; Outdated where what it is about was changed meanwhile, and it is to be decided anew.
    """
    news = arrival.news
    if news.kind is NewsKind.CHARGEBACK:
        return await keep_chargeback(arrival)
    operations = await _operations(arrival)
    checkouts = await arrival.relay.checkouts.of_order(arrival.account.merchant, news.order_id)
    checkout = addressee(checkouts, arrival.settled) or next(iter(checkouts), None)
    arrival = replace(arrival, checkouts=tuple(checkouts))
    if news.told not in GOOD:
        return await _tell_on(arrival, operations, checkout)
    of_operations = await _to_operations(arrival, operations)
    if of_operations is not None and checkout is not None:
        of_operations = await _beside_checkout(arrival, of_operations, checkout)
    if of_operations is not None:
        return of_operations
    if checkout is None:
        return await _of_no_checkout(arrival)
    return await _to_checkout(arrival, checkout)


async def _operations(arrival: Arrival) -> list[Operation]:
    """Finds the operations that the news may be of, newest first."""
    news, journal = arrival.news, arrival.relay.journal
    found = await journal.list(OperationFilter(order_id=news.order_id), before=None, limit=OPERATIONS_MAX)
    if news.subscription_id is not None:
        of_plan = OperationFilter(subscription_id=news.subscription_id)
        found += await journal.list(of_plan, before=None, limit=OPERATIONS_MAX)
    return [each for each in found if each.merchant == arrival.account.merchant and each.kind in TAKING]


async def _tell_on(arrival: Arrival, operations: list[Operation], checkout: Checkout | None) -> Why:
    """Passes on that nothing was taken: to the checkout as a hint, to operations as a reason to look."""
    for operation in operations:
        if operation.state in PROBED:
            await settle_one(arrival.relay, operation, is_nudged=True)
    outcome = _HINTS.get(arrival.news.told)
    is_hint = checkout is not None and outcome is not None and arrival.news.message_type in _OF_FIRST
    if is_hint and outcome is not None:
        await finish_by_notification(arrival.relay, msgspec.structs.replace(arrival.settled, outcome=outcome))
    why = await note_news(arrival, checkout, payment=None)
    if is_hint:  # of a plan whose first payment failed there may be nothing to be shown
        return Why.UNSEEN if why is Why.UNSEEN else Why.CHECKOUT_FINISHED
    return why or (Why.INFORMED if operations or checkout is not None else Why.UNKNOWN_ORDER)


async def _to_operations(arrival: Arrival, operations: list[Operation]) -> Why | None:
    """Has the order's operations settled; None where there are none that the news can be of."""
    reasons = [why for each in operations if (why := await _to_operation(arrival, each)) is not None]
    for why in (
        Why.OPERATION_PROVED,
        Why.OTHER_TOKEN,
        Why.OPERATION_UNDER_WAY,
        Why.OPERATION_LOOKED_FOR,
        Why.OPERATION_OPEN,
        Why.OPERATION_SETTLED,
    ):
        if why in reasons:
            return why
    return None


async def _to_operation(arrival: Arrival, operation: Operation) -> Why | None:
    news = arrival.news
    is_hold = news.authorization_token is not None and operation.kind is Kind.AUTHORIZATION
    if is_hold and operation.result_ref == secret_hash(news.authorization_token or ""):
        return Why.OPERATION_SETTLED
    if None not in (operation.payment_id, news.payment_id) and operation.payment_id != news.payment_id:
        return None
    expected = ExpectedAmount(amount_minor=operation.amount_minor, currency=operation.currency or news.currency)
    if differs(news, expected):
        return None
    if operation.state in _UNDER_WAY:
        return Why.OPERATION_UNDER_WAY
    if operation.state in PROBED:
        if is_hold:
            return await _prove_hold(arrival, operation)
        await settle_one(arrival.relay, operation, is_nudged=True)
        return Why.OPERATION_LOOKED_FOR
    if operation.state is State.NEEDS_ATTENTION:
        return Why.OPERATION_OPEN
    return Why.OPERATION_SETTLED if operation.state is State.SUCCEEDED and not is_hold else None


async def _prove_hold(arrival: Arrival, operation: Operation) -> Why:
    """Settles a hold whose answer was lost: that the gateway notifies of it with its token is the only proof."""
    relay, news, token = arrival.relay, arrival.news, arrival.news.authorization_token or ""
    result_ref = secret_hash(token)
    owner = await relay.journal.authorization_of(result_ref, operation.merchant)
    if owner is not None and owner.id != operation.id:
        return Why.OTHER_TOKEN
    if _may_be_of_a_page(arrival):
        return Why.OPERATION_UNDER_WAY
    case = await open_case(relay, arrival.account, operation, is_nudged=True, until_s=0)
    if arrival.notification.received_at_ms < case.span.began_ms - TOLERANCE_MS:
        return Why.OPERATION_UNDER_WAY  # it came before this was sent, so that it is of something else
    evidence = Evidence(
        seen=Seen.NOTIFIED,
        notification_id=arrival.notification.id,
        payment_ids=() if news.payment_id is None else (news.payment_id,),
    )
    answer: Answer = settled_answer(case.operation, case.call, payment=None, msg=BY_PROOF, authorization_token=token)
    facts = Facts(authorization_token=token)
    await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, facts=facts))
    return Why.OPERATION_PROVED


def _may_be_of_a_page(arrival: Arrival) -> bool:
    """Tells whether the hold may have been made on a page, for a checkout of the same order and amount."""
    return any(
        each.kind is CheckoutKind.AUTHORIZATION and fits(each, arrival.settled.amount_minor, arrival.news.currency)
        for each in arrival.checkouts
    )


async def _beside_checkout(arrival: Arrival, why: Why, checkout: Checkout) -> Why | None:
    """Gives what the news are to an operation, where a checkout has the same order; None where they are none of it.

    They are its own where the payment is an operation's, or the hold; while one is open nobody can tell yet, and a
    payment that isn't the checkout's already may be the operation's: what was looked for and not found may show itself.
    """
    if why in {Why.OPERATION_PROVED, Why.OPERATION_UNDER_WAY, Why.OTHER_TOKEN}:
        return why
    while_open = Why.OPERATION_UNDER_WAY if why is Why.OPERATION_LOOKED_FOR else why
    payment_id, token, merchant = arrival.news.payment_id, arrival.news.authorization_token, arrival.account.merchant
    # A hold's token before its payment, which nothing shows: whoever had the news could have put another one there.
    if token is not None and await arrival.relay.journal.authorization_of(secret_hash(token), merchant) is not None:
        return while_open
    if payment_id is not None:
        if await arrival.relay.inbox.owner_of_payment(merchant, payment_id) is not None:
            return why
        is_open = why in {Why.OPERATION_LOOKED_FOR, Why.OPERATION_OPEN}
        return while_open if is_open and checkout.payment_id != payment_id else None
    return None


async def _of_no_checkout(arrival: Arrival) -> Why:
    """Takes up what is of no operation and no checkout of ours: at most it is of a subscription that we know of."""
    news = arrival.news
    if news.subscription_id is None:
        return Why.UNKNOWN_ORDER
    if await arrival.relay.subscriptions.standing(arrival.account.merchant, news.subscription_id) is None:
        return Why.UNKNOWN_ORDER
    shown = await shown_installment(arrival)
    if isinstance(shown, Why):
        return shown
    return await note_news(arrival, None, payment=shown) or Why.INFORMED


async def _to_checkout(arrival: Arrival, checkout: Checkout) -> Why:
    """Completes a checkout with what was proved, or accepted."""
    news = arrival.news
    if not fits(checkout, arrival.settled.amount_minor, news.currency):
        return Why.OTHER_AMOUNT
    match checkout.kind:
        case CheckoutKind.PREAPPROVAL:
            return await take_approval(arrival, checkout)
        case CheckoutKind.AUTHORIZATION:
            return await _hold(arrival, checkout)
        case CheckoutKind.RECURRING:
            return await _subscribe(arrival, checkout)
        case CheckoutKind.PAYMENT:
            return await _pay(arrival, checkout)


async def _pay(arrival: Arrival, checkout: Checkout) -> Why:
    if arrival.news.told is not NotifiedStatus.SUCCEEDED:
        return Why.OTHER_KIND
    payment_id = arrival.news.payment_id
    if checkout.state is CheckoutState.COMPLETED and payment_id is not None and payment_id == checkout.payment_id:
        return Why.CHECKOUT_FINISHED  # proved before; repeats in any number of disguises cost no call
    shown = await shown_payment(arrival)
    if isinstance(shown, Why):
        return shown
    settled = msgspec.structs.replace(arrival.settled, payment_id=shown.payment_id)
    finished = await finish_with(arrival.relay, checkout, settled)
    is_second = finished.payment_id not in {None, shown.payment_id}
    return Why.SECOND_PAYMENT if is_second else Why.CHECKOUT_FINISHED


async def _hold(arrival: Arrival, checkout: Checkout) -> Why:
    """Takes up a hold's token, which is kept sealed for its capture."""
    news = arrival.news
    if news.authorization_token is None:
        return Why.INCOMPLETE
    if not await arrival.accepts_token(NewsKind.AUTHORIZATION, news.authorization_token):
        return Why.OTHER_TOKEN
    # The payment in the news is not signed, and nothing shows it: it proves none.
    await finish_with(arrival.relay, checkout, msgspec.structs.replace(arrival.settled, payment_id=None))
    return Why.CHECKOUT_FINISHED


async def _subscribe(arrival: Arrival, checkout: Checkout) -> Why:
    """Completes the checkout of a plan with its first payment, and notes that and every later one.

    Which plan it is, is not signed: the gateway must show it as the order's, and for the amount that was asked.
    """
    news = arrival.news
    if news.subscription_id is None:
        return Why.INCOMPLETE
    is_first = news.message_type in _OF_FIRST
    shown: Payment | Why | None = await shown_installment(arrival)
    if shown is Why.NOT_SHOWN and is_first and await _begins_later(arrival, checkout):
        shown = None
    if isinstance(shown, Why):
        return shown
    why = await note_news(arrival, checkout, payment=shown)
    if why is not Why.SUBSCRIPTION_NOTED:
        return why or Why.INFORMED
    # The payment of the checkout is the first one.
    payment_id = shown.payment_id if shown is not None and is_first else None
    ids = {"subscription_id": news.subscription_id, "payment_id": payment_id}
    finished = await finish_with(arrival.relay, checkout, msgspec.structs.replace(arrival.settled, **ids))
    is_second = finished.subscription_id not in {None, news.subscription_id}
    return Why.SECOND_PAYMENT if is_second and is_first else why


async def _begins_later(arrival: Arrival, checkout: Checkout) -> bool:
    """Tells whether the first payment is yet to come, on the day on which the gateway told of the plan."""
    day = day_at(arrival.notification.received_at_ms, arrival.account.timezone)
    return begins_after(await arrival.relay.checkouts.details_of(checkout.id), day)
