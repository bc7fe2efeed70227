import html
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.flows.hosted import LIFE_S, current, hosting, new, secret_of, seen
from tests.flows.hosted import opened as opened_checkout
from tests.flows.world import World, opened
from tests.samples import ASKED

from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.public.checkout_pages import back_page, checkout_page, targets_of
from payrelay.api.public.language import language
from payrelay.api.public.page_reader import PageReader
from payrelay.api.public.router import PUBLIC_ROUTES
from payrelay.core.checkouts.checkout import INQUIRED_FOR_MS, Checkout, CheckoutOutcome, CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind, NewCheckout, Plan
from payrelay.core.checkouts.shop import UNNAMED_SHOP, Shop, logo_of
from payrelay.core.gateways.pauses import Pause
from payrelay.flows.checkouts.finish_checkout import (
    FORGOTTEN_AFTER_MS,
    expire,
    finish_by_notification,
    forget_checkouts,
)
from payrelay.flows.checkouts.way_to_gateway import link_to_gateway
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm
from payrelay.runtime.paused_accounts import PAUSES_KEPT_MS
from payrelay.store.gateways.pauses import Pauses

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay with one account that has no limit."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


class Shown(HTMLParser):
    """What a browser makes of a page, as far as tests ask."""

    def __init__(self, page: PlainAnswer) -> None:
        super().__init__()
        self.page = page
        self.fields: dict[str, str | None] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = page.body.decode()
        self.headers = {name.decode(): value.decode() for name, value in page.raw_headers}
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "input":
            self.fields[str(given["name"])] = given["value"]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every tag of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def heading(self) -> str:
        """The heading of the page."""
        found = re.search(r"<h1>(.*?)</h1>", self.text)
        assert found is not None
        return html.unescape(found[1])

    @property
    def rows(self) -> dict[str, str]:
        """The table of the page."""
        found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", self.text)
        return {html.unescape(name): html.unescape(value) for name, value in found}

    @property
    def refresh(self) -> str | None:
        """Where it goes by itself, and when."""
        return self.headers.get("refresh")

    @property
    def links(self) -> list[str | None]:
        """Where a click leads."""
        return [each["href"] for each in self.all("a")]


async def page_of(relay: Relay, checkout: Checkout) -> Shown:
    """Its page."""
    return Shown(await checkout_page(relay, "gateway", checkout.id, await secret_of(relay, checkout)))


async def back_at(relay: Relay, checkout: Checkout, *, is_cancelled: bool = False) -> Shown:
    """The page for who comes back."""
    secret = await secret_of(relay, checkout)
    return Shown(await back_page(relay, "gateway", checkout.id, secret, is_cancelled=is_cancelled))


async def finished(relay: Relay, wanted: NewCheckout, outcome: CheckoutState) -> Checkout:
    """A checkout with an outcome."""
    checkout = await opened_checkout(relay, wanted)
    await finish_by_notification(relay, told_of(checkout, outcome))
    return checkout


def told_of(checkout: Checkout, outcome: CheckoutState) -> CheckoutOutcome:
    """What a notification says of a checkout."""
    return CheckoutOutcome(account="gateway", merchant=checkout.merchant, order_id=checkout.order_id, outcome=outcome)


async def test_the_page_posts_the_form_to_the_gateway(world: World) -> None:
    """Every field as it was signed, by a button that needs no script."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    shown = await page_of(relay, checkout)
    details = msgspec.structs.replace(ASKED)
    (form,) = shown.all("form")

    assert shown.page.http_status == 200
    assert (form["method"], form["action"]) == ("post", "https://sandbox.payhere.lk/pay/checkout")
    assert shown.fields["email"] == details.person.email
    assert shown.fields["hash"]
    assert len(shown.all("button")) == 1
    assert "Continue to the payment provider" in shown.text
    assert "LKR\u00a01,000.00" in shown.text


async def test_a_page_of_a_paused_account_leads_nowhere(world: World) -> None:
    """It says so, and reloads by itself, so that the customer can go on when the pause ends."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    await Pauses(world.database).add(Pause(account="gateway", since_ms=0, reason="wrong prices", operator="ann"))
    world.clock.passed_ms += PAUSES_KEPT_MS
    shown = await page_of(relay, checkout)

    assert (shown.page.http_status, shown.heading, shown.refresh) == (503, "Not at this moment", "15")
    assert (shown.all("form"), shown.fields, shown.links) == ([], {}, [])
    assert "This page updates by itself." in shown.text
    assert "wrong prices" not in shown.text


