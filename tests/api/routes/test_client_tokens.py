import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
from tests.api.openapi.test_document import DOCUMENT
from tests.flows.vault import SEAL, approved_in
from tests.flows.world import World, asked, opened

from payrelay.api.requests.body import parse_body
from payrelay.api.routes.client_tokens import ClientTokenBody
from payrelay.errors import Code, Refusal
from payrelay.flows.access.issue_client_token import issue_client_token
from payrelay.store.access.client_tokens import ClientTokens
from payrelay.store.access.signing_keys import SigningKeys

SCHEMA: dict[str, Any] = {"$ref": "#/components/schemas/ClientTokenRequest", "components": DOCUMENT["components"]}
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
ODD: dict[str, list[object]] = {
    "order_id": ["A-1", None],
    "type": ["payment", "preapproval", "recurring", "authorization", None],
    "amount": [100, "open", None],
    "amount_max": [500, None],
    "currency": ["LKR", None],
    "payments": [2, None],
    "recurrence": ["1 Month", None],
    "duration": ["1 Year", "Forever", None],
    "startup_fee": [10, None],
    "scopes": [["payments:charge"], ["checkouts:create"], ["payments:read"], [], None],
    "expires_in_s": [60, None],
}
BODIES = 1500


async def test_the_rules_between_members_are_those_of_the_document(tmp_path: Path) -> None:
    """A body that the document allows is accepted, and one that it forbids is refused, with null as if left out.

    JSON Schema finds every scope in null unless it asks for a list: a body without scopes was told to name an amount.
    """
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    world.relay = replace(
        world.relay,
        access=replace(
            world.relay.access,
            client_tokens=ClientTokens(world.database, world.relay.checkouts.rows),
            signing_keys=SigningKeys(world.database, SEAL, world.clock),
        ),
    )
    ODD["customer_id"] = [(await approved_in(world)).id, None]
    chance, taken = Random(1), 0  # noqa: S311 - the same bodies at each run
    for _ in range(BODIES):
        names = chance.sample(sorted(ODD), chance.randint(1, 6))
        body = {name: chance.choice(ODD[name]) for name in names}
        is_taken = await _is_taken(world, body)
        taken += is_taken
        assert VALIDATOR.is_valid(body) is is_taken, json.dumps(body)
    await world.relay.background.finish(0)
    await world.database.close()
    assert BODIES / 20 < taken < BODIES


async def _is_taken(world: World, body: dict[str, object]) -> bool:
    try:
        await issue_client_token(world.relay, asked(), parse_body(json.dumps(body).encode(), ClientTokenBody).call())
    except Refusal as refusal:
        if refusal.code is not Code.INVALID_REQUEST:
            raise
        return False
    return True
