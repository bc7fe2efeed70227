"""Chargebacks are stored once, with their events."""

import msgspec
from tests.digests import digests_of
from tests.samples import NOTIFICATION, NOW_MS

from payrelay.core.events.event import OutgoingEvent
from payrelay.store.chargebacks import Chargeback, Chargebacks
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import Inbox

CHARGEBACK = Chargeback(
    merchant=NOTIFICATION.merchant,
    payment_id="320025000001",
    order_id="A-1",
    account="gateway",
    principal="shop",
    operation_id="op_1",
    amount_minor=100_000,
    currency="LKR",
    notification_id="ntf_0001",
    noted_at_ms=NOW_MS,
)
EVENT = OutgoingEvent(
    id="evt_1",
    type="payment.charged_back",
    account="gateway",
    merchant=NOTIFICATION.merchant,
    principal="shop",
    subject="payment:320025000001",
    at_ms=NOW_MS,
    data={"payment_id": "320025000001"},
)
EVENTS = query("SELECT id FROM outbox")


async def test_a_chargeback_is_stored_once_with_its_event(database: Database) -> None:
    """A second event would be booked twice; without one, the chargeback would be missed."""
    chargebacks = Chargebacks(database)
    assert await chargebacks.keep(CHARGEBACK, EVENT)
    again = msgspec.structs.replace(EVENT, id="evt_2")
    assert not await chargebacks.keep(CHARGEBACK, again)

    assert await chargebacks.of_operation("op_1") == [CHARGEBACK]
    assert await chargebacks.of_payment(CHARGEBACK.merchant, "320025000001") == CHARGEBACK
    assert [row[0] for row in await database.read(all_rows(Statement(EVENTS, ())))] == ["evt_1"]
    inbox = Inbox(database, Seal((b"k" * 32,)), digests_of(database))
    assert await inbox.owner_of_payment(CHARGEBACK.merchant, "320025000001") is None
