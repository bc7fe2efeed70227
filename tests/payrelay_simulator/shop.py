"""A merchant and a payer for the tests of hosted pages: a form that is in order, its hash, and a receiver of news."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from payrelay_simulator import DEFAULT_MERCHANT

Form = dict[str, str]

VISA, MASTER, AMEX = "4916217501611292", "5307732125531191", "346781005510225"
POOR_VISA = "4024007194349121"


def digest(text: str) -> str:
    """Return the upper-case MD5 of a text, computed apart from the simulator."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def form_hash(form: Form, amount: str) -> str:
    """Return a form's hash over that amount."""
    text = form.get("merchant_id", "") + form.get("order_id", "") + amount + form.get("currency", "")
    return digest(text + digest(DEFAULT_MERCHANT.merchant_secret))


def a_form(signed: str = "1000.00", **changes: str) -> Form:
    """Return a form that is in order, with changes, signed over `signed`; an empty change takes a field out."""
    form = {
        "merchant_id": DEFAULT_MERCHANT.merchant_id,
        "return_url": "http://shop.example/return?shop=1",
        "cancel_url": "http://shop.example/cancel",
        "notify_url": "http://127.0.0.1:9/notify",
        "first_name": "Saman",
        "last_name": "Perera",
        "email": "saman@example.com",
        "phone": "0771234567",
        "address": "No. 1, Galle Road",
        "city": "Colombo",
        "country": "Sri Lanka",
        "order_id": "Order12345",
        "items": "Door bell",
        "currency": "LKR",
        "amount": "1000",
        **changes,
    }
    form = {name: value for name, value in form.items() if value}
    return {"hash": form_hash(form, signed), **form} if "hash" not in changes else form


def a_card(number: str = VISA, **changes: str) -> Form:
    """Return what a payer types."""
    return {
        "cardHolderName": "S Perera",
        "cardNo": number,
        "cardExpiry": "12/29",
        "cardSecureId": "123",
        **changes,
    }


PATIENCE_S = 10.0  # for a notification on its way; a fraction of it is enough


@dataclass
class Receiver:
    """Where notifications arrive. `statuses` are answered one after the other, then 200."""

    address: str = ""
    bodies: list[dict[str, str]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: web.Request) -> web.Response:
        """Keep what came."""
        self.types.append(request.content_type)
        self.bodies.append({name: str(value) for name, value in (await request.post()).items()})
        self._arrival.set()
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, headers={"Location": "/notify"})

    async def wait_for(self, count: int) -> list[dict[str, str]]:
        """Return what came as soon as it is so many."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.bodies) < count:
                self._arrival.clear()
                await self._arrival.wait()
        return self.bodies


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Serve a receiver on a free port."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/notify", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.address = f"http://{host}:{port}/notify"
    yield receiver
    await runner.cleanup()
