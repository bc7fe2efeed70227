"""An order that was paid again: which payments are told, to whom, and that each is told once, on each engine."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.digests import digests_of
from tests.draws import examples
from tests.samples import ASKED, CHECKOUT, IMPORTED
from tests.store.conftest import EVIDENCE, RETENTION, Book

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.checkouts.checkout import Checkout, CheckoutEvent, CheckoutKind, Details, Result, advance
from payrelay.core.events.event import OutgoingEvent
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.orders.paid_again import paid_on
from payrelay.core.payments.operation import Event, Kind, State
from payrelay.core.payments.operation import advance as advance_operation
from payrelay.core.subscriptions.subscription import Fact
from payrelay.runtime.ids import new_id
from payrelay.store import open_database
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.imports.payments import ImportedPayments
from payrelay.store.payments.paid_again import PaidAgain, PaidAgainAlert, told_in
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

MERCHANT: Final = CHECKOUT.merchant
SEAL: Final = Seal((b"k" * 32,))
ANSWER: Final = Answer(http_status=200, body=b"{}")
EVENTS: Final = query("SELECT principal, subject, data FROM outbox WHERE type = 'order.paid_again' ORDER BY seq")
ALERTS: Final = query("SELECT row_name FROM row_alerts WHERE row_name >= 'paid_again/'")
RACES: Final = 12
FAR_MS: Final = 2**60
RETURNS: Final[dict[str, list[int | None]]] = {"whole": [None], "parts": [40_000, 60_000], "a part": [40_000]}


class Till:
    """One database, and short words for the ways in which an order gets money, and gives it back."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.book = Book(database)
        self.checkouts = Checkouts(database, SEAL, digests_of(database))
        self.paid_again = PaidAgain(database, digests_of(database))
        self.numbers = itertools.count(1)

    async def charge(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """A charge that succeeds."""
        return await self._succeed(order_id, principal, payment_id, kind=Kind.CHARGE, subject=f"order/{order_id}")

    async def decided(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """A charge whose outcome nobody knew, and that an operator decides as succeeded."""
        return await self._succeed(
            order_id,
            principal,
            payment_id,
            kind=Kind.CHARGE,
            subject=f"order/{order_id}",
            state=State.NEEDS_ATTENTION,
            event=Event.DECIDED_SUCCEEDED,
        )

    async def capture(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """The capture of a hold of its own."""
        subject = f"authorization/{next(self.numbers)}"
        await self._succeed(order_id, principal, payment_id, kind=Kind.AUTHORIZATION, subject=f"order/{order_id}")
        return await self._succeed(order_id, principal, payment_id, kind=Kind.CAPTURE, subject=subject)

    async def hold(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """An authorization that nobody captures."""
        return await self._succeed(
            order_id, principal, payment_id, kind=Kind.AUTHORIZATION, subject=f"order/{order_id}"
        )

    async def page(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """A page that is paid."""
        return await self._completed(order_id, principal, payment_id, kind=CheckoutKind.PAYMENT)

    async def late_page(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """A page that had expired, and is paid after all."""
        return await self._completed(order_id, principal, payment_id, CheckoutEvent.EXPIRED, kind=CheckoutKind.PAYMENT)

    async def plan(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """A subscription that begins on a page."""
        return await self._completed(order_id, principal, payment_id, kind=CheckoutKind.RECURRING)

    async def read_plan(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """A subscription that is known by its installments alone, as one that somebody read at the gateway."""
        number = payment_id or self._payment()
        await self.installments(order_id, number[-6:], number, principal=principal)
        return number

    async def installments(self, order_id: str, plan: str, *payments: str, principal: str | None = "shop") -> None:
        """Paid installments of a subscription, which are noted at once."""
        subscriptions = Subscriptions(self.database, new_id, digests_of(self.database))
        facts = [
            Fact(
                subscription_id=plan,
                at_ms=2_000,
                is_seen=True,
                order_id=order_id,
                currency="LKR",
                payment=payment,
                is_paid=True,
                payment_minor=100_000,
                payment_at_ms=2_000,
            )
            for payment in payments
        ]
        owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal=principal)
        await subscriptions.note(owner, facts, now_ms=2_000)

    async def approval(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """An approval that charges an amount with it."""
        return await self._completed(order_id, principal, payment_id, kind=CheckoutKind.PREAPPROVAL)

    async def fee(self, order_id: str, *, principal: str = "shop", payment_id: str | None = None) -> str:
        """The fee of an approval that charges nothing."""
        nothing = {"amount_minor": None, "first_minor": None}
        return await self._completed(order_id, principal, payment_id, kind=CheckoutKind.PREAPPROVAL, **nothing)

    async def imported(
        self, order_id: str, *, principal: str = "shop", payment_id: str | None = None, plan: str | None = None
    ) -> str:
        """A payment from before Payrelay."""
        number = payment_id or self._payment()
        members = {"order_id": order_id, "payment_id": number, "principal": principal, "merchant": MERCHANT}
        members |= {} if plan is None else {"subscription_id": plan}
        payment = msgspec.structs.replace(IMPORTED, **members)
        await ImportedPayments(self.database, digests_of(self.database)).take([payment], is_dry=False)
        return number

    async def refund(self, payment_id: str, amount_minor: int | None) -> None:
        """A refund that succeeds; of the whole without an amount."""
        members = {"payment_id": payment_id, "amount_minor": amount_minor, "order_id": None}
        number = next(self.numbers)
        refund = self.book.new(
            number, kind=Kind.REFUND, subject=f"payment/{payment_id}", guard=f"payment/{payment_id}", **members
        )
        await self.book.accept(refund)
        await self.book.advance(refund, Event.SUCCEEDED, ANSWER)

    async def charge_back(self, order_id: str, payment_id: str) -> None:
        """A bank takes a payment back."""
        chargeback = Chargeback(
            merchant=MERCHANT,
            payment_id=payment_id,
            order_id=order_id,
            account="gateway",
            principal="shop",
            operation_id=None,
            amount_minor=100_000,
            currency="LKR",
            notification_id="ntf_1",
            noted_at_ms=3_000,
        )
        event = OutgoingEvent(
            id=f"evt_{payment_id}",
            type="payment.charged_back",
            account="gateway",
            merchant=MERCHANT,
            principal="shop",
            subject=f"payment:{payment_id}",
            at_ms=3_000,
            data={},
        )
        assert await Chargebacks(self.database, digests_of(self.database)).keep(chargeback, event)

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        """The events that an order was paid again: their principals and their data."""
        rows = await self.database.read(all_rows(Statement(EVENTS, ())))
        return [(str(principal), {"subject": subject, **json.loads(str(data))}) for principal, subject, data in rows]

    async def alerts(self) -> list[str]:
        """The names of the alerts' rows."""
        return [str(name) for (name,) in await self.database.read(all_rows(Statement(ALERTS, ())))]

    def _payment(self) -> str:
        return f"{320_025_000_000 + next(self.numbers)}"

    async def _succeed(
        self,
        order_id: str,
        principal: str,
        payment_id: str | None,
        *,
        event: Event = Event.SUCCEEDED,
        **members: object,
    ) -> str:
        number = payment_id or self._payment()
        operation = self.book.new(
            next(self.numbers), order_id=order_id, guard=None, principal=principal, payment_id=number, **members
        )
        await self.book.accept(operation)
        await self.book.advance(operation, event, ANSWER)
        return number

    async def opened(self, order_id: str, principal: str = "shop", **members: object) -> Checkout:
        """A page of the order, which another one may hold."""
        id_ = f"chk_{next(self.numbers):026d}"
        own = {"id": id_, "merchant": MERCHANT, "order_id": order_id, "guard": None, "principal": principal}
        checkout = msgspec.structs.replace(CHECKOUT, **(own | members))
        assert await self.checkouts.add(checkout, Details(secret="s", asked=ASKED))
        return checkout

    async def _completed(
        self, order_id: str, principal: str, payment_id: str | None, *before: CheckoutEvent, **members: object
    ) -> str:
        number = payment_id or self._payment()
        checkout = await self.opened(order_id, principal, **members)
        for event in before:
            checkout = await self.change(checkout, event)
        plan = number[-6:] if checkout.kind is CheckoutKind.RECURRING else None
        await self.change(checkout, CheckoutEvent.COMPLETED, Result(payment_id=number, subscription_id=plan))
        return number

    async def change(self, checkout: Checkout, event: CheckoutEvent, result: Result | None = None) -> Checkout:
        """Takes a checkout through an event, and stores that."""
        changed = advance(checkout, event, at_ms=2_000, result=result)
        assert changed is not None
        await self.checkouts.change(changed, has_event=True, is_paid=changed.payment_id is not None)
        return changed


@pytest.fixture
def till(database: Database) -> Till:
    """Gives an empty database."""
    return Till(database)


Way = Callable[..., Awaitable[str]]
TAKING: Final = ("charge", "decided", "capture", "page", "late_page", "plan", "read_plan", "approval")
"""The ways that make a further payment of an order."""
BEFORE: Final = (*TAKING, "imported", "fee", "hold")
FIRST_AND_SECOND: Final = [
    *(("imported", second) for second in (*TAKING, "fee", "hold")),
    *itertools.product((*TAKING, "fee", "hold"), (*TAKING, "fee", "hold")),
]


async def test_each_way_beside_each_other_one(till: Till) -> None:
    """One event and one alert name both payments; the fee of an approval and a hold are no payments of the order."""
    expected = []
    for first, second in FIRST_AND_SECOND:
        order = f"{first}-{second}"
        one, other = await getattr(till, first)(order), await getattr(till, second)(order)
        if second in TAKING and first in {*TAKING, "imported"}:
            expected.append(("shop", order, other, one))

    told = [
        (principal, *(data[name] for name in ("order_id", "payment_id", "earlier_payment_id")))
        for principal, data in await till.told()
    ]
    assert told == expected
    assert set(await till.alerts()) == {f"paid_again/{MERCHANT}/{order}/{other}" for _, order, other, _ in expected}


@pytest.mark.parametrize(
    ("first", "second"),
    [("charge", "page"), ("page", "charge"), ("approval", "charge"), ("charge", "approval"), ("imported", "charge")],
)
async def test_the_owners_of_both_are_told_and_nobody_reads_anothers_ids(till: Till, first: str, second: str) -> None:
    """A foreign payment is told as one that there is: no number, operation, page or amount of it."""
    one = await getattr(till, first)("A-1", principal="kiosk")
    other = await getattr(till, second)("A-1", principal="shop")
    told = dict(await till.told())

    assert set(told) == {"kiosk", "shop"}
    for principal, own, foreign in (("kiosk", "earlier_", ""), ("shop", "", "earlier_")):
        number = one if principal == "kiosk" else other
        assert (told[principal][f"{own}payment_id"], told[principal]["subject"]) == (number, f"payment:{number}")
        hidden = ("payment_id", "operation_id", "checkout_id", "amount", "currency")
        assert [told[principal][f"{foreign}{name}"] for name in hidden] == [None] * 5
    assert len(await till.alerts()) == 1


@pytest.mark.parametrize("other", ["another merchant", "another order"])
async def test_another_order_is_another_one(till: Till, other: str) -> None:
    """Order ids are a merchant's own."""
    await till.charge("A-1")
    if other == "another order":
        await till.charge("A-2")
    else:
        operation = till.book.new(99, order_id="A-1", guard=None, merchant="f" * 16)
        await till.book.accept(operation)
        await till.book.advance(operation, Event.SUCCEEDED, ANSWER)
    assert await till.told() == []


async def test_a_payment_that_is_known_in_two_ways_is_one(till: Till) -> None:
    """A charge turns out to be the payment that a page was completed with."""
    number = await till.page("A-1")
    await till.charge("A-1", payment_id=number)
    assert await till.told() == []


async def test_captures_of_one_hold_are_one_payment(till: Till) -> None:
    """A gateway that captures in parts may give each part a number."""
    await till.capture("A-1")
    _, [first] = await till.paid_again.of_order(MERCHANT, "A-1", now_ms=3_000)
    part = msgspec.structs.replace(first, payment_id="320025999999", operation_id="op_2")
    assert not await till.paid_again.tell(part, at_ms=3_000)
    assert await till.paid_again.tell(msgspec.structs.replace(part, hold="authorization/other"), at_ms=3_000)


async def test_installments_of_a_plan_are_one_payment(till: Till) -> None:
    """Neither the second one nor the twelfth is a further payment; a charge beside them is one."""
    await till.plan("A-1", payment_id="320025000001")
    for payment in ("320025000001", "320025000002", "ntf:1"):
        await till.installments("A-1", "000001", payment)
    assert await till.told() == []
    await till.charge("A-1")
    assert len(await till.told()) == 1


@pytest.mark.parametrize("known", ["", "at once", "by its page", "by an import"])
async def test_of_a_second_plan_the_first_installment_is_told(till: Till, known: str) -> None:
    """However many come with it. None is where the plan was known before: what stood beside it then was told then."""
    if known == "by its page":
        await till.plan("A-1", payment_id="320025000002")
    elif known == "by an import":
        await till.imported("A-1", payment_id="320025000002", plan="000002")
    first = await till.charge("A-1")
    before = len(await till.told())
    at_once = ("320025000003",) if known == "at once" else ()
    await till.installments("A-1", "000002", "320025000002", *at_once)
    await till.installments("A-1", "000002", "320025000003")
    await till.installments("A-1", "000002", "320025000004")

    told = [(data["payment_id"], data["earlier_payment_id"]) for _, data in (await till.told())[before:]]
    assert told == ([] if known.startswith("by") else [("320025000002", first)])


async def test_a_second_plan_of_nobody_is_told_to_the_owner_of_the_other_or_of_the_order(till: Till) -> None:
    """Somebody read at the gateway what no page began: the shop whose order was paid before must hear of it."""
    first = await till.charge("A-1", principal="kiosk")
    await till.installments("A-1", "000002", "320025000002", principal=None)
    [(principal, data)] = await till.told()
    assert (principal, data["payment_id"], data["earlier_payment_id"]) == ("kiosk", "320025000002", first)

    await till.opened("A-2", "kiosk", guard="A-2")
    for plan in ("000003", "000004"):
        await till.installments("A-2", plan, f"320025{plan}", principal=None)
    _, (principal, data) = await till.told()
    assert (principal, data["subscription_id"], data["earlier_subscription_id"]) == ("kiosk", "000004", "000003")


@pytest.mark.parametrize("way", ["whole", "parts", "chargeback", "a part"])
async def test_what_was_given_back_whole_counts_no_more(till: Till, way: str) -> None:
    """A customer who got the money back may pay the order anew, and nobody is alarmed."""
    first = await till.charge("A-1")
    if way == "chargeback":
        await till.charge_back("A-1", first)
    else:
        for amount_minor in RETURNS[way]:
            await till.refund(first, amount_minor)
    await till.page("A-1")
    assert len(await till.told()) == (1 if way == "a part" else 0)


async def test_each_further_payment_is_told_once(till: Till) -> None:
    """The third one too, beside the oldest that counts; a payment that only the record shows is told once."""
    first, second, third = [await till.charge("A-1") for _ in range(3)]
    told = await till.told()
    assert [(data["payment_id"], data["earlier_payment_id"]) for _, data in told] == [(second, first), (third, first)]

    page = await till.opened("A-2")
    done = await till.change(page, CheckoutEvent.COMPLETED, Result(payment_id="320026000001"))
    twice = paid_on(msgspec.structs.replace(done, payment_id="320026000002"))
    assert twice is not None
    assert [await till.paid_again.tell(twice, at_ms=3_000) for _ in range(2)] == [True, False]
    known = paid_on(msgspec.structs.replace(done, payment_id=first))
    assert known is not None
    assert not await till.paid_again.tell(known, at_ms=3_000), "it belongs to a charge"
    assert await till.paid_again.is_told(MERCHANT, "A-2", "320026000002")
    assert not await till.paid_again.is_told(MERCHANT, "A-2", "320026000003")
    assert len(await till.told()) == 3


async def test_the_alerts_are_given_and_listed(till: Till) -> None:
    """The newest first, and no other alert among them; an order's name may have a slash."""
    await till.charge("A/1")
    second = await till.charge("A/1")
    digests = digests_of(till.database)
    await digests.report("operations/op_1")

    expected = PaidAgainAlert(merchant=MERCHANT, order_id="A/1", identity=second, told_at_ms=2_000)
    assert await till.paid_again.told(since_ms=0) == [expected]
    assert await till.paid_again.told(since_ms=2_001) == []
    due = await Alerts(till.database, AlertSubject.ROW).lease_due(FAR_MS, leased_until_ms=FAR_MS, limit=9)
    assert second in {told_in(each.subject_id).identity for each in due}


@pytest.mark.parametrize("forgery", ["payment_id = '320025999999'", "state = 'succeeded'"])
async def test_a_row_that_somebody_wrote_tells_nothing(till: Till, forgery: str) -> None:
    """Whoever can write to the database makes no payment of an order."""
    await till.charge("A-1")
    await till.database.write(all_rows(Statement(query(f"UPDATE operations SET {forgery} RETURNING id"), ())))  # noqa: S608
    await till.database.write(all_rows(Statement(query("UPDATE operations SET row_digest = 'x' RETURNING id"), ())))
    await till.charge("A-1")
    assert await till.told() == []


async def test_an_ordinary_charge_asks_for_nothing_more(till: Till) -> None:
    """Its sender saw that the order has nothing else: its success is one statement, and nothing is looked for."""
    await till.charge("A-1")
    operation = till.book.new(99, order_id="A-1", guard=None, payment_id="320025009999")
    await till.book.accept(operation)
    stored = till.book.stored(operation)
    changed, entry = advance_operation(stored, Event.SUCCEEDED, at_ms=2_000, retention=RETENTION, evidence=EVIDENCE)
    await till.book.journal.record(changed, entry, ANSWER, may_be_paid_again=False)
    assert await till.told() == []


@pytest.fixture
async def other_till(engine: str, url: str, till: Till) -> AsyncIterator[Till]:
    """Gives what another process has of the same database; the embedded one has one process alone."""
    if engine != "postgresql":
        yield till
        return
    opened = await open_database(url, clock=Clock(), owner=True)
    other = Till(opened)
    other.numbers = till.numbers
    yield other
    await opened.close()


@pytest.mark.parametrize(
    ("here", "there"), [("charge", "page"), ("charge", "charge"), ("page", "late_page"), ("charge", "read_plan")]
)
async def test_of_two_payments_at_once_the_second_is_told(till: Till, other_till: Till, here: str, there: str) -> None:
    """In two processes: whichever commits last sees the other, and exactly one event names both."""
    for number in range(RACES):
        order_id = f"A-{number}"
        paid = await asyncio.gather(getattr(till, here)(order_id), getattr(other_till, there)(order_id))
        told = (await till.told())[number:]
        assert [{data["payment_id"], data["earlier_payment_id"]} for _, data in told] == [set(paid)]
    assert len(await till.alerts()) == RACES


@example(ways=["read_plan", "charge"], is_imported=False, repeats=2)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    ways=st.lists(st.sampled_from((*TAKING, "fee", "hold")), max_size=5),
    is_imported=st.booleans(),
    repeats=st.integers(0, 2),
)
async def test_there_is_one_event_less_than_payments(
    till: Till, ways: list[str], *, is_imported: bool, repeats: int
) -> None:
    """However they mix, in one order, and whatever is repeated: never more, never fewer."""
    order_id, before = f"L-{next(till.numbers)}", len(await till.told())
    if is_imported:
        await till.imported(order_id)
    for way in ways:
        await getattr(till, way)(order_id)
    for payment in (await till.paid_again.of_order(MERCHANT, order_id, now_ms=3_000))[1][:repeats]:
        assert not await till.paid_again.tell(payment, at_ms=3_000)
    taken = is_imported + sum(way in TAKING for way in ways)
    assert len(await till.told()) - before == max(taken - 1, 0)
