"""What became of a chargeback: how much of it counts, whether it was won, and whether it came again."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.flows.inbox_world import MERCHANT, PAYMENT_ID, InboxWorld, body_of, inbox_world, payment_of

from payrelay.console.flows.cases.event_moments import of_chargeback
from payrelay.core.money import decimal_text, money_text
from payrelay.core.notifications.notification import WAITS_FOR_MS, NotificationReason, NotificationState
from payrelay.core.orders.figures import DoubtKind, PaymentBalance
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.payment import PaymentStatus
from payrelay.flows.order_balance import read_balance
from payrelay.flows.payments.find_operations import chargebacks_of
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query

TOLD: Final = query("SELECT data FROM outbox WHERE type = 'payment.charged_back'")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def balance(world: InboxWorld) -> PaymentBalance:
    """Reads the balance of the only payment of the order."""
    (payment,) = (await read_balance(world.relay, MERCHANT, "A-1")).payments
    return payment


def shows(world: InboxWorld, status: PaymentStatus) -> None:
    """Has the gateway's record of the payment show another status."""
    world.payments[:] = [msgspec.structs.replace(each, status=status) for each in world.payments]


async def charged_back(world: InboxWorld, **fields: str) -> None:
    """Charges, and has a bank take the payment back."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.payments.append(payment_of())
    world.charge_back()
    assert (await world.take(body_of("-3", **fields))).reason is NotificationReason.CHARGEBACK_KEPT


async def test_a_chargeback_leaves_nothing(world: InboxWorld) -> None:
    """A refund of it would be the second time that the customer gets the money."""
    await charged_back(world)
    found = await balance(world)
    assert (found.charged_back_minor, found.left_minor, found.is_certain) == (100_000, 0, True)


async def test_a_chargeback_that_no_record_shows_is_a_doubt_until_it_is_decided(world: InboxWorld) -> None:
    """Nobody reads the order as paid and certain meanwhile. The record's proof, or the end of the wait, decides."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=PAYMENT_ID, order_id="A-1")
    world.payments.append(payment_of())
    told = await world.take(body_of("-3"))
    doubted = await balance(world)
    await world.later(WAITS_FOR_MS)
    over = await balance(world)

    assert (told.reason, doubted.left_minor) == (NotificationReason.CHARGEBACK_NOT_SHOWN, 100_000)
    assert [(each.kind, each.id) for each in doubted.doubts] == [(DoubtKind.CHARGEBACK_NOT_SHOWN, told.id)]
    assert ((await world.all())[0].state, over.is_certain) == (NotificationState.NEEDS_ATTENTION, True)


async def test_a_chargeback_of_a_part_is_a_part_that_nobody_signed(world: InboxWorld) -> None:
    """The rest may be refunded; but whoever edits a notification could make the part smaller, so it isn't certain."""
    await charged_back(world, captured_amount="400.00")
    found = await balance(world)
    assert (found.charged_back_minor, found.left_minor) == (40_000, 60_000)
    assert [each.kind for each in found.doubts] == [DoubtKind.PART_NOT_SIGNED]


@pytest.mark.parametrize(
    ("fields", "amount_minor"),
    [({}, 100_000), ({"captured_amount": "400.00"}, 40_000), ({"captured_amount": "1000.00"}, 100_000)],
)
async def test_everybody_is_told_what_was_charged_back(
    world: InboxWorld, fields: dict[str, str], amount_minor: int
) -> None:
    """A shop books the event's amount as lost: the whole in place of a part would hide what it still has."""
    await charged_back(world, **fields)
    amount = decimal_text(amount_minor)
    [(data,)] = await world.database.read(all_rows(Statement(TOLD, ())))
    assert json.loads(str(data))["amount"] == amount

    operation = await world.world.operation()
    [shown] = await chargebacks_of(world.relay, operation.id)
    assert bytes(shown.amount).decode() == amount
    [kept] = await world.relay.money.chargebacks.of_operation(operation.id)
    assert kept.charged_back_minor == amount_minor == (await balance(world)).charged_back_minor
    assert money_text(amount_minor, "LKR") in of_chargeback(kept, is_won=False).text


@pytest.mark.parametrize("part", ["1000.00", "1000.01", "0.00", "0400.0", "much", ""])
async def test_what_is_no_part_is_the_whole(world: InboxWorld, part: str) -> None:
    """A field that says nothing of a part takes nothing away from the chargeback."""
    await charged_back(world, captured_amount=part)
    assert ((await balance(world)).charged_back_minor, (await balance(world)).is_certain) == (100_000, True)


async def test_a_later_success_has_the_record_read_and_the_chargeback_is_won(world: InboxWorld) -> None:
    """The merchant has the money again: it is left, and may be refunded. One look doesn't say so."""
    await charged_back(world)
    shows(world, PaymentStatus.RECEIVED)
    await world.later(600_000)
    assert (await world.take(body_of("2"))).reason is NotificationReason.CHARGEBACK_MAY_BE_WON
    assert [each.kind for each in (await balance(world)).doubts] == [DoubtKind.RECEIVED_AGAIN]
    for _ in range(3):
        await world.later(SECOND_LOOK_MS)
    assert (await world.all())[0].reason is NotificationReason.CHARGEBACK_WON
    found = await balance(world)
    assert (found.charged_back_minor, found.left_minor, found.is_certain) == (0, 100_000, True)


async def test_a_later_success_alone_wins_no_chargeback(world: InboxWorld) -> None:
    """Whoever has an old notification can post it again; the record decides."""
    await charged_back(world)
    await world.later(600_000)
    assert (await world.take(body_of("2"))).reason is NotificationReason.OPERATION_RESOLVED
    assert (await balance(world)).charged_back_minor == 100_000


async def test_a_record_that_cannot_be_read_has_the_notification_wait(world: InboxWorld) -> None:
    """It is tried again: the money may be there."""
    await charged_back(world)
    world.account.is_hidden = True
    await world.later(600_000)
    assert (await world.take(body_of("2"))).reason is NotificationReason.UNSEEN


@pytest.mark.parametrize("fields", [{"payment_id": None}, {"payment_id": "320025000009"}, {"order_id": "A-2"}])
async def test_a_success_of_something_else_reads_no_record(world: InboxWorld, fields: dict[str, Any]) -> None:
    """It is about no payment that was charged back, and so costs no call for that."""
    await charged_back(world)
    await world.later(600_000)
    assert (await world.take(body_of("2", **fields))).reason is not NotificationReason.CHARGEBACK_WON
    assert (await balance(world)).charged_back_minor == 100_000


async def test_a_payment_is_charged_back_a_second_time(world: InboxWorld) -> None:
    """The bank takes again what the merchant had won; that is news, with an event of its own."""
    await charged_back(world)
    shows(world, PaymentStatus.RECEIVED)
    await world.later(600_000)
    await world.take(body_of("2"))
    for _ in range(3):
        await world.later(SECOND_LOOK_MS)
    world.charge_back()
    await world.later(600_000)
    taken = await world.take(body_of("-3", custom_1="again"))
    assert taken.reason is NotificationReason.CHARGEBACK_KEPT
    assert (await balance(world)).charged_back_minor == 100_000
    assert (await world.event_types()).count("payment.charged_back") == 2
