"""The way of the gateway's notifications to us: some get lost, are late, come twice, or are somebody else's."""

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol
from urllib.parse import urlencode

from tests.hostile_browser import Split, splits_of
from tests.simulation.fate import PageFate
from tests.simulation.hostility import OWN_ADDRESS, SPLITS, HostileFate
from tests.simulation.loop import SimulatedLoop, wait_seconds
from tests.simulation.network import DAY_S, Gateway
from tests.simulation.process import Heard

from payrelay_simulator.notifications import Attempt, Notification

LATE_S: Final = (1.0, 5.0, 60.0, 900.0, 20_000.0, 100_000.0)
CHARGED_BACK: Final = "-3"
DISGUISED_SHARE: Final = 0.3
"""Of the gateway's notifications, those that come in disguises too, where any do."""
TOKENS: Final = ("customer_token", "authorization_token")
_ACCEPTED: Final = "SELECT 1 FROM accepted_tokens WHERE order_id = ?"


@dataclass(frozen=True, kw_only=True, slots=True)
class Posted:
    """One posting of a notification.

    Attributes:
        origin: ``gateway``; ``replay``, one of the gateway's with other values in fields that are not signed;
            ``elsewhere``, the gateway's of an order that nobody here knows; ``forger``; ``disguise``, one of the
            gateway's with an invented payment; ``split``, one whose signed text was read in another way.
        fields, body: what it says.
        at_s, heard_at_s: when it set out, and when its answer came.
        http_status: what it was answered; None where no answer came back.
    """

    origin: str
    fields: Mapping[str, str]
    body: bytes
    at_s: float
    heard_at_s: float
    http_status: int | None


class Post(Protocol):
    """What the postman knows of the world."""

    loop: SimulatedLoop
    gateway: Gateway
    auditor: sqlite3.Connection

    async def post(self, body: bytes) -> Heard | None:
        """Carries a notification to one of the processes, and back what it answers."""
        ...

    @property
    def stolen(self) -> list[Notification]:
        """The notifications that a hostile customer got in place of us."""
        ...

    def note(self, *words: object) -> None:
        """Something happened."""
        ...

    def tell(self) -> None:
        """Says that time has brought something about."""
        ...


