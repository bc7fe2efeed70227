"""What an operator can decide about an operation, and when."""

from typing import Final

import msgspec

from payrelay.core.moments import span_text
from payrelay.core.payments.operation import (
    PAYMENT_KINDS,
    TRANSITIONS,
    WITHOUT_EFFECT,
    Event,
    Kind,
    Operation,
    OperationFilter,
    State,
)
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import UndecidedError
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resend import under_way_until_ms

EVENT_OF_DECISION: Final = {State.SUCCEEDED: Event.DECIDED_SUCCEEDED, State.FAILED: Event.DECIDED_FAILED}
"""The states that can be decided, with the event of each."""
CANDIDATES_MAX: Final = 1_000
"""Operations that name one payment, because they made or refund it; only the newest of them are compared."""


class UnknownOperationError(UndecidedError):
    """There is no such operation."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's decision.

    Attributes:
        operation_id: the operation.
        seen: the state in which the operator saw the operation; in another state the decision is not made.
        decided: SUCCEEDED or FAILED.
        operator, reason: the operator's name, and why the operator decides so.
        payment_id: the payment that the operation made, digits without leading zeros; None where that isn't known.
        seen_version: the version that the operator saw; in another one the decision is not made. None where only the
            state counts.
    """

    operation_id: str
    seen: State
    decided: State
    operator: str
    reason: str
    payment_id: str | None = None
    seen_version: int | None = None


def decisions_on(state: State) -> list[State]:
    """Gives the outcomes that an operator can decide for an operation in this state."""
    return [decided for decided, event in EVENT_OF_DECISION.items() if (state, event) in TRANSITIONS]


async def require_whole(relay: Relay) -> None:
    """Raises UndecidedError where the database is behind: later rows of the operation may be lost. Raises StoreError.

    The entry of a decision would also be the newest of a restored copy, which tells since when commits may be lost.
    """
    await relay.database.lost_commits.identity()
    if relay.database.lost_commits.behind is not None:
        raise UndecidedError("the database may lack operations: run `payrelay recover` before you decide")


async def require_decidable(relay: Relay, operation: Operation, decision: Decision) -> None:
    """Raises UndecidedError where a decision can't be made. Raises StoreError."""
    await require_whole(relay)
    state = operation.state
    if state is State.HELD is decision.seen and decision.decided is State.FAILED:
        raise UndecidedError(f"{operation.id} is held: decide with `payrelay recover decide refuse`")
    if decision.decided not in decisions_on(state):
        when = "any more" if operation.is_final else "yet"
        raise UndecidedError(f"{operation.id} can't be decided {when}: {_lower(state)}")
    if state is not decision.seen:
        raise UndecidedError(f"{operation.id} has become {state.replace('_', ' ')} meanwhile; look at it again")
    if decision.seen_version not in {None, operation.version}:
        raise UndecidedError(f"{operation.id} was changed meanwhile; look at it again")
    await _require_no_resending(relay, operation)
    if decision.payment_id is None:
        return
    if decision.decided is not State.SUCCEEDED or operation.kind not in PAYMENT_KINDS:
        raise UndecidedError(
            "a payment's number belongs only to a charge, authorization, capture or retry that succeeded"
        )
    owner = await _owner_of(relay, operation, decision.payment_id)
    if owner is not None:
        raise UndecidedError(
            f"payment {decision.payment_id} belongs to {owner.id} already, a {owner.kind} that is {owner.state}"
        )


async def _require_no_resending(relay: Relay, operation: Operation) -> None:
    """Raises UndecidedError while a resending may be under way, whose outcome nobody can know yet."""
    account = relay.account_of(operation.account, operation.merchant)
    if account is None:
        return
    now_ms = relay.clock.now_ms()
    until_ms = under_way_until_ms(await relay.journal.history(operation.id), account.timeout_s, now_ms)
    if until_ms is not None:
        left = span_text(-((now_ms - until_ms) // 1000))
        raise UndecidedError(f"{operation.id} is being sent once more to find out; look at it again in {left}")


async def _owner_of(relay: Relay, operation: Operation, payment_id: str) -> Operation | None:
    """Finds another operation that a payment belongs to; an authorization and its capture share one payment."""
    candidates = await relay.journal.list(OperationFilter(payment_id=payment_id), before=None, limit=CANDIDATES_MAX)
    for other in candidates:
        if (
            other.id != operation.id
            and other.merchant == operation.merchant
            and other.kind in PAYMENT_KINDS
            and other.state not in WITHOUT_EFFECT
            and not await _are_of_one_hold(relay, operation, other)
        ):
            return other
    return None


async def _are_of_one_hold(relay: Relay, one: Operation, other: Operation) -> bool:
    """Tells whether two operations are an authorization and its capture.

    The token of an authorization whose reply was lost with its row is nowhere known. Its capture is then a capture of
    its order, or of an order that isn't known, of a token that no other operation has.
    """
    if {one.kind, other.kind} != {Kind.CAPTURE, Kind.AUTHORIZATION}:
        return False
    authorization, capture = (one, other) if one.kind is Kind.AUTHORIZATION else (other, one)
    if authorization.result_ref is not None:
        return capture.subject == f"authorization/{authorization.result_ref}"
    captured_token = capture.subject.removeprefix("authorization/")
    is_of_order = capture.order_id in {None, authorization.order_id}
    return is_of_order and await relay.journal.authorization_of(captured_token, authorization.merchant) is None


def _lower(state: State) -> str:
    sentence = STATE_SENTENCES[state].removesuffix(".")
    return sentence[:1].lower() + sentence[1:]
