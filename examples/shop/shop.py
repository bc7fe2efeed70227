"""A shop on Payrelay, whole: customers approve a card, pay with it, subscribe, and see on their phone what came of it.

The shop's key stays here. What a phone is given is good for a quarter of an hour, for one customer and one order.

Run it beside a Payrelay of your own (``make demo`` starts it by itself):

    PAYRELAY=http://127.0.0.1:8080/gateway/api PAYRELAY_KEY=prk_… python examples/shop/shop.py
"""

import asyncio
import json
import os
import secrets
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError
from yarl import URL

PAGE = Path(__file__).parent / "page"
COOKIE = "shopper"
GOODS = {
    "tea": ("Ceylon tea, 250 g", "950.00"),
    "kettle": ("Copper kettle", "7450.00"),
    "cups": ("Six cups", "2400.00"),
}
CLUB = ("Tea of the month", "1200.00")
CURRENCY = "LKR"
NEWS_MAX = 20
ABOUT = ("order_id", "customer_id", "checkout_id", "subscription_id")
FINISHED = ("checkout.completed", "checkout.failed", "checkout.cancelled", "checkout.expired")
"""After these another page may be opened, for another order."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' {payrelay}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may talk to the shop and to Payrelay, and to nobody else."""
PERSON = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No.1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
"""Who shops here; a real shop knows it from its own accounts."""


