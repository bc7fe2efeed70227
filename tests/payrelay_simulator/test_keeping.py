"""A kept world: what somebody was told of is there again, whenever the simulator was killed."""

import pickle
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import ClientSession

from payrelay_simulator import DEFAULT_MERCHANT, Caller, KeptWorldError, Simulator, Switches, demo_world, serve
from payrelay_simulator.keeping import VERSION, kept_clock

BODY = {"order_id": "A-1", "items": "Tea", "currency": "LKR", "amount": 5, "customer_token": "D3A0" * 8}


def charged(simulator: Simulator, order_id: str = "A-1") -> None:
    """Charges a customer of the demonstration world."""
    assert Caller(simulator.world).post("payment/charge", {**BODY, "order_id": order_id}).document["status"] == 1
    simulator.stage.changed()


def test_a_world_goes_on_where_it_was(tmp_path: Path) -> None:
    """The same ledger, records, notifications and switches, and the numbers that follow them."""
    first = Simulator(switches=Switches(rate_limit_calls=0))
    demo_world(first)
    first.keep_in(tmp_path / "world")
    charged(first)
    second = Simulator.go_on_from(tmp_path / "world")

    assert second.ledger() == first.ledger()
    assert second.world.switches == first.world.switches
    assert second.world.state.payments == first.world.state.payments
    assert second.world.calls.arrived == first.world.calls.arrived
    charged(second, "A-2")
    charged(first, "A-2")
    assert [each.payment_id for each in second.ledger()] == [each.payment_id for each in first.ledger()]


async def test_a_call_is_kept_before_its_reply(tmp_path: Path) -> None:
    """Whoever got the reply finds the payment again, although the simulator is killed at that moment."""
    simulator = Simulator()
    demo_world(simulator)
    simulator.keep_in(tmp_path / "world")
    async with serve(simulator) as running, ClientSession(running.base_url) as session:
        pair = b64encode(f"{DEFAULT_MERCHANT.app_id}:{DEFAULT_MERCHANT.app_secret}".encode()).decode()
        form = {"grant_type": "client_credentials"}
        async with session.post(
            "/merchant/v1/oauth/token", data=form, headers={"Authorization": f"Basic {pair}"}
        ) as reply:
            bearer = {"Authorization": f"Bearer {(await reply.json())['access_token']}"}
        async with session.post("/merchant/v1/payment/charge", json=BODY, headers=bearer) as reply:
            assert reply.status == 200
            killed = Simulator.go_on_from(tmp_path / "world")
        await (await session.post("/_sim/clock", json={"advance_s": 86_400})).read()
    later = Simulator.go_on_from(tmp_path / "world")
    assert killed.ledger()[-1].order_id == BODY["order_id"]
    assert later.world.clock.now() >= datetime.now(UTC) + timedelta(hours=23)


async def test_a_reset_is_kept_too(tmp_path: Path) -> None:
    """What was forgotten on purpose doesn't come back with the next start."""
    simulator = Simulator()
    demo_world(simulator)
    simulator.keep_in(tmp_path / "world")
    async with serve(simulator) as running, ClientSession(running.base_url) as session:
        await (await session.post("/_sim/reset")).read()

    assert Simulator.go_on_from(tmp_path / "world").ledger() == ()


def test_a_clock_that_was_ahead_stays_so_and_never_goes_back() -> None:
    """A month that passed yesterday has passed today; a machine whose clock was set back changes nothing."""
    now = datetime.now(UTC)

    assert kept_clock(now, 3_600).now() >= now + timedelta(seconds=3_599)
    assert kept_clock(now + timedelta(days=9), 0).now() >= now + timedelta(days=9)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "isn't there"),
        (b"", "can't be read"),
        (b"not a world", "can't be read"),
        (pickle.dumps((VERSION + 1, datetime.now(UTC), 0.0, {})), "another version"),
        (pickle.dumps((VERSION, datetime.now(UTC), 0.0, {"state": 1})), "another version"),
    ],
)
def test_what_is_no_kept_world_is_an_error(tmp_path: Path, content: bytes | None, why: str) -> None:
    """A world that began anew without a word would disagree with the books beside it."""
    if content is not None:
        (tmp_path / "world").write_bytes(content)

    with pytest.raises(KeptWorldError, match=why):
        Simulator.go_on_from(tmp_path / "world")


def test_a_kept_world_is_nobody_elses(tmp_path: Path) -> None:
    """It has the merchant's secrets, and whoever writes it is believed."""
    Simulator().keep_in(tmp_path / "world")

    assert (tmp_path / "world").stat().st_mode & 0o077 == 0
