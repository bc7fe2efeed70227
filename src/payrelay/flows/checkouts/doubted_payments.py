"""Says which payments of an order are a checkout's own, and what lost commits leave in doubt of that."""

from collections.abc import Iterable

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind
from payrelay.core.checkouts.checkout_proof import may_be_paid_by
from payrelay.core.database.incarnations import DatabaseIdentity, Incarnation
from payrelay.core.payments.operation import sending_ms
from payrelay.core.payments.payment import Payment
from payrelay.flows.access.ownership import contenders_of
from payrelay.flows.relay import Relay
from payrelay.recovery.rules.lost_payments import (
    first_lost_ms,
    may_be_of_lost_charge,
    may_have_made_payments,
    newest_loss_since,
    unexplained,
)


async def doubted_since(relay: Relay, checkout: Checkout) -> Incarnation | None:
    """Returns the newest incarnation in whose lost commits a checkout may have been paid; None where it is in no doubt.

    A look that this process has made ends the doubt. Raises StoreError.
    """
    loss = newest_loss_since(checkout.created_at_ms, await relay.database.lost_commits.identity())
    return None if loss is None or relay.database.lost_commits.cleared_checkouts.has(checkout.id, loss.number) else loss


async def is_in_doubt(relay: Relay, checkout: Checkout) -> bool:
    """Tells whether a checkout may have been paid in lost commits, for all that this process has seen.

    Raises StoreError.
    """
    return await doubted_since(relay, checkout) is not None


def is_shown_by_now(relay: Relay, checkout: Checkout, loss: Incarnation) -> bool:
    """Tells whether the gateway has had time to show all that was begun before an incarnation that lost commits."""
    known_for_ms = relay.database.lost_commits.known_for_ms(loss.number)
    shown_after_ms = _sent_within_ms(relay, checkout) + relay.settings.recovery_lag_s * 1000
    return known_for_ms >= shown_after_ms or relay.clock.now_ms() >= _shown_from_ms(relay, checkout, loss)


async def call_operator(relay: Relay, checkout: Checkout, payment_id: str) -> None:
    """Calls an operator to a payment of a checkout's order that nothing here explains, once for each payment.

    May be repeated. Raises StoreError.
    """
    if await relay.checkouts.doubt_payment(checkout, payment_id, at_ms=relay.clock.now_ms()):
        relay.log.error("checkout_payment_unknown", checkout_id=checkout.id, payment_id=payment_id)


async def call_to_unread_plan(relay: Relay, checkout: Checkout) -> None:
    """Calls an operator to the payment that may be the first of a checkout's plan, where the plan was never read.

    The gateway has shown the payment in the last search of the order that it answered. A checkout that then ends is
    ``expired`` although the customer may have subscribed. Calls nobody where something else of the order may own the
    payment. May be repeated. Raises StoreError.
    """
    if checkout.kind is not CheckoutKind.RECURRING:
        return
    reading = await relay.money.order_searches.reading(checkout.merchant, checkout.order_id)
    for payment in () if reading is None else await unowned(relay, checkout, reading.payments):
        await call_operator(relay, checkout, payment.payment_id)


async def unowned(relay: Relay, checkout: Checkout, payments: Iterable[Payment]) -> tuple[Payment, ...]:
    """Returns the payments that fit the checkout, and that belong to no operation, no other checkout and no import.

    Without those that fit a checkout of another principal's too, which has no payment yet. Raises StoreError.
    """
    fitting = tuple(payment for payment in payments if may_be_paid_by(checkout, payment))
    if not fitting:
        return ()
    others = await relay.checkouts.of_order(checkout.merchant, checkout.order_id)
    contenders = await contenders_of(relay, checkout, (each for each in others if each.payment_id is None))
    sure = tuple(each for each in fitting if not any(may_be_paid_by(other, each) for other in contenders))
    if not sure:
        return ()
    before = await relay.money.imported_payments.of_before(checkout.merchant, sure)
    return await relay.checkouts.unowned(checkout, tuple(each for each in sure if each.payment_id not in before))


