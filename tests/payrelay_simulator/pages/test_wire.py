import re

import pytest
from aiohttp import ClientSession
from tests.payrelay_simulator.shop import POOR_VISA, VISA, Form, Receiver, a_card, a_form

from payrelay_simulator import Running, World
from payrelay_simulator.notification_faults import NotificationRule
from payrelay_simulator.pages.wire import PAGES

SHOP = {"Referer": "http://shop.example/basket"}
RETURN = "0; url=http://shop.example/return?shop=1&order_id=Order12345"


async def enter(session: ClientSession, form: Form, path: str = "/pay/checkout") -> str:
    """Post a form that is in order, and return the address of the payer's visit."""
    async with session.post(path, data=form, headers=SHOP, allow_redirects=False) as response:
        assert response.status == 303, await response.text()
        return response.headers["Location"]


async def post(session: ClientSession, path: str, inputs: Form | None = None) -> tuple[int, str, str]:
    """Post as the page would, and return status, where it leads and the text."""
    async with session.post(path, data=inputs, allow_redirects=False) as response:
        return response.status, response.headers.get("Location", ""), await response.text()


async def get(session: ClientSession, path: str) -> tuple[int, str, str]:
    """Read a page: its status, the header that leads on, and the text."""
    async with session.get(path, allow_redirects=False) as response:
        return response.status, response.headers.get("Refresh", ""), await response.text()


def charges(world: World) -> int:
    """Return how often the order was paid."""
    return [entry.order_id for entry in world.ledger.entries()].count("Order12345")


async def test_payer_pays_and_is_sent_on(session: ClientSession, world: World, receiver: Receiver) -> None:
    """From the form to the merchant's page, with the news on its way."""
    visit = await enter(session, a_form(notify_url=receiver.address))
    _, _, page = await get(session, visit)
    assert "LKR 1,000.00" in page

    assert await post(session, f"{visit}/pay", a_card()) == (303, f"{visit}/return", "")
    assert (await get(session, f"{visit}/return"))[:2] == (200, RETURN)
    assert (await receiver.wait_for(1))[0]["status_code"] == "2"
    assert charges(world) == 1


async def test_paying_again_shows_what_happened(session: ClientSession, world: World) -> None:
    """Double click, reload and the back button: each ends well, and the money moves once."""
    visit = await enter(session, a_form())
    for _ in range(3):
        assert (await post(session, f"{visit}/pay", a_card()))[1] == f"{visit}/return"

    _, leads_on, page = await get(session, visit)
    assert ("You have paid" in page, "cardNo" in page, leads_on) == (True, False, "")
    assert (await post(session, f"{visit}/cancel"))[1] == visit
    assert charges(world) == 1


async def test_refusal_is_shown_and_another_card_pays(session: ClientSession, world: World) -> None:
    """The payer stays on the page."""
    visit = await enter(session, a_form())
    assert (await post(session, f"{visit}/pay", a_card(POOR_VISA)))[1] == visit
    _, _, page = await get(session, visit)
    assert "refused: insufficient funds" in page
    assert (await get(session, f"{visit}/return"))[0] == 303

    assert (await post(session, f"{visit}/pay", a_card()))[1] == f"{visit}/return"
    assert charges(world) == 1


async def test_a_test_card_pays_by_one_tap(session: ClientSession, world: World) -> None:
    """On a phone nobody types sixteen digits twice; the card does what it does when it is typed."""
    visit = await enter(session, a_form())
    _, _, page = await get(session, visit)
    assert {VISA, POOR_VISA} <= set(re.findall(r'<button [^>]*name="testCard" value="([0-9]+)"', page))
    assert (await post(session, f"{visit}/pay", {"testCard": POOR_VISA}))[1] == visit
    assert "refused: insufficient funds" in (await get(session, visit))[2]

    assert (await post(session, f"{visit}/pay", {"testCard": VISA}))[1] == f"{visit}/return"
    assert charges(world) == 1


async def test_slip_is_shown_beside_its_input(session: ClientSession, world: World) -> None:
    """What was typed stays, but for the number and the security code."""
    visit = await enter(session, a_form())
    status, _, page = await post(session, f"{visit}/pay", a_card(cardExpiry="soon", cardHolderName='"><b>x'))

    assert (status, charges(world)) == (422, 0)
    assert re.search(r'id="cardExpiry"[^>]*aria-invalid="true"', page)
    assert ("&#34;&gt;&lt;b&gt;x" in page, VISA in page.split("<details")[0]) == (True, False)


async def test_payer_cancels(session: ClientSession, world: World) -> None:
    """The merchant's other address; nothing was taken, and nothing can be on this visit any more."""
    visit = await enter(session, a_form())
    assert (await post(session, f"{visit}/cancel"))[1] == f"{visit}/return"
    assert (await get(session, f"{visit}/return"))[1] == "0; url=http://shop.example/cancel"
    await post(session, f"{visit}/pay", a_card())

    assert ("You cancelled" in (await get(session, visit))[2], charges(world)) == (True, 0)


