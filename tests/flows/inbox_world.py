"""A relay that takes notifications: real stores, a gateway that shows what it was paid, and bodies signed by hand."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from tests.databases import PassingDatabase
from tests.digests import digests_of
from tests.flows.world import CHARGE, ScriptedAccount, Steps, World, asked, opened, outcome_of
from tests.samples import PAYMENT

from payrelay.clock import Clock
from payrelay.core.calls import AllSubscriptions, Charge, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, Details
from payrelay.core.checkouts.hosted_payment import Buyer, HostedPayment, Plan, PostalAddress
from payrelay.core.customers.customer import Customer, CustomerFilter
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.notifications.notification import Notification, NotificationFilter
from payrelay.core.outcomes import Evidence, OutcomeKind, Reading
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.payment import (
    NoObservation,
    NothingShown,
    Observation,
    Payment,
    PaymentsSeen,
    PaymentStatus,
)
from payrelay.core.secret import Secret
from payrelay.errors import Code
from payrelay.flows.notifications.ingest import ingest_notification
from payrelay.flows.notifications.work_inbox import begin_inbox
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import NO_HEADERS, HostedPage, ReturnUrls
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.gateways.payhere.wire.checkout_forms import Merchant
from payrelay.store import open_database
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import Inbox
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.order_searches import OrderSearches
from payrelay.store.subscriptions import Subscriptions, SubscriptionSummary

T = TypeVar("T")

MERCHANT: Final = "0123456789abcdef"
MERCHANT_ID: Final = "1211149"
SECRET: Final = "MzExMTIyMjMzMw=="
TOKEN: Final = "59AFEE022CC69CA39D325E1B59130862"
AUTHORIZATION_TOKEN: Final = "e34f3059-7b7d-4b62-a57c-784beaa169f4"
PAYMENT_ID: Final = "320025000001"
SUBSCRIPTION_ID: Final = "420075044317"
AMOUNT_MINOR: Final = 100_000
SHOWN_PLAN: Final[dict[str, object]] = {
    "subscription_id": int(SUBSCRIPTION_ID),
    "order_id": "A-1",
    "date": "2023-11-15 03:43:21",
    "status": "ACTIVE",
    "amount": 1000.0,
    "currency": "LKR",
}
"""The plan as the gateway shows it: begun with the payment, a second after the checkout was opened."""
TODAY: Final = date(2023, 11, 15)
EVENTS: Final = query("SELECT type, subject, principal FROM outbox ORDER BY seq")


def md5(text: str) -> str:
    """Gives what the gateway makes signatures of."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def body_of(status: str = "2", *, secret: str = SECRET, **fields: str | None) -> bytes:
    """Writes a notification as the gateway does, signed; a field that is None is left out."""
    signed = {
        "merchant_id": MERCHANT_ID,
        "order_id": "A-1",
        "payhere_amount": "1000.00",
        "payhere_currency": "LKR",
        "status_code": status,
    }
    signed |= {name: value for name, value in fields.items() if name in signed and value is not None}
    given: dict[str, str | None] = {
        **signed,
        "md5sig": md5("".join(signed.values()) + md5(secret)),
        "payment_id": PAYMENT_ID,
        "method": "VISA",
        "card_holder_name": "S Perera",
        "card_no": "************1292",
        "card_expiry": "0129",
        **fields,
    }
    return urlencode({name: value for name, value in given.items() if value is not None}).encode()


def payment_of(**members: object) -> Payment:
    """Gives a payment as the gateway shows it."""
    own = msgspec.structs.replace(PAYMENT, at_ms=1_700_000_001_000)
    return msgspec.structs.replace(own, **members)


