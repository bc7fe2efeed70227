"""Payments that took money and that the gateway's record lacks: who is told of them, and how."""

import asyncio
import itertools
import json
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.world import CHARGE, CREDENTIAL, World, asked, opened
from tests.samples import CHECKOUT, IMPORTED, OPERATION
from tests.store.test_checkouts import DETAILS

from payrelay.core.access.credential import Bound, Credential, Scope
from payrelay.core.answers import Answer
from payrelay.core.calls import OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.outcomes import Evidence, OutcomeKind, Reading
from payrelay.core.payments.operation import JournalEntry, Kind
from payrelay.core.payments.payment import MISSING_MAX, TakenPayment
from payrelay.core.subscriptions.subscription import Fact
from payrelay.errors import Code
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.flows.subscriptions.read_subscriptions import list_subscription_payments, retrieve_subscription
from payrelay.store.payments.journal import AcceptedOperation
from payrelay.store.payments.known_payments import KnownPayments
from payrelay.store.subscriptions import SubscriptionOwner

ORDER: Final = "A-1"
HEADER: Final = "Payrelay-Missing"
NOTHING: Final = Reading(code=Code.NOT_FOUND, msg="No payments found", raw_msg=b'"No payments found"')
DOWN: Final = Reading(code=Code.GATEWAY_UNREACHABLE, msg="unreachable")
CUSTOMERS: Final = ("cus_a", "cus_b")
REFERENCE: Final = "user-1"
_OF_ORDER: Final = Bound(order_id=ORDER)
CALLERS: Final[dict[str, Credential]] = {
    "the shop": CREDENTIAL,
    "another shop": msgspec.structs.replace(CREDENTIAL, principal="kiosk"),
    "support": msgspec.structs.replace(CREDENTIAL, principal="desk", scopes=frozenset({Scope.ANY_PRINCIPAL})),
    "an app of the order": msgspec.structs.replace(CREDENTIAL, bound=_OF_ORDER),
    "an app of customer a": msgspec.structs.replace(CREDENTIAL, bound=Bound(order_id=ORDER, customer_id="cus_a")),
    "an app of customer b": msgspec.structs.replace(CREDENTIAL, bound=Bound(order_id=ORDER, customer_id="cus_b")),
    "an app of a reference": msgspec.structs.replace(
        CREDENTIAL, bound=Bound(order_id=ORDER, reference=REFERENCE, keys_of="r")
    ),
}


class Told(NamedTuple):
    """What an answer says: its status, its advice, the payments in its list, and those that it names as missing."""

    status: int
    retry: str | None
    shown: list[str]
    missing: list[str]


