"""Profiles: switches that belong together, each still switchable by itself."""

from datetime import UTC, datetime

import msgspec
import pytest
from aiohttp import ClientSession

from payrelay_simulator import Simulator, Switches, serve
from payrelay_simulator.notifications import Message, Notifications
from payrelay_simulator.pages.cards import Means, Typed, means_of
from payrelay_simulator.switches import PROFILES, in_profile

NOW = datetime(2026, 9, 1, tzinfo=UTC)
FIELDS = {
    "merchant_id": "1",
    "order_id": "A",
    "payhere_amount": "1.00",
    "payhere_currency": "LKR",
    "status_code": "2",
    "card_expiry": "0129",
}


def test_every_profile_has_the_same_switches_and_values_that_can_be() -> None:
    """To go from one to another sets everything that the first one set."""
    assert len({frozenset(switches) for switches in PROFILES.values()}) == 1
    for name in PROFILES:
        msgspec.convert(msgspec.structs.asdict(in_profile(Switches(), name)), Switches)


def test_what_is_documented_is_the_default() -> None:
    """Who says nothing tests against the documents."""
    assert in_profile(Switches(), "docs") == Switches()


@pytest.mark.parametrize(("profile", "expiry"), [("docs", "0129"), ("observed", "01/29")])
def test_the_cards_expiry_is_written_as_the_profile_has_it(profile: str, expiry: str) -> None:
    """An app that reads one form alone fails where the gateway sends the other."""
    notifications = Notifications()
    message = Message(flow="payment", notify_url="http://127.0.0.1/", fields=FIELDS)
    (number,) = notifications.plan(NOW, message, switches=in_profile(Switches(), profile))

    assert notifications.find(number).fields["card_expiry"] == expiry


@pytest.mark.parametrize("typed", ["12/29", "1229", "12 / 29", "12/2029", "122029"])
def test_an_expiry_may_be_typed_as_people_type_it(typed: str) -> None:
    """No gateway turns a good card away because of four digits of a year."""
    means = means_of(
        Typed(holder_name="A", number="4916217501611292", expiry=typed, security_code="123"), ("VISA", "MASTER")
    )

    assert isinstance(means, Means)
    assert means.card.expiry == "1229"


async def test_a_profile_is_set_while_it_runs() -> None:
    """And one that there isn't is told so; a switch that was set otherwise stays."""
    simulator = Simulator(switches=Switches(rate_limit_calls=0))
    async with serve(simulator) as running, ClientSession(running.base_url) as session:
        async with session.post("/_sim/profiles/observed") as reply:
            assert (await reply.json())["card_expiry"] == "MM/YY"
        async with session.post("/_sim/profiles/odd") as reply:
            assert reply.status == 400

    assert simulator.world.switches == in_profile(Switches(rate_limit_calls=0), "observed")