async def undoubted(relay: Relay, checkout: Checkout, payments: Iterable[Payment]) -> list[Payment]:
    """Returns the payments that no lost charge can have made; calls an operator to the others.

    Raises StoreError.
    """
    undoubted = []
    for payment in payments:
        if await may_be_of_charge(relay, checkout, payment):
            await call_operator(relay, checkout, payment.payment_id)
        else:
            undoubted.append(payment)
    return undoubted


async def may_be_of_charge(relay: Relay, checkout: Checkout, payment: Payment) -> bool:
    """Tells whether a charge that is lost may have made a payment that fits a checkout.

    Never for a subscription, which no charge begins, and never where nobody could charge the merchant's accounts in the
    lost window. Nothing else tells a charge from a payment on the gateway's page: both have the order, the amount, the
    text and the signature. Raises StoreError.
    """
    if checkout.kind is CheckoutKind.RECURRING:
        return False
    identity = await relay.database.lost_commits.identity()
    if not may_be_of_lost_charge(payment, checkout.created_at_ms, identity, _sent_within_ms(relay, checkout)):
        return False
    return await _could_be_charged(relay, checkout.merchant, identity)


async def is_unexplained(relay: Relay, checkout: Checkout, payments: Iterable[Payment]) -> bool:
    """Tells whether payments of a checkout's order may be of lost commits, and of nothing here; calls an operator.

    Raises StoreError.
    """
    since_ms = first_lost_ms(checkout.created_at_ms, await relay.database.lost_commits.identity()) or 0
    unknown = await unexplained_among(relay, checkout.merchant, checkout.order_id, payments, since_ms)
    for payment_id in unknown:
        await call_operator(relay, checkout, payment_id)
    return bool(unknown)


async def may_be_of_lost_call(relay: Relay, checkout: Checkout, at_ms: int) -> bool:
    """Tells whether a call for an authorization, whose operation is lost, may have been reported at a time.

    The time is in ms since 1970, UTC. A report that comes once all of the lost window would show is of the page: until
    then no form went out. Raises StoreError.
    """
    identity = await relay.database.lost_commits.identity()
    loss = newest_loss_since(checkout.created_at_ms, identity)
    if loss is None or at_ms >= _shown_from_ms(relay, checkout, loss):
        return False
    return await _could_be_charged(relay, checkout.merchant, identity)


async def unexplained_among(
    relay: Relay, merchant: str, order_id: str, payments: Iterable[Payment], since_ms: int
) -> list[str]:
    """Returns the ids of an order's payments since a time that nothing here owns. Raises StoreError.

    The time is in ms since 1970, UTC.
    """
    shown = tuple(payments)
    owned = {each.payment_id for each in await relay.checkouts.of_order(merchant, order_id)}
    for each in shown:
        if await relay.inbox.owner_of_payment(merchant, each.payment_id) is not None:
            owned.add(each.payment_id)
    return [each.payment_id for each in unexplained(shown, since_ms, frozenset(filter(None, owned)))]


async def _could_be_charged(relay: Relay, merchant: str, identity: DatabaseIdentity) -> bool:
    if relay.settings.can_apps_charge:
        return True
    accounts = frozenset(name for name, each in relay.accounts.items() if each.merchant == merchant)
    credentials = await relay.access.credentials.list()
    windows = [each.lost for each in identity.incarnations if each.lost is not None]
    return any(may_have_made_payments(credentials, accounts, lost) for lost in windows)


def _sent_within_ms(relay: Relay, checkout: Checkout) -> int:
    account = relay.account_of(checkout.account, checkout.merchant)
    return sending_ms(0 if account is None else account.timeout_s)


def _shown_from_ms(relay: Relay, checkout: Checkout, loss: Incarnation) -> int:
    until_ms = loss.began_at_ms if loss.lost is None else loss.lost.until_ms
    return until_ms + _sent_within_ms(relay, checkout) + relay.settings.recovery_lag_s * 1000
