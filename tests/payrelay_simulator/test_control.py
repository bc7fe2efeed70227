import gzip
from typing import Any

import pytest
from aiohttp import ClientSession

from payrelay_simulator import DemoWorld, Running, World

Body = dict[str, object]


async def call(session: ClientSession, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
    """Give an order and return what comes back, which must be good."""
    async with session.request(method, f"/_sim/{path}", json=body) as response:
        assert response.status == 200
        return await response.json()


async def test_clock_moves_and_time_does_its_work(session: ClientSession, world: World) -> None:
    """Installments fall due when the clock is moved, without any other call."""
    before = len(world.ledger)
    document = await call(session, "POST", "clock", {"advance_s": 60})

    assert document["gateway_date"] == "2026-09-01 12:01:00"
    assert len(world.ledger) == before + 1


async def test_only_named_switches_change(session: ClientSession) -> None:
    """One question can be answered differently without repeating all the others."""
    before = await call(session, "GET", "switches")
    after = await call(session, "POST", "switches", {"authorize": "refused"})

    assert after == {**before, "authorize": "refused"}
    assert await call(session, "GET", "switches") == after


async def test_compressed_body_is_not_read(session: ClientSession) -> None:
    """A few bytes may stand for as many as somebody likes, and the gateway reads none."""
    for text in (gzip.compress(b'{"advance_s": 60}'), b"none"):
        async with session.post("/_sim/clock", data=text, headers={"Content-Encoding": "gzip"}) as response:
            assert response.status == 400


async def test_script_is_shown_until_it_is_used_up(session: ClientSession, charge_body: Body) -> None:
    """One can see what is still to come."""
    script = [{"fault": "decline", "match": {"order_id": "Order12345"}, "args": {"shape": "envelope"}}]
    shown = await call(session, "POST", "faults", {"script": script, "schedule": {"seed": 1, "probabilities": {}}})
    assert (shown["script"][0]["left"], shown["schedule"]["seed"]) == (1, 1)
    async with session.post("/merchant/v1/payment/charge", json=charge_body) as response:
        assert (await response.json())["status"] == -1

    assert (await call(session, "GET", "faults"))["script"] == []


async def test_clearing_faults_mends_everything(session: ClientSession, running: Running) -> None:
    """One order brings the gateway back, whatever was wrong with it."""
    await call(session, "POST", "faults", {"script": [{"fault": "cut_after", "times": None}]})
    await call(session, "POST", "listener", {"reset_connections": 5})
    running.listener.reset_next(0)
    document = await call(session, "DELETE", "faults")

    assert document == {"script": [], "schedule": None, "notifications": [], "notification_schedule": None}
    assert running.listener.is_open


async def test_listener_can_be_closed_for_a_while(session: ClientSession, running: Running) -> None:
    """The order itself is still answered."""
    document = await call(session, "POST", "listener", {"close_for_s": 60})
    assert (document["is_open"], running.listener.is_open) == (False, False)

    await running.listener.open()

    assert "now" in await call(session, "GET", "clock")


async def test_planted_records_can_be_used(session: ClientSession, charge_body: Body) -> None:
    """A test makes its own customers, payments, holds and subscriptions."""
    token = "AB" * 16
    planted = await call(
        session,
        "POST",
        "seed_data",
        {
            "customers": [{"customer_token": token}],
            "payments": [{"order_id": "P", "amount": 5.25}],
            "holds": [{"order_id": "H", "amount": "7.00"}],
            "subscriptions": [{"order_id": "S", "customer_token": token, "amount": 1}],
        },
    )
    assert {name: len(rows) for name, rows in planted.items()} == dict.fromkeys(planted, 1)
    async with session.post("/merchant/v1/payment/charge", json={**charge_body, "customer_token": token}) as response:
        assert (await response.json())["status"] == 1


async def test_ledger_and_calls_are_paged(session: ClientSession, demo: DemoWorld) -> None:
    """What happened and what arrived can be read from outside."""
    ledger = await call(session, "GET", "ledger?after=1&count=2")
    calls = await call(session, "GET", "calls")

    assert [entry["number"] for entry in ledger["entries"]] == [2, 3]
    assert ledger["entries"][0]["payment_id"] == demo.twice_paid_payment_ids[0]
    assert [record["endpoint"] for record in calls["calls"]] == ["token"]


async def test_money_goes_and_comes_back_by_order(session: ClientSession, demo: DemoWorld) -> None:
    """What banks do days later happens when a test says so."""
    payment_id = demo.paid_payment_id
    async with session.post("/merchant/v1/payment/refund", json={"payment_id": payment_id, "description": "x"}) as told:
        await call(session, "POST", "refunds/failed", {"refund_id": (await told.json())["data"]})
    await call(session, "POST", "chargebacks", {"payment_id": payment_id, "amount": "40.00"})
    await call(session, "POST", "chargebacks/won", {"payment_id": payment_id})

    entries = (await call(session, "GET", "ledger"))["entries"]
    of_payment = [(each["kind"], each["amount_cents"]) for each in entries if each["payment_id"] == payment_id]
    assert of_payment == [
        ("charge", 100_000),
        ("refund", 100_000),
        ("refund_reversal", 100_000),
        ("chargeback", 4_000),
        ("chargeback_reversal", 4_000),
    ]


async def test_reset_forgets_everything(session: ClientSession, running: Running) -> None:
    """The next test begins with nothing; the old token is gone too."""
    await call(session, "POST", "reset")

    assert running.simulator.ledger() == ()
    async with session.get("/merchant/v1/subscription") as response:
        assert (await response.json())["error"] == "invalid_token"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("clock", {"advance_s": -1}, "advance_s"),
        ("clock", {"advance_s": "x"}, "advance_s"),
        ("clock", {}, "advance_s"),
        ("clock", [], "body"),
        ("switches", {"authorize": "maybe"}, "authorize"),
        ("switches", {"authorise": "works"}, "authorise"),
        ("faults", {"script": [{"fault": "earthquake"}]}, "script[0].fault"),
        ("faults", {"script": [{"fault": "decline", "times": 0}]}, "script[0].times"),
        ("faults", {"script": [{"fault": "decline", "args": {"why": 1}}]}, "script[0].args.why"),
        ("faults", {"schedule": {"seed": 1, "probabilities": {"x": 0.5}}}, "probabilities.x"),
        ("listener", {"close_for_s": 0}, "close_for_s"),
        ("seed_data", {"payments": [{"order_id": "A"}]}, "payments[0].amount"),
        ("chargebacks", {"payment_id": 320025000001, "amount": "1.001"}, "amount"),
        ("chargebacks/won", {"payment_id": 320025000001}, "payment_id"),
        ("refunds/failed", {"refund_id": 1}, "refund_id"),
    ],
)
async def test_wrong_order_is_told_its_field(session: ClientSession, path: str, body: object, field: str) -> None:
    """A mistake in a test's set-up is found at once."""
    async with session.post(f"/_sim/{path}", json=body) as response:
        assert (response.status, (await response.json())["error"]["field"]) == (400, field)


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000])
async def test_order_that_is_no_json_is_told_so(session: ClientSession, body: bytes) -> None:
    """Broken input is an error of its sender, not of the simulator."""
    async with session.post("/_sim/clock", data=body) as response:
        assert (response.status, (await response.json())["error"]["field"]) == (400, "body")