class Postman:
    """Carries what the gateway has to tell, for as long as the run lasts; ``posted`` is what was carried."""

    def __init__(self, around: Post, random: Random, fate: PageFate) -> None:
        self._around = around
        self._random = random
        self._fate = fate
        self._woken: asyncio.Future[None] | None = None
        self._under_way = 0
        self._hostile: tuple[Random, HostileFate] | None = None
        self.posted: list[Posted] = []

    def turn_hostile(self, random: Random, hostile: HostileFate) -> None:
        """Lets news of the gateway's be sent again in disguises, by a chance of their own."""
        self._hostile = random, hostile

    async def slip(self, fields: Mapping[str, str]) -> None:
        """Carries what a customer made of genuine news."""
        await self._post("split", fields)

    def is_idle(self) -> bool:
        """Tells whether nothing is to be carried by now."""
        return self._under_way == 0 and self._next_s() is None

    def wake(self) -> None:
        """Says that the gateway may have something to tell."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def work(self) -> None:
        """Carries without end."""
        world = self._around.gateway.world
        while True:
            world.elapse()
            self._around.tell()
            for notification in world.notifications.take_due(world.clock.now()):
                self._begin(self._carry(notification))
            self._woken = self._around.loop.create_future()
            await asyncio.wait({self._woken}, timeout=min(self._due_s() + 0.001, DAY_S))

    def _next_s(self) -> float | None:
        """Tells in how many seconds the next one sets out; None where none is to."""
        world = self._around.gateway.world
        planned = [each.send_at for each in world.notifications._open.values() if each.state == "waiting"]
        return min(
            (max(0.0, (at - world.clock.now()).total_seconds()) for at in planned if at is not None), default=None
        )

    def _due_s(self) -> float:
        """Tells in how many seconds there is something to tell, or time brings something about."""
        world, next_s = self._around.gateway.world, self._next_s()
        agenda = world.state._agenda
        falls_due_s = (agenda[0][0] - world.clock.now()).total_seconds() if agenda else DAY_S
        return max(0.0, falls_due_s if next_s is None else min(next_s, falls_due_s))

    def _begin(self, work: "asyncio._CoroutineLike[None]") -> None:
        self._under_way += 1
        task = self._around.loop.create_task(work)  # type: ignore[arg-type]
        task.add_done_callback(self._ended)

    def _ended(self, _: "asyncio.Task[None]") -> None:
        self._under_way -= 1

    async def _carry(self, notification: Notification) -> None:
        random, world = self._random, self._around.gateway.world
        if notification.notify_url == OWN_ADDRESS:
            self._around.stolen.append(notification)
            taken = Attempt(at=world.clock.now(), http_status=200)
            world.notifications.note(notification.number, taken, world.switches)
            return
        if self._hostile is not None:
            self._begin(self._disguise(notification, *self._hostile))
        if random.random() < self._fate.forged_share:
            self._begin(self._lead_astray(notification))
        is_late = random.random() < self._fate.late_share
        await wait_seconds(random.choice(LATE_S) if is_late else random.uniform(0, 0.5))
        heard = None
        loss = random.random()
        if loss >= self._fate.loss_share * 2 / 3:
            heard = await self._post("gateway", notification.fields)
        attempt = Attempt(at=world.clock.now(), error="lost")
        if heard is not None and loss >= self._fate.loss_share:
            attempt = Attempt(at=world.clock.now(), http_status=heard.http_status)
        world.notifications.note(notification.number, attempt, world.switches)
        if random.random() < self._fate.copy_share:
            self._begin(self._repeat(notification))

    async def _repeat(self, notification: Notification) -> None:
        for _ in range(self._random.randint(1, 3)):
            await wait_seconds(self._random.choice((0.0, 0.0, 1.0, 900.0)))
            await self._post("gateway", notification.fields)

    async def _disguise(self, notification: Notification, random: Random, hostile: HostileFate) -> None:
        """Sends genuine news again: read as of other orders, and with payments that there are none of."""
        fields = notification.fields
        signed = Split(fields["order_id"], fields["payhere_amount"])
        if hostile.customers and signed in SPLITS:
            for split in splits_of(signed):
                await wait_seconds(random.choice((0.0, 1.0, 60.0)))
                changes = {"order_id": split.order_id, "payhere_amount": split.amount}
                # Its payments a customer knows by the receipts; without one, news may be taken for an order's only one.
                named = random.choice([fields.get("payment_id", ""), "", *self._payments_of(split.order_id)])
                changed = {**fields, **changes, "payment_id": named}
                await self._post("split", {name: value for name, value in changed.items() if value})
        if hostile.disguises and random.random() < DISGUISED_SHARE:
            first = random.randrange(330_000_000_000, 340_000_000_000)
            for number in range(hostile.disguises):
                await self._post("disguise", {**fields, "payment_id": str(first + number)})

    def _payments_of(self, order_id: str) -> list[str]:
        """Gives the payments of an order, which a customer knows by the receipts."""
        payments = self._around.gateway.world.state.payments.items()
        return [str(payment_id) for payment_id, each in payments if each.order_id == order_id]

    async def _lead_astray(self, notification: Notification) -> None:
        """Brings what the gateway never sent."""
        random, fields = self._random, notification.fields
        notifications = self._around.gateway.world.notifications
        await wait_seconds(random.choice((0.0, 0.5, 60.0)))
        match random.choice(("forger", "replay", "replay", "elsewhere")):
            case "forger":
                status_code = random.choice(("2", CHARGED_BACK))
                await self._post("forger", {**fields, "status_code": status_code, "payhere_amount": "1001.00"})
            case "elsewhere":
                await self._post("elsewhere", notifications.signed({**fields, "order_id": "Z-1"}))
            case _:
                await self._post("replay", {**fields, **self._altered(fields)})

    def _altered(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Gives other values for fields that are not signed.

        The first token that comes for an order is believed, which is said where our promises are; so that a false one
        sets out only when that has come.
        """
        altered = {"custom_1": "replayed"}
        payments = sorted(self._around.gateway.world.state.payments)
        if "item_rec_install_paid" in fields and self._random.random() < 0.5:
            altered["item_rec_install_paid"] = "9"
        if self._random.random() < 0.6:
            altered["payment_id"] = str(self._random.choice([*payments, 320_000_000_001]))
        if self._around.auditor.execute(_ACCEPTED, (fields["order_id"],)).fetchone() is not None:
            altered |= {name: fields[name][::-1] for name in TOKENS if name in fields}
        return altered

    async def _post(self, origin: str, fields: Mapping[str, str]) -> Heard | None:
        at_s, body = self._around.loop.time(), urlencode(fields).encode()
        heard = await self._around.post(body)
        http_status = None if heard is None else heard.http_status
        self.posted.append(
            Posted(
                origin=origin,
                fields=fields,
                body=body,
                at_s=at_s,
                heard_at_s=self._around.loop.time(),
                http_status=http_status,
            )
        )
        self._around.note("posted", origin, fields["order_id"], fields["status_code"], http_status)
        return heard
