"""Asks the gateway for the payments of an order as they are now, for a person who looks at them.

The call goes through the read flow of the API, so that it keeps to the account's budget and shares it fairly.
"""

from typing import Final

import msgspec

from payrelay.core.access.credential import Scope, credential_for
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.payments.payment import Payment
from payrelay.errors import Code
from payrelay.flows.relay import Relay, Request

PRINCIPAL: Final = "console"
"""Whose calls these are when the budget is shared."""


class GatewayRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway has of an order.

    Attributes:
        at_ms: when it was asked.
        payments: what it shows; None where it gave no answer that can be read.
        failure: why there is none, in a sentence; None otherwise.
        age_s: how old the answer is, in seconds; None where it was given for this question.
    """

    at_ms: int
    payments: tuple[Payment, ...] | None
    failure: str | None = None
    age_s: int | None = None


async def read_record(relay: Relay, account: str, order_id: str, *, request_id: str) -> GatewayRecord:
    """Asks for the payments of an order as they are now.

    What it shows is noted at once, so that figures that are read next rest on it. Raises Refusal (not_found) for an
    unknown account; StoreError. May be repeated: it changes nothing at the gateway.
    """
    gateway, at_ms = relay.account(account), relay.clock.now_ms()
    scopes = frozenset({Scope.PAYMENTS_READ, Scope.ANY_PRINCIPAL})
    credential = credential_for(PRINCIPAL, created_at_ms=at_ms, credential_id=PRINCIPAL, scopes=scopes)
    request = Request(gateway=gateway, credential=credential, request_id=request_id, is_insisting=True)
    cached = await relay.read(request, PaymentsOfOrder(order_id=order_id))
    if cached.reading.code is Code.NOT_FOUND:
        return GatewayRecord(at_ms=at_ms, payments=(), age_s=cached.age_s)
    shown = None if cached.reading.code else gateway.payments_in(cached.reading.raw_data or b"[]")
    if shown is None:
        failure = cached.reading.msg if cached.reading.code else "The gateway's answer can't be read."
        return GatewayRecord(at_ms=at_ms, payments=None, failure=failure)
    if cached.age_s is None:
        await relay.read_cache.note_payments(gateway.merchant, shown, seen_at_ms=at_ms)
    return GatewayRecord(at_ms=at_ms, payments=shown, age_s=cached.age_s)
