"""Makes the books of the version that runs it: ``python -m tests.upgrades.make_books <version> <commit>``.

Books are made once, when a version is released, and never again: those of an earlier version can only be made by that
version. The story is told through the door alone, by requests, so that it can be told to every later version too. What
has its outcome comes first; then, in a moment that doesn't pass, what is open when the program is killed.
"""

import asyncio
import itertools
import json
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.api.fakes import Reply
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.test_notifications import signed
from tests.upgrades import books
from tests.upgrades.books import Asked, Books, Checkout
from tests.upgrades.service import FINISH_S, PUBLIC_URL, Opened, opened, settings_over

from payrelay.core.access.credential import DEFAULT_SCOPES, Rate
from payrelay.core.payments.operation import State
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.core.secret import Secret
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.operators.audit import keep_anchors
from payrelay.flows.operators.decidable import Decision
from payrelay.flows.operators.decide import decide
from payrelay.flows.resolution.resolve import resolve_one
from payrelay.runtime.event_delivery import publish_events
from payrelay.store.access.credentials import Credentials
from payrelay.store.seals import SEALED

BEGAN_AT_MS: Final = 1_795_000_000_000
STEP_MS: Final = 20_000
ENCRYPTION_KEY: Final = "Ym9va3Mgb2YgYW4gZWFybGllciB2ZXJzaW9uLCAzMiA="
CARD: Final = "59AFEE022CC69CA39D325E1B59130862"
PERSON: Final = {
    "first_name": "සමන්",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
FULL: Final[dict[str, Any]] = {
    "items": "Tee, grün \N{HOT BEVERAGE} \U0001d50a",
    "custom_1": "booking 7",
    "custom_2": "two",
    "notify_url": "https://shop.example/notifications?order=1",
    "itemList": [
        {"name": "Tee", "number": "001", "quantity": 2, "unit_amount": 150.5},
        {"name": "Trinkgeld", "number": "002", "quantity": 1, "unit_amount": 44.67},
    ],
}
CHECKOUTS: Final[dict[str, dict[str, object]]] = {
    "payment": {
        "amount": 345.67,
        "delivery": {"city": "Kandy"},
        "itemList": [{"name": "Door bell", "number": "b-1", "quantity": 1, "unit_amount": 345.67}],
        "custom_1": "x",
        "return_to": "https://shop.example/paid",
        "cancel_to": "https://shop.example/back",
    },
    "preapproval": {"customer_reference": "user-18"},
    "recurring": {"amount": 345.67, "recurrence": "1 Month", "duration": "Forever", "startup_fee": 100},
    "authorization": {"amount": 15000, "expires_in_s": 14_400},
}


class Shop:
    """Asks, and writes down what it asked."""

    def __init__(self, world: Opened, gateway: GatewayDouble) -> None:
        self.world = world
        self.gateway = gateway
        self.keys: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.checkouts: list[Asked] = []
        self.notifications: list[str] = []
        self.customers: dict[str, str] = {}
        self.reads: dict[str, str] = {}
        self.numbers = itertools.count(1)
        self.step_ms = STEP_MS

    def order(self, what: str) -> str:
        """Gives an order's name that wasn't used yet."""
        return f"{what.replace(' ', '-')}-{next(self.numbers)}"

    def request(
        self, what: str, method: str, path: str, body: object = None, *, key: str | None = None, by: str = "shop"
    ) -> Asked:
        """Writes a request down."""
        headers = {"Authorization": f"Bearer {self.keys[by]}"} | ({} if key is None else {"Idempotency-Key": key})
        text = "" if body is None else json.dumps(body, ensure_ascii=False)
        target = path if path.startswith("/") else f"/gateway/api/{path}"
        return Asked(what=what, method=method, target=target, headers=headers, body=text)

    async def send(self, asked: Asked) -> Reply:
        """Sends a request, and lets some time pass."""
        reply = await send(self.world, asked)
        self.world.clock.at_ms += self.step_ms
        return reply

    async def do(
        self,
        what: str,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        by: str = "shop",
        is_kept: bool = True,
    ) -> dict[str, Any]:
        """Asks for an effect; gives the data of the answer, or the operation where it has none.

        ``is_kept`` is False where a repeat is to begin anew: without a key, that is so of all that didn't succeed.
        """
        asked = self.request(what, method, path, body, key=key, by=by)
        if is_kept:
            self.asked.append(asked)
        reply = await self.send(asked)
        data = reply.json["data"]
        return data if isinstance(data, dict) else {"operation": reply.headers.get("payrelay-operation")}

    async def ask(self, what: str, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401, any JSON
        """Asks for anything else; gives the data."""
        reply = await self.send(self.request(what, method, path, body))
        assert reply.status == 200, (what, reply.body)
        return reply.json["data"]

    async def charge(
        self,
        what: str,
        *behaviours: payhere.Behaviour,
        by: str = "shop",
        order: str | None = None,
        is_success: bool = True,
        **members: object,
    ) -> None:
        """Charges with a key and without one, of orders of their own; a member that is None is left out."""
        for key in (f"key of {what}".replace(" ", "-"), None):
            order_id = order or self.order(what)
            self.gateway.script(payhere.CHARGE, order_id, *behaviours)
            body = {name: value for name, value in (charge_body(order_id) | members).items() if value is not None}
            await self.do(
                f"{what}, {_keyed(key)}",
                "POST",
                "payments/charge",
                body,
                key=key,
                by=by,
                is_kept=is_success or key is not None,
            )

    async def twice(
        self, what: str, method: str, path: str, *subjects: str, behaviour: payhere.Behaviour | None = None
    ) -> None:
        """Asks for an effect on a subscription with a key, and on another one without."""
        for subject, key in zip(subjects, (f"key of {what}".replace(" ", "-"), None), strict=True):
            if behaviour is not None:
                self.gateway.script(payhere.RETRY if path.endswith("/retry") else payhere.CANCEL, subject, behaviour)
            await self.do(f"{what}, {_keyed(key)}", method, path.format(subject), key=key)

    async def post_twice(
        self, what: str, path: str, *bodies: Mapping[str, object], behaviour: payhere.Behaviour | None = None
    ) -> None:
        """Asks for an effect with a key, and for another one without."""
        place = payhere.CAPTURE if path.endswith("/capture") else payhere.REFUND
        for body, key in zip(bodies, (f"key of {what}".replace(" ", "-"), None), strict=True):
            if behaviour is not None:
                self.gateway.script(place, str(body.get("authorization_token") or body["payment_id"]), behaviour)
            await self.do(f"{what}, {_keyed(key)}", "POST", path, body, key=key)

    async def resolve_by_hand(self, operation_id: str, verdict: State) -> None:
        """Decides what became of an operation."""
        operation = await self.world.relay.journal.get(operation_id)
        assert operation is not None
        await decide(
            self.world.relay,
            Decision(
                operation_id=operation_id, seen=operation.state, decided=verdict, operator="anna", reason="asked them"
            ),
        )

    async def notify(self, body: bytes) -> None:
        """Posts a notification, and waits until it has been worked on."""
        self.notifications.append(body.decode())
        reply = await post(self.world, body)
        assert reply.status in {200, 403}, reply.body
        await self.world.relay.background.finish(FINISH_S)
        self.world.clock.at_ms += self.step_ms


async def send(world: Opened, asked: Asked) -> Reply:
    """Sends a request."""
    return await world.call(asked.method, asked.target, headers=asked.headers, body=asked.body.encode())


async def post(world: Opened, body: bytes) -> Reply:
    """Posts a notification as the gateway does."""
    headers = {"Authorization": "", "Content-Type": "application/x-www-form-urlencoded"}
    return await world.call("POST", "/gateway/notifications", headers=headers, body=body)


def charge_body(order_id: str) -> dict[str, object]:
    """Gives a charge with the required members only."""
    return {
        "type": "PAYMENT",
        "order_id": order_id,
        "items": "Taxi Hire 123",
        "currency": "LKR",
        "amount": 345.67,
        "customer_token": CARD,
    }


def _keyed(key: str | None) -> str:
    return "without a key" if key is None else "with a key"


async def make_keys(shop: Shop) -> None:
    """Makes the callers' keys, one of them narrow."""
    credentials, clock = Credentials(shop.world.database, shop.world.relay.checkouts.rows), shop.world.clock
    wide = KeyRequest(principal="shop", environment="sandbox", scopes=DEFAULT_SCOPES)
    narrow = KeyRequest(
        principal="kiosk",
        environment="sandbox",
        accounts=frozenset({"gateway"}),
        amount_max_minor=100_000,
        rate=Rate(count=100, window_s=60),
        life_s=86_400,
    )
    for wanted in (wide, narrow):
        shop.keys[wanted.principal] = (await issue_key(credentials, clock, wanted)).key


async def make_customers(shop: Shop) -> str:
    """Stores customers in every state; gives the handle of the one that can be charged."""
    handles = []
    for number, state in enumerate(("active", "removed", "erased")):
        token = f"{number}9AFEE022CC69CA39D325E1B59130862"
        body = {"customer_token": token, "reference": f"user-{number}", "label": "blue card", "method": "VISA"}
        handle = (await shop.ask(state, "POST", "customers", body))["id"]
        await shop.charge(f"by the handle of a customer who is {state} now", customer_token=handle)
        handles.append(handle)
        shop.customers[token] = handle
    await shop.ask("remove", "DELETE", f"customers/{handles[1]}")
    await shop.ask("erase", "POST", f"customers/{handles[2]}/erase", {})
    return str(handles[0])


async def make_final(shop: Shop) -> list[tuple[str, str]]:
    """Makes charges and holds that have their outcome; gives the tokens of the holds, with their orders."""
    await shop.charge("charge that succeeded")
    await shop.charge("charge with everything", **FULL)
    await shop.charge("charge of a kiosk", by="kiosk")
    await shop.charge("large charge", amount=999_999_999_999.99)
    await shop.charge("charge that was declined", payhere.succeeds_with(status_code=-2), is_success=False)
    await shop.charge("charge that was refused", payhere.refuses("Invalid token"), is_success=False)
    for verdict in (State.SUCCEEDED, State.FAILED):
        what, order_id = f"charge that was decided {verdict}", shop.order("decided")
        shop.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
        lost = await shop.do(what, "POST", "payments/charge", charge_body(order_id), key=f"decided-{verdict}")
        await shop.resolve_by_hand(lost["operation"], verdict)
    tokens = []
    for what in ("hold to be captured", "hold to be released", "hold to be captured, lost", "hold, released in part"):
        for key in (what.replace(" ", "-"), None):
            body = charge_body(shop.order("hold")) | {"type": "AUTHORIZE"}
            held = await shop.do(f"{what}, {key}", "POST", "payments/charge", body, key=key)
            tokens.append((str(held["authorization_token"]), str(held["order_id"])))
    return tokens


async def make_proved(shop: Shop) -> None:
    """Loses the answer to a charge, and finds it in the gateway's records."""
    world, order_id = shop.world, shop.order("proved")
    shop.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    lost = await shop.do("charge that was proved", "POST", "payments/charge", charge_body(order_id), key="proved")
    shop.gateway.script(payhere.SEARCH, order_id, payhere.says(payhere.found(record_of(world, order_id))))
    operation = await world.relay.journal.get(lost["operation"])
    assert operation is not None
    await resolve_one(world.relay, operation)


def record_of(world: Opened, order_id: str) -> dict[str, object]:
    """Gives the record of a payment that was taken just now."""
    at = datetime.fromtimestamp((world.clock.at_ms - STEP_MS) / 1000, tz=payhere.COLOMBO)
    digits = payhere.payment_now(order_id, "345.67")
    return digits | {"date": at.strftime("%Y-%m-%d %H:%M:%S"), "description": "Taxi Hire 123"}


async def make_changes(shop: Shop, tokens: list[tuple[str, str]]) -> None:
    """Captures, releases, refunds, retries and cancels, with outcomes."""
    for token, order_id in tokens[0:2]:
        shop.gateway.script(payhere.CAPTURE, token, payhere.captures_with(order_id=order_id))
    captures = [capture_body(token) for token, _ in tokens[0:2]]
    await shop.post_twice("capture that succeeded", "payments/capture", *captures)
    releases = [{"authorization_token": token, "description": "not wanted"} for token, _ in tokens[2:4]]
    await shop.post_twice("release that succeeded", "payments/refund", *releases)
    whole = [{"payment_id": f"32002500000{number}", "description": "späte Lieferung"} for number in (1, 2)]
    await shop.post_twice("whole refund", "payments/refund", *whole)
    part = [{"payment_id": f"32002500000{number}", "description": "a part", "amount": "100.50"} for number in (3, 4)]
    await shop.post_twice("refund of a part", "payments/refund", *part)
    await shop.twice("retry that succeeded", "POST", "subscriptions/{}/retry", "420075032251", "420075032252")
    await shop.twice("cancellation that succeeded", "DELETE", "subscriptions/{}", "420075032253", "420075032254")


def capture_body(token: str) -> dict[str, object]:
    """Gives a capture of a part of a hold."""
    return {"authorization_token": token, "amount": 80.0, "description": "one is missing"}


async def make_checkouts(shop: Shop) -> None:
    """Opens checkouts of each kind, with a key and without; some come to their outcome."""
    opened_ids: dict[str, str] = {}
    for kind, members in CHECKOUTS.items():
        for key, end in ((f"checkout-{kind}", "open"), (None, "open"), (f"ended-{kind}", "ended")):
            body = {"type": kind, "order_id": f"{end}-{kind}-{key}", "items": "Glocke", "currency": "LKR"}
            asked = shop.request(
                f"checkout {kind} {end}",
                "POST",
                "checkouts",
                body | {"customer": PERSON, "expires_in_s": 14_400} | members,
                key=key,
            )
            shop.checkouts.append(asked)
            reply = await shop.send(asked)
            assert reply.status == 200, reply.body
            data = reply.json["data"]
            page = await shop.world.call("GET", data["url"].removeprefix(PUBLIC_URL), headers={"Authorization": ""})
            assert page.status == 200, page.body
            opened_ids[f"{end}-{kind}"] = body["order_id"]
    await end_checkouts(shop, opened_ids)


async def end_checkouts(shop: Shop, orders: dict[str, str]) -> None:
    """Has the gateway notify of what customers did."""
    paid = orders["ended-payment"]
    record = record_of(shop.world, paid)
    shop.gateway.always(payhere.SEARCH, paid, payhere.says(payhere.found(record)))
    await shop.notify(signed(paid, "-2"))
    await shop.notify(signed(paid, payment_id=str(record["payment_id"])))
    await shop.notify(signed(paid, "-3", payment_id=str(record["payment_id"])))
    token = "A9AFEE022CC69CA39D325E1B59130862"
    approved = orders["ended-preapproval"]
    await shop.notify(
        signed(approved, payhere_amount="10.00", customer_token=token, payment_id="320000000001", custom_1="x")
    )
    found = await shop.ask("customers", "GET", "customers?reference=user-18")
    shop.customers[token] = found[0]["id"]
    await shop.notify(signed(orders["ended-authorization"], "3", payhere_amount="15000.00", authorization_token="h0ld"))
    await subscribe(shop, orders["ended-recurring"], "420075044317")
    await shop.notify(signed("nobody-knows-it"))
    await shop.notify(signed(paid).replace(b"345.67", b"1.00"))


async def subscribe(shop: Shop, order_id: str, subscription_id: str) -> None:
    """Has the gateway notify of a subscription."""
    record = record_of(shop.world, order_id)
    paid = f"{payhere.SUBSCRIPTIONS}/{subscription_id}/payments"
    shop.gateway.always(paid, subscription_id, payhere.says(payhere.found(record)))
    plan = {"subscription_id": int(subscription_id), "order_id": order_id, "status": "ACTIVE", "currency": "LKR"}
    shown = f"{payhere.SUBSCRIPTIONS}/{subscription_id}"
    shop.gateway.always(
        shown, subscription_id, payhere.says(payhere.envelope("Found subscription", plan | {"amount": 345.67}))
    )
    await shop.notify(
        signed(
            order_id,
            payment_id=str(record["payment_id"]),
            subscription_id=subscription_id,
            message_type="AUTHORIZATION_SUCCESS",
            item_rec_status="0",
            item_rec_install_paid="1",
            item_rec_date_next="2026-12-21",
        )
    )


async def make_reads(shop: Shop) -> None:
    """Reads of the gateway what a later version is to find kept."""
    for path in ("subscriptions", "subscriptions/420075044317", "subscriptions/420075044317/payments"):
        shop.reads[path] = json.dumps(await shop.ask("read", "GET", path))


async def make_phone(shop: Shop, handle: str) -> None:
    """Gives a phone its token."""
    wanted = {
        "customer_id": handle,
        "order_id": "order-of-a-phone",
        "amount": 345.67,
        "currency": "LKR",
        "scopes": ["payments:charge", "payments:read", "operations:read"],
        "expires_in_s": 3600,
    }
    shop.keys["phone"] = (await shop.ask("phone", "POST", "client-tokens", wanted))["token"]
    await shop.charge("charge by a phone", order="order-of-a-phone", by="phone", customer_token=None)


async def make_open(shop: Shop, tokens: list[tuple[str, str]], handle: str) -> list[asyncio.Task[Any]]:
    """Asks for what is open when the program dies; gives what is under way then.

    A capture or a cancellation that was lost is sent once more as soon as somebody asks for it and it is some seconds
    old: no time passes after these.
    """
    await make_searched(shop, handle)
    shop.world.clock.at_ms += 10 * STEP_MS
    shop.step_ms = 0
    captures = [capture_body(token) for token, _ in tokens[4:6]]
    await shop.post_twice("capture whose answer was lost", "payments/capture", *captures, behaviour=payhere.cuts)
    releases = [{"authorization_token": token, "description": "a part", "amount": 1} for token, _ in tokens[6:8]]
    await shop.post_twice("release whose answer was lost", "payments/refund", *releases, behaviour=payhere.cuts)
    refunds = [{"payment_id": f"32002500001{number}", "description": "late"} for number in (1, 2)]
    await shop.post_twice("refund whose answer was lost", "payments/refund", *refunds, behaviour=payhere.cuts)
    numbers = ("420075032261", "420075032262")
    await shop.twice("retry whose answer was lost", "POST", "subscriptions/{}/retry", *numbers, behaviour=payhere.cuts)
    numbers = ("420075032263", "420075032264")
    await shop.twice("lost cancellation", "DELETE", "subscriptions/{}", *numbers, behaviour=payhere.cuts)
    return await make_under_way(shop)


async def make_searched(shop: Shop, handle: str) -> None:
    """Asks for charges whose outcome is searched for at the gateway, or left to a person."""
    await shop.charge("charge whose answer was lost", payhere.cuts)
    await shop.charge("charge by handle whose answer was lost", payhere.cuts, customer_token=handle)
    await shop.charge("charge that is pending", payhere.succeeds_with(status_code=0))
    await shop.charge("charge of which another amount was taken", payhere.succeeds_with(amount=1))


async def make_under_way(shop: Shop) -> list[asyncio.Task[Any]]:
    """Asks for charges that are with the gateway when the program dies, and for some that wait for their place."""
    tasks = []
    for key in ("under-way", None):
        order_id = shop.order("under-way")
        held = shop.gateway.hold(payhere.CHARGE, order_id)
        charge = shop.do(f"charge under way, {key}", "POST", "payments/charge", charge_body(order_id), key=key)
        tasks.append(asyncio.create_task(charge))
        await asyncio.to_thread(held.wait_for_arrival)
    path = "/slow/api/payments/charge"
    await shop.do("charge of the slow account", "POST", path, charge_body(shop.order("slow")), key="slow")
    for key in ("waits", None):
        charge = shop.do(f"charge that waits, {key}", "POST", path, charge_body(shop.order("waits")), key=key)
        tasks.append(asyncio.create_task(charge))
    # Nothing tells that a request has come to wait for its place.
    while len(await shop.world.relay.journal.stranded(before_ms=NEVER_MS)) < len(tasks):  # noqa: ASYNC110, as it says
        await asyncio.sleep(0)
    return tasks


async def tell_story(shop: Shop, copy: Path) -> int:
    """Tells the whole story, and copies the database as it lies when the program dies; gives that moment."""
    world = shop.world
    await make_keys(shop)
    endpoint = {"url": "http://127.0.0.1:9/events", "types": ["*"], "label": "orders"}
    registered = await shop.ask("endpoint", "POST", "endpoints", endpoint)
    await shop.ask("rotated", "POST", f"endpoints/{registered['id']}/rotate", {})
    handle = await make_customers(shop)
    tokens = await make_final(shop)
    await make_proved(shop)
    await make_changes(shop, tokens)
    await make_checkouts(shop)
    await make_reads(shop)
    await publish_events(world.relay.dispatch)
    world.clock.at_ms += 3_600_000
    await keep_anchors(world.relay)
    await make_phone(shop, handle)
    under_way = await make_open(shop, tokens, handle)
    path = world.settings.embedded_path
    assert path is not None
    with sqlite3.connect(path) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    return world.clock.at_ms


async def repeated(world: Opened, asked: Asked, gateway: GatewayDouble) -> Asked:
    """Repeats a request, and writes down what it was answered; nothing is sent for it."""
    effects = books.effects_at(gateway)
    reply = await send(world, asked)
    assert books.effects_at(gateway) == effects, asked.what
    is_replayed = reply.headers.get("idempotent-replayed") == "true"
    error = reply.json.get("error", {})
    return msgspec.structs.replace(
        asked,
        status=reply.status,
        code=error.get("code"),
        operation_id=reply.headers.get("payrelay-operation") or error.get("operation_id"),
        answer=reply.body.decode() if is_replayed else None,
    )


async def shown_again(world: Opened, asked: Asked) -> Checkout:
    """Opens a checkout again, and writes down what that gave."""
    reply = await send(world, asked)
    assert reply.headers.get("idempotent-replayed") == "true", (asked, reply.body)
    data = reply.json["data"]
    form = None if data["form"] is None else data["form"]["fields"]
    return Checkout(asked=asked, id=data["id"], state=data["state"], url=data["url"], form=form)


async def is_found(world: Opened, token: str) -> bool:
    """Tells whether a customer is found by the gateway's token; one that was erased is not."""
    merchant = world.relay.account("gateway").merchant
    return await world.relay.customers.of_token(merchant, "shop", Secret(token)) is not None


async def make(version: str, commit: str) -> None:
    """Tells the story in one database, and writes down what is answered by a copy of it."""
    with tempfile.TemporaryDirectory() as name, GatewayDouble() as gateway:
        folder = Path(name)
        copy = folder / "copy.db"
        async with opened(settings_over(f"sqlite:///{folder}/books.db", gateway, ENCRYPTION_KEY), BEGAN_AT_MS) as world:
            shop = Shop(world, gateway)
            left_at_ms = await tell_story(shop, copy)
        database = copy.read_bytes()
        effects = books.effects_at(gateway)
        async with opened(settings_over(f"sqlite:///{copy}", gateway, ENCRYPTION_KEY), left_at_ms) as world:
            asked = [await repeated(world, each, gateway) for each in shop.asked]
            await world.relay.background.finish(FINISH_S)
            assert books.effects_at(gateway) == effects
            checkouts = [await shown_again(world, each) for each in shop.checkouts if "ended" not in each.what]
            customers = {token: handle for token, handle in shop.customers.items() if await is_found(world, token)}
        books.keep(
            Books(
                version=version,
                commit=commit,
                left_at_ms=left_at_ms,
                encryption_key=ENCRYPTION_KEY,
                keys=shop.keys,
                asked=tuple(asked),
                checkouts=tuple(checkouts),
                notifications=tuple(shop.notifications),
                customers=customers,
                sealed=tuple(column.name for column in SEALED),
                reads=shop.reads,
            ),
            database,
        )


if __name__ == "__main__":
    asyncio.run(make(*sys.argv[1:]))
