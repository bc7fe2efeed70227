"""The shop's server in Python: it holds the key, names orders and prices, and hears what became of them."""

import hmac
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

from aiohttp import typedefs, web
from yarl import URL

import payrelay_client as client

HOME = Path(__file__).parents[1]
SHOP = json.loads((HOME / "shop.json").read_text())
HERE = {"address": os.environ["PAYRELAY"], "simulator": os.environ.get("SHOP_SIMULATOR", "")}  # which only a demo has
DATA = Path(os.environ["SHOP_DATA"])  # must outlive this program: keys of what was sent, and what shoppers were told
COOKIE, NEWS_MAX = "shopper", 20
payrelay = client.AsyncPayrelay(HERE["address"], os.environ["PAYRELAY_KEY"], store=client.FileStore(DATA / "keys"))
routes = web.RouteTableDef()


def shopper_of(request: web.Request) -> str:
    """Gives who asks. The cookie is known to the phone alone, its hash to others too; a real shop has accounts."""
    if COOKIE not in request.cookies:
        raise client.Unauthenticated("Open the shop's page first.", http_status=401)
    return hmac.digest(os.environ["SHOP_SECRET"].encode(), request.cookies[COOKIE].encode(), "sha256").hex()[:16]


def order_of(what: str, shopper: str, number: object) -> str:
    """Names an order, the same for the same press: the phone keeps the number. The name says whose it is, and what."""
    if not re.fullmatch(r"[a-z0-9]{12}", str(number)):
        raise client.InvalidRequest("A number has twelve letters and digits.", http_status=400)
    return f"{what}-{shopper}-{number}"


def told(shopper: str, change: dict[str, Any] | None = None) -> dict[str, Any]:
    """Reads a shopper's news, memberships that go on, and what became of orders; or writes it, whole or not at all."""
    file, new = DATA / f"{shopper}.json", DATA / f"{shopper}.new"
    if change is not None:
        new.write_text(json.dumps(change))
        new.replace(file)
    return json.loads(file.read_text()) if file.exists() else {"news": [], "clubs": {}, "handed": {}}


async def card_of(shopper: str, card: str) -> str:
    """Refuses another's card: the shop's key reaches every one."""
    if (await payrelay.customers.show(card)).reference != shopper:
        raise client.NotFound("You have no such card.", http_status=404)
    return card


async def page_of(request: web.Request, what: str, **wanted: Any) -> web.Response:  # noqa: ANN401 - the client's terms
    """Opens the gateway's page: after a lost answer the same one, after a failed or cancelled one another."""
    shopper, home = shopper_of(request), f"{request.url.origin()}/"
    who = {"customer": client.Buyer(**SHOP["shopper"]), "customer_reference": shopper, "currency": SHOP["currency"]}
    terms = who | wanted | {"order_id": order_of(what, shopper, (await request.json())["number"])}
    opened = await payrelay.checkouts.open(**terms, return_to=home, cancel_to=home, again=True)
    return web.json_response({"url": opened.url, "state": opened.state})


@routes.get("/me")
async def me(request: web.Request) -> web.Response:
    """Tells a phone all that the shop knows of its owner."""
    shopper, shown = shopper_of(request), ("id", "method", "card_no_masked")
    cards = [each.raw async for each in payrelay.customers.list(reference=shopper, state="active")]
    now = told(shopper) | {"cards": [{name: card[name] for name in shown} for card in cards], "shopper": shopper}
    return web.json_response({name: SHOP[name] for name in ("goods", "club", "currency")} | now | HERE)


@routes.post("/cards")
async def approve_card(request: web.Request) -> web.Response:
    """Begins the approval of a card."""
    return await page_of(request, "card", type="preapproval", items="Approval of a card")


@routes.delete("/cards/{card}")
async def remove_card(request: web.Request) -> web.Response:
    """Removes a card: nobody can charge it any more."""
    await payrelay.customers.remove(await card_of(shopper_of(request), request.match_info["card"]))
    return web.json_response({})


