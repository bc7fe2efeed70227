"""What the tests of stored customers have in common: an approval, and short words for what is done with it."""

from typing import Final

import msgspec
from tests.flows.world import CHARGE, World

from payrelay.core.calls import Charge
from payrelay.core.customers.customer import Approval, Customer, CustomerFilter
from payrelay.core.secret import Secret
from payrelay.flows.customers.approve_customer import approve
from payrelay.store.engine.database import Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal

TOKEN: Final = "CANARY59AFEE022CC69CA39D325E1B59"
MERCHANT: Final = "0123456789abcdef"
APPROVAL: Final = Approval(
    account="gateway",
    merchant=MERCHANT,
    principal="shop",
    reference="person-7",
    token=Secret(TOKEN),
    method="VISA",
    card_no_masked="************1292",
    card_expiry="0129",
    card_holder="CANARY PERERA",
    order_id="APPROVED-1",
)
SEAL: Final = Seal((b"k" * 32,))
_EVENTS: Final = query("SELECT type, subject FROM outbox ORDER BY seq")


async def approved_in(world: World, **members: object) -> Customer:
    """Takes in an approval, but for what is named."""
    return await approve(world.relay, msgspec.structs.replace(APPROVAL, **members))


def charge_by(customer_id: str, **members: object) -> Charge:
    """Gives a charge that names a customer by its handle."""
    return msgspec.structs.replace(CHARGE, customer_token=customer_id, **members)


async def stored(world: World) -> list[Customer]:
    """Gives all customers, newest first."""
    return await world.relay.customers.list(CustomerFilter(), before=None, limit=100)


async def told(world: World) -> list[str]:
    """Gives the types of all events of customers, oldest first."""
    rows = await world.database.read(_rows(Statement(_EVENTS, ())))
    return [str(row[0]) for row in rows if str(row[1]).startswith("customer:")]


def _rows(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)
