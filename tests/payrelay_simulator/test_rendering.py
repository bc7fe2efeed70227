import pytest

from payrelay_simulator import Caller, DemoWorld, Switches, World
from payrelay_simulator.records import Period
from payrelay_simulator.rendering import recurring_prose


def test_payment_record_has_the_gateways_members_and_spelling(caller: Caller, demo: DemoWorld) -> None:
    """A client that reads first_name finds nothing here, as at the gateway."""
    (row,) = caller.get("payment/search", order_id=demo.paid_order_id).document["data"]

    assert row["customer"]["fist_name"] == "Saman"
    assert "first_name" not in row["customer"]
    assert row["date"] == "2026-09-01 12:00:00"
    assert row["payment_method"]["card_no"] == "************1292"
    assert (row["items"], row["request"]) == (None, {"custom1": None, "custom2": None})


def test_fee_and_net_add_up_to_gross(caller: Caller, demo: DemoWorld) -> None:
    """The detail is consistent to the cent."""
    (row,) = caller.get("payment/search", order_id=demo.paid_order_id).document["data"]
    detail = row["amount_detail"]

    assert (detail["gross"], detail["fee"], detail["net"]) == (1000.0, 33.0, 967.0)


@pytest.mark.parametrize(("switch", "printed"), [("doubles", b'"amount":50.0,'), ("as_given", b'"amount":50,')])
def test_amounts_are_doubles_or_as_given(
    world: World, caller: Caller, charge_body: dict[str, object], switch: str, printed: bytes
) -> None:
    """A whole amount comes back with a decimal point as observed, or as it was written, by switch."""
    world.switches = Switches(amounts="doubles" if switch == "doubles" else "as_given")
    reply = caller.post("payment/charge", {**charge_body, "amount": 50}).reply
    assert reply is not None

    assert printed in reply.encoded()


def test_amount_given_as_text_comes_back_as_number(
    world: World, caller: Caller, charge_body: dict[str, object]
) -> None:
    """Texts are taken and numbers are answered."""
    world.switches = Switches(amounts="as_given")
    reply = caller.post("payment/charge", {**charge_body, "amount": "50.00"}).reply
    assert reply is not None

    assert b'"amount":50.00,' in reply.encoded()


def test_computed_amounts_follow_the_switch(world: World, caller: Caller, demo: DemoWorld) -> None:
    """Amounts that nobody gave are printed as briefly as they can be."""
    world.switches = Switches(amounts="as_given")
    reply = caller.get("payment/search", order_id=demo.paid_order_id).reply
    assert reply is not None

    assert b'"gross":1000,"fee":33,"net":967,"exchange_rate":1,' in reply.encoded()


@pytest.mark.parametrize(
    ("recurrence", "duration", "prose"),
    [
        (Period(count=1, unit="Month"), Period(count=3, unit="Year"), "Charged every month for 3 years"),
        (Period(count=1, unit="Month"), Period(count=1, unit="Year"), "Charged every month for 1 year"),
        (Period(count=2, unit="Week"), None, "Charged every 2 weeks forever"),
    ],
)
def test_recurrence_in_words(recurrence: Period, duration: Period | None, prose: str) -> None:
    """The documented sentences come out as documented."""
    assert recurring_prose(recurrence, duration) == prose
