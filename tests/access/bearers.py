"""Every kind of credential that a request may come with, from a key with the right scopes to garbage."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tests.access.belongings import AMOUNT, Ids
from tests.access.bench import OTHER_ACCOUNT, SHOP, Bench

from payrelay.api.requests.route import Route
from payrelay.core.access.client_token import CLIENT_SCOPES, PAYING
from payrelay.core.access.credential import DEFAULT_SCOPES, Scope

Bearer = Callable[[Bench, Route, Ids], Awaitable[str | None]]
"""Makes a credential for a request on a route; the ids are those of the caller's own thing."""

PAYS: Final = {"amount": AMOUNT, "currency": "LKR", "payments": 2}
"""What a token that may pay says of the amount; of an order with a checkout it pays a second payment."""


async def _key(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return bench.keys[SHOP]


async def _of_any_principal(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_key(SHOP, scopes=DEFAULT_SCOPES | {Scope.ANY_PRINCIPAL})


async def _without_scope(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_key(SHOP, scopes=DEFAULT_SCOPES - {route.scope})


async def _of_another_account(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_key(SHOP, accounts=frozenset({OTHER_ACCOUNT}))


async def _expired(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_key(SHOP, life_s=0)


async def _revoked(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_key(SHOP, is_revoked=True)


async def _none(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return None


async def _garbage(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return bench.keys[SHOP][:-1] + "-"


async def _garbage_token(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return "prt_eyJhbGciOiJub25lIn0.e30."


async def _of_customer(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_token({"customer_id": own["customer"]}, CLIENT_SCOPES - PAYING)


async def _of_order(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    scopes = CLIENT_SCOPES - {Scope.PAYMENTS_CHARGE}
    return await bench.new_token({"order_id": own["order"], **PAYS}, scopes)


async def _of_both(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return await bench.new_token({"customer_id": own["customer"], "order_id": own["order"], **PAYS}, CLIENT_SCOPES)


async def _token_without_scope(bench: Bench, route: Route, own: Ids) -> str | None:
    scopes = CLIENT_SCOPES - {route.scope}
    return await bench.new_token({"customer_id": own["customer"], "order_id": own["order"], **PAYS}, scopes)


async def _revoked_token(bench: Bench, route: Route, own: Ids) -> str | None:
    token = await _of_both(bench, route, own)
    await bench.ask(bench.keys[SHOP], "DELETE", f"client-tokens?customer_id={own['customer']}")
    return token


async def _identity(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return bench.provider.token(own["reference"])


async def _identity_with_order(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return bench.provider.token(own["reference"], order=own["order"])


async def _expired_identity(bench: Bench, route: Route, own: Ids) -> str | None:  # noqa: ARG001 - a bearer
    return bench.provider.token(own["reference"], exp=1, order=own["order"])


OF_KEYS: Final[Mapping[str, Bearer]] = {"key": _key, "key of any principal": _of_any_principal}
"""Credentials that know principals: to them a thing is their own, another principal's, the gateway's or nobody's."""

OF_PHONES: Final[Mapping[str, Bearer]] = {
    "customer's token": _of_customer,
    "order's token": _of_order,
    "token of both": _of_both,
    "identity": _identity,
    "identity with order": _identity_with_order,
}
"""Credentials of apps: to them a thing is their own or it isn't there, whoever has it."""

REFUSED: Final[Mapping[str, tuple[Bearer, int]]] = {
    "key without the scope": (_without_scope, 403),
    "key of another account": (_of_another_account, 403),
    "token without the scope": (_token_without_scope, 403),
    "expired key": (_expired, 401),
    "revoked key": (_revoked, 401),
    "revoked token": (_revoked_token, 401),
    "expired identity": (_expired_identity, 401),
    "none": (_none, 401),
    "garbage": (_garbage, 401),
    "garbage token": (_garbage_token, 401),
}
"""Credentials that get one answer on every route, whatever is named."""
