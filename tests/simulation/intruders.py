"""Those who mean harm: customers who edit forms and news, a principal who meddles with others' things, and phones."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec
from tests.hostile_browser import Split, approval_of_nothing, edited, moved, splits_of
from tests.simulation.buyers import KINDS, PAGES, PERSON, Buyer, Form, Street
from tests.simulation.clients import CUSTOMERS, Ask, Client, Told, Town, data_of
from tests.simulation.hostility import CHEAP, CHEAP_MINOR, OWN_ADDRESS, PHONE_AMOUNT, RIVAL, SPLITS
from tests.simulation.loop import wait_seconds

from payrelay_simulator.money import cents_of, text_of
from payrelay_simulator.notifications import Notification
from payrelay_simulator.pages.forms import Page, PageError
from payrelay_simulator.pages.payer import GOOD_CARD

TOKENS: Final = ("customer_token", "authorization_token")
ALL_PAGES: Final[tuple[Page, ...]] = ("checkout", "preapprove", "authorize")
PHONES_MAX: Final = 4
PHONE_AMOUNTS: Final = (PHONE_AMOUNT, PHONE_AMOUNT, "7", "1000")


class Alley(Street, Protocol):
    """What hostile customers know of the world besides."""

    stolen: list[Notification]

    async def slip(self, fields: Mapping[str, str]) -> None:
        """Posts what looks like the gateway's notification."""
        ...


class HostileBuyer(Buyer):
    """A shop whose orders have forms with one signed text, and a customer who edits what he is given."""

    def __init__(self, number: int, alley: Alley, random: Random, *, is_narrow: bool) -> None:
        super().__init__(number, alley, random, is_narrow=is_narrow, orders=tuple(each.order_id for each in SPLITS))
        self._alley = alley
        self._cheap_hash: str | None = None

    async def live(self) -> None:
        """Opens a few checkouts; beside some of them an API call asks for another order of the same signed text."""
        if self._random.random() < 0.5:
            await self._take_cheap_hash()
        for _ in range(self._random.randint(1, 2)):
            await wait_seconds(self._random.choice((0.0, 1.0, 30.0)) * self._random.random())
            errands = [self._sell(self._random.choice(KINDS))]
            if self._random.random() < 0.6:
                errands.append(self._authorize())
            await asyncio.gather(*errands)

    async def _take_cheap_hash(self) -> None:
        """Lets the shop ask for a small payment, which nobody makes, for the hash of its form."""
        order = {"order_id": CHEAP.order_id, "amount": msgspec.Raw(CHEAP.amount.encode())}
        members: dict[str, object] = {"type": "payment", "items": "Tea", "currency": "LKR", "customer": PERSON, **order}
        opened = data_of(await self._persist(self._ask("POST", "checkouts", members)))
        if opened.get("form") is not None:
            self._cheap_hash = msgspec.convert(opened["form"], Form).fields["hash"]

    async def _authorize(self) -> None:
        split = self._random.choice(SPLITS)
        members: dict[str, object] = {
            "type": self._random.choice(("AUTHORIZE", "AUTHORIZE", "PAYMENT")),
            "order_id": split.order_id,
            "items": "Tea",
            "currency": "LKR",
            "amount": msgspec.Raw(split.amount.encode()),
            "customer_token": CUSTOMERS[0],
        }
        await self._persist(self._ask("POST", "payments/charge", members))

    def _checkout(self, kind: str) -> Ask:
        split = self._random.choice(SPLITS)
        members: dict[str, object] = {
            "type": kind,
            "order_id": split.order_id,
            "items": "Tea",
            "currency": "LKR",
            "customer": PERSON,
            "expires_in_s": self._random.choice((60, 1_800, 1_800)),
        }
        if kind != "preapproval" or split.amount != "10.00":
            members["amount"] = msgspec.Raw(split.amount.encode())
        if kind == "recurring":
            members |= {"recurrence": "1 Month", "duration": "2 Month"}
        return self._ask("POST", "checkouts", members)

    async def _be_asked(self, kind: str, opened: dict[str, object]) -> None:  # noqa: ARG002, the form is edited
        """Edits the form, pays with it, and sends the news of that on with other values."""
        page = urlsplit(str(opened["url"])).path
        if opened["form"] is None:  # commits were lost since it was opened: its page waits
            await self._street.browse(page)
            return
        form = msgspec.convert(opened["form"], Form)
        await self._street.browse(page)
        await self._pause()
        for _ in range(self._random.choice((1, 1, 2))):
            await self._pay_edited(PAGES[form.action.rpartition("/")[2]], form.fields)
            await self._pause()
            while self._alley.stolen:
                await self._send_on(self._alley.stolen.pop(0))
        await self._street.browse(f"{page}/return")

    async def _pay_edited(self, page: Page, fields: Mapping[str, str]) -> None:
        split = self._random.choice(SPLITS)
        if self._random.random() < 0.3:
            page = self._random.choice(ALL_PAGES)
        form = moved(fields, split) if self._random.random() < 0.7 else dict(fields)
        if "recurrence" in fields and fields["order_id"] == f"{CHEAP.order_id}1" and self._cheap_hash is not None:
            fee_cents = CHEAP_MINOR - (cents_of(fields["amount"]) or 0)
            form = edited(fields, hash=self._cheap_hash, startup_fee=f"-{text_of(-fee_cents)}")
        if page == "preapprove" and split.amount == "10.00":
            form = approval_of_nothing(fields, split)
        if self._random.random() < 0.5:
            form = edited(form, notify_url=OWN_ADDRESS)
        try:
            visit = self._payer.enter(page, form)
        except PageError as error:
            self._street.note("page", error.text)
            return
        await self._pause()
        self._try(visit.form.kind, visit, GOOD_CARD)

    async def _send_on(self, notification: Notification) -> None:
        """Posts genuine news again, for each order that it may be read as."""
        fields = notification.fields
        others = splits_of(Split(fields["order_id"], fields["payhere_amount"]))
        for split in (Split(fields["order_id"], fields["payhere_amount"]), *others):
            changes = {"order_id": split.order_id, "payhere_amount": split.amount}
            if self._random.random() < 0.3:
                changes |= {name: fields[name][::-1] for name in TOKENS if name in fields}
            await self._alley.slip(fields | changes)
            await wait_seconds(self._random.choice((0.0, 0.5, 60.0)))


