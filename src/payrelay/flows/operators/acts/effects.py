"""Refunds, captures, voids and what else has an effect at the gateway, by the flows of the API's routes.

Rules:

1. An effect goes out under the key of its confirmation, as the owner of what it acts on. So it is done once, however
   often it is carried on, and the owner's clients see it as one of their own operations.
2. The operation's first journal entry names the operator and the reason. It is stored with the intent.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from payrelay.core.answers import OPERATION_HEADER, Answer
from payrelay.core.calls import CancelSubscription, Capture, RetrySubscription, Void
from payrelay.core.operators.roles import Act
from payrelay.errors import Code, Refusal
from payrelay.flows.operators.acting import ActResult, ConfirmedAct
from payrelay.flows.operators.refunds.shown import INSISTS, RECORD, call_of, request_for
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.refund import refund
from payrelay.flows.refunds.limits import RefundByPerson
from payrelay.flows.relay import Relay, Request
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.retry_subscription import retry_subscription

NO_LONGER_KEPT: Final = (
    "the authorization's token is no longer kept, without which the gateway can't be asked; see to it at the gateway"
)


class _AuthorizationData(msgspec.Struct, frozen=True):
    authorization_token: str | None = None


class _AuthorizationAnswer(msgspec.Struct, frozen=True):
    data: _AuthorizationData


async def carry_out_effect(relay: Relay, act: ConfirmedAct) -> ActResult:
    """Carries out an effect, at most once for one confirmation. Raises Refusal, StoreError."""
    answer = await EFFECTS[act.confirmation.act_name](relay, _request_of(act), act)
    return ActResult(said="", operation_id=dict(answer.headers).get(OPERATION_HEADER))


def _request_of(act: ConfirmedAct) -> Request:
    """Makes a request as the owner would make it; what the operator may do was examined before."""
    confirmation = act.confirmation
    request = request_for(confirmation.account, confirmation.principal, act.operator, act.request_id)
    return msgspec.structs.replace(request, idempotency_key=confirmation.idempotency_key, reason=act.reason)


async def _refund(relay: Relay, request: Request, act: ConfirmedAct) -> Answer:
    filled = act.confirmation.filled
    if act.target.payment_id is None:
        raise Refusal(Code.CONFLICT, "no payment of it is known, so there is nothing to refund")
    against = [filled[each] for each in (INSISTS, RECORD) if each in filled]
    person = RefundByPerson(seen=act.seen_standing, insists="; ".join(against) or None)
    return await refund(relay, request, call_of(act.target, filled), person=person)


async def _capture(relay: Relay, request: Request, act: ConfirmedAct) -> Answer:
    filled = act.confirmation.filled
    call = Capture(
        authorization_token=await _token_of(relay, act),
        amount_minor=int(filled["amount_minor"]),
        description=filled["description"],
    )
    return await capture(relay, request, call)


async def _void(relay: Relay, request: Request, act: ConfirmedAct) -> Answer:
    description = act.confirmation.filled["description"]
    return await refund(relay, request, Void(authorization_token=await _token_of(relay, act), description=description))


async def _cancel(relay: Relay, request: Request, act: ConfirmedAct) -> Answer:
    return await cancel_subscription(relay, request, CancelSubscription(subscription_id=_plan_of(act)))


async def _retry(relay: Relay, request: Request, act: ConfirmedAct) -> Answer:
    return await retry_subscription(relay, request, RetrySubscription(subscription_id=_plan_of(act)))


def _plan_of(act: ConfirmedAct) -> int:
    if act.target.subscription_id is None:
        raise Refusal(Code.CONFLICT, "no subscription of it is known")
    return int(act.target.subscription_id)


async def _token_of(relay: Relay, act: ConfirmedAct) -> str:
    """Gives what names an authorization to the flows: the checkout that yielded it, or the token in the answer."""
    if act.target.operation is None:
        return act.target.id
    answer = await relay.journal.answer_of(act.target.id)
    token = None
    if answer is not None:
        token = msgspec.json.decode(answer.body, type=_AuthorizationAnswer).data.authorization_token
    if token is None:
        raise Refusal(Code.CONFLICT, NO_LONGER_KEPT)
    return token


EFFECTS: Final[dict[Act, Callable[[Relay, Request, ConfirmedAct], Awaitable[Answer]]]] = {
    Act.REFUND: _refund,
    Act.CAPTURE: _capture,
    Act.VOID: _void,
    Act.CANCEL_SUBSCRIPTION: _cancel,
    Act.RETRY_SUBSCRIPTION: _retry,
}
"""The acts with an effect at the gateway; each becomes an operation."""
