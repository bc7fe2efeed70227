"""What callers may name: an order, a payment, an authorization, a customer and so on, each made for one owner.

Everything is made anew for each cell of the table, so that what one cell does changes no other one.
"""

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

from tests.access.bench import MATE, RIVAL, SHOP, Bench
from tests.draws import drawn_uuid
from tests.hostile_browser import HostileBrowser

from payrelay_simulator.pages.forms import Page
from payrelay_simulator.seeding import CustomerSeed, HoldSeed, PaymentSeed, Seed, SubscriptionSeed, plant

Ids = dict[str, str]
"""The ids of a thing and of what belongs to it, by what they are of."""

AMOUNT: Final = 345.67
PERSON: Final = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
_PAGES: Final[Mapping[str, Page]] = {"payment": "checkout", "recurring": "checkout", "authorization": "authorize"}


class Noun(StrEnum):
    """What an id may be of."""

    ORDER = "order"
    """One that was charged; with its payment, its operation and the Idempotency-Key."""
    EVENT = "event"
    """One that told of a charge."""
    NEW_ORDER = "new order"
    """Of the caller's own, one that nobody has charged yet; of anybody else's, one that was charged."""
    AUTHORIZATION = "authorization"
    """One of the API's, by the gateway's token."""
    CHECKOUT = "checkout"
    """One that is open."""
    AUTHORIZED_CHECKOUT = "authorized checkout"
    """One in which a customer authorized an amount."""
    SUBSCRIPTION = "subscription"
    CANCELLED_SUBSCRIPTION = "cancelled subscription"
    """One that its owner's server cancelled; with that operation."""
    CUSTOMER = "customer"
    TOKEN = "client token"
    ENDPOINT = "endpoint"
    NOTHING = "nothing"
    """The route names nothing that belongs to anybody."""


class Whose(StrEnum):
    """To whom a thing belongs, as its caller sees it."""

    OWN = "own"
    SIBLING = "sibling"
    """The same principal's, of another customer and another order."""
    FOREIGN = "foreign"
    """Another principal's of the same merchant."""
    GROUP = "group"
    """That of another principal in the same group."""
    UNKNOWN = "unknown"
    """The gateway's alone: it was made without Payrelay."""
    NOWHERE = "nowhere"
    """Nobody's: there is none of this id."""


def fresh(what: str) -> str:
    """A name that nothing else has."""
    return f"{what}-{drawn_uuid().hex}"


async def belongings(bench: Bench, noun: Noun, whose: Whose) -> Ids:
    """Makes a thing for its owner, and gives its ids."""
    if whose is Whose.NOWHERE:
        return _nothing()
    if whose is Whose.UNKNOWN:
        return {**_nothing(), **_planted(bench, noun)}
    owner = {Whose.FOREIGN: RIVAL, Whose.GROUP: MATE}.get(whose, SHOP)
    if noun is Noun.NEW_ORDER and whose is not Whose.OWN:
        noun = Noun.ORDER
    ids = {**_nothing(), **await _customer(bench, owner), "order": fresh("order")}
    return {**ids, **await _MAKERS[noun](bench, owner, ids)}


def _nothing() -> Ids:
    """Ids of the right form, of which there is nothing."""
    hex_id, number = drawn_uuid().hex, str(700_000_000_000 + drawn_uuid().int % 10**11)
    return {
        "order": fresh("no-order"),
        "payment": number,
        "operation": f"op_{hex_id}",
        "key": fresh("no-key"),
        "authorization": str(drawn_uuid()),
        "checkout": f"chk_{hex_id}",
        "secret": "0" * 43,
        "subscription": number,
        "customer": f"cus_{hex_id}",
        "gateway_token": drawn_uuid().hex.upper(),
        "reference": fresh("no-reference"),
        "token": f"ct_{hex_id}",
        "credential": "0" * 12,
        "endpoint": f"end_{hex_id}",
        "event": f"evt_{hex_id}",
    }


def _planted(bench: Bench, noun: Noun) -> Ids:
    """Makes a thing at the gateway, of which Payrelay knows nothing."""
    order, token = fresh("order"), drawn_uuid().hex.upper()
    has_plan = noun in {Noun.SUBSCRIPTION, Noun.CANCELLED_SUBSCRIPTION}
    seed = Seed(
        customers=[CustomerSeed(customer_token=token)],
        payments=[PaymentSeed(order_id=order, amount=Decimal(str(AMOUNT)))] if not has_plan else [],
        holds=[HoldSeed(order_id=order, amount=Decimal(str(AMOUNT)))] if noun is Noun.AUTHORIZATION else [],
        subscriptions=[SubscriptionSeed(order_id=order, customer_token=token, amount=Decimal(str(AMOUNT)))]
        if has_plan
        else [],
    )
    planted = plant(bench.world, seed)
    ids = {"order": order, "gateway_token": token}
    numbers: dict[str, list[Any]] = {
        "payment": planted.payment_ids,
        "authorization": planted.authorization_tokens,
        "subscription": planted.subscription_ids,
    }
    return ids | {name: str(made[0]) for name, made in numbers.items() if made}


async def _customer(bench: Bench, owner: str) -> Ids:
    token, reference = drawn_uuid().hex.upper(), fresh("user")
    plant(bench.world, Seed(customers=[CustomerSeed(customer_token=token)]))
    body = {"customer_token": token, "reference": reference}
    stored = (await bench.ask(bench.keys[owner], "POST", "customers", body)).data
    return {"customer": stored["id"], "reference": reference, "gateway_token": token}


