"""Those who are asked on the gateway's pages: they pay, are refused, turn back, pay twice, come back late or never."""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec
from tests.simulation.clients import AMOUNTS, ORDERS, Ask, Client, Town, data_of
from tests.simulation.loop import wait_seconds
from tests.simulation.network import LATE_S, Gateway
from tests.simulation.plans import Plan
from tests.simulation.process import Heard

from payrelay_simulator.faults import Arguments, Rule
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.pages.forms import Page, PageError
from payrelay_simulator.pages.payer import GOOD_CARD, Payer
from payrelay_simulator.pages.visits import Visit

OWN_ORDERS: Final = ("C-1", "C-2", "C-3")
BAD_CARD: Final = "4024007194349121"
KINDS: Final = ("payment", "payment", "payment", "preapproval", "preapproval", "authorization", "recurring")
PERSON: Final = {
    "first_name": "Saman",
    "last_name": "Perera",
    "email": "saman@example.com",
    "phone": "+94771234567",
    "address": "No. 1, Galle Road",
    "city": "Colombo",
    "country": "Sri Lanka",
}
PAUSES_S: Final = (0.0, 2.0, 2.0, 40.0, 600.0, 2_500.0, 9_000.0)
"""Between two things that a person does; the last two are longer than most pages are open."""
PAGES: Final[dict[str, Page]] = {"checkout": "checkout", "preapprove": "preapprove", "authorize": "authorize"}
TAKING: Final = frozenset({"charge", "authorization", "installment"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Paid:
    """What a person did on the gateway's page, as the ledger has it.

    Attributes:
        kind: what was asked for.
        entry: what it did to the money.
        at_s: when.
        visible_at_s: when a search finds it.
        is_edited: whether the person wrote another schedule into the form than was asked for.
    """

    kind: str
    entry: LedgerEntry
    at_s: float
    visible_at_s: float
    is_edited: bool = False


class Street(Town, Protocol):
    """What buyers know of the world."""

    gateway: Gateway
    paid: list[Paid]

    async def browse(self, path: str) -> Heard | None:
        """Opens a page of ours."""
        ...

    def note(self, *words: object) -> None:
        """Something happened."""
        ...

    def tell(self) -> None:
        """Says that the gateway may have something to tell."""
        ...


class Buyer(Client):
    """A shop that opens checkouts, and whoever stands before them."""

    def __init__(
        self,
        number: int,
        street: Street,
        random: Random,
        *,
        is_narrow: bool,
        orders: tuple[str, ...],
        edited_share: float = 0.0,
    ) -> None:
        super().__init__(number, street, random, is_narrow=is_narrow)
        self._edited_share = edited_share
        self._street = street
        self._orders = orders
        self._payer = Payer(street.gateway.world)
        self._plans: list[int] = []

    async def live(self) -> None:
        """Opens a few checkouts, with pauses in between."""
        for _ in range(self._random.randint(1, 2)):
            await wait_seconds(self._random.choice((0.0, 1.0, 30.0)) * self._random.random())
            await self._sell(self._random.choice(KINDS))

    async def _sell(self, kind: str) -> None:
        opened = data_of(await self._persist(self._checkout(kind)))
        if opened.get("url") is None or opened.get("form") is None:  # it may have been paid in lost commits
            return
        persons = [self._be_asked(kind, opened) for _ in range(self._random.choice((1, 1, 1, 2)))]
        await asyncio.gather(*persons)
        seen = await self._look_after(str(opened["id"]))
        if kind == "preapproval" and isinstance(seen.get("customer_id"), str):
            await self._charge_by_handle(str(seen["customer_id"]))
        elif kind == "authorization" and seen.get("state") == "notified":
            await self._persist(self._random.choice((self._capture, self._release))(str(opened["id"])))
        while self._plans:
            await self._plan(self._plans.pop()).go_on()

    def _plan(self, subscription_id: int) -> Plan:
        return Plan(
            subscription_id,
            self._street.gateway.world,
            self._random,
            ask=self._ask,
            persist=self._persist,
            tell=self._street.tell,
        )

    def _checkout(self, kind: str) -> Ask:
        members: dict[str, object] = {
            "type": kind,
            "order_id": self._choice(self._orders),
            "items": "Tea",
            "currency": self._choice(("LKR", "LKR", "LKR", "USD")),
            "customer": PERSON,
            "expires_in_s": self._random.choice((60, 1_800, 1_800)),
        }
        if kind != "preapproval" or self._random.random() < 0.3:
            members["amount"] = msgspec.Raw(self._choice(AMOUNTS).encode())
        if kind == "recurring":
            members |= {"recurrence": "1 Month", "duration": self._random.choice(("2 Month", "4 Month", "Forever"))}
        return self._ask("POST", "checkouts", members)

    async def _be_asked(self, kind: str, opened: dict[str, object]) -> None:
        """Goes through our page to the gateway's, does something there, and comes back, or not."""
        page = urlsplit(str(opened["url"])).path
        if opened["form"] is None:  # commits were lost since it was opened: its page waits
            await self._street.browse(page)
            return
        form = msgspec.convert(opened["form"], Form)
        if kind == "recurring" and self._random.random() < self._edited_share:
            form = msgspec.structs.replace(form, fields=form.fields | {"recurrence": "2 Month"})
        if self._random.random() < 0.1:
            return
        if self._random.random() < 0.8:
            await self._street.browse(page)
        await self._pause()
        try:
            visit = self._payer.enter(PAGES[form.action.rpartition("/")[2]], form.fields)
        except PageError as error:
            self._street.note("page", error.text)
            return
        await self._pause()
        way_back = await self._act(kind, visit, form)
        for _ in range(self._random.choice((0, 1, 1, 3))):
            await self._pause()
            await self._street.browse(f"{page}/{way_back}")

    async def _act(self, kind: str, visit: Visit, form: "Form") -> str:
        """Does something on the gateway's page; gives the way on which it leads back."""
        act = self._random.choice(("pay", "pay", "pay", "refused", "second card", "cancel", "cancel", "twice", "leave"))
        if act in {"refused", "second card"}:
            visit = self._try(kind, visit, BAD_CARD)
            await self._pause()
        if act in {"pay", "second card", "twice"}:
            visit = self._try(kind, visit, GOOD_CARD)
        if act == "twice" or (act == "cancel" and self._random.random() < 0.3):
            await self._pause()
            self._try(kind, self._payer.enter(PAGES[form.action.rpartition("/")[2]], form.fields), GOOD_CARD)
        if act == "cancel":
            self._payer.cancel(visit)
            self._street.tell()
            return "cancel"
        return "return"

    def _try(self, kind: str, visit: Visit, card: str) -> Visit:
        world, loop = self._street.gateway.world, self._street.loop
        fault, late_s = self._draw_fault()
        if fault is not None:
            world.faults.add_rules(fault)
        before = len(world.ledger)
        visit = self._payer.pay(visit, card)
        world.faults.clear()
        for entry in world.ledger.entries(after=before):
            if entry.kind in TAKING and entry.order_id == visit.form.order_id and visit.state == "paid":
                at_s = loop.time()
                is_edited = visit.form.plan is not None and visit.form.plan.recurrence.count != 1
                paid = Paid(kind=kind, entry=entry, at_s=at_s, visible_at_s=at_s + late_s, is_edited=is_edited)
                self._street.paid.append(paid)
                if entry.subscription_id is not None:
                    self._plans.append(entry.subscription_id)
        self._street.tell()
        return visit

    def _draw_fault(self) -> tuple[Rule | None, float]:
        if self._random.random() >= self._street.gateway.witness.fault_share() / 2:
            return None, 0.0
        wait_s = self._random.choice(LATE_S)
        name = self._random.choice(("late_visibility", "late_visibility", "pending", "decline"))
        if name == "decline":
            return Rule(fault=name), 0.0
        settles = self._random.random() < 0.6
        args = Arguments(wait_s=wait_s, settles=settles) if name == "pending" else Arguments(wait_s=wait_s)
        return Rule(fault=name, args=args), wait_s

    async def _look_after(self, checkout_id: str) -> dict[str, object]:
        """Asks a few times what became of a checkout."""
        data: dict[str, object] = {}
        for _ in range(self._random.randint(0, 3)):
            ask = Ask(principal=self._principal, method="GET", path=f"checkouts/{checkout_id}", body=b"")
            data = data_of(await self._street.call(ask, 12.0)) or data
            if data.get("state") in {"notified", "completed"}:
                break
            await self._pause()
        return data

    async def _charge_by_handle(self, customer_id: str) -> None:
        """Charges the card that was approved, perhaps removes it, and tries again."""
        remove = self._ask("DELETE", f"customers/{customer_id}")
        asks = [self._charge_with(customer_id)]
        if self._random.random() < 0.5:
            asks += [remove, self._charge_with(customer_id)]
        for ask in asks:
            await self._persist(ask)

    def _charge_with(self, customer_id: str) -> Ask:
        members: dict[str, object] = {
            "type": "PAYMENT",
            "order_id": self._choice(ORDERS),
            "items": "Tea",
            "currency": "LKR",
            "amount": msgspec.Raw(self._choice(AMOUNTS).encode()),
            "customer_token": customer_id,
        }
        return self._ask("POST", "payments/charge", members)

    async def _pause(self) -> None:
        await wait_seconds(self._random.choice(PAUSES_S) * self._random.uniform(0.5, 1.5))


class Form(msgspec.Struct, frozen=True):
    """What a browser posts to the gateway."""

    action: str
    fields: dict[str, str]
