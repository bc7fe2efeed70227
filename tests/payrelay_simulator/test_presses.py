from datetime import timedelta

import msgspec
import pytest
from aiohttp import ClientSession

from payrelay_simulator import DemoWorld, Rule, World
from payrelay_simulator.notification_faults import NotificationRule
from payrelay_simulator.presses import LATE_S, MONTH_S, PRESSES
from payrelay_simulator.switches import Switches


def planned(world: World) -> list[str]:
    """The names of what is to go wrong."""
    return [
        *(rule.fault for rule, _ in world.faults.pending),
        *(rule.fault for rule, _ in world.notifications.faults.pending),
    ]


@pytest.mark.parametrize(
    ("press", "fault"), [("lose-reply", "cut_after"), ("decline", "decline"), ("late-notification", "late")]
)
def test_a_press_lets_one_thing_go_wrong_once(world: World, press: str, fault: str) -> None:
    """Who shows a lost answer wants that answer lost, and the repeat to go well."""
    PRESSES[press].act(world)

    assert planned(world) == [fault]
    assert [left for _, left in [*world.faults.pending, *world.notifications.faults.pending]] == [1]


def test_the_lost_reply_is_that_of_a_charge(world: World) -> None:
    """The look for it afterwards must not be struck in its place."""
    PRESSES["lose-reply"].act(world)

    assert world.faults.draw("search", None) is None
    assert world.faults.draw("charge", "A1") is not None


def test_a_late_notification_says_how_late(world: World) -> None:
    """Nobody waits for what was said to come at once."""
    PRESSES["late-notification"].act(world)
    ((rule, _),) = world.notifications.faults.pending

    assert rule.args.wait_s == LATE_S
    assert f"{LATE_S:.0f} s" in PRESSES["late-notification"].said


@pytest.mark.parametrize(("installments", "seconds"), [("accelerated", 60.0), ("calendar", MONTH_S)])
def test_a_month_is_what_a_subscription_waits_for(world: World, installments: str, seconds: float) -> None:
    """Where a month takes a minute, a month of real days would bring 44,640 installments at once."""
    world.switches = msgspec.convert({"installments": installments}, Switches)
    before = world.clock.now()
    PRESSES["month"].act(world)

    assert world.clock.now() - before >= timedelta(seconds=seconds)
    assert world.clock.now() - before < timedelta(seconds=seconds + 30)


def test_a_month_brings_an_installment(world: World, demo: DemoWorld) -> None:
    """That is what the button is pressed for."""
    before = len(world.ledger)
    PRESSES["month"].act(world)

    assert demo.active_subscription_id in {each.subscription_id for each in world.ledger.entries()[before:]}


def test_nothing_goes_wrong_any_more(world: World) -> None:
    """Who has tried enough gets the well-behaved gateway back."""
    world.faults.add_rules(Rule(fault="decline", times=None))
    world.notifications.faults.add_rules(NotificationRule(fault="lost"))
    PRESSES["forget"].act(world)

    assert planned(world) == []


async def test_a_browser_comes_back_to_the_page_and_is_told(session: ClientSession) -> None:
    """The page needs no script: the form's answer leads back to it, and it says what was ordered."""
    async with session.post("/_sim/press/decline", headers={"Accept": "text/html"}) as response:
        page = await response.text()

        assert (response.status, response.url.path, response.url.query["pressed"]) == (200, "/_sim/", "decline")
    assert PRESSES["decline"].said in page


async def test_a_page_elsewhere_may_press_too(session: ClientSession) -> None:
    """A shop's page has the same buttons, and says itself what was ordered."""
    async with session.post("/_sim/press/month", headers={"Accept": "*/*"}) as response:
        told = await response.json()

        assert (response.status, told) == (200, {"said": PRESSES["month"].said})
        assert response.headers["Access-Control-Allow-Origin"] == "*"


async def test_an_unknown_press_is_refused(session: ClientSession) -> None:
    """A button that does nothing would be believed."""
    async with session.post("/_sim/press/nothing") as response:
        assert response.status == 400
    async with session.get("/_sim/?pressed=nothing") as response:
        assert response.status == 400