def charge_body(order: str, customer: str, **changes: object) -> dict[str, object]:
    """The body of a charge by a handle."""
    usual = {"type": "PAYMENT", "order_id": order, "items": "Tea", "currency": "LKR", "amount": AMOUNT}
    return usual | {"customer_token": customer} | changes


def checkout_body(kind: str, ids: Ids, **changes: object) -> dict[str, object]:
    """The body that opens a checkout for a customer of the caller's."""
    body = {
        "type": kind,
        "order_id": ids["order"],
        "items": "Tea",
        "currency": "LKR",
        "amount": AMOUNT,
        "customer": PERSON,
        "customer_reference": ids["reference"],
    }
    plan = {"recurrence": "1 Month", "duration": "1 Year"} if kind == "recurring" else {}
    return body | plan | changes


async def _order(bench: Bench, owner: str, ids: Ids) -> Ids:
    return await _charged(bench, owner, ids, "PAYMENT")


async def _event(bench: Bench, owner: str, ids: Ids) -> Ids:
    made = await _order(bench, owner, ids)
    path = f"events?subject={quote('operation:' + made['operation'])}"
    told = await bench.until(lambda: bench.ask(bench.keys[owner], "GET", path), lambda reply: reply.data["events"])
    return made | {"event": told.data["events"][0]["id"]} | await _endpoint(bench, owner, ids)


async def _charged(bench: Bench, owner: str, ids: Ids, kind: str) -> Ids:
    key = fresh("key")
    body = charge_body(ids["order"], ids["customer"], type=kind)
    charged = await bench.ask(bench.keys[owner], "POST", "payments/charge", body, key=key)
    operation = (await bench.ask(bench.keys[owner], "GET", f"operations/by-key/{key}")).data
    made = {"operation": operation["id"], "key": key}
    if kind == "AUTHORIZE":
        return made | {"authorization": charged.data["authorization_token"]}
    return made | {"payment": str(charged.data["payment_id"])}


async def _authorization(bench: Bench, owner: str, ids: Ids) -> Ids:
    return await _charged(bench, owner, ids, "AUTHORIZE")


async def _opened(bench: Bench, owner: str, ids: Ids, kind: str) -> dict[str, Any]:
    opened = await bench.ask(bench.keys[owner], "POST", "checkouts", checkout_body(kind, ids))
    return dict(opened.data)


async def _checkout(bench: Bench, owner: str, ids: Ids) -> Ids:
    opened = await _opened(bench, owner, ids, "payment")
    return {"checkout": opened["id"], "secret": opened["url"].rpartition("/")[2]}


async def _paid(bench: Bench, owner: str, ids: Ids, kind: str) -> dict[str, Any]:
    opened = await _opened(bench, owner, ids, kind)
    HostileBrowser(bench.world).pay(_PAGES[kind], opened["form"]["fields"])
    await bench.deliver()
    finished = await bench.until(
        lambda: bench.ask(bench.keys[owner], "GET", f"checkouts/{opened['id']}"),
        lambda reply: reply.data["state"] != "open",
    )
    return dict(finished.data)


async def _authorized_checkout(bench: Bench, owner: str, ids: Ids) -> Ids:
    return {"checkout": (await _paid(bench, owner, ids, "authorization"))["id"]}


async def _subscription(bench: Bench, owner: str, ids: Ids) -> Ids:
    checkout = await _paid(bench, owner, ids, "recurring")
    return {"subscription": checkout["subscription_id"], "checkout": checkout["id"]}


async def _cancelled(bench: Bench, owner: str, ids: Ids) -> Ids:
    made = await _subscription(bench, owner, ids)
    key = fresh("key")
    cancelled = await bench.ask(bench.keys[owner], "DELETE", f"subscriptions/{made['subscription']}", key=key)
    assert cancelled.status == 200, cancelled
    operation = (await bench.ask(bench.keys[owner], "GET", f"operations/by-key/{key}")).data
    return made | {"operation": operation["id"]}


async def _token(bench: Bench, owner: str, ids: Ids) -> Ids:
    body = {"customer_id": ids["customer"], "order_id": ids["order"]}
    issued = (await bench.ask(bench.keys[owner], "POST", "client-tokens", body)).data
    return {"token": issued["id"], "credential": bench.keys[owner].split("_")[2]}


async def _endpoint(bench: Bench, owner: str, ids: Ids) -> Ids:
    body = {"url": f"https://{ids['reference']}.example/events"}
    created = (await bench.ask(bench.keys[owner], "POST", "endpoints", body)).data
    await bench.ask(bench.keys[owner], "PATCH", f"endpoints/{created['id']}", {"state": "paused"})
    return {"endpoint": created["id"]}


async def _no_more(bench: Bench, owner: str, ids: Ids) -> Ids:  # noqa: ARG001 - a maker
    return {}


_MAKERS: Final[Mapping[Noun, Callable[[Bench, str, Ids], Awaitable[Ids]]]] = {
    Noun.ORDER: _order,
    Noun.EVENT: _event,
    Noun.NEW_ORDER: _no_more,
    Noun.AUTHORIZATION: _authorization,
    Noun.CHECKOUT: _checkout,
    Noun.AUTHORIZED_CHECKOUT: _authorized_checkout,
    Noun.SUBSCRIPTION: _subscription,
    Noun.CANCELLED_SUBSCRIPTION: _cancelled,
    Noun.CUSTOMER: _no_more,
    Noun.TOKEN: _token,
    Noun.ENDPOINT: _endpoint,
    Noun.NOTHING: _no_more,
}