class Known:
    """Puts into a world what took money of the order."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._numbers = itertools.count(1)

    async def charge(
        self, payment_id: str | None = "320", *, outcome: OutcomeKind = OutcomeKind.SUCCEEDED, **members: object
    ) -> None:
        """Stores a charge with its outcome, but for what is named."""
        number = next(self._numbers)
        own = {"id": f"op_{number:032}", "guard": None, "claim": None, "idempotency_key": None}
        more = {"merchant": self.world.account.merchant, "payment_id": payment_id}
        operation = msgspec.structs.replace(OPERATION, **(own | more | members))
        entry = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=Evidence())
        journal = self.world.journal
        accepted = await journal.accept(operation, entry, CHARGE, conflicts_with=None, now_ms=1_000)
        assert isinstance(accepted, AcceptedOperation)
        await self.world.resolve(outcome, accepted.operation)

    async def page(self, *, reference: str | None = None, **members: object) -> None:
        """Stores a page that was paid, but for what is named."""
        number, checkouts = next(self._numbers), self.world.relay.checkouts
        own = {"id": f"chk_{number:032}", "state": CheckoutState.COMPLETED, "guard": None, "payment_id": "320"}
        hashed = None if reference is None else checkouts.reference_hash(reference)
        more = {"merchant": self.world.account.merchant, "reference_hash": hashed}
        page = msgspec.structs.replace(CHECKOUT, **(own | more | members))
        assert await checkouts.add(page, DETAILS, reference=reference)

    async def imported(self) -> None:
        """Imports a payment."""
        row = msgspec.structs.replace(IMPORTED, merchant=self.world.account.merchant, payment_id="320")
        await self.world.relay.money.imported_payments.take([row], is_dry=False)

    async def installment(self, payment_id: str = "320", *, principal: str | None = "shop") -> None:
        """Notes a paid installment of plan 420, which no page of ours began."""
        owner = SubscriptionOwner(account="gateway", merchant=self.world.account.merchant, principal=principal)
        fact = Fact(subscription_id="420", at_ms=1_000, is_seen=False, order_id=ORDER, payment=payment_id, is_paid=True)
        await self.world.relay.subscriptions.note(owner, [fact], now_ms=1_000)


def listed(*payment_ids: str) -> Reading:
    """Gives what the gateway says of an order or plan with these payments."""
    records = ",".join(f'{{"payment_id":{each},"order_id":"{ORDER}","amount":1.0}}' for each in payment_ids)
    return Reading(code=None, msg="ours", raw_msg=b'"theirs"', raw_data=f"[{records}]".encode())


def told(answer: Answer) -> Told:
    """Reads an answer."""
    body, header = json.loads(answer.body), dict(answer.headers).get(HEADER)
    shown = [str(each["payment_id"]) for each in body["data"] or ()]
    return Told(answer.http_status, body.get("error", {}).get("retry"), shown, header.split(",") if header else [])


async def retrieved(world: World, caller: Credential = CREDENTIAL) -> Answer:
    """Has a caller ask for the payments of the order."""
    request = msgspec.structs.replace(asked(None), credential=caller)
    return await retrieve_payments(world.relay, request, PaymentsOfOrder(order_id=ORDER))


async def test_a_paid_order_is_never_told_as_unpaid(world: World) -> None:
    """An app that asks "is it paid?" and reads "no" would charge once more."""
    await Known(world).charge()
    world.account.readings.append(NOTHING)
    answer = await retrieved(world)
    body = json.loads(answer.body)

    assert told(answer) == (404, "after", [], ["320"])
    assert (body["status"], body["error"]["code"], answer.retry_after_s) == (-1, "not_found", 2)
    assert body["msg"] == "money was taken by the payment 320, which the gateway's record does not show yet"


async def test_what_nobody_paid_is_told_in_the_gateways_words(world: World) -> None:
    """A hold or a refused charge is no payment that one waits for."""
    known = Known(world)
    await known.charge(kind=Kind.AUTHORIZATION)
    await known.charge("321", outcome=OutcomeKind.DECLINED)
    world.account.readings.append(NOTHING)
    answer = await retrieved(world)

    assert told(answer) == (404, "never", [], [])
    assert (json.loads(answer.body)["msg"], answer.retry_after_s) == ("No payments found", None)


async def test_a_list_that_lacks_a_payment_stays_as_it_is(world: World) -> None:
    """The gateway's bytes are passed on; a header says what else took money."""
    known = Known(world)
    await known.charge("9")
    await known.charge("320")
    await known.charge("10")
    world.account.readings.append(listed("320", "777"))
    answer = await retrieved(world)

    assert told(answer) == (200, None, ["320", "777"], ["9", "10"])
    assert answer.body == b'{"status":1,"msg":"theirs","data":%b}' % (listed("320", "777").raw_data or b"")


class CountingPayments(KnownPayments):
    """Counts how often it reads what took money."""

    reads = 0

    async def taken_of_order(self, merchant: str, order_id: str) -> tuple[TakenPayment, ...]:
        """Reads, and counts that."""
        self.reads += 1
        return await super().taken_of_order(merchant, order_id)


@pytest.mark.parametrize(("reading", "reads"), [(listed("320"), 0), (listed("777"), 1), (NOTHING, 1), (DOWN, 0)])
async def test_what_is_known_is_read_only_where_something_may_be_missing(
    world: World, reading: Reading, reads: int
) -> None:
    """The usual list shows all: then the owners tell so, which are read in any case."""
    await Known(world).charge()
    counting = CountingPayments(world.database, world.relay.checkouts.rows)
    world.relay = replace(world.relay, money=replace(world.relay.money, known_payments=counting))
    world.account.readings.append(reading)
    await retrieved(world)

    assert counting.reads == reads


