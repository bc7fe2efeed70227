"""Says whose a thing is while commits are lost: the rows that would name its owner may be among them.

Rules:

1. An order whose first row came after the lost window began may be another principal's. Until the recovery ends nobody
   is told for good that it is taken: who is told so takes another order id, and the customer pays twice.
2. A payment of the lost window that no row explains is shown to nobody, where several principals could have made it.
"""

from collections.abc import Iterable
from typing import Final

from payrelay.core.payments.operation import OperationFilter, sending_ms
from payrelay.core.payments.payment import Payment
from payrelay.core.recovery.lost_effects import is_within, may_have_charged, sendings_of
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request

OWNER_SENTENCE: Final = (
    "the database lost commits, and whose this order is can't be told until its recovery has ended; this request was"
    " not sent"
)
UNSHOWN_SENTENCE: Final = (
    "the database lost commits, and whose the payments of this order are can't be told until its recovery has ended"
)
RETRY_AFTER_S: Final = 30
OPERATIONS_MAX: Final = 1_000
"""Operations on one order, the newest of which are looked at; no order has so many attempts."""


async def require_certain_owner(relay: Relay, merchant: str, order_id: str) -> None:
    """Raises Refusal (unavailable) where an order only seems to be another principal's; for one that seems so.

    Outside of a recovery it always returns. Raises StoreError.
    """
    current = (await relay.lost_commits.identity()).current
    if current.lost is None or not current.is_recovering:
        return
    operations = await relay.journal.list(OperationFilter(order_id=order_id), before=None, limit=OPERATIONS_MAX)
    checkouts = await relay.checkouts.of_order(merchant, order_id)
    made_ms = [each.created_at_ms for each in operations if each.merchant == merchant]
    made_ms += [each.created_at_ms for each in checkouts]
    if min(made_ms, default=current.lost.since_ms) >= current.lost.since_ms:
        raise Refusal(Code.UNAVAILABLE, OWNER_SENTENCE, retry_after_s=RETRY_AFTER_S)


async def require_owned(relay: Relay, request: Request, order_id: str, payments: Iterable[Payment]) -> None:
    """Raises Refusal (unavailable) where a payment of an order may be another principal's, whose rows are lost.

    Outside of a recovery it always returns, and where the order has an owner. Raises StoreError.
    """
    current = (await relay.lost_commits.identity()).current
    account = relay.account(request.account)
    if (
        current.lost is None
        or not current.is_recovering
        or (await relay.owners.of_order(account.merchant, order_id)).all
    ):
        return
    window = sendings_of(current.lost, sending_ms(account.timeout_s))
    if not any(is_within(each, window) for each in payments):
        return
    acts_for = (await relay.principals.acts_for(request.principal)).all | {request.principal}
    accounts = frozenset(name for name, each in relay.accounts.items() if each.merchant == account.merchant)
    if may_have_charged(await relay.credentials.list(), accounts, current.lost) - acts_for:
        raise Refusal(Code.UNAVAILABLE, UNSHOWN_SENTENCE, retry_after_s=RETRY_AFTER_S)
