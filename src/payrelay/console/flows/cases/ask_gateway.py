"""Asks the gateway, for somebody at the console, what it has of an order now.

The history of what operators did has a line of it.
"""

from typing import Final

from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.flows.parts import ConsoleParts
from payrelay.core.operators.roles import Act
from payrelay.flows.gateway_record import GatewayRecord, read_record
from payrelay.flows.operators.parts import Actor

__all__ = ["GatewayRecord", "ask_gateway"]

SUBJECT_LENGTH_MAX: Final = 200


async def ask_gateway(
    console: ConsoleParts, parts: CaseParts, actor: Actor, order: tuple[str, str], *, request_id: str
) -> GatewayRecord:
    """Asks for the payments of an order, ``order`` being its account and its id, as they are now.

    Raises Refusal (forbidden; not_found for an unknown account); StoreError.
    May be repeated: it changes nothing at the gateway.
    """
    actor.require(Act.ASK_GATEWAY)
    account, order_id = order
    parts.relay.account(account)
    subject = f"{account}/{order_id}"[:SUBJECT_LENGTH_MAX]
    did = actor.did(Act.ASK_GATEWAY, subject, at_ms=console.clock.now_ms())
    await console.acts.written(lambda: console.acts.appended(did))
    return await read_record(parts.relay, account, order_id, request_id=request_id)