async def test_what_the_page_posts_is_the_form(world: World) -> None:
    """Whatever the field contains: a quote in a name must not end the field, nor begin a script."""
    relay = hosting(world)
    hostile = msgspec.structs.replace(ASKED.person, first_name=HOSTILE, last_name='O\'Neil & "Sons"')
    checkout = await opened_checkout(relay, new(person=hostile, items=HOSTILE, order_id="A'1\"<b>"))
    shown = await page_of(relay, checkout)
    details = await relay.checkouts.details_of(checkout.id)
    assert details is not None
    form = await link_to_gateway(relay, checkout, details)
    assert isinstance(form, CheckoutForm)

    assert shown.fields == form.fields
    assert [each["src"] for each in shown.all("script")] == ["/gateway/hosted/continue.js"]


async def test_the_page_sends_its_origin_to_the_gateway_and_never_its_address(world: World) -> None:
    """Without a referrer the gateway refuses the form; with the whole one it would learn the secret."""
    relay = hosting(world)
    shown = await page_of(relay, await opened_checkout(relay))

    assert shown.headers["referrer-policy"] == "origin"
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["x-frame-options"] == "DENY"
    assert shown.headers["content-security-policy"] == (
        "default-src 'none'; style-src 'self'; script-src 'self'; form-action https://sandbox.payhere.lk"
        " https://*.payhere.lk; base-uri 'none'; frame-ancestors 'none'"
    )


@pytest.mark.parametrize(
    ("action", "targets"),
    [
        ("https://www.payhere.lk/pay/checkout", "https://www.payhere.lk https://*.payhere.lk"),
        ("https://gateway.example/pay/checkout", "https://gateway.example"),
        ("https://pay.gateway.example:8443/pay", "https://pay.gateway.example:8443 https://*.gateway.example"),
        ("http://127.0.0.1:8700/pay/checkout", "http://127.0.0.1:8700"),
        ("https://10.0.0.1/pay/checkout", "https://10.0.0.1"),
        ("https://[::1]:8700/pay/checkout", "https://[::1]:8700"),
    ],
)
def test_a_form_may_lead_to_the_hosts_of_the_gateways_own_domain(action: str, targets: str) -> None:
    """Browsers apply the policy to redirects as well: otherwise nobody could pay at a gateway with several hosts."""
    assert targets_of(action) == targets


async def test_a_plan_is_shown_in_full(world: World) -> None:
    """Who subscribes knows how often and how much."""
    relay = hosting(world)
    plan = Plan(recurrence="1 Month", duration="1 Year", startup_fee_minor=50_000)
    shown = await page_of(relay, await opened_checkout(relay, new(kind=CheckoutKind.RECURRING, plan=plan)))
    assert shown.rows == {
        "Order": "A-1",
        "Description": ASKED.items,
        "Each payment": "LKR\u00a01,000.00",
        "Payments every": "1 month",
        "Duration": "1 year",
        "First payment": "LKR\u00a01,500.00",
    }

    forever = Plan(recurrence="2 Week", duration="Forever")
    wanted = new(kind=CheckoutKind.RECURRING, plan=forever, order_id="A-2")
    rows = (await page_of(relay, await opened_checkout(relay, wanted))).rows
    assert (rows["Payments every"], rows["Duration"]) == ("2 weeks", "Until it is ended")


async def test_an_approval_shows_no_amount(world: World) -> None:
    """A preapproval charges nothing."""
    relay = hosting(world)
    wanted = new(kind=CheckoutKind.PREAPPROVAL, amount_minor=None)
    shown = await page_of(relay, await opened_checkout(relay, wanted))

    assert "Amount" not in shown.text
    assert "You approve a card" in shown.text


async def test_a_completed_one_says_so_and_leads_on(world: World) -> None:
    """The page sends no customer to pay again."""
    relay = hosting(world)
    checkout = await finished(relay, new(return_to="myshop://paid"), CheckoutState.COMPLETED)
    shown = await page_of(relay, checkout)
    link = f"myshop://paid?checkout={checkout.id}&state=completed"

    assert (shown.heading, shown.all("form")) == ("Payment received", [])
    assert (shown.links, shown.refresh) == ([link], f"0;url={link}")


@pytest.mark.parametrize("is_return", [False, True])
@pytest.mark.parametrize(
    ("outcome", "heading"),
    [
        (CheckoutState.FAILED, "An attempt did not succeed"),
        (CheckoutState.CANCELLED, "Cancelled, as far as we know"),
    ],
)
async def test_what_is_not_final_is_waited_for(
    world: World, outcome: CheckoutState, heading: str, *, is_return: bool
) -> None:
    """A second card may have paid: neither the page nor the app's link may say that nothing was taken."""
    relay = hosting(world)
    checkout = await finished(relay, new(return_to="myshop://paid"), outcome)
    shown = await (back_at(relay, checkout) if is_return else page_of(relay, checkout))

    assert (shown.heading, shown.all("form"), shown.refresh) == (heading, [], "2")
    assert shown.links == [f"myshop://paid?checkout={checkout.id}&state=open"]
    assert "Go back without waiting" in shown.text
    assert "Do not start again yet." in shown.text
    assert "not charged" not in shown.text


