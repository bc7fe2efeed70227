"""What a bound credential, a phone's, may do on each route: the policies that the table of routes names.

Rules:

1. A route without a policy is closed to phones; a test wants each route to name one.
2. A policy sees the request before the handler, and gives it narrowed to what belongs to the credential, or refuses it.
3. What belongs to somebody else is answered as what doesn't exist, and nobody upstream is asked for it.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from payrelay.api.bodies import ChargeBody, parse_body
from payrelay.api.handlers import Asked
from payrelay.api.json_text import parse_object
from payrelay.core.bounds import has_order, key_of_bound
from payrelay.core.credentials import Bound
from payrelay.errors import Code, Refusal
from payrelay.operations.relay import Relay
from payrelay.store.journal import Filter

Policy = Callable[[Relay, Asked, Bound], Awaitable[Asked]]
"""Gives the request as the credential may make it; raises Refusal."""

CLOSED: Final = "a client token may not do this"


async def refused(relay: Relay, asked: Asked, bound: Bound) -> Asked:  # noqa: ARG001 - a policy
    """Closes a route to phones."""
    raise Refusal(Code.FORBIDDEN, CLOSED)


async def only_own(relay: Relay, asked: Asked, bound: Bound) -> Asked:  # noqa: ARG001 - a policy
    """Leaves it to the story, which shows what ``core.bounds`` says is the credential's own, and nothing else."""
    return asked


async def own_order(relay: Relay, asked: Asked, bound: Bound) -> Asked:
    """Opens the payments of one's own order: the bound one, or one on which something was done for the customer."""
    is_own = asked.id == bound.order_id
    if bound.order_id is None and bound.customer_id is not None:
        is_own = await _has_operation_on(relay, asked, bound)
    if not is_own:
        raise Refusal(Code.NOT_FOUND, "there is no such order")
    return asked


async def own_charge(relay: Relay, asked: Asked, bound: Bound) -> Asked:  # noqa: ARG001 - a policy
    """Opens paying one's own order with one's own card; ``customer_token`` may be left out."""
    if bound.customer_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no customer to charge")
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no order to pay")
    body = asked.body
    if "customer_token" not in parse_object(body):
        body = _with_customer(body, bound.customer_id)
    given = parse_body(body, ChargeBody)
    charge = given.call()
    if charge.customer_token != bound.customer_id:
        raise Refusal(Code.FORBIDDEN, "the token may charge its own customer only")
    if not has_order(bound, charge.order_id):
        raise Refusal(Code.FORBIDDEN, "the token may pay its own order only")
    if bound.currency is not None and charge.currency != bound.currency:
        raise Refusal(Code.FORBIDDEN, f"the token may pay in {bound.currency} only")
    if charge.notify_url is not None:
        raise Refusal(Code.FORBIDDEN, "the token may not say where notifications go (notify_url)")
    return msgspec.structs.replace(asked, body=body)


async def own_checkout(relay: Relay, asked: Asked, bound: Bound) -> Asked:  # noqa: ARG001 - a policy
    """Opens asking for one's own order on the gateway's page; the story holds the rest of it to the bounds.

    Without an order it would say of any order whether it is taken, and take it.
    """
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the token names no order to pay")
    return asked


async def own_key(relay: Relay, asked: Asked, bound: Bound) -> Asked:  # noqa: ARG001 - a policy
    """Opens what was done under one's own Idempotency-Key."""
    return msgspec.structs.replace(asked, id=key_of_bound(bound, asked.id))


def require_open(policy: Policy | None) -> None:
    """Raises Refusal (forbidden) where a route is closed to phones, before anything of the request is read."""
    if policy is None or policy is refused:
        raise Refusal(Code.FORBIDDEN, CLOSED)


async def narrowed(policy: Policy | None, relay: Relay, asked: Asked) -> Asked:
    """Gives a request as its credential may make it: unchanged for a key, by the route's policy for a phone.

    Raises Refusal.
    """
    bound = asked.request.credential.bound
    if bound is None:
        return asked
    if policy is None:
        raise Refusal(Code.FORBIDDEN, CLOSED)
    key = asked.request.idempotency_key
    if key is not None:
        request = msgspec.structs.replace(asked.request, idempotency_key=key_of_bound(bound, key))
        asked = msgspec.structs.replace(asked, request=request)
    return await policy(relay, asked, bound)


async def _has_operation_on(relay: Relay, asked: Asked, bound: Bound) -> bool:
    request = asked.request
    wanted = Filter(
        principal=request.principal, account=request.account, order_id=asked.id, customer_id=bound.customer_id
    )
    return bool(await relay.journal.list(wanted, before=None, limit=1))


def _with_customer(body: bytes, customer_id: str) -> bytes:
    """Adds the member to the text of an object; the rest stays byte for byte, amounts among it."""
    rest = body[body.index(b"{") + 1 :]
    comma = b"" if rest.lstrip().startswith(b"}") else b","
    return b'{"customer_token":"' + customer_id.encode() + b'"' + comma + rest