class ShowingAccount(ScriptedAccount):
    """A gateway account that shows its payments, unless it can't be seen."""

    def __init__(self, clock: Clock, steps: Steps, journal: Journal, *, limit: RateLimit | None = None) -> None:
        super().__init__(clock, steps, journal, limit=limit)
        self.now_ms = clock.now_ms

    def begin(self, merchant_secret: str | None = SECRET) -> None:
        """Begins with no payments, and one plan of the order."""
        self.payments: list[Payment] = []
        self.plans: dict[str, dict[str, object]] = {SUBSCRIPTION_ID: dict(SHOWN_PLAN)}
        self.plan_of: dict[str, str] = {}
        self.unreadable: set[type] = set()
        self.hidden: set[type] = set()
        self.denied: set[type] = set()
        self.is_hidden = False
        self.observed = 0
        self.calls: list[tuple[int, Read]] = []
        self.requesters: list[Requester] = []
        self.sign_with(merchant_secret)

    def sign_with(self, secret: str | None) -> None:
        """Configures the MERCHANT_SECRET."""
        self.signer = None
        if secret is not None:
            self.signer = Merchant(
                base_url="https://gateway.test", merchant_id=MERCHANT_ID, merchant_secret=Secret(secret)
            )

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,
        *,
        until_s: float,  # noqa: ARG002, the same
        priority: Priority = Priority.RESOLUTION,  # noqa: ARG002, the same
        requester: Requester = PAYRELAY,
    ) -> Observation:
        """Shows the payments of an order, or of a plan: those that ``plan_of`` gives to no other one."""
        await self._steps.reach("observe")
        self.observed += 1
        self.calls.append((self.now_ms(), call))
        self.requesters.append(requester)
        if self.is_hidden or type(call) in self.unreadable:
            return NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence())
        if type(call) in self.denied:  # "there is none", in words that nobody knows
            return NoObservation(code=Code.NOT_FOUND, evidence=Evidence())
        if type(call) in self.hidden:
            return NothingShown(evidence=Evidence())
        order_id = call.order_id if isinstance(call, PaymentsOfOrder) else "A-1"
        found = tuple(payment for payment in self.payments if payment.order_id == order_id)
        if isinstance(call, PaymentsOfSubscription):
            plan = str(call.subscription_id)
            found = tuple(payment for payment in found if self.plan_of.get(payment.payment_id, plan) == plan)
        return PaymentsSeen(payments=found, evidence=Evidence()) if found else NothingShown(evidence=Evidence())

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,
        until_s: float | None = None,
        requester: Requester = PAYRELAY,
    ) -> Reading:
        """Shows a subscription, or all of them."""
        if not isinstance(call, OneSubscription | AllSubscriptions):
            return await super().read(call, priority=priority, until_s=until_s, requester=requester)
        self.calls.append((self.now_ms(), call))
        self.requesters.append(requester)
        if isinstance(call, AllSubscriptions):
            await self._steps.reach("list")
        if self.is_hidden or type(call) in self.unreadable:
            return Reading(code=Code.GATEWAY_UNREACHABLE, msg="nobody there")
        if isinstance(call, AllSubscriptions):
            plans = msgspec.json.encode(list(self.plans.values()))
            is_none = not self.plans
            return Reading(code=Code.NOT_FOUND if is_none else None, msg="Found", raw_data=None if is_none else plans)
        plan = self.plans.get(str(call.subscription_id))
        if plan is None:
            return Reading(code=Code.NOT_FOUND, msg="there is none")
        return Reading(code=None, msg="Found", raw_msg=b'"Found"', raw_data=msgspec.json.encode(plan))


