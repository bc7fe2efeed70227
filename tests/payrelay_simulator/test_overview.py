from aiohttp import ClientSession

from payrelay_simulator import Caller, DemoWorld, Rule, Running, World
from payrelay_simulator.chargebacks import charge_back
from payrelay_simulator.notification_faults import NotificationRule
from payrelay_simulator.overview import Shown, overview_page


def test_page_shows_money_notifications_and_calls(
    world: World, demo: DemoWorld, session: ClientSession, running: Running
) -> None:
    """A person sees on one page what a test reads in three."""
    assert session.headers["Authorization"]
    assert running.simulator.world is world
    charge_back(world, demo.paid_payment_id, "http://shop.example/notify?<b>")
    world.faults.add_rules(Rule(fault="decline", times=None))
    world.notifications.faults.add_rules(NotificationRule(fault="lost"))

    page = overview_page(world)

    for text in ("chargeback", demo.paid_order_id, "LKR 1,000.00", "/merchant/v1/oauth/token", "decline", "lost"):
        assert text in page
    assert ("notify?&lt;b&gt;" in page, "http-equiv" in page) == (True, False)


def test_empty_world_says_so(world: World) -> None:
    """A newcomer knows that the page works and that nothing happened."""
    page = overview_page(world)

    assert [text in page for text in ("No money has moved", "Nobody was notified", "Nobody has called")] == [True] * 3


async def test_page_comes_again_where_that_is_wanted(session: ClientSession) -> None:
    """One can watch it; nothing on it is fetched from elsewhere."""
    async with session.get("/_sim/?refresh=3") as response:
        page = await response.text()

        assert '<meta http-equiv="refresh" content="3;url=/_sim/?refresh=3">' in page
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    async with session.get("/_sim/?refresh=often") as response:
        assert response.status == 400


def test_page_of_one_order_shows_that_order_alone(world: World, demo: DemoWorld) -> None:
    """Who looks for what became of an order doesn't read a hundred rows of others."""
    page = overview_page(world, Shown(order_id=demo.paid_order_id))

    assert f"Only order <strong>{demo.paid_order_id}</strong> is shown" in page
    assert demo.twice_paid_order_id not in page
    assert demo.twice_paid_order_id in overview_page(world)


def test_rows_lead_to_their_order_and_to_their_call(world: World, demo: DemoWorld) -> None:
    """From a row of the ledger one comes to the call that made it, and to all that is about its order."""
    charge = {"order_id": "A/1&x", "items": "Tea", "currency": "LKR", "amount": 1}
    Caller(world).post("payment/charge", charge | {"customer_token": demo.customer_token})
    page = overview_page(world)
    number = world.ledger.entries()[-1].arrival

    assert f'href="#call-{number}"' in page
    assert f'<tr id="call-{number}">' in page
    assert 'href="/_sim/?order_id=A%2F1%26x"' in page


def test_page_that_comes_again_stays_with_its_order(world: World) -> None:
    """A filter that was gone after three seconds would be of no use."""
    page = overview_page(world, Shown(order_id="A1", refresh_s=3))

    assert 'content="3;url=/_sim/?order_id=A1&amp;refresh=3"' in page
