"""The pages about orders and payments: find, one order, one operation; with plain and with hostile texts."""

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.console.browsing import console_on, signed_in
from tests.databases import sqlite_url
from tests.flows.console.books import PAYMENT, PLAN, everything, id_at, operation
from tests.flows.console.desk import START_MS, Desk

from payrelay.clock import Clock
from payrelay.console.dispatch import Console
from payrelay.core.operators.roles import Role
from payrelay.core.outcomes import Reading
from payrelay.store import open_database

ADA = "ada@shop.example"
OUR_SCRIPT = '<script src="/console/assets/live.js" defer></script>'
"""Of live pages."""
HOSTILE = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}"
    "</details></li></main>\u202e=cmd|' /C calc'!A0/../?&#"
)


class Shape(HTMLParser):
    """The elements of a page with their attributes, without texts, addresses and values."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.append((tag, tuple(sorted(name for name, _ in attrs))))


async def test_support_types_an_order_and_reads_what_happened(desk: Desk, console: Console) -> None:
    """One search, one click, one page."""
    await everything(desk)
    window = await signed_in(desk, console, ADA, Role.SUPPORT)
    await window.get("/console/find?q=A-1")
    assert "found by order id" in window.text
    link = re.search(r'Order <a href="([^"]+)"', window.text)
    assert link is not None
    await window.get(link[1])

    assert window.title == "Order A-1"
    taken_back = f"The payment {PAYMENT} was charged back by the bank"
    assert window.text.index("The customer was asked to pay") < window.text.index(taken_back)


async def test_an_order_leads_to_what_can_be_done_about_its_payment(desk: Desk, console: Console) -> None:
    """Who has found the payment doesn't type its number again; a viewer, who may do nothing, is led nowhere."""
    await everything(desk)
    window = await signed_in(desk, console, ADA, Role.OPERATOR)
    await window.get("/console/orders/gateway/A-1")
    link = re.search(r'href="(/console/act/payment/[^"]+)">Act on payment (\d+)<', window.text)
    assert link is not None
    await window.get(link[1])
    assert link[2] in window.title
    viewer = await signed_in(desk, console, "vera@shop.example", Role.VIEWER)
    await viewer.get("/console/orders/gateway/A-1")

    assert "/console/act/" not in viewer.text


async def test_no_button_leads_nowhere(desk: Desk, console: Console) -> None:
    """An authorization that was not captured is no payment yet: the page says so, and has no button for it."""
    await everything(desk)
    window = await signed_in(desk, console, ADA, Role.OPERATOR)
    await window.get("/console/orders/gateway/A-1")
    links = re.findall(r'href="(/console/act/[^"]+)"', window.text)

    assert "Nothing can be done here about payment 320025000002:" in window.text
    assert f"/console/act/payment/gateway~{PAYMENT}" in links
    assert [(await window.send("GET", link)).status for link in links] == [200] * len(links)


async def test_the_gateway_is_asked_with_a_form_and_the_page_says_when(desk: Desk, console: Console) -> None:
    """By POST alone: a link that somebody sends takes no call of the budget."""
    await operation(desk, 1)
    window = await signed_in(desk, console, ADA, Role.VIEWER)
    raw = b'[{"payment_id":1,"order_id":"A-1","date":"x","status":"RECEIVED","currency":"LKR","amount":10.00}]'
    desk.gateway.readings.append(Reading(code=None, msg="ok", raw_data=raw))
    assert (await window.get("/console/orders/gateway/A-1/gateway")).status == 405
    await window.get("/console/orders/gateway/A-1")
    assert desk.gateway.asked == []
    await window.post("/console/orders/gateway/A-1/gateway")

    assert len(desk.gateway.asked) == 1
    assert "Paid; the record shows no refund of a part" in window.text
    assert "Asked at" in window.text


@pytest.mark.parametrize(
    "page",
    [
        "/console/find?q={order}",
        f"/console/find?q={PAYMENT}",
        "/console/find?q={person}",
        "/console/find?kind=checkout",
        "/console/find",
        "/console/orders/gateway/{order}",
        f"/console/operations/{id_at('op', START_MS + 5_000, 1)}",
        "/console/queue",
        "/console/overview?span=week",
        f"/console/act/operation/{id_at('op', START_MS + 5_000, 1)}",
        f"/console/act/payment/gateway~{PAYMENT}",
        f"/console/act/checkout/{id_at('chk', START_MS)}",
        f"/console/act/subscription/gateway~{PLAN}",
        f"/console/act/customer/{id_at('cus', START_MS)}",
        f"/console/act/notification/{id_at('ntf', START_MS)}",
        "/console/act/account/gateway",
        "/console/act/endpoint/end_1",
    ],
)
async def test_hostile_text_in_every_field_changes_nothing(tmp_path: Path, page: str) -> None:
    """Orders, references, keys, labels, reasons, the gateway's words: the page has its usual elements."""
    shapes: list[list[tuple[str, tuple[str, ...]]]] = []
    for text in ("plain", HOSTILE):
        order_id = f"A-{text}"
        database = await open_database(sqlite_url(tmp_path / f"{len(shapes)}.db"), clock=Clock(), owner=True)
        desk = Desk(database)
        await everything(desk, order_id, text)
        window = await signed_in(desk, console_on(desk), ADA)
        answer = await window.get(page.format(order=quote(order_id, safe=""), person=quote(f"person {text}", safe="")))
        assert answer.status == 200
        assert "<script" not in window.text.replace(OUR_SCRIPT, "")
        assert ">49" not in window.text
        shapes.append(Shape(window.text).elements)
        await database.close()

    assert shapes[0] == shapes[1]


