# ruff: noqa: S608 - what is put into the texts are the columns that are named here

"""Chargebacks are stored once, with their events."""

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import NOTIFICATION, NOW_MS
from tests.store.conftest import Tamper

from payrelay.core.events.event import OutgoingEvent
from payrelay.core.orders.chargeback import Chargeback
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import Inbox
from payrelay.store.statements.chargebacks import CHARGEBACKS

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
    chargebacks = Chargebacks(database, digests_of(database))
    assert await chargebacks.keep(CHARGEBACK, EVENT)
    again = msgspec.structs.replace(EVENT, id="evt_2")
    assert not await chargebacks.keep(CHARGEBACK, again)

    assert await chargebacks.of_operation("op_1") == [CHARGEBACK]
    assert await chargebacks.of_payment(CHARGEBACK.merchant, "320025000001") == CHARGEBACK
    assert [row[0] for row in await database.read(all_rows(Statement(EVENTS, ())))] == ["evt_1"]
    inbox = Inbox(database, Seal((b"k" * 32,)), digests_of(database))
    assert await inbox.owner_of_payment(CHARGEBACK.merchant, "320025000001") is None


@pytest.mark.parametrize(
    "change", ["amount_minor = 1", "operation_id = 'op_2'", "principal = 'kiosk'", "noted_at_ms = 1", "row_digest = ''"]
)
async def test_a_chargeback_that_somebody_wrote_is_told_to_nobody(
    database: Database, tamper: Tamper, change: str
) -> None:
    """A shop takes back what it handed over where it hears of one. The one that comes later is kept, and told."""
    rows = digests_of(database)
    chargebacks = Chargebacks(database, rows)
    await chargebacks.keep(CHARGEBACK, EVENT)
    await tamper(f"UPDATE chargebacks SET {change}")

    assert await chargebacks.of_payment(CHARGEBACK.merchant, "320025000001") is None
    assert [await chargebacks.of_operation(id_) for id_ in ("op_1", "op_2")] == [[], []]
    assert [row.is_right async for row in rows.check(CHARGEBACKS)] == [False]
    assert await chargebacks.keep(CHARGEBACK, EVENT)
    assert await chargebacks.of_operation("op_1") == [CHARGEBACK]
    assert len(await database.read(all_rows(Statement(EVENTS, ())))) == 2