async def test_a_payment_without_a_number_is_told_by_words(world: World) -> None:
    """An operator may have decided so without one. Of a list nobody can say whether it shows that payment."""
    await Known(world).charge(None)
    world.account.readings += [NOTHING, listed("777")]
    nothing, some = await retrieved(world), await retrieved(world)

    assert told(nothing) == (404, "after", [], [])
    assert "a payment whose number is not known" in json.loads(nothing.body)["msg"]
    assert told(some) == (200, None, ["777"], [])


@pytest.mark.parametrize("record", ['{"payment_id":"none"}', "7", "{}"])
async def test_where_a_record_can_not_be_read_nothing_is_called_missing(world: World, record: str) -> None:
    """It may be the record of that very payment."""
    await Known(world).charge()
    world.account.readings.append(Reading(code=None, msg="ours", raw_data=f"[{record}]".encode()))

    assert dict((await retrieved(world)).headers).get(HEADER) is None


async def test_a_header_has_the_newest(world: World) -> None:
    """It is bounded; the numbers grow."""
    known = Known(world)
    for number in range(MISSING_MAX + 2):
        await known.charge(str(1_000 + number))
    world.account.readings.append(listed("320"))
    missing = told(await retrieved(world)).missing

    assert missing == [str(1_000 + number) for number in range(2, MISSING_MAX + 2)]


async def test_a_last_known_answer_names_what_it_lacks_too(world: World) -> None:
    """Where the gateway is down, an older list is shown: what was paid since is not in it."""
    world.account.readings += [listed("320"), DOWN]
    await retrieved(world)
    await world.relay.background.finish(5)
    await Known(world).charge("321")
    answer = await retrieved(world)

    assert told(answer) == (200, None, ["320"], ["321"])
    assert dict(answer.headers)["Payrelay-Stale"] == "true"


async def test_a_cached_answer_names_what_it_lacks_too(world: World) -> None:
    """Two clients that ask at the same moment hear the same."""
    await Known(world).charge()
    world.account.readings.append(listed("777"))
    first, second = await retrieved(world), await retrieved(world)

    assert told(first) == told(second) == (200, None, ["777"], ["320"])
    assert "Age" in dict(second.headers)


async def test_a_gateway_that_is_down_is_told_as_down(world: World) -> None:
    """Then nothing is known of its record."""
    await Known(world).charge()
    world.account.readings.append(DOWN)

    assert told(await retrieved(world)) == (503, "after", [], [])


WAYS: Final[dict[str, Callable[[Known], Awaitable[None]]]] = {
    "a charge": lambda known: known.charge(),
    "a capture": lambda known: known.charge(kind=Kind.CAPTURE),
    "a page": lambda known: known.page(),
    "an installment": lambda known: known.installment(),
    "an import": lambda known: known.imported(),
}


@pytest.mark.parametrize("way", WAYS)
async def test_it_is_told_whichever_way_it_was_paid(world: World, way: str) -> None:
    """Of an empty record, and of one that shows another payment."""
    await WAYS[way](Known(world))
    world.account.readings += [NOTHING, listed("777")]

    assert told(await retrieved(world)) == (404, "after", [], ["320"])
    assert told(await retrieved(world)) == (200, None, ["777"], ["320"])


async def of_shop(known: Known) -> None:
    """Whose customer isn't known."""
    await known.charge()


async def of_kiosk(known: Known) -> None:
    """Another principal's, on an order of its own."""
    await known.charge(principal="kiosk")


async def of_both(known: Known) -> None:
    """Databases of before may have payments of two principals on one order."""
    await known.charge("320")
    await known.charge("321", principal="kiosk")


async def of_customers(known: Known) -> None:
    """Two customers have paid one order."""
    await known.charge("320", customer_id="cus_a")
    await known.charge("321", customer_id="cus_b")