@routes.post("/orders")
async def order(request: web.Request) -> web.Response:
    """Gives the phone what it needs to pay one order by itself; the same press is the same order."""
    shopper, wanted = shopper_of(request), await request.json()
    if wanted["goods"] not in SHOP["goods"]:
        raise client.NotFound("We have no such goods.", http_status=404)
    goods, card = SHOP["goods"][wanted["goods"]], await card_of(shopper, wanted["card"])
    terms = {"order_id": order_of(wanted["goods"], shopper, wanted["number"]), "currency": SHOP["currency"]}
    token = await payrelay.client_tokens.issue(**terms, amount=goods["amount"], customer_id=card, scopes=SHOP["scopes"])
    charge = terms | goods | {"type": "PAYMENT", "customer_token": card}
    return web.json_response({"token": token.token, "charge": charge})


@routes.post("/club")
async def join_club(request: web.Request) -> web.Response:
    """Begins a subscription, which the customer pays on the gateway's page for the first time."""
    return await page_of(request, "club", type="recurring", **SHOP["club"])


@routes.delete("/club")
async def leave_club(request: web.Request) -> web.Response:
    """Ends the shopper's subscriptions; 202 where nobody knows yet whether one has ended."""
    going_on = [club for club, goes_on in told(shopper_of(request))["clubs"].items() if goes_on]
    outcomes = [await payrelay.subscriptions.cancel(club) for club in going_on]
    return web.json_response({}, status=200 if all(each.is_done for each in outcomes) else 202)


@routes.post("/webhooks")
async def take_news(request: web.Request) -> web.Response:
    """Hears what happened. Goods go out once, and only for their price; what was stopped stays so, in any order."""
    event = client.verify_webhook(os.environ["PAYRELAY_WEBHOOK_SECRET"], request.headers, await request.read())
    data = dict(event.data)
    if named := re.fullmatch(r"([a-z]+)-([0-9a-f]{16})-[a-z0-9]{12}", str(data.get("order_id"))):
        now, sold = told(named[2]), SHOP["goods"].get(named[1], SHOP["club"])
        place, name, is_due = SHOP["events"].get(f"{event.type} {data.get('kind', '')}".strip(), ("", "", False))
        key, paid = data.get(name), (data.get("payment_amount") or data.get("amount"), data.get("currency"))
        is_meant = key and (not is_due or paid == (sold["amount"], SHOP["currency"]))
        is_first = is_meant and is_due and key not in now[place]
        if is_meant:
            now[place][key] = now[place].get(key, True) and is_due
        news = {"id": event.id, "type": event.type, "timestamp": event.timestamp, "data": data}
        now["news"] = [*(each for each in now["news"][-NEWS_MAX:] if each["id"] != event.id), news]
        told(named[2], now)
        if is_first:
            print("hand over", key, flush=True)  # noqa: T201 - here a real shop's goods go out
    return web.Response(status=204)


@routes.get("/")
async def page(request: web.Request) -> web.StreamResponse:
    """Shows the shop, and remembers who it is. The page may talk to the shop and to Payrelay, and to nobody else."""
    policy = SHOP["policy"].replace("{payrelay}", f"{URL(HERE['address']).origin()} {HERE['simulator']}")
    answer = web.FileResponse(HOME / "page" / "index.html", headers={"Content-Security-Policy": policy})
    answer.set_cookie(COOKIE, request.cookies.get(COOKIE) or secrets.token_hex(16), httponly=True, samesite="Lax")
    return answer


@web.middleware
async def sentences(request: web.Request, handler: typedefs.Handler) -> web.StreamResponse:
    """Turns what went wrong into a sentence for the phone."""
    try:
        return await handler(request)
    except client.PayrelayError as error:
        is_refused = isinstance(error, client.WebhookRefused)
        return web.json_response({"message": error.message}, status=400 if is_refused else error.http_status or 502)


DATA.mkdir(parents=True, exist_ok=True, mode=0o700)
app = web.Application(middlewares=[sentences])
app.add_routes([*routes, web.static("/page", HOME / "page")])
web.run_app(app, host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8090")), print=None)