@dataclass
class Shop:
    """What the shop knows; a real one keeps it in a database.

    Attributes:
        api: Payrelay, with the shop's key in every call.
        base: its address.
        shoppers: who asked for which order, checkout or customer.
        pages: the order of each shopper's page that isn't finished, by shopper and what it is for.
        news: what each shopper was told lately, for a phone that was on another page meanwhile.
        open_pages: the phones that watch, by shopper.
        webhook: checks that news come from Payrelay; None until the endpoint is registered.
    """

    api: aiohttp.ClientSession
    base: str
    shoppers: dict[str, str] = field(default_factory=dict)
    pages: dict[tuple[str, str], str] = field(default_factory=dict)
    news: dict[str, deque[str]] = field(default_factory=dict)
    open_pages: dict[str, set["asyncio.Queue[str]"]] = field(default_factory=dict)
    webhook: Webhook | None = None

    async def call(self, method: str, path: str, body: object = None, *, once: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """Asks Payrelay; gives the ``data`` of its answer, and raises what the phone is to be told."""
        headers = {} if once is None else {"Idempotency-Key": once}
        async with self.api.request(method, self.base + path, json=body, headers=headers) as answer:
            told = await answer.json()
        if not answer.ok:
            raise web.HTTPBadGateway(text=told["msg"])
        return told["data"]


SHOP = web.AppKey("shop", Shop)
routes = web.RouteTableDef()


@routes.get("/me")
async def me(request: web.Request) -> web.Response:
    """Tells a phone which card is kept for its owner."""
    shop, shopper = _here(request)
    customers = await shop.call("GET", f"/customers?reference={shopper}&state=active")
    for customer in customers:
        shop.shoppers[customer["id"]] = shopper
    return web.json_response({"goods": GOODS, "club": CLUB, "card": customers[0] if customers else None})


@routes.post("/cards")
async def approve_card(request: web.Request) -> web.Response:
    """Begins the approval of a card; the phone goes to the address that it is given."""
    return await _hosted(request, "card", {"type": "preapproval", "items": "Approval of a card"})


@routes.post("/club")
async def join_club(request: web.Request) -> web.Response:
    """Begins a subscription, which the customer pays on the gateway's page for the first time."""
    items, amount = CLUB
    terms = {"type": "recurring", "amount": float(amount), "recurrence": "1 Month", "duration": "Forever"}
    return await _hosted(request, "club", terms | {"items": items})


@routes.post("/orders")
async def order(request: web.Request) -> web.Response:
    """Takes an order, and gives the phone what it needs to pay it by itself: that order, and nothing else.

    A phone that got no final answer names its order, and gets another token for it: a new order is a second charge.
    """
    shop, shopper = _here(request)
    wanted = await request.json()
    _owned(request, wanted["customer"])
    items, amount = GOODS[wanted["goods"]]
    order_id = wanted.get("order") or f"shop-{secrets.token_hex(6)}"
    if wanted.get("order"):
        _owned(request, order_id)
    shop.shoppers[order_id] = shopper
    bounds = {
        "customer_id": wanted["customer"],
        "order_id": order_id,
        "amount": float(amount),
        "currency": CURRENCY,
        "scopes": ["payments:charge"],
    }
    token = await shop.call("POST", "/client-tokens", bounds)
    charge = {"type": "PAYMENT", "order_id": order_id, "items": items, "currency": CURRENCY, "amount": float(amount)}
    charge["customer_token"] = wanted["customer"]
    return web.json_response({"address": shop.base, "token": token["token"], "charge": charge})


@routes.delete("/club/{id}")
async def leave_club(request: web.Request) -> web.Response:
    """Ends a subscription."""
    shop, _ = _here(request)
    subscription_id = request.match_info["id"]
    _owned(request, subscription_id)
    await shop.call("DELETE", f"/subscriptions/{subscription_id}", once=f"leave-{subscription_id}")
    return web.json_response({})


@routes.post("/webhooks")
async def take_news(request: web.Request) -> web.Response:
    """Hears from Payrelay what happened, and tells the phones that it is about."""
    shop = request.app[SHOP]
    if shop.webhook is None:
        return web.Response(status=503)
    try:
        news = shop.webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError:
        return web.Response(status=401)
    data = news["data"]
    names = [str(data[name]) for name in ABOUT if data.get(name) is not None]
    if news["type"] in FINISHED:
        shop.pages = {page: order_id for page, order_id in shop.pages.items() if order_id != data["order_id"]}
    for shopper in {shop.shoppers[name] for name in names if name in shop.shoppers}:
        shop.shoppers |= dict.fromkeys(names, shopper)  # what is about the order is about its subscription too
        told = json.dumps(news)
        shop.news.setdefault(shopper, deque(maxlen=NEWS_MAX)).append(told)
        for page in shop.open_pages.get(shopper, ()):
            page.put_nowait(told)
    return web.Response(status=204)


@routes.get("/live")
async def live(request: web.Request) -> web.StreamResponse:
    """Tells one phone what happens, as it happens (server-sent events)."""
    shop, shopper = _here(request)
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await stream.prepare(request)
    page: asyncio.Queue[str] = asyncio.Queue()
    for told in shop.news.get(shopper, ()):
        page.put_nowait(told)
    shop.open_pages.setdefault(shopper, set()).add(page)
    try:
        with suppress(ConnectionResetError):  # the phone is on another page now
            while True:
                await stream.write(f"data: {await page.get()}\n\n".encode())
        return stream
    finally:
        shop.open_pages[shopper].discard(page)


@routes.get("/")
async def page(request: web.Request) -> web.StreamResponse:
    """Shows the shop, and remembers who it is."""
    policy = POLICY.format(payrelay=URL(request.app[SHOP].base).origin())
    answer = web.FileResponse(PAGE / "index.html", headers={"Content-Security-Policy": policy})
    if COOKIE not in request.cookies:
        answer.set_cookie(COOKIE, f"shopper-{secrets.token_hex(8)}", httponly=True, samesite="Lax")
    return answer


async def _hosted(request: web.Request, what: str, wanted: dict[str, object]) -> web.Response:
    """Asks for a page of the gateway's on which the customer approves or pays, and gives its address.

    Until it is finished, the same order and key are sent: the customer may have paid on a page whose answer was lost.
    """
    shop, shopper = _here(request)
    order_id = shop.pages.setdefault((shopper, what), f"{what}-{secrets.token_hex(6)}")
    shop.shoppers[order_id] = shopper
    home = f"{request.url.origin()}/"
    who = {"customer": PERSON, "customer_reference": shopper, "return_to": home, "cancel_to": home}
    asked = wanted | who | {"order_id": order_id, "currency": CURRENCY}
    checkout = await shop.call("POST", "/checkouts", asked, once=order_id)
    shop.shoppers[checkout["id"]] = shopper
    if checkout["url"] is None:
        del shop.pages[shopper, what]
        raise web.HTTPConflict(text=f"That page is over: it is {checkout['state']}. Press again for another one.")
    return web.json_response({"url": checkout["url"]})


def _here(request: web.Request) -> tuple[Shop, str]:
    shopper = request.cookies.get(COOKIE)
    if shopper is None:
        raise web.HTTPUnauthorized(text="open the shop's page first")
    return request.app[SHOP], shopper


def _owned(request: web.Request, name: str) -> None:
    """Refuses what belongs to somebody else: the shop's key reaches every customer's card and subscription."""
    shop, shopper = _here(request)
    if shop.shoppers.get(name) != shopper:
        raise web.HTTPNotFound(text="nothing of yours has this name")


def make_shop(payrelay: str, key: str) -> web.Application:
    """Makes the shop.

    Args:
        payrelay: the address of an account's API, such as ``http://127.0.0.1:8080/gateway/api``.
        key: the shop's key there.
    """

    async def connected(app: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as api:
            app[SHOP] = Shop(api=api, base=payrelay)
            yield

    app = web.Application()
    app.cleanup_ctx.append(connected)
    app.add_routes(routes)
    app.router.add_static("/page", PAGE)
    return app


async def hear(app: web.Application, address: str) -> None:
    """Registers the shop's own address for all events; Payrelay must be allowed to send there."""
    shop = app[SHOP]
    endpoint = await shop.call("POST", "/endpoints", {"url": f"{address}/webhooks", "types": ["*"]})
    shop.webhook = Webhook(endpoint["secret"])


async def main() -> None:
    """Runs the shop by itself until it is stopped."""
    app = make_shop(os.environ["PAYRELAY"], os.environ["PAYRELAY_KEY"])
    port = int(os.environ.get("PORT", "8090"))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await hear(app, f"http://127.0.0.1:{port}")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
