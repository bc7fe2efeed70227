"""A relay that can open checkouts, and short words for what tests do with them over and over."""

import json
from dataclasses import replace
from typing import Any, Final

import msgspec
from tests.flows.world import START_MS, World, asked
from tests.samples import ASKED, PAYMENT

from payrelay.core.answers import Answer
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.checkouts.hosted_payment import NewCheckout
from payrelay.core.checkouts.return_links import parse_rule
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import PaymentsSeen
from payrelay.core.secret import Secret
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.relay import Relay
from payrelay.gateways.payhere.wire.checkout_forms import Merchant
from payrelay.store.engine.database import Row, Statement, Unit
from payrelay.store.engine.queries import query

SIGNER: Final = Merchant(
    base_url="https://sandbox.payhere.lk", merchant_id="1211149", merchant_secret=Secret("MzExMTIyMjMzMw==")
)
PUBLIC_URL: Final = "https://pay.example"
LIFE_S: Final = 600

_TOLD: Final = query("SELECT type FROM outbox ORDER BY seq")


def hosting(world: World) -> Relay:
    """Gives the world's relay with what else checkouts need."""
    world.account.signer = SIGNER
    return replace(
        world.relay,
        settings=replace(
            world.relay.settings,
            public_url=PUBLIC_URL,
            return_links=(parse_rule("myshop://"), parse_rule("https://shop.example/*")),
        ),
    )


def new(**members: object) -> NewCheckout:
    """A checkout of tea, but for what is named: of the checkout itself, or of what is asked."""
    own = {name: members.pop(name) for name in list(members) if name in NewCheckout.__struct_fields__}
    wanted = NewCheckout(payment=msgspec.structs.replace(ASKED, **members), expires_in_s=LIFE_S)
    return msgspec.structs.replace(wanted, **own)


def data_of(answer: Answer) -> dict[str, Any]:
    """What an answer says."""
    assert answer.http_status == 200, answer.body
    data = json.loads(answer.body)["data"]
    assert isinstance(data, dict)
    return data


async def opened(relay: Relay, wanted: NewCheckout | None = None, *, key: str | None = None) -> Checkout:
    """Opens a checkout, and gives its row."""
    answer = await open_checkout(relay, asked(key), wanted or new())
    return await current(relay, data_of(answer)["id"])


async def secret_of(relay: Relay, checkout: Checkout) -> str:
    """The secret in the address of its page."""
    details = await relay.checkouts.details_of(checkout.id)
    assert details is not None
    return details.secret


async def current(relay: Relay, checkout_id: str) -> Checkout:
    """The row as it stands."""
    checkout = await relay.checkouts.get(checkout_id)
    assert checkout is not None
    return checkout


def _rows(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)


async def told(world: World) -> list[str]:
    """The types of the events that were written."""
    return [str(row[0]) for row in await world.database.read(_rows(Statement(_TOLD, ())))]


def seen(**members: object) -> PaymentsSeen:
    """A payment of the tea as the gateway shows it."""
    payment = msgspec.structs.replace(PAYMENT, at_ms=START_MS)
    return PaymentsSeen(payments=(msgspec.structs.replace(payment, **members),), evidence=Evidence())