class SteppingDatabase(PassingDatabase):
    """A database with a step before each write (a fault there: nothing is stored) and one after it (it is)."""

    def __init__(self, database: Database, steps: Steps) -> None:
        super().__init__(database)
        self._steps = steps

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Writes, between two steps."""
        await self._steps.reach("write")
        value = await super().write(unit, is_patient=is_patient)
        await self._steps.reach("written")
        return value


class InboxWorld:
    """Everything that one test of the inbox has in its hands."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.reported: list[str] = []
        self.payments: list[Payment] = []
        self.numbers = 0
        self.begin()

    def begin(self) -> None:
        """Makes the relay anew, on the world's database."""
        world = self.world
        self.steps = world.steps
        self.database: Database = SteppingDatabase(world.database, world.steps)
        seal = Seal((b"k" * 32,))
        self.account = ShowingAccount(world.clock, world.steps, world.journal)
        self.account.begin()
        self.account.payments = self.payments
        self.inbox = Inbox(self.database, seal, digests_of(self.database))
        self.chargebacks = Chargebacks(self.database, digests_of(self.database))
        self.checkouts = Checkouts(self.database, seal, digests_of(self.database))
        self.customers = Customers(self.database, seal, digests_of(self.database), chain_key=b"c" * 32)
        self.subscriptions = Subscriptions(self.database, world.relay.new_id, digests_of(self.database))
        self.relay: Relay = replace(
            world.relay,
            accounts={"gateway": self.account},
            inbox=self.inbox,
            checkouts=self.checkouts,
            customers=self.customers,
            subscriptions=self.subscriptions,
            hooks=replace(world.relay.hooks, notified=lambda _, authenticity: self.reported.append(authenticity)),
            money=replace(
                world.relay.money, order_searches=OrderSearches(self.database, b"c" * 32), chargebacks=self.chargebacks
            ),
        )

    async def restart(self) -> None:
        """Dies and starts again: what is not on disk is gone, and so is what was under way."""
        await self.relay.background.finish(0)
        numbers = self.world.numbers
        await self.world.reopen()
        self.world.numbers = numbers
        self.begin()

    async def take(self, body: bytes) -> Notification:
        """Takes a notification in, and works on it until nothing is under way."""
        notification = await ingest_notification(self.relay, "gateway", NO_HEADERS, body)
        await self.finish()
        found = await self.inbox.get(notification.id)
        assert found is not None
        return found

    async def finish(self) -> None:
        """Waits for what is under way."""
        assert await self.relay.background.finish(20) == 0

    async def later(self, passed_ms: int = 240_000) -> None:
        """Lets time pass, and has the worker work on what is due then."""
        self.clock.passed_ms += passed_ms
        while await begin_inbox(self.relay):
            await self.finish()

    async def open_checkout(
        self,
        kind: CheckoutKind = CheckoutKind.PAYMENT,
        *,
        plan: Plan | None = None,
        **members: Any,  # noqa: ANN401, of any member
    ) -> Checkout:
        """Stores a checkout as opening one does."""
        self.numbers += 1
        now_ms = self.clock.now_ms()
        own = Checkout(
            id=f"chk_{self.numbers:04}",
            account="gateway",
            merchant=MERCHANT,
            principal="shop",
            kind=kind,
            state=CheckoutState.OPEN,
            version=1,
            order_id="A-1",
            guard="A-1",
            amount_minor=AMOUNT_MINOR,
            first_minor=AMOUNT_MINOR,
            currency="LKR",
            secret_hash="0" * 64,
            key_hash=None,
            request_id="req_1",
            reference_hash=self.checkouts.reference_hash("person-7"),
            bound_customer_id=None,
            payment_id=None,
            subscription_id=None,
            customer_id=None,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            expires_at_ms=now_ms + 1_800_000,
            opened_at_ms=None,
            ends_at_ms=now_ms + 3_600_000,
            inquire_at_ms=now_ms,
        )
        checkout = msgspec.structs.replace(own, **members)
        home = PostalAddress(address="1 Galle Road", city="Colombo", country="Sri Lanka")
        person = Buyer(first_name="S", last_name="Perera", email="s@example.com", phone="0771234567", home=home)
        hosted = HostedPayment(
            kind=kind,
            order_id=checkout.order_id,
            items="Tea",
            currency="LKR",
            amount_minor=checkout.amount_minor,
            person=person,
            plan=plan,
        )
        details = Details(secret="s", asked=hosted)
        assert await self.checkouts.add(checkout, details, reference="person-7")
        await self.give_out_form(checkout, hosted)
        return checkout

    async def give_out_form(self, checkout: Checkout, hosted: HostedPayment) -> None:
        """Stores the texts of a checkout's form, as giving it out does."""
        returns = ReturnUrls(return_url="", cancel_url="", notify_url="")
        page = HostedPage(checkout_id=checkout.id, payment=hosted, returns=returns, today=TODAY)
        await self.relay.signed_texts.keep_form(checkout, self.account.signed_texts(page), at_ms=self.clock.now_ms())

    async def checkout(self) -> Checkout:
        """Reads the first checkout."""
        found = await self.checkouts.get("chk_0001")
        assert found is not None
        return found

    async def charge(
        self, authenticity: OutcomeKind, call: Charge = CHARGE, key: str = "k-1", **facts: str | None
    ) -> Operation:
        """Makes a charge, and gives the operation."""
        self.account.script.append(outcome_of(authenticity, **facts))
        await charge(self.relay, asked(key), call)
        return await self.world.operation()

    async def all(self) -> list[Notification]:
        """Reads all notifications, newest first."""
        return await self.inbox.list(NotificationFilter(), before=None, limit=100)

    async def all_customers(self) -> list[Customer]:
        """Reads all customers."""
        wanted = CustomerFilter(merchant=MERCHANT, principal="shop")
        return await self.customers.list(wanted, before=None, limit=100)

    def charge_back(self, payment_id: str = PAYMENT_ID) -> None:
        """Has the gateway's record of a payment show that a bank took it back."""
        (payment,) = (each for each in self.payments if each.payment_id == payment_id)
        charged_back = msgspec.structs.replace(payment, status=PaymentStatus.CHARGED_BACK)
        self.payments[self.payments.index(payment)] = charged_back

    async def standing(self) -> SubscriptionSummary:
        """Reads how the subscription stands."""
        standing = await self.subscriptions.summary(MERCHANT, SUBSCRIPTION_ID)
        assert standing is not None
        return standing

    async def events(self) -> list[tuple[str, str, str]]:
        """Reads the events in their order: type, subject, principal."""
        rows = await self.database.read(_rows(Statement(EVENTS, ())))
        return [(str(kind), str(subject), str(principal)) for kind, subject, principal in rows]

    async def event_types(self) -> list[str]:
        """Reads the types of the events in their order."""
        return [kind for kind, _, _ in await self.events()]


def _rows(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)


@asynccontextmanager
async def inbox_world(path: Path, url: str | None = None) -> AsyncIterator[InboxWorld]:
    """Opens a world on a file, or on the database at an address, and closes it."""
    database = await opened(path) if url is None else await open_database(url, clock=Clock(), owner=True)
    inner = World(database, path)
    world = InboxWorld(inner)
    yield world
    await world.relay.background.finish(0)
    await inner.database.close()