@pytest.mark.parametrize(
    ("return_url", "expected"),
    [
        ("http://shop.example", "http://shop.example?order_id=Order12345"),
        ("http://shop.example/r#top", "http://shop.example/r?order_id=Order12345#top"),
        ("http://shop.example/ආ?a=%20b", "http://shop.example/%E0%B6%86?a=%20b&order_id=Order12345"),
    ],
)
async def test_order_is_appended_to_any_address(session: ClientSession, return_url: str, expected: str) -> None:
    """What the merchant's address has already stays, in characters that a header can carry."""
    visit = await enter(session, a_form(return_url=return_url))
    await post(session, f"{visit}/pay", a_card())

    assert (await get(session, f"{visit}/return"))[1] == f"0; url={expected}"


async def test_form_without_a_referer_gets_the_gateways_words(session: ClientSession, world: World) -> None:
    """In a page, with what is wrong below it."""
    async with session.post("/pay/checkout", data=a_form()) as response:
        page = await response.text()

    assert (response.status, response.content_type) == (400, "text/html")
    assert ("Unauthorized payment request" in page, "no-referrer" in page) == (True, True)
    assert [record.http_status for record in world.calls.records() if record.endpoint == "checkout"] == [400]


async def test_bad_data_gets_a_code(session: ClientSession) -> None:
    """As the gateway's page shows one."""
    async with session.post("/pay/checkout", data=a_form(email=""), headers=SHOP) as response:
        assert "Code 4213" in await response.text()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", path, 405) for path in PAGES),
        ("POST", "/pay/check-out", 404),
        ("GET", "/pay/visits/none", 404),
        ("POST", "/pay/visits/none/pay", 404),
        ("POST", "/pay/visits/none/cancel", 404),
        ("GET", "/pay/visits/none/return", 404),
    ],
)
async def test_other_addresses_are_told_so(session: ClientSession, method: str, path: str, status: int) -> None:
    """A wrong form address is the commonest slip."""
    async with session.request(method, path) as response:
        assert (response.status, "Unexpected error (PH-0022)" in await response.text()) == (status, True)


async def test_every_page_is_strict_with_the_browser(session: ClientSession) -> None:
    """No script, no frame, nothing from elsewhere, nothing kept in a cache that going back would show."""
    visit = await enter(session, a_form())
    for path in (visit, "/pay/nowhere", "/_sim/"):
        async with session.get(path) as response:
            headers = response.headers
            text = await response.text()
        policy = headers["Content-Security-Policy"]
        assert ("default-src 'none'" in policy, "form-action 'self'" in policy, "unsafe" in policy) == (
            True,
            True,
            False,
        )
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "origin")
        assert ("<script" in text, "style=" in text) == (False, False)


async def test_news_comes_before_the_return_where_ordered(
    session: ClientSession, world: World, receiver: Receiver
) -> None:
    """The browser is sent on when the merchant has been told."""
    world.notifications.faults.add_rules(NotificationRule(fault="before_return"))
    visit = await enter(session, a_form(notify_url=receiver.address))
    await post(session, f"{visit}/pay", a_card())

    assert len(receiver.bodies) == 1


async def test_news_comes_after_the_return_where_ordered(
    session: ClientSession, running: Running, receiver: Receiver
) -> None:
    """A second after the browser was sent on, on the simulator's clock."""
    world = running.simulator.world
    world.notifications.faults.add_rules(NotificationRule(fault="after_return"))
    visit = await enter(session, a_form(notify_url=receiver.address))
    await post(session, f"{visit}/pay", a_card())
    world.clock.advance(30)
    assert world.notifications.take_due(world.clock.now()) == []
    await get(session, f"{visit}/return")
    world.clock.advance(1)

    assert len(await receiver.wait_for(1)) == 1


async def test_calls_log_pages_without_card_data(session: ClientSession, world: World) -> None:
    """The log says who paid when, and never with what."""
    visit = await enter(session, a_form())
    await post(session, f"{visit}/pay", a_card())

    records = [record for record in world.calls.records() if record.endpoint in {"checkout", "pay"}]
    assert [(record.endpoint, record.order_id, record.ledger_entries) for record in records] == [
        ("checkout", "Order12345", 0),
        ("pay", "Order12345", 1),
    ]
    assert world.ledger.entries()[-1].arrival == records[-1].number
    assert VISA not in str((records, world.visits.find(visit.rpartition("/")[2]), world.notifications.records()))


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a" * 100_000, b"&".join(b"a%d=1" % n for n in range(200))])
async def test_any_posting_gets_a_page(session: ClientSession, body: bytes) -> None:
    """Whatever a browser or a script sends is a slip, never a failure of the page."""
    visit = await enter(session, a_form())
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=nonsense"}
    async with session.post(f"{visit}/pay", data=body, headers=headers) as response:
        assert response.status == 422