async def test_a_page_stops_waiting_after_a_day(world: World) -> None:
    """It says what is known, and promises no news any more."""
    relay = hosting(world)
    checkout = await finished(relay, new(return_to="myshop://paid"), CheckoutState.FAILED)
    world.clock.passed_ms += INQUIRED_FOR_MS
    shown = await back_at(relay, checkout)

    assert (shown.heading, shown.refresh) == ("An attempt did not succeed", None)
    assert "updates by itself" not in shown.text
    assert "Go back to the shop" in shown.text


@pytest.mark.parametrize("kind", CheckoutKind)
@pytest.mark.parametrize(
    "before", [CheckoutState.OPEN, CheckoutState.FAILED, CheckoutState.CANCELLED, CheckoutState.EXPIRED]
)
async def test_done_after_all_is_passed_on_when_it_is_known_and_not_before(
    world: World, kind: CheckoutKind, before: CheckoutState
) -> None:
    """For every kind: the money is taken, the books say something else for a while, and then the news comes."""
    relay = hosting(world)
    checkout = await opened_checkout(relay, new(kind=kind, return_to="myshop://paid"))
    if before is CheckoutState.EXPIRED:
        await expire(relay, checkout)
    elif before is not CheckoutState.OPEN:
        await finish_by_notification(relay, told_of(checkout, before))
    waiting = await back_at(relay, checkout)
    end = CheckoutState.NOTIFIED if kind is CheckoutKind.AUTHORIZATION else CheckoutState.COMPLETED
    await finish_by_notification(relay, told_of(checkout, end))
    shown = await back_at(relay, checkout)

    assert (waiting.refresh, waiting.links) == ("2", [f"myshop://paid?checkout={checkout.id}&state=open"])
    assert shown.refresh == f"0;url=myshop://paid?checkout={checkout.id}&state={end}"


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        (CheckoutKind.PREAPPROVAL, "Card approved"),
        (CheckoutKind.RECURRING, "Subscribed"),
        (CheckoutKind.AUTHORIZATION, "Amount authorized"),
    ],
)
async def test_each_kind_has_its_own_thanks(world: World, kind: CheckoutKind, heading: str) -> None:
    """A customer who only approved a card must not read of a payment."""
    relay = hosting(world)
    checkout = await finished(relay, new(kind=kind), CheckoutState.COMPLETED)
    shown = await back_at(relay, checkout)

    assert (shown.heading, shown.refresh, shown.links) == (heading, None, [])
    assert "You can close this page." in shown.text


async def test_a_reported_authorization_leads_on_and_says_only_what_is_known(world: World) -> None:
    """The customer is done, also by the cancel page; that the amount is held is the gateway's word."""
    relay = hosting(world)
    links = {"return_to": "myshop://paid", "cancel_to": "myshop://basket"}
    checkout = await finished(relay, new(kind=CheckoutKind.AUTHORIZATION, **links), CheckoutState.NOTIFIED)
    shown = await back_at(relay, checkout, is_cancelled=True)

    assert "has reported a hold on your card for this order. It is not confirmed yet." in shown.text
    assert shown.refresh == f"0;url=myshop://paid?checkout={checkout.id}&state=notified"


async def test_an_order_with_a_reported_authorization_is_not_authorized_again(world: World) -> None:
    """Two pages of one order, of which the first was cancelled and used after all."""
    relay = hosting(world)
    first = await opened_checkout(relay, new(kind=CheckoutKind.AUTHORIZATION, amount_minor=5))
    await back_at(relay, first, is_cancelled=True)
    second = await opened_checkout(relay)
    notified = CheckoutOutcome(
        account="gateway",
        merchant=first.merchant,
        order_id="A-1",
        outcome=CheckoutState.NOTIFIED,
        amount_minor=5,
        currency="LKR",
    )
    await finish_by_notification(relay, notified)
    shown = await page_of(relay, second)

    assert (shown.heading, shown.all("form")) == ("Hold reported", [])


