"""The intent: what a request wants done at the gateway, and how it is stored as an operation."""

import msgspec

from payrelay.core.calls import Effect
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import ExpectedReply
from payrelay.runtime.hooks import OperationPoint
from payrelay.store.payments.journal import Acceptance, Condition


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """One effect that is to be carried out at the gateway, before its operation is stored.

    Attributes:
        kind: the kind of the operation.
        call: the call to the gateway.
        subject: what the call acts on, free of secrets; the guard against a second operation while this one is open.
        conflicts_with: a guard that no operation of the merchant may hold; None where there is none.
        condition: what must hold when the operation is stored; None where nothing more must.
        expected: what the reply must match beyond what the call itself says.
        order_id, payment_id, subscription_id, amount_minor, currency: what is known before the sending.
        evidence: what the gateway showed before the sending, for when the outcome has to be proved.
        sent: the call that is sent where it differs from ``call``; it is stored nowhere.
        customer_id: the stored customer whose handle the request named.
        recovery: the number of the incarnation in whose recovery the request was cleared; None outside of one.
    """

    kind: Kind
    call: Effect
    subject: str
    conflicts_with: str | None = None
    condition: Condition | None = None
    expected: ExpectedReply = ExpectedReply()
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    evidence: Evidence = Evidence()
    sent: Effect | None = None
    customer_id: str | None = None
    recovery: int | None = None


def new_operation(
    relay: Relay,
    request: Request,
    intent: Intent,
    *,
    state: State,
    identified_by: tuple[str, str | None],
    send_within_ms: int,
) -> Operation:
    """Makes the operation of an intent; ``identified_by`` are the request's fingerprint and claim. Stores nothing."""
    now_ms, bound = relay.clock.now_ms(), request.credential.bound
    fingerprint, claim = identified_by
    return Operation(
        id=relay.new_id("op", now_ms),
        account=request.account,
        merchant=request.gateway.merchant,
        principal=request.principal,
        kind=intent.kind,
        state=state,
        version=1,
        subject=intent.subject,
        guard=intent.subject,
        claim=claim,
        claim_ends_at_ms=None,
        idempotency_key=request.idempotency_key,
        fingerprint=fingerprint,
        request_id=request.request_id,
        order_id=intent.order_id,
        payment_id=intent.payment_id,
        subscription_id=intent.subscription_id,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        result_ref=None,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        send_by_ms=now_ms + send_within_ms,
        customer_id=intent.customer_id or (bound.customer_id if bound is not None else None),
    )


async def store_new(
    relay: Relay, request: Request, operation: Operation, intent: Intent, evidence: Evidence
) -> Acceptance:
    """Stores the claim, the guard, the call and the first journal entry of a new operation in one transaction.

    With them goes what the gateway signs once it gets the call. The entry names the operator who acts, and the current
    trace, which a later resolution continues. Raises what the intent's condition raises; StoreError.
    """
    evidence = request.signed(evidence)
    if relay.hooks.spans is not None:
        evidence = msgspec.structs.replace(evidence, traceparent=relay.hooks.spans.traceparent())
    entry = JournalEntry(version=1, at_ms=operation.created_at_ms, event=None, state=operation.state, evidence=evidence)
    signed_texts = request.gateway.signed_texts(intent.call)
    relay.hooks.reached(OperationPoint.ACCEPTING, operation.id)
    acceptance = await relay.journal.accept(
        operation,
        entry,
        intent.call,
        conflicts_with=intent.conflicts_with,
        now_ms=operation.created_at_ms,
        beside=relay.signed_texts.of_call(operation, signed_texts),
        condition=intent.condition,
    )
    relay.hooks.reached(OperationPoint.ACCEPTED, operation.id)
    return acceptance