async def of_a_without_a_number(known: Known) -> None:
    """One customer has, and nobody knows the payment's number."""
    await known.charge(None, customer_id="cus_a")


async def of_a_page(known: Known) -> None:
    """A customer has paid a page that was opened for a reference."""
    await known.page(reference=REFERENCE)


async def of_a_plan(known: Known) -> None:
    """A customer pays a plan that was begun by a page for a reference."""
    await known.page(kind=CheckoutKind.RECURRING, reference=REFERENCE, payment_id=None, subscription_id="420")
    await known.installment()


async def of_nobodys_plan(known: Known) -> None:
    """Notifications told of an installment, and nothing tells whose the plan is."""
    await known.installment(principal=None)


ALL: Final = frozenset(CALLERS)
NOT_KIOSK: Final = ALL - {"another shop"}
SEEN: Final[list[tuple[Callable[[Known], Awaitable[None]], dict[str, frozenset[str]]]]] = [
    (of_shop, {"320": NOT_KIOSK}),
    (of_kiosk, {"320": frozenset({"another shop", "support"})}),
    (of_both, {"320": NOT_KIOSK, "321": frozenset({"another shop", "support"})}),
    (
        of_customers,
        {
            "320": NOT_KIOSK - {"an app of customer b", "an app of a reference"},
            "321": NOT_KIOSK - {"an app of customer a", "an app of a reference"},
        },
    ),
    (of_a_page, {"320": NOT_KIOSK - {"an app of customer a", "an app of customer b"}}),
    (of_a_plan, {"320": NOT_KIOSK - {"an app of customer a", "an app of customer b"}}),
    (of_nobodys_plan, {"320": ALL}),
]
"""What took money, and which callers may know of it."""


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("making", "seen_by"), SEEN)
async def test_who_is_told_of_a_missing_payment(
    world: World, making: Callable[[Known], Awaitable[None]], seen_by: dict[str, frozenset[str]], caller: str
) -> None:
    """Whoever may see the payment in the list, and nobody else. To others the order is as one that nobody paid."""
    await making(Known(world))
    world.account.readings.append(NOTHING)
    expected = [payment_id for payment_id, callers in seen_by.items() if caller in callers]
    answer = await retrieved(world, CALLERS[caller])

    assert told(answer) == (404, "after" if expected else "never", [], expected)
    assert all(each.encode() not in answer.body for each in seen_by.keys() - set(expected))


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("making", "seen_by"), SEEN)
async def test_who_is_shown_a_payment_is_told_of_it(
    world: World, making: Callable[[Known], Awaitable[None]], seen_by: dict[str, frozenset[str]], caller: str
) -> None:
    """What the header may name is what the list may show, once the gateway shows it."""
    await making(Known(world))
    world.account.readings += [listed(*seen_by), NOTHING]
    expected = [payment_id for payment_id, callers in seen_by.items() if caller in callers]

    assert told(await retrieved(world, CALLERS[caller]))[2:] == (expected, [])


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_payment_without_a_number_is_told_to_its_customer_alone(world: World, caller: str) -> None:
    """Not even its existence is told to others."""
    await of_a_without_a_number(Known(world))
    world.account.readings.append(NOTHING)
    is_told = caller in NOT_KIOSK - {"an app of customer b", "an app of a reference"}

    assert told(await retrieved(world, CALLERS[caller])).retry == ("after" if is_told else "never")


class OneKnown(NamedTuple):
    """A payment as the law has it: whose, of which customer, whether it succeeded and is shown."""

    principal: str
    customer: str | None
    is_taken: bool
    is_shown: bool


