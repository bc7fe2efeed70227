"""Sends a held operation, after an operator decided so, by the code that every first sending takes."""

from typing import Final

import msgspec

from payrelay.core.payments.operation import Operation
from payrelay.errors import Code, Refusal
from payrelay.flows.access.ownership import require_own
from payrelay.flows.operations.answer_repeat import find_equal
from payrelay.flows.operators.held.intent_of_held import intent_of_held, request_of_held
from payrelay.flows.payments.carry_out import Attempt
from payrelay.flows.payments.free_order import require_no_page
from payrelay.flows.relay import Relay

OTHER_MERCHANT_SENTENCE: Final = "the account is another merchant's now; this request was not sent"


async def send_held(relay: Relay, held: Operation, *, operator: str, reason: str) -> Operation:
    """Sends a held operation once, and returns it with its outcome as far as it is known.

    What the gateway must show beforehand is read anew. Raises Refusal where the account is paused, the database is
    behind, the customer is gone, a page of the order asks for money, the order is another principal's by now, or no
    permit came in time. It is conflict for a request without a key, an equal one of which succeeded under a key. Raises
    Outdated or OverruledError where the operation is held no more, and StoreError. Nothing was sent then.
    """
    request = request_of_held(held)
    if relay.account(held.account).merchant != held.merchant:
        raise Refusal(Code.CONFLICT, OTHER_MERCHANT_SENTENCE)
    await relay.database.lost_commits.require_effects_allowed()
    await relay.paused.require_open(held.account)
    await require_no_page(relay, request, await require_own(relay, request, held.subject))
    intent = await intent_of_held(relay, request, held, await relay.journal.call_of(held.id))
    equal = await find_equal(relay, request, intent, held.fingerprint, but_for=held.id, asked_at_ms=held.created_at_ms)
    if equal is not None:
        msg = f"an equal request with a key was carried out as {equal.operation.id}; this request was not sent"
        raise Refusal(Code.CONFLICT, msg)
    evidence = msgspec.structs.replace(intent.evidence, operator=operator, reason=reason)
    attempt = Attempt(relay, request, intent)
    await attempt.run_held(held, evidence)
    return attempt.operation