async def test_hostile_addresses_get_a_page_that_says_what_is_wrong(console: Console, desk: Desk) -> None:
    """Whatever somebody puts into a shared link."""
    window = await signed_in(desk, console, ADA)
    for query in (
        *("kind=nothing", "state=x", "amount=1e999999", "amount=NaN", "amount=-1", "amount=x", "amount=0.001"),
        *("from=9999-12-31x", "from=0001-01-01", "to=9999-12-31", f"q={'a' * 201}", "from=2026-02-02&to=2026-02-01"),
        *("kind=refund&state=checkout-open", "amount=" + "9" * 400),
    ):
        for path in ("/console/find", "/console/find.csv"):
            answer = await window.get(f"{path}?{query}")
            assert answer.status in {200, 422}, query
            assert "<script" not in window.text
    for query in (f"q={quote(HOSTILE)}", f"before={quote(HOSTILE)}", f"account={quote(HOSTILE)}"):
        assert (await window.get(f"/console/find?{query}")).status == 200
        assert "<script" not in window.text


@pytest.mark.parametrize("amount", ["12,50", "1_0", "%EF%BC%91%EF%BC%92", "1e1", "1.000,00", "1.005"])
async def test_an_amount_that_could_be_two_is_not_looked_for(desk: Desk, console: Console, amount: str) -> None:
    """Whoever looks for 12,50 and is shown 1,250.00 refunds the wrong payment; the page says how amounts are typed."""
    window = await signed_in(desk, console, ADA)
    answer = await window.get(f"/console/find?amount={amount}")

    assert answer.status == 422
    assert "The amount must be written like 1250, 1250.50 or 1,250.50." in window.text


async def test_the_filter_is_in_the_address_and_in_the_form(desk: Desk, console: Console) -> None:
    """A link that a colleague sends shows what it was found by, and leads on."""
    for number in range(52):
        await operation(desk, number, at_ms=START_MS + number)
    window = await signed_in(desk, console, ADA)
    await window.get("/console/find?kind=charge&state=sending&account=gateway&amount=1%2C000&from=2026-01-01")
    for field in ('<option value="charge" selected>', '<option value="sending" selected>', "<option selected>gateway"):
        assert field in window.text
    older = re.search(r'href="(/console/find\?[^"]*before=[^"]*)"', window.text)
    assert older is not None
    await window.get(older[1].replace("&amp;", "&"))

    assert window.text.count('<span class="amount">LKR 1,000.00</span>') == 2
    assert '<option value="charge" selected>' in window.text


async def test_what_is_shown_is_given_as_a_table(desk: Desk, console: Console) -> None:
    """The same rows as on the page, with times in UTC; nothing in it is a formula."""
    await everything(desk, "=1+1", "plain")
    window = await signed_in(desk, console, ADA)
    await window.get("/console/find?q=%3D1%2B1")
    link = re.search(r'<a href="([^"]+)">As CSV', window.text)
    assert link is not None
    answer = await window.get(link[1].replace("&amp;", "&"))
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))

    assert dict(answer.headers)[b"content-type"] == b"text/csv; charset=utf-8"
    assert {row["what"] for row in rows} == {"charge", "page: payment", "notification: payment", "subscription"}
    assert {row["order_id"] for row in rows} == {"'=1+1"}
    assert next(row for row in rows if row["what"] == "charge")["amount"] == "1000.00"


async def test_times_are_in_the_zone_that_the_reader_has_chosen(desk: Desk, console: Console) -> None:
    """Without script: a choice in a cookie, and UTC beside each time. Days of the filter begin there, too."""
    await operation(desk, 1, at_ms=START_MS)  # 2027-01-15 08:00:00 UTC
    window = await signed_in(desk, console, ADA)
    await window.get("/console/orders/gateway/A-1")
    assert "2027-01-15 08:00:00 UTC<" in window.text
    await window.get("/console/account")
    await window.post("/console/account/zone", zone="Asia/Colombo")
    await window.get("/console/orders/gateway/A-1")
    assert "2027-01-15 13:30:00 UTC+05:30<" in window.text
    assert 'title="2027-01-15 08:00:00 UTC"' in window.text
    await window.get("/console/account")
    await window.post("/console/account/zone", zone="Pacific/Auckland")
    await window.get("/console/find?from=2027-01-16")
    assert "LKR 1,000.00" not in window.text
    await window.get("/console/find?from=2027-01-15&to=2027-01-15")
    assert "LKR 1,000.00" in window.text


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "UTC; Path=/", HOSTILE])
async def test_a_zone_that_nobody_knows_is_refused(desk: Desk, console: Console, zone: str) -> None:
    """From the form and from a cookie that somebody wrote: the pages go on in UTC."""
    window = await signed_in(desk, console, ADA)
    await window.get("/console/account")
    assert (await window.post("/console/account/zone", zone=zone)).status == 422
    window.cookies["__Host-payrelay_console_zone"] = quote(zone)
    assert (await window.get("/console/account")).status == 200
    assert "UTC<" in window.text


@pytest.mark.parametrize("order_id", ["a/b", "..", "a?b#c", "ü 1", "%2F", "a+b", "a&b=c"])
async def test_an_order_with_any_id_has_an_address(desk: Desk, console: Console, order_id: str) -> None:
    """The link on the page leads to it."""
    await operation(desk, 1, order_id=order_id)
    window = await signed_in(desk, console, ADA)
    await window.get(f"/console/find?q={quote(order_id, safe='')}")
    link = re.search(r'Order <a href="([^"]+)"', window.text)
    assert link is not None
    assert (await window.get(link[1])).status == 200
