"""Searches at the gateway for a day: once for each order, resumed after an end, left alone while the gateway fails."""

from typing import Final

import pytest
from tests.flows.reconciliation.test_day import DAY, Office, office, told
from tests.flows.world import START_MS

from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen, PaymentStatus
from payrelay.core.reconciliation.verdicts import BooksVerdict
from payrelay.errors import Code, Refusal
from payrelay.flows.reconciliation.ask_gateway import STATES, AskedOrders, ask_gateway

__all__ = ["office"]

FAILED: Final = NoObservation(code=Code.GATEWAY_BUSY, evidence=Evidence())


def seen(amount_minor: int = 100_000) -> PaymentsSeen:
    """Gives what a search for the order shows."""
    payment = Payment(
        payment_id="320025000001",
        order_id="A-1",
        at_ms=START_MS,
        description="Tea",
        status=PaymentStatus.RECEIVED,
        currency="LKR",
        amount_minor=amount_minor,
    )
    return PaymentsSeen(payments=(payment,), evidence=Evidence())


async def asked(office: Office) -> AskedOrders:
    """Asks for the day, without a pause."""

    async def pause(_seconds: float) -> None:
        return None

    return await ask_gateway(office.relay, office.scope, DAY, pause=pause)


async def test_a_search_makes_the_own_orders_agree(office: Office) -> None:
    """What only the gateway has stays unknown, as no search lists it."""
    await office.pay()
    office.wait(1)
    office.world.account.observations.append(seen())
    assert (await asked(office)).asked == 1
    report = await office.run()
    assert told(report) == []
    assert report.count(BooksVerdict.AGREED) == 1
    assert "payment" in {each.movement for each in report.unseen}
    assert report.rests_on == ("searches at the gateway, for 1 of what is listed or summed up",)


async def test_an_order_is_searched_for_once(office: Office) -> None:
    """A day that was interrupted goes on where it was."""
    await office.pay()
    office.wait(1)
    office.world.account.observations.append(seen())
    await asked(office)
    again = await asked(office)
    assert (again.asked, again.known) == (0, 1)


async def test_what_the_gateway_does_not_show_is_only_ours(office: Office) -> None:
    """It was asked for this very order, after its day."""
    await office.pay()
    office.wait(1)
    await asked(office)
    assert told(await office.run()) == [("320025000001", BooksVerdict.ONLY_OURS)]


async def test_a_search_that_fails_shows_nothing(office: Office) -> None:
    """A gateway that can't be asked has not said that the payment isn't there."""
    await office.pay()
    office.wait(1)
    office.world.account.observations.append(FAILED)
    assert (await asked(office)).failed == 1
    assert told(await office.run()) == [("320025000001", BooksVerdict.UNKNOWABLE)]


async def test_a_day_that_is_not_over_is_not_asked_for(office: Office) -> None:
    """A search in the morning says nothing of the evening."""
    with pytest.raises(Refusal, match="is not over"):
        await asked(office)


def test_each_status_of_the_gateways_has_its_state() -> None:
    """A status without one would end a whole day's searches."""
    assert STATES.keys() == set(PaymentStatus)