async def test_an_expired_one_says_so(world: World) -> None:
    """The page first says that it is closed, then that the checkout has ended."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    await page_of(relay, checkout)
    world.clock.passed_ms += LIFE_S * 1000
    shut = await page_of(relay, checkout)
    assert (shut.page.http_status, shut.heading, shut.all("form")) == (410, "This page has expired", [])

    world.clock.passed_ms += 3_600_000
    assert (await page_of(relay, checkout)).heading == "This page has expired"
    assert (await current(relay, checkout.id)).state is CheckoutState.EXPIRED


async def test_an_order_that_was_paid_otherwise_is_not_paid_again(world: World) -> None:
    """Two pages of one order, of which the first was cancelled and paid after all."""
    relay = hosting(world)
    first = await opened_checkout(relay, new(amount_minor=5))
    await back_at(relay, first, is_cancelled=True)
    second = await opened_checkout(relay)
    paid = CheckoutOutcome(
        account="gateway",
        merchant=first.merchant,
        order_id="A-1",
        outcome=CheckoutState.COMPLETED,
        amount_minor=5,
        currency="LKR",
    )
    await finish_by_notification(relay, paid)

    assert (await page_of(relay, second)).heading == "Done already"


async def test_a_refused_page_of_an_order_that_was_paid_since_says_so(world: World) -> None:
    """A customer who comes back to the first page must not read that nothing is confirmed."""
    relay = hosting(world)
    first = await finished(relay, new(return_to="myshop://paid"), CheckoutState.FAILED)
    await finished(relay, new(), CheckoutState.COMPLETED)
    shown = await back_at(relay, first)

    assert (shown.heading, shown.refresh) == ("Done already", None)
    assert shown.links == [f"myshop://paid?checkout={first.id}&state=open"]


async def test_the_form_leads_back_as_well(world: World) -> None:
    """Who has second thoughts comes to the basket; nothing is known of such a checkout."""
    relay = hosting(world)
    checkout = await opened_checkout(relay, new(return_to="myshop://paid", cancel_to="myshop://basket"))

    assert (await page_of(relay, checkout)).links == [f"myshop://basket?checkout={checkout.id}&state=open"]


async def test_a_page_that_is_opened_again_submits_nothing_by_itself(world: World) -> None:
    """The customer may have paid in another tab, and nobody has heard of it yet."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    first, again = await page_of(relay, checkout), await page_of(relay, checkout)

    assert "data-begins" in first.all("form")[0]
    assert "data-begins" not in again.all("form")[0]
    assert again.links == [f"{await secret_of(relay, checkout)}/return"]
    assert "opened before" in again.text
    assert "opened before" not in first.text


async def test_a_page_that_is_opened_again_asks_the_gateway_first(world: World) -> None:
    """A payment whose notification never came is found, and nobody is sent to pay twice."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    await page_of(relay, checkout)
    world.clock.passed_ms += 3_000
    world.account.observations.append(seen())

    assert (await page_of(relay, checkout)).heading == "Payment received"


async def test_a_page_names_order_and_amount_at_its_end_too(world: World) -> None:
    """Also after the customer's data were forgotten, but for what the shop called the goods."""
    relay = hosting(world)
    checkout = await finished(relay, new(), CheckoutState.COMPLETED)
    secret = await secret_of(relay, checkout)
    amount = {"Amount": "LKR\u00a01,000.00"}
    assert (await back_at(relay, checkout)).rows == {"Order": "A-1", "Description": ASKED.items} | amount
    world.clock.passed_ms += FORGOTTEN_AFTER_MS + 1
    await forget_checkouts(relay)
    shown = Shown(await back_page(relay, "gateway", checkout.id, secret, is_cancelled=False))

    assert shown.rows == {"Order": "A-1"} | amount


