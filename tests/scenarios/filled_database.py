"""A database with a bit of everything that a row can be forged of: made once, through the door, and copied."""

import asyncio
import json
import sqlite3
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.api.fakes import Reply
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.opened import FINISH_S, PUBLIC_URL, Opened, opened, settings_over
from tests.scenarios.test_notifications import signed

from payrelay.core.access.credential import DEFAULT_SCOPES
from payrelay.core.payments.operation import State
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.operators.decidable import Decision
from payrelay.flows.operators.decide import decide
from payrelay.runtime.event_delivery import publish_events
from payrelay.store.access.credentials import Credentials

BEGAN_AT_MS: Final = 1_795_000_000_000
STEP_MS: Final = 20_000
ENCRYPTION_KEY: Final = "YSBkYXRhYmFzZSB3aXRoIGEgYml0IG9mIGV2ZXJ5ISE="
CARD: Final = "59AFEE022CC69CA39D325E1B59130862"
PERSON: Final = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
SUBSCRIPTION: Final = "420075044317"
EFFECTS: Final = {payhere.CHARGE, payhere.CAPTURE, payhere.REFUND, payhere.RETRY, payhere.CANCEL}
"""Where the gateway is asked to change something."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A charge that was asked for under a key, and the operation that it became."""

    headers: dict[str, str]
    body: bytes
    operation_id: str


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """The database, and what its callers know of it.

    Attributes:
        content: the file.
        left_at_ms: when it was left.
        keys: the keys of its callers by principal.
        charge: one of the shop's that succeeded.
        checkout_id: of the shop's checkout that is open.
        customer_id: of the shop's stored customer.
    """

    content: bytes
    left_at_ms: int
    keys: dict[str, str]
    charge: Asked
    checkout_id: str
    customer_id: str


def effects_at(gateway: GatewayDouble) -> int:
    """Counts the calls that change something at the gateway."""
    return sum(asked.path in EFFECTS for asked in gateway.asked)


