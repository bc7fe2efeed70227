"""Asks the gateway, for somebody at the console, what it has of an order now.

The call goes through the read flow of the API, so that it keeps to the account's budget and shares it fairly. The
history of what operators did has a line of it.
"""

from typing import Final

import msgspec

from payrelay.core.access.credential import Scope, stand_in
from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.console.roles import Act
from payrelay.core.payments.payment import Payment
from payrelay.errors import Code
from payrelay.flows.console.cases.parts import CaseParts
from payrelay.flows.console.parts import Actor, ConsoleParts
from payrelay.flows.relay import Request

PRINCIPAL: Final = "console"
"""Whose calls these are when the budget is shared."""
SUBJECT_LENGTH_MAX: Final = 200


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


async def ask_gateway(
    console: ConsoleParts, parts: CaseParts, actor: Actor, order: tuple[str, str], *, request_id: str
) -> GatewayRecord:
    """Asks for the payments of an order, ``order`` being its account and its id, as they are now.

    Raises Refusal (forbidden; not_found for an unknown account); StoreError.
    May be repeated: it changes nothing at the gateway.
    """
    actor.require(Act.ASK_GATEWAY)
    relay, (account, order_id) = parts.relay, order
    gateway = relay.account(account)
    at_ms = console.clock.now_ms()
    subject = f"{account}/{order_id}"[:SUBJECT_LENGTH_MAX]
    did = actor.did(Act.ASK_GATEWAY, subject, at_ms=at_ms)
    await console.acts.written(lambda: console.acts.appended(did))
    scopes = frozenset({Scope.PAYMENTS_READ, Scope.ANY_PRINCIPAL})
    credential = stand_in(PRINCIPAL, created_at_ms=at_ms, credential_id=PRINCIPAL, scopes=scopes)
    request = Request(account=account, credential=credential, request_id=request_id, is_insisting=True)
    cached = await relay.read(request, PaymentsOfOrder(order_id=order_id))
    if cached.reading.code is Code.NOT_FOUND:
        return GatewayRecord(at_ms=at_ms, payments=(), age_s=cached.age_s)
    shown = None if cached.reading.code else gateway.payments_in(cached.reading.raw_data or b"[]")
    if shown is None:
        failure = cached.reading.msg if cached.reading.code else "The gateway's answer can't be read."
        return GatewayRecord(at_ms=at_ms, payments=None, failure=failure)
    return GatewayRecord(at_ms=at_ms, payments=shown, age_s=cached.age_s)
