"""Customers with two tabs: one order is paid on a page and by a stored card at once, and on a page that was closed."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Final

import msgspec
from tests.simulation.buyers import PAGES, PERSON, Buyer, Form, Street
from tests.simulation.clients import CUSTOMERS, Ask, data_of
from tests.simulation.loop import wait_seconds

from payrelay_simulator.pages.forms import PageError
from payrelay_simulator.pages.payer import GOOD_CARD

TAB_ORDERS: Final = ("D-1", "D-2")
AMOUNT: Final = "100.50"
APART_S: Final = (0.0, 0.0, 0.1, 1.0, 5.0)
"""How far apart the two tabs begin: mostly at once, so that each may find the other one half stored."""
LATER_S: Final = (0.0, 5.0, 100.0, 4_000.0)


class Tabs(Buyer):
    """A shop whose customers pay one order in several ways; afterwards it gives money back, more than once."""

    def __init__(self, number: int, street: Street, random: Random, *, is_narrow: bool) -> None:
        super().__init__(number, street, random, is_narrow=is_narrow, orders=TAB_ORDERS)

    async def live(self) -> None:
        """Sells a few orders."""
        for order_id in TAB_ORDERS[: self._random.randint(1, 2)]:
            await self._random.choice((self._both, self._both, self._closed, self._two_keys))(order_id)
            await self._give_all_back()

    async def _both(self, order_id: str) -> None:
        """A page is opened, and the stored card charged, at once."""
        asks = [self._opens(order_id, is_closed=False), self._charges(order_id)]
        self._random.shuffle(asks)
        await asyncio.gather(*(self._after(self._random.choice(APART_S), each) for each in asks))

    async def _closed(self, order_id: str) -> None:
        """A page is closed while the customer has it, the card is charged in its place, and the page is paid later."""
        await self._opens(order_id, is_closed=True)

    async def _two_keys(self, order_id: str) -> None:
        """The card is charged by two requests, at once or one after the other."""
        asks = [self._charges(order_id), self._charges(order_id)]
        await asyncio.gather(*(self._after(self._random.choice((0.0, 20.0)), each) for each in asks))

    async def _after(self, pause_s: float, work: Coroutine[None, None, None]) -> None:
        await wait_seconds(pause_s * self._random.random())
        await work

    async def _charges(self, order_id: str) -> None:
        members: dict[str, object] = {
            "type": self._random.choice(("PAYMENT", "PAYMENT", "PAYMENT", "AUTHORIZE")),
            "order_id": order_id,
            "items": "Tea",
            "currency": "LKR",
            "amount": msgspec.Raw(AMOUNT.encode()),
            "customer_token": CUSTOMERS[0],
        }
        told = await self._persist(self._ask("POST", "payments/charge", members))
        payment_id = data_of(told).get("payment_id")
        if members["type"] == "PAYMENT" and isinstance(payment_id, int):
            self._street.payment_ids.append(str(payment_id))

    async def _opens(self, order_id: str, *, is_closed: bool) -> None:
        members: dict[str, object] = {
            "type": "payment",
            "order_id": order_id,
            "items": "Tea",
            "currency": "LKR",
            "amount": msgspec.Raw(AMOUNT.encode()),
            "customer": PERSON,
            "expires_in_s": self._random.choice((60, 1_800)),
        }
        opened = data_of(await self._persist(self._ask("POST", "checkouts", members)))
        if opened.get("form") is None:
            return
        form = msgspec.convert(opened["form"], Form)
        try:
            visits = [
                self._payer.enter(PAGES[form.action.rpartition("/")[2]], form.fields)
                for _ in range(self._random.choice((1, 1, 2)))
            ]
        except PageError as error:
            self._street.note("page", error.text)
            return
        path = f"checkouts/{opened['id']}"
        if is_closed:
            await self._persist(Ask(principal=self._principal, method="DELETE", path=path, body=b""))
            if self._random.random() < 0.7:
                await self._charges(order_id)
        for visit in visits:
            await wait_seconds(self._random.choice(LATER_S) * self._random.random())
            if self._random.random() < 0.8:
                self._try("payment", visit, GOOD_CARD)
        seen = await self._look_after(str(opened["id"]))
        if isinstance(seen.get("payment_id"), str):
            self._street.payment_ids.append(str(seen["payment_id"]))

    async def _give_all_back(self) -> None:
        """Refunds parts and the whole of a payment, under new keys and without any."""
        if self._random.random() < 0.4:
            return
        await wait_seconds(self._random.choice((0.0, 30.0, 1_000.0, 25_000.0)))
        payment_id = self._street.payment_ids[-1]
        for _ in range(self._random.randint(1, 4)):
            await self._persist(self._refund(payment_id))