PAYMENTS: Final = st.lists(
    st.builds(
        OneKnown,
        st.sampled_from(["shop", "shop", "kiosk"]),
        st.sampled_from([None, *CUSTOMERS]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=5,
)


def may_see(caller: Credential, payment: OneKnown) -> bool:
    """Tells whether a payment is a caller's, by its principal and its customer."""
    if Scope.ANY_PRINCIPAL in caller.scopes:
        return True
    bound = caller.bound
    is_personal = bound is not None and (bound.customer_id is not None or bound.reference is not None)
    is_theirs = not is_personal or payment.customer in {None, bound.customer_id if bound else None}
    return payment.principal == caller.principal and is_theirs


@given(payments=PAYMENTS, strangers=st.integers(0, 2), name=st.sampled_from(sorted(CALLERS)))
@settings(max_examples=examples(100), deadline=None)
def test_a_header_names_what_the_body_lacks_and_the_caller_may_see(
    payments: list[OneKnown], strangers: int, name: str
) -> None:
    """Never a payment that the body has, or would not have. And no paid order is told as unpaid."""

    async def scenario(path: Path) -> None:
        world, caller = World(await opened(path / "law.db"), path / "law.db"), CALLERS[name]
        known = Known(world)
        numbered = {str(320 + number): payment for number, payment in enumerate(payments)}
        for payment_id, payment in numbered.items():
            outcome = OutcomeKind.SUCCEEDED if payment.is_taken else OutcomeKind.UNKNOWN
            await known.charge(payment_id, principal=payment.principal, customer_id=payment.customer, outcome=outcome)
        shown = [payment_id for payment_id, payment in numbered.items() if payment.is_shown]
        shown += [str(900 + number) for number in range(strangers)]
        world.account.readings += [listed(*shown) if shown else NOTHING, NOTHING]
        answer = told(await retrieved(world, caller))

        owners = {payment.principal for payment in payments}
        is_foreign = bool(owners) and caller.principal not in owners and Scope.ANY_PRINCIPAL not in caller.scopes
        own = {each for each, payment in numbered.items() if may_see(caller, payment)}
        in_body = set() if is_foreign else {each for each in shown if each in own or each not in numbered}
        lacking = {each for each in own if numbered[each].is_taken and not numbered[each].is_shown}
        assert set(answer.missing).isdisjoint(answer.shown)
        assert (set(answer.shown), answer.missing) == (in_body, sorted(lacking))
        assert (answer.status, answer.retry) == (
            (200, None) if in_body else (404, "after") if lacking else (404, "never")
        )
        await world.relay.background.finish(0)
        await world.database.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))


async def of_plan(world: World, caller: Credential = CREDENTIAL) -> Answer:
    """Has a caller ask for the payments of the plan."""
    request = msgspec.structs.replace(asked(None), credential=caller)
    return await list_subscription_payments(world.relay, request, PaymentsOfSubscription(subscription_id=420))


@pytest.mark.parametrize("nothing", [NOTHING, listed()])
async def test_a_plans_installment_is_never_told_as_unpaid(world: World, nothing: Reading) -> None:
    """The gateway has two answers for a plan without payments."""
    await Known(world).installment()
    world.account.readings += [nothing, listed("777")]

    assert told(await of_plan(world)) == (404, "after", [], ["320"])
    world.clock.passed_ms += 3_000  # an empty list is cached for a moment, as every list is
    assert told(await of_plan(world)) == (200, None, ["777"], ["320"])


async def test_a_plan_of_another_principal_tells_nothing(world: World) -> None:
    """It is answered as one that doesn't exist."""
    await Known(world).installment()
    world.account.readings.append(NOTHING)

    assert told(await of_plan(world, CALLERS["another shop"])) == (404, "never", [], [])


@pytest.mark.parametrize(("payments", "missing"), [(NOTHING, "320"), (listed("777"), "320"), (listed("320"), None)])
async def test_a_plan_with_its_payments_names_those_that_are_missing(
    world: World, payments: Reading, missing: str | None
) -> None:
    """The subscription is there, so that the answer is no 404."""
    await Known(world).installment()
    plan = Reading(code=None, msg="ours", raw_data=b'{"subscription_id":420}')
    world.account.readings += [plan, payments]
    answer = await retrieve_subscription(
        world.relay, asked(None), OneSubscription(subscription_id=420), with_payments=True
    )

    assert (answer.http_status, dict(answer.headers).get(HEADER)) == (200, missing)
