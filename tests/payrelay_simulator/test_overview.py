from aiohttp import ClientSession

from payrelay_simulator import DemoWorld, Rule, Running, World
from payrelay_simulator.chargebacks import charge_back
from payrelay_simulator.notification_faults import NotificationRule
from payrelay_simulator.overview import overview_page


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

        assert '<meta http-equiv="refresh" content="3">' in page
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    async with session.get("/_sim/?refresh=often") as response:
        assert response.status == 400
