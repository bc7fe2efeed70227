"""Answers a request from a stored operation: a repeat, or a request whose outcome is not known yet."""

from typing import Final

from payrelay.core.access.bounds import has_operation
from payrelay.core.answers import Answer
from payrelay.core.calls import Effect
from payrelay.core.money import money_text
from payrelay.core.payments.idempotency import claim_of, fingerprint_of
from payrelay.core.payments.operation import (
    AWAITS_OPERATOR,
    INQUIRED,
    OPEN_STATES,
    WITHOUT_EFFECT,
    Kind,
    captured_guard,
)
from payrelay.core.payments.operation_answers import retry_after_s, stored_answer
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.flows.requests.other_flows import Inquiries
from payrelay.store.payments.journal import ClaimedOperation, EqualRequest, GuardedOperation

_NAMED_BY: Final = {
    Kind.CHARGE: "order_id",
    Kind.AUTHORIZATION: "order_id",
    Kind.REFUND: "payment_id",
    Kind.RETRY: "subscription_id",
    Kind.CANCEL: "subscription_id",
}
"""What an operation acts on, and is found by."""
OTHER_ORDER_SENTENCE: Final = "another order id is another order, and then nothing keeps the customer from paying twice"
FOREIGN_RETRY_AFTER_S: Final = 10
"""Retry-After for a request that is blocked by the guard of another caller's operation, whatever its state: the caller
learns nothing of it."""


def identified_by(relay: Relay, request: Request, call: Effect) -> tuple[str, str | None]:
    """Gives a request's fingerprint, and the claim that its operation takes; None for no claim."""
    fingerprint = fingerprint_of(request.gateway.name, call)
    is_unkeyed_claimed = relay.settings.retention.unkeyed_ms > 0
    return fingerprint, claim_of(request.idempotency_key, fingerprint, is_unkeyed_claimed=is_unkeyed_claimed)


async def find_earlier(relay: Relay, request: Request, claim: str | None) -> ClaimedOperation | None:
    """Finds the operation of an equal claim. Raises OperationForged, StoreUnavailable."""
    if claim is None:
        return None
    return await relay.journal.find_claim(request.principal, claim, now_ms=relay.clock.now_ms())


async def find_repeated(
    relay: Relay, request: Request, intent: Intent, fingerprint: str, claim: str | None
) -> ClaimedOperation | None:
    """Finds the operation that a request repeats, by its claim or as ``find_equal``; raises as that does."""
    return await find_earlier(relay, request, claim) or await find_equal(relay, request, intent, fingerprint)


async def find_equal(
    relay: Relay,
    request: Request,
    intent: Intent,
    fingerprint: str,
    *,
    but_for: str = "",
    asked_at_ms: int | None = None,
) -> ClaimedOperation | None:
    """Finds the operation that a request without a key repeats, whatever key its first request had.

    It is the newest of the same principal that an equal request asked for within the repeat window, where that one
    succeeded or may have, and didn't fail later. None for a request with a key. ``but_for`` is the id of the request's
    own operation, and ``asked_at_ms`` the time of a request that isn't made now. Raises OperationForged,
    StoreUnavailable.
    """
    if request.idempotency_key is not None or relay.settings.retention.unkeyed_ms == 0:
        return None
    now_ms = relay.clock.now_ms() if asked_at_ms is None else asked_at_ms
    since_ms = now_ms - relay.settings.retention.unkeyed_ms + 1
    if intent.kind is Kind.CAPTURE:  # one for each authorization, whose guard it keeps
        merchant = request.gateway.merchant
        guarded = await relay.journal.find_guard(merchant, captured_guard(intent.subject))
        if (
            guarded is None
            or not _is_equal(guarded, request, fingerprint)
            or guarded.operation.created_at_ms < since_ms
        ):
            return None
        return ClaimedOperation(guarded.operation, await relay.journal.answer_of(guarded.operation.id))
    column = _NAMED_BY.get(intent.kind)
    equal = EqualRequest(
        principal=request.principal,
        fingerprint=fingerprint,
        column=column or "account",
        named=request.account if column is None else getattr(intent, column),
    )
    found = await relay.journal.newest_equal(equal, since_ms=since_ms, but_for=but_for)
    if found is None or found.operation.state in WITHOUT_EFFECT:
        return None
    has_failed = intent.kind is Kind.REFUND and await relay.journal.has_failed(found.operation)
    return None if has_failed else found


def _is_equal(holder: GuardedOperation, request: Request, fingerprint: str) -> bool:
    return (holder.operation.principal, holder.operation.fingerprint) == (request.principal, fingerprint)


def answer_known(
    relay: Relay, holder: ClaimedOperation | GuardedOperation, request: Request, fingerprint: str
) -> Answer:
    """Answers a request that repeats an operation, or whose guard another one holds.

    For a repeat a status inquiry is begun where the outcome is open, and what is raised is as ``stored_answer`` says.
    Raises Refusal where the guard is held.
    """
    other = holder.operation
    if isinstance(holder, GuardedOperation):
        is_unkeyed = request.idempotency_key is None and relay.settings.retention.unkeyed_ms > 0
        if is_unkeyed and other.state in OPEN_STATES and _is_equal(holder, request, fingerprint):
            holder = ClaimedOperation(other, None)
    if isinstance(holder, ClaimedOperation):
        if other.state in INQUIRED:
            relay.find(Inquiries).begin(relay, other)
        return stored_answer(other, holder.answer, fingerprint, request.request_id)
    is_own = other.principal == request.principal and has_operation(request.credential.bound, other)
    operation_id = other.id if is_own else None
    if other.state not in OPEN_STATES:
        done = "voided" if other.kind is Kind.VOID else "captured"
        amount = money_text(other.amount_minor, other.currency) if is_own and other.kind is Kind.CAPTURE else ""
        msg = f"this authorization is already {done}{amount and f': {amount}'}"
        raise Refusal(Code.CONFLICT, msg, operation_id=operation_id)
    raise Refusal(
        Code.IN_PROGRESS,
        f"an operation on the same {other.subject.partition('/')[0]} is not final yet",
        retry_after_s=retry_after_s(other, relay.clock.now_ms()) if is_own else FOREIGN_RETRY_AFTER_S,
        operation_id=operation_id,
    )


def charge_in_the_way(relay: Relay, holder: GuardedOperation, request: Request) -> Refusal:
    """Makes the refusal of a page of an order, a charge or authorization of which is open."""
    other = holder.operation
    is_own = other.principal == request.principal and has_operation(request.credential.bound, other)
    if not is_own:
        msg = f"a payment of this order is not final yet; {OTHER_ORDER_SENTENCE}"
        return Refusal(Code.IN_PROGRESS, msg, retry_after_s=FOREIGN_RETRY_AFTER_S)
    way_out = (
        "a person decides about it"
        if other.state in AWAITS_OPERATOR
        else "send that request again, with its Idempotency-Key, to learn its outcome"
    )
    return Refusal(
        Code.IN_PROGRESS,
        f"the {other.kind} {other.id} of this order is not final yet: {way_out}; {OTHER_ORDER_SENTENCE}",
        retry_after_s=retry_after_s(other, relay.clock.now_ms()),
        operation_id=other.id,
    )
