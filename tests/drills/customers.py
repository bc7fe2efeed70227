"""Customers of checkouts: they look at the service's page, and pay at the gateway where it shows them a form."""

import asyncio
import re
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any, Final

import aiohttp
from tests.drills.told import Told
from tests.matrix.gateway import Gateway

TYPING_S: Final = 1.5
FORM: Final = re.compile(r'<form id="continue"[^>]*action="http[^"]*"')
FIELD: Final = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


@dataclass
class Customers:
    """All customers of a shop.

    Attributes:
        gateway: where they pay.
        hesitating: orders whose customers look at the page, and don't pay yet.
        paid: orders whose customers have paid, and think so.
        returning: orders whose customers open the page once more, and do what it asks of them.
    """

    gateway: Gateway
    hesitating: set[str] = field(default_factory=set)
    paid: set[str] = field(default_factory=set)
    returning: set[str] = field(default_factory=set)

    def come_back(self) -> None:
        """Has everybody open the page again: who hesitated pays now, and who paid does what the page says."""
        self.hesitating.clear()
        self.returning = set(self.paid)

    async def visit(self, web: aiohttp.ClientSession, order_id: str, opened: Told) -> Told:
        """Has the customer of an order visit the page that its shop was told of; gives what the shop knows by that.

        That is a success only once the checkout is completed.
        """
        checkout: dict[str, Any] = opened.data
        if checkout.get("state") == "completed" or opened.status != 200:
            return opened
        url = checkout.get("url")
        if url and (order_id not in self.paid or order_id in self.returning):
            await self._look(web, order_id, str(url))
        return replace(opened, status=202, code=f"checkout {checkout.get('state')}")

    async def _look(self, web: aiohttp.ClientSession, order_id: str, url: str) -> None:
        try:
            async with web.get(url) as response:
                page = await response.text()
        except (aiohttp.ClientError, TimeoutError):
            return
        if not FORM.search(page) or order_id in self.hesitating:
            return
        await asyncio.sleep(TYPING_S)  # a card's number is typed; and the gateway dates payments by whole seconds
        fields = {unescape(name): unescape(value) for name, value in FIELD.findall(page)}
        await asyncio.to_thread(self.gateway.pay, "checkout", fields)
        self.paid.add(order_id)
        self.returning.discard(order_id)