class _Shop:
    """Asks, and lets some time pass each time."""

    def __init__(self, world: Opened, gateway: GatewayDouble) -> None:
        self.world = world
        self.gateway = gateway
        self.keys: dict[str, str] = {}

    async def make_keys(self) -> None:
        """Makes the callers' keys, one of them narrow."""
        credentials = Credentials(self.world.database, self.world.relay.checkouts.rows)
        wide = KeyRequest(principal="shop", environment="sandbox", scopes=DEFAULT_SCOPES)
        narrow = KeyRequest(principal="kiosk", environment="sandbox", amount_max_minor=100_000)
        for wanted in (wide, narrow):
            self.keys[wanted.principal] = (await issue_key(credentials, self.world.clock, wanted)).key

    async def ask(self, path: str, body: object, *, key: str | None = None, by: str = "shop") -> Reply:
        """Posts something."""
        headers = {"Authorization": f"Bearer {self.keys[by]}"} | ({} if key is None else {"Idempotency-Key": key})
        reply = await self.world.call("POST", f"/gateway/api/{path}", headers=headers, body=json.dumps(body).encode())
        self.world.clock.at_ms += STEP_MS
        return reply

    async def charge(self, order_id: str, *, key: str, by: str = "shop", **members: object) -> Asked:
        """Charges an order; gives what was asked."""
        body = {"type": "PAYMENT", "order_id": order_id, "items": "Tea", "currency": "LKR", "amount": 345.67}
        body |= {"customer_token": CARD} | members
        reply = await self.ask("payments/charge", body, key=key, by=by)
        operation_id = reply.headers.get("payrelay-operation") or reply.json["error"]["operation_id"]
        headers = {"Authorization": f"Bearer {self.keys[by]}", "Idempotency-Key": key}
        return Asked(headers=headers, body=json.dumps(body).encode(), operation_id=operation_id)

    async def decide(self, order_id: str, verdict: State) -> None:
        """Loses the answer to a charge; an operator decides what became of it."""
        self.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
        lost = await self.charge(order_id, key=order_id)
        operation = await self.world.relay.journal.get(lost.operation_id)
        assert operation is not None
        decision = Decision(
            operation_id=operation.id, seen=operation.state, decided=verdict, operator="anna", reason="asked them"
        )
        await decide(self.world.relay, decision)

    async def open_checkout(self, kind: str, **members: object) -> str:
        """Opens a checkout, and its page; gives its id."""
        body = {"type": kind, "order_id": kind, "items": "Tea", "currency": "LKR", "amount": 345.67}
        reply = await self.ask("checkouts", body | {"customer": PERSON} | members)
        assert reply.status == 200, reply.body
        page = reply.json["data"]["url"].removeprefix(PUBLIC_URL)
        assert (await self.world.call("GET", page, headers={"Authorization": ""})).status == 200
        self.world.clock.at_ms += STEP_MS
        return str(reply.json["data"]["id"])

    async def notify(self, body: bytes) -> None:
        """Posts a notification as the gateway does, and waits until it has been worked on."""
        headers = {"Authorization": "", "Content-Type": "application/x-www-form-urlencoded"}
        await self.world.call("POST", "/gateway/notifications", headers=headers, body=body)
        await self.world.relay.background.finish(FINISH_S)
        self.world.clock.at_ms += STEP_MS

    async def subscribe(self, order_id: str) -> None:
        """Has the gateway notify of a subscription."""
        at = datetime.fromtimestamp((self.world.clock.at_ms - STEP_MS / 2) / 1000, tz=payhere.COLOMBO)
        record = payhere.payment_now(order_id, "345.67") | {"date": at.strftime("%Y-%m-%d %H:%M:%S")}
        plan: dict[str, Any] = {"subscription_id": int(SUBSCRIPTION), "order_id": order_id, "status": "ACTIVE"}
        shown = payhere.envelope(
            "Found subscription", plan | {"currency": "LKR", "amount": 345.67, "date": record["date"]}
        )
        path = f"{payhere.SUBSCRIPTIONS}/{SUBSCRIPTION}"
        self.gateway.always(path, SUBSCRIPTION, payhere.says(shown))
        self.gateway.always(f"{path}/payments", SUBSCRIPTION, payhere.says(payhere.found(record)))
        told = {"message_type": "AUTHORIZATION_SUCCESS", "item_rec_status": "0", "item_rec_install_paid": "1"}
        told |= {"subscription_id": SUBSCRIPTION, "item_rec_date_next": "2026-12-21"}
        await self.notify(signed(order_id, payment_id=str(record["payment_id"]), **told))


async def _filled(folder: Path, gateway: GatewayDouble) -> Filled:
    async with opened(settings_over(f"sqlite:///{folder}/made.db", gateway, ENCRYPTION_KEY), BEGAN_AT_MS) as world:
        shop = _Shop(world, gateway)
        await shop.make_keys()
        customer = await shop.ask("customers", {"customer_token": CARD, "reference": "user-17"})
        charge = await shop.charge("A-1", key="k-1")
        await shop.charge("A-2", key="k-2", by="kiosk")
        await shop.decide("A-3", State.SUCCEEDED)
        await shop.decide("A-4", State.FAILED)
        checkout_id = await shop.open_checkout("payment")
        await shop.open_checkout("recurring", recurrence="1 Month", duration="Forever")
        await shop.subscribe("recurring")
        await shop.notify(signed("payment").replace(b"345.67", b"1.00"))
        await publish_events(world.relay.dispatch)
        with sqlite3.connect(folder / "made.db") as connection:
            connection.execute("VACUUM INTO ?", (str(folder / "copy.db"),))
        return Filled(
            content=(folder / "copy.db").read_bytes(),
            left_at_ms=world.clock.at_ms,
            keys=shop.keys,
            charge=charge,
            checkout_id=checkout_id,
            customer_id=customer.json["data"]["id"],
        )


def filled_database(gateway: GatewayDouble) -> Filled:
    """Makes such a database."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_filled(Path(folder), gateway))
