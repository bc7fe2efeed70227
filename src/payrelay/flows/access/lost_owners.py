"""Says whose a thing is while commits are lost: the rows that would name its owner may be among them.

Rules:

1. An order that only rows from after the beginning of the lost window give to a principal may be another's. So may one
   whose earlier rows don't hold it for good. Until the recovery ends nobody is told for good that it is taken: who is
   told so takes another order id, and the customer pays twice.
2. A payment of the lost window that no row explains is shown to nobody, where several principals could have made it.
3. So is a payment, an authorization or a subscription that has no known owner: its maker may be lost. It is reserved,
   and not open to every key of the account, until a repeat or an operator has brought its maker back. A caller that may
   act for all principals that can have made it is served. An owner of its order is its owner only by rule 1.
4. A card or an authorization that is reported for such an order may be of another principal's lost page or call. It is
   for an operator, and not for the page that came later.
"""

from collections.abc import Callable, Iterable
from typing import Final

from payrelay.core.access.ownership import acts_for_any
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.payments.operation import sending_ms
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request
from payrelay.recovery.rules.lost_effects import is_within, may_have_made, sendings_of

OWNER_SENTENCE: Final = (
    "the database lost commits, and whose this order is can't be told until its recovery has ended; this request was"
    " not sent"
)
UNSHOWN_SENTENCE: Final = (
    "the database lost commits, and whose the payments of this order are can't be told until its recovery has ended"
)
RESERVED_SENTENCE: Final = (
    "has no known owner, and may be another principal's whose record is among the commits that the database lost; this"
    " request was not sent"
)
"""After the noun of what was asked for."""
RETRY_AFTER_S: Final = 30


async def lost_since_ms(relay: Relay) -> int | None:
    """Returns the beginning of the lost window while a recovery lasts; None outside of one. Raises StoreError.

    What was made before it tells who owns an order, and with it what nobody is known to have made.
    """
    current = (await relay.database.lost_commits.identity()).current
    return None if current.lost is None or not current.is_recovering else current.lost.since_ms


async def require_certain_owner(relay: Relay, merchant: str, order_id: str) -> None:
    """Raises Refusal (unavailable) where an order only seems to be another principal's; for one that seems so.

    Outside of a recovery it always returns. Raises StoreError.
    """
    since_ms = await lost_since_ms(relay)
    if since_ms is not None and not await _is_owned_since_before(relay, merchant, order_id, since_ms):
        raise Refusal(Code.UNAVAILABLE, OWNER_SENTENCE, retry_after_s=RETRY_AFTER_S)


async def is_reserved(relay: Relay, request: Request) -> bool:
    """Tells whether what has no known owner may be another principal's than the caller's, whose record is lost.

    It is one answer for all such things of a request. Outside of a recovery, and where the database isn't behind, it is
    always False. Raises StoreError.
    """
    since_ms = await lost_since_ms(relay)
    if acts_for_any(request.credential) or (since_ms is None and not relay.database.lost_commits.must_wait):
        return False
    return bool(await _other_makers(relay, relay.account(request.account).merchant, request.principal, since_ms))


async def may_be_anothers_order(relay: Relay, checkout: Checkout) -> bool:
    """Tells whether what is reported of a checkout's order may be of another principal's page or call, which is lost.

    So it may be in a recovery, where the checkout was opened since the loss, and nobody had the order for good before
    it. It is in no doubt once all other principals had acknowledged the recovery when the checkout was opened: they had
    asked for their orders again. Raises StoreError.
    """
    current = (await relay.database.lost_commits.identity()).current
    if current.lost is None or not current.is_recovering or checkout.created_at_ms < current.lost.since_ms:
        return False
    if await _is_owned_since_before(relay, checkout.merchant, checkout.order_id, current.lost.since_ms):
        return False
    makers = await _other_makers(relay, checkout.merchant, checkout.principal, current.lost.since_ms)
    return any(current.acknowledged.get(each, NEVER_MS) > checkout.created_at_ms for each in makers)


async def _other_makers(relay: Relay, merchant: str, principal: str, since_ms: int | None) -> frozenset[str]:
    """Returns the principals that may have made what is lost, and that are foreign to this one."""
    accounts = frozenset(name for name, each in relay.accounts.items() if each.merchant == merchant)
    makers = may_have_made(await relay.access.credentials.list(), accounts, since_ms)
    if relay.settings.apps_principal is not None:  # it may have no key here
        makers |= {relay.settings.apps_principal}
    return makers - {principal} - await relay.access.principals.acts_for(principal)


async def require_unreserved(relay: Relay, request: Request, noun: str) -> None:
    """Raises Refusal (unavailable) where a thing without a known owner is reserved; ``noun`` says what it is.

    Raises StoreError.
    """
    if await is_reserved(relay, request):
        raise Refusal(Code.UNAVAILABLE, f"this {noun} {RESERVED_SENTENCE}", retry_after_s=RETRY_AFTER_S)


async def require_owned(
    relay: Relay, request: Request, order_id: str, payments: Callable[[], Iterable[Payment]]
) -> None:
    """Raises Refusal (unavailable) where a payment of an order may be another principal's, whose rows are lost.

    ``payments`` gives those that the gateway shows; it is called only where commits may be lost. An owner of the order
    from before the loss owns what has no row, too. One who came later may have taken the order of another, whose rows
    are lost. While the database is behind, and nobody knows since when, that holds of all payments. Otherwise it always
    returns. Raises StoreError.
    """
    current = (await relay.database.lost_commits.identity()).current
    lost = current.lost if current.is_recovering else None
    if lost is None and not relay.database.lost_commits.must_wait:
        return
    account = relay.account(request.account)
    known = await relay.access.owners.payments_of_order(account.merchant, order_id)
    unknown = [each for each in payments() if not known.get(str(each.payment_id))]
    if lost is not None:
        window = sendings_of(lost, sending_ms(account.timeout_s))
        unknown = [each for each in unknown if is_within(each, window)]
    since_ms = NEVER_MS if lost is None else lost.since_ms
    if not unknown or await _is_owned_since_before(relay, account.merchant, order_id, since_ms):
        return
    if await is_reserved(relay, request):
        raise Refusal(Code.UNAVAILABLE, UNSHOWN_SENTENCE, retry_after_s=RETRY_AFTER_S)


async def _is_owned_since_before(relay: Relay, merchant: str, order_id: str, since_ms: int) -> bool:
    """Tells whether a row from before the loss gives the order an owner for good."""
    return bool((await relay.access.owners.of_order(merchant, order_id, before_ms=since_ms)).all)