class Meddler(Client):
    """Somebody with a key of another principal, and every id that others were told."""

    def __init__(self, number: int, town: "Talkative", random: Random, *, is_narrow: bool) -> None:
        super().__init__(number, town, random, is_narrow=is_narrow)
        self._principal = RIVAL
        self._talk = town

    async def live(self) -> None:
        """Tries a few times, with pauses in which others are told more."""
        for _ in range(self._random.randint(4, 10)):
            await wait_seconds(self._random.choice((1.0, 10.0, 60.0, 600.0)) * self._random.random())
            attempts = [ask for told in self._talk.told for ask in self._attempts(told)]
            if attempts:
                await self._persist(self._random.choice(attempts))

    def _attempts(self, told: Told) -> Iterator[Ask]:
        """Gives all that can be tried with what somebody else was told."""
        data = data_of(told) if told.ask.principal != RIVAL and told.ask.credential is None else {}
        if isinstance(data.get("payment_id"), int) and told.ask.path == "payments/charge":
            yield self._refund(str(data["payment_id"]))
            yield self._ask("GET", f"payments/{data['order_id']}")
        token = data.get("authorization_token")
        # A plain payment's answer may have a token too, which authorizes nothing.
        if isinstance(token, str) and b'"AUTHORIZE"' in told.ask.body:
            yield self._capture(token)
            yield self._release(token)
        id_ = str(data.get("id", ""))
        if id_.startswith("chk_"):
            yield self._ask("GET", f"checkouts/{id_}")
            yield self._capture(id_)
            yield self._release(id_)
        subscription_id, customer_id = data.get("subscription_id"), data.get("customer_id")
        if id_.startswith("chk_") and isinstance(subscription_id, str):
            yield self._ask("GET", f"subscriptions/{subscription_id}")
            yield self._ask("POST", f"subscriptions/{subscription_id}/retry")
            yield self._ask("DELETE", f"subscriptions/{subscription_id}")
        if id_.startswith("chk_") and isinstance(customer_id, str):
            yield self._ask("GET", f"customers/{customer_id}")
            yield self._ask("DELETE", f"customers/{customer_id}")
            yield self._ask("POST", "client-tokens", {"customer_id": customer_id})


class Talkative(Town, Protocol):
    """A world in which everybody hears what everybody is told."""

    told: list[Told]


class PhoneShop(Client):
    """A shop that lets phones pay one order, each with a token of its own and more wishes than it was given."""

    def __init__(self, number: int, town: Town, random: Random, *, order_id: str) -> None:
        super().__init__(number, town, random, is_narrow=False)
        self._principal = "shop"
        self._order_id = order_id

    async def live(self) -> None:
        """Stores the customer, issues the tokens, and lets the phones go."""
        stored = data_of(await self._persist(self._ask("POST", "customers", {"customer_token": CUSTOMERS[0]})))
        if not isinstance(stored.get("id"), str):
            return
        tokens = []
        for _ in range(self._random.randint(1, PHONES_MAX)):
            ask = self._ask("POST", "client-tokens", token_request(stored["id"], self._order_id))
            issued = data_of(await self._persist(ask))
            tokens += [str(issued["token"])] if "token" in issued else []
        await asyncio.gather(*(self._pay(token) for token in tokens))

    async def _pay(self, token: str) -> None:
        for _ in range(self._random.randint(1, 3)):
            members: dict[str, object] = {
                "type": "PAYMENT",
                "order_id": self._order_id,
                "items": "Tea",
                "currency": "LKR",
                "amount": msgspec.Raw(self._random.choice(PHONE_AMOUNTS).encode()),
            }
            ask = self._ask("POST", "payments/charge", members)
            await self._persist(replace(ask, credential=token))
            await wait_seconds(self._random.choice((0.0, 0.1, 30.0)))


def token_request(customer_id: object, order_id: str) -> dict[str, object]:
    """What a shop asks for: a token that pays one order once."""
    return {
        "customer_id": customer_id,
        "order_id": order_id,
        "amount": msgspec.Raw(PHONE_AMOUNT.encode()),
        "currency": "LKR",
        "scopes": ["payments:charge", "operations:read"],
    }
