"""Puts the token of a stored customer into a charge, in place of the customer's handle."""

from collections.abc import Callable
from typing import Final

import msgspec

from payrelay.core.access.bounds import owns_customer
from payrelay.core.calls import Charge
from payrelay.core.customers.customer import CustomerState
from payrelay.errors import Code, Refusal, wrong_field
from payrelay.flows.operations.intent import Intent
from payrelay.flows.relay import Relay, Request
from payrelay.store.alerts import LOST_CUSTOMERS_ROW
from payrelay.store.customers import state_of
from payrelay.store.engine.database import Unit
from payrelay.store.payments.journal import Condition

RETRY_AFTER_S: Final = 30
"""The shop has to acknowledge, or an operator to end the recovery; every half minute is soon enough to notice that."""


async def with_token(
    relay: Relay, request: Request, call: Charge, intent: Intent, *, lost_since_ms: int | None = None
) -> Intent:
    """Adds the call that is sent, in which the customer's token replaces the handle.

    The token goes only to the gateway; the stored call has the handle. Who is removed before the charge is stored is
    not charged. ``lost_since_ms`` is since when an earlier try of the request may be lost; None where none may be. For
    a customer that was removed since then, the refusal is no final one: the earlier try may have charged it before.
    """
    customer = await relay.customers.get(call.customer_token)
    if customer is None or not owns_customer(request.credential, relay.account(request.account).merchant, customer):
        await _tell_lost(relay, relay.account(request.account).merchant, call.customer_token)
        raise wrong_field("customer_token", "names no customer of yours on this account")
    token = await relay.customers.token_of(customer.id)
    if token is None:
        is_in_doubt = lost_since_ms is not None and customer.updated_at_ms >= lost_since_ms
        raise _gone_in_doubt(customer.state) if is_in_doubt else _gone(customer.state)
    sent = msgspec.structs.replace(call, customer_token=token.reveal())
    gone = _gone if lost_since_ms is None else _gone_in_doubt
    condition = _while_active(customer.id, intent.condition, gone)
    return msgspec.structs.replace(intent, sent=sent, customer_id=customer.id, condition=condition)


async def _tell_lost(relay: Relay, merchant: str, customer_id: str) -> None:
    """Raises Refusal (unavailable) where the customer's approval may be lost, and calls an operator.

    The token is gone then. Whoever asks for made-up customers raises no second alert.
    """
    try:
        await relay.database.lost_commits.require_known(customer_id, "customer")
    except Refusal:
        relay.log.error("customer_may_be_lost", customer_id=customer_id)
        incarnation = await relay.database.lost_commits.incarnation()
        await relay.journal.trail.report(f"{LOST_CUSTOMERS_ROW}{incarnation}/{merchant}", relay.clock.now_ms())
        raise


def _gone(state: CustomerState | None) -> Refusal:
    return wrong_field("customer_token", f"names a customer that was {_became(state)}")


def _gone_in_doubt(state: CustomerState | None) -> Refusal:
    sentence = (
        f"customer_token names a customer that was {_became(state)}, and the database lost its newest operations: an"
        " earlier try of this request may have been carried out before; this request was not sent"
    )
    return Refusal(Code.UNAVAILABLE, sentence, retry_after_s=RETRY_AFTER_S)


def _became(state: CustomerState | None) -> str:
    return "erased" if state is CustomerState.ERASED else "removed"


def _while_active(
    customer_id: str, also: Condition | None, gone: Callable[[CustomerState | None], Refusal]
) -> Condition:
    """Returns the condition that the customer is still active when the charge is stored: the permit may take long.

    ``also`` is a further condition, and ``gone`` makes the refusal.
    """

    def active(operation_id: str) -> Unit[None]:
        if also is not None:
            yield from also(operation_id)
        state = yield from state_of(customer_id)
        if state is not CustomerState.ACTIVE:
            raise gone(state)

    return active