async def test_a_page_looks_like_the_shops(world: World) -> None:
    """By name, logo and colour; all of it comes from this server."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    logo = logo_of(b"\x89PNG\r\n\x1a\n")
    shop = Shop(name="Tea <House>", logo=logo, colour=(0xFF, 0xD7, 0))
    shown = Shown(
        await checkout_page(
            relay, "gateway", checkout.id, await secret_of(relay, checkout), PageReader(shop, language("en"))
        )
    )

    assert "Tea &lt;House&gt;" in shown.text
    assert [each["src"] for each in shown.all("img")] == ["/gateway/hosted/logo"]
    assert [each["href"] for each in shown.all("link")] == ["/gateway/hosted/page.css", "/gateway/hosted/shop.css"]
    assert "img-src 'self'" in shown.headers["content-security-policy"]


@pytest.mark.parametrize(("tag", "heading"), [("si", "ගෙවීම ලැබුණි"), ("ta", "கட்டணம் பெறப்பட்டது")])
async def test_a_page_speaks_the_readers_language(world: World, tag: str, heading: str) -> None:
    """And says which it is, to programs that read it aloud."""
    relay = hosting(world)
    checkout = await finished(relay, new(), CheckoutState.COMPLETED)
    reader = PageReader(UNNAMED_SHOP, language(tag))
    secret = await secret_of(relay, checkout)
    shown = Shown(await back_page(relay, "gateway", checkout.id, secret, reader, is_cancelled=False))

    assert (shown.heading, shown.all("html")) == (heading, [{"lang": tag}])
    assert (shown.headers["content-language"], shown.headers["vary"]) == (tag, "accept-language")
    assert "LKR\u00a01,000.00" in shown.text


async def test_who_comes_back_waits_for_the_word(world: World) -> None:
    """The page reloads by itself, and offers the way back all the same."""
    relay = hosting(world)
    checkout = await opened_checkout(relay, new(return_to="myshop://paid"))
    shown = await back_at(relay, checkout)

    assert (shown.heading, shown.refresh) == ("One moment", "2")
    assert shown.links == [f"myshop://paid?checkout={checkout.id}&state=open"]
    assert "Go back without waiting" in shown.text
    assert 'role="status"' in shown.text
    world.clock.passed_ms += 3_600_000
    assert (await back_at(relay, checkout)).refresh == "15"


async def test_who_comes_back_is_sent_on_when_it_is_known(world: World) -> None:
    """By what the gateway shows, before any notification."""
    relay = hosting(world)
    checkout = await opened_checkout(relay, new(return_to="https://shop.example/done?order=1"))
    world.clock.passed_ms += 3_000
    world.account.observations.append(seen())
    shown = await back_at(relay, checkout)

    assert shown.heading == "Payment received"
    assert shown.refresh == f"0;url=https://shop.example/done?order=1&checkout={checkout.id}&state=completed"


async def test_who_cancels_is_sent_to_the_other_link(world: World) -> None:
    """To the basket, for one."""
    relay = hosting(world)
    checkout = await opened_checkout(relay, new(return_to="myshop://paid", cancel_to="myshop://basket"))
    shown = await back_at(relay, checkout, is_cancelled=True)

    assert shown.heading == "Cancelled, as far as we know"
    assert shown.links == [f"myshop://basket?checkout={checkout.id}&state=open"]
    assert shown.refresh == f"0;url={shown.links[0]}"


async def test_who_cancels_after_a_refusal_is_sent_to_the_other_link_too(world: World) -> None:
    """Nobody who turned back has anything to wait for."""
    relay = hosting(world)
    links = {"return_to": "myshop://paid", "cancel_to": "myshop://basket"}
    checkout = await finished(relay, new(**links), CheckoutState.FAILED)
    shown = await back_at(relay, checkout, is_cancelled=True)

    assert shown.refresh == f"0;url=myshop://basket?checkout={checkout.id}&state=open"


async def test_who_cancels_without_an_app_stays_and_sees_the_outcome(world: World) -> None:
    """The page asks the gateway: the customer may have paid in another tab."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    assert (await back_at(relay, checkout, is_cancelled=True)).refresh == "2"
    world.clock.passed_ms += 60_000
    world.account.observations.append(seen())

    assert (await back_at(relay, checkout, is_cancelled=True)).heading == "Payment received"


@pytest.mark.parametrize("is_cancelled", [True, False, None])
async def test_a_wrong_address_shows_nothing(world: World, *, is_cancelled: bool | None) -> None:
    """Not even that there is such a checkout."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    if is_cancelled is None:
        shown = Shown(await checkout_page(relay, "gateway", checkout.id, "wrong"))
    else:
        shown = Shown(await back_page(relay, "gateway", checkout.id, "wrong", is_cancelled=is_cancelled))

    assert (shown.page.http_status, shown.heading) == (404, "There is nothing here")
    assert "A-1" not in shown.text


async def test_while_the_store_is_down_the_page_says_to_try_again(world: World) -> None:
    """A customer is not shown an error for machines."""
    relay = hosting(world)
    checkout = await opened_checkout(relay)
    secret = await secret_of(relay, checkout)
    await world.database.close()
    for page in (
        await checkout_page(relay, "gateway", checkout.id, secret),
        await back_page(relay, "gateway", checkout.id, secret, is_cancelled=False),
    ):
        shown = Shown(page)
        assert (page.http_status, shown.heading, shown.refresh) == (503, "Please wait a moment", "5")


def test_the_routes_name_no_secret_in_the_log() -> None:
    """What is logged of a request is the template of its path."""
    assert "/{account}/checkouts/{id}/{secret}" in {route.template for route in PUBLIC_ROUTES}
