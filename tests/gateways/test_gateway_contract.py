"""The contract of a gateway, held against PayHere and against every double that stands for one.

What a double promises less than the real one, no story that is told over it proves.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.flows.inbox_world import ShowingAccount
from tests.flows.world import CHARGE, ScriptedAccount, World, opened
from tests.gateways.facade import GatewayFacade
from tests.gateways.other_gateway import OtherGateway
from tests.gateways.still_gateway import StillGateway
from tests.samples import ASKED
from tests.simulation.mistakes import Credulous, Trusting

from payrelay.clock import Clock
from payrelay.core.calls import (
    AllSubscriptions,
    CancelSubscription,
    Capture,
    Effect,
    OneSubscription,
    PaymentsOfOrder,
    PaymentsOfSubscription,
    Read,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.checkouts.hosted_payment import HostedPayment
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind, Reading
from payrelay.core.payments.payment import NoObservation, NothingShown, PaymentsSeen
from payrelay.gateways.gateway import (
    NO_HEADERS,
    CheckoutForm,
    CheckoutRedirect,
    CheckResult,
    ExpectedReply,
    Gateway,
    HostedPage,
    NoCheckout,
    ReceivedNotification,
    ReturnUrls,
    Sending,
    UnreadableNotification,
)
from payrelay.gateways.gateway_kind import CommonSettings, GatewayResources
from payrelay.gateways.pacing.rate_limiter import Permit, RateLimiter
from payrelay.gateways.registry import DEFAULT_KIND, KINDS
from payrelay_simulator import DEFAULT_MERCHANT, Simulator, demo_world
from payrelay_simulator import serve as serve_simulator
from payrelay_simulator.demo import CUSTOMER_TOKEN

LIMIT: Final = RateLimit(calls=50, window_s=10)
CHARGED: Final = msgspec.structs.replace(CHARGE, customer_token=CUSTOMER_TOKEN)
LONE_SURROGATE: Final = "\ud800"
EFFECTS: Final[dict[str, Effect]] = {
    "charge": CHARGED,
    "hold": msgspec.structs.replace(CHARGED, authorize=True),
    "capture": Capture(authorization_token="none-such", amount_minor=100, description="d"),
    "refund": Refund(payment_id="1", description="d"),
    "release": Void(authorization_token="none-such", description="d"),
    "retry": RetrySubscription(subscription_id=1),
    "cancel": CancelSubscription(subscription_id=1),
    "not Unicode": msgspec.structs.replace(CHARGED, order_id=LONE_SURROGATE),
}
READS: Final[dict[str, Read]] = {
    "order": PaymentsOfOrder(order_id="A-1"),
    "subscriptions": AllSubscriptions(),
    "subscription": OneSubscription(subscription_id=1),
    "installments": PaymentsOfSubscription(subscription_id=1),
    "not Unicode": PaymentsOfOrder(order_id=LONE_SURROGATE),
}
GARBAGE: Final = [b"", b"null", b"{}", b"[1]", b"\xff", b'{"a"', b"[" * 9_999, b"&&=&a=b", b"x" * 70_000]
RETURNS: Final = ReturnUrls(
    return_url="https://pay.example/r", cancel_url="https://pay.example/c", notify_url="https://pay.example/n"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """A gateway, and how many effects have really happened behind it."""

    gateway: Gateway
    done: Callable[[], int]


Opening = Callable[[Path], AbstractAsyncContextManager[Bench]]


@asynccontextmanager
async def payhere(_: Path) -> AsyncIterator[Bench]:
    """PayHere itself, against the simulator."""
    simulator, clock = Simulator(), Clock()
    demo_world(simulator)
    async with serve_simulator(simulator) as running:
        kind = KINDS[DEFAULT_KIND]
        own = kind.settings.model_validate(
            {
                "app_id": DEFAULT_MERCHANT.app_id,
                "app_secret": DEFAULT_MERCHANT.app_secret,
                "merchant_id": DEFAULT_MERCHANT.merchant_id,
                "merchant_secret": DEFAULT_MERCHANT.merchant_secret,
            }
        )
        common = CommonSettings(
            name="gateway",
            environment="sandbox",
            base_url=running.base_url,
            limit=LIMIT,
            timeout_s=10.0,
            queue_s=2.0,
            timezone="Asia/Colombo",
        )
        means = GatewayResources(clock=clock, merchant=None, rate_limiter=RateLimiter(LIMIT, clock), token_store=None)
        gateway = kind.open(common, own, means)
        before = len(simulator.ledger())
        yield Bench(gateway=gateway, done=lambda: len(simulator.ledger()) - before)
        await gateway.close()


@asynccontextmanager
async def world_of(path: Path) -> AsyncIterator[World]:
    """A world of the stories', whose doubles need its journal."""
    world = World(await opened(path / "payrelay.db"), path / "payrelay.db")
    yield world
    await world.database.close()


@asynccontextmanager
async def scripted(path: Path) -> AsyncIterator[Bench]:
    """The account of the stories' tests."""
    async with world_of(path) as world:
        account = ScriptedAccount(world.clock, world.steps, world.journal, limit=LIMIT)
        yield Bench(gateway=account, done=lambda: len(account.ledger))


@asynccontextmanager
async def showing(path: Path) -> AsyncIterator[Bench]:
    """The account of the notifications' tests."""
    async with world_of(path) as world:
        account = ShowingAccount(world.clock, world.steps, world.journal, limit=LIMIT)
        account.begin()
        yield Bench(gateway=account, done=lambda: len(account.ledger))


@asynccontextmanager
async def still(_: Path) -> AsyncIterator[Bench]:
    """The account of the API's tests."""
    yield Bench(gateway=StillGateway(Clock(), limit=LIMIT), done=lambda: 0)


@asynccontextmanager
async def other(_: Path) -> AsyncIterator[Bench]:
    """The second gateway."""
    gateway = OtherGateway(Clock())
    yield Bench(gateway=gateway, done=lambda: len(gateway.done))


@asynccontextmanager
async def veiled(path: Path) -> AsyncIterator[Bench]:
    """A double of one member over another gateway."""
    async with payhere(path) as bench:
        yield Bench(gateway=GatewayFacade(bench.gateway), done=bench.done)


@asynccontextmanager
async def credulous(path: Path) -> AsyncIterator[Bench]:
    """The simulation's planted mistake about what a search shows."""
    async with payhere(path) as bench:
        yield Bench(gateway=Credulous(bench.gateway), done=bench.done)


@asynccontextmanager
async def trusting(path: Path) -> AsyncIterator[Bench]:
    """The simulation's planted mistake about what a notification shows."""
    async with payhere(path) as bench, world_of(path) as world:
        yield Bench(gateway=Trusting(bench.gateway, world.relay.inbox), done=bench.done)


FACES: Final[dict[str, Opening]] = {
    "PayHere": payhere,
    "scripted": scripted,
    "showing": showing,
    "still": still,
    "other": other,
    "veiled": veiled,
    "credulous": credulous,
    "trusting": trusting,
}


@pytest.fixture(params=FACES)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    """Gives each gateway that there is."""
    async with FACES[request.param](tmp_path) as bench:
        yield bench


async def sending_of(gateway: Gateway, *, operation_id: str = "op_1", within_s: float = 10.0) -> Sending:
    """Gives the permission to send."""
    permit = await gateway.rate_limiter.take_now()
    assert permit is not None
    send_by_s = permit.send_by_s - 10.0 + within_s
    return Sending(operation_id=operation_id, permit=permit, send_by_s=send_by_s, journal_resend=_allowed)


async def _allowed(_: Evidence) -> bool:
    return True


def is_ended(gateway: Gateway, permit: Permit) -> bool:
    """Tells whether somebody has ended a permit: ending it again changes nothing then."""
    used = gateway.rate_limiter.snapshot().used
    permit.release_unused()
    return gateway.rate_limiter.snapshot().used == used


def page_of(asked: HostedPayment = ASKED) -> HostedPage:
    """Gives a page to be shown."""
    return HostedPage(checkout_id="chk_1", payment=asked, returns=RETURNS, today=date(2026, 11, 22))


async def test_it_names_itself(bench: Bench) -> None:
    """Books, paths and pages rely on these, and on their never changing while the program runs."""
    gateway = bench.gateway
    first = (gateway.name, gateway.merchant, gateway.environment, gateway.timezone, gateway.capabilities)

    assert (gateway.name, gateway.merchant, gateway.environment, gateway.timezone, gateway.capabilities) == first
    assert len(bytes.fromhex(gateway.merchant)) == 8
    assert gateway.timeout_s > 0
    assert gateway.queue_s >= 0


@pytest.mark.parametrize("name", EFFECTS)
async def test_an_effect_has_one_outcome_and_ends_its_permit(bench: Bench, name: str) -> None:
    """An exception leaves a row whose outcome nobody knows; a permit that isn't ended is lost to all."""
    sending = await sending_of(bench.gateway)

    outcome = await bench.gateway.effect(EFFECTS[name], ExpectedReply(), sending)

    assert isinstance(outcome, Outcome)
    assert is_ended(bench.gateway, sending.permit)


@pytest.mark.parametrize("within_s", [10.0, -20.0])
async def test_not_sent_is_said_only_where_nothing_happened(bench: Bench, within_s: float) -> None:
    """The client may send it again then."""
    sending = await sending_of(bench.gateway, within_s=within_s)

    outcome = await bench.gateway.effect(CHARGED, ExpectedReply(), sending)

    is_denied = outcome.kind in {
        OutcomeKind.NOT_SENT,
        OutcomeKind.NOT_EXECUTED,
        OutcomeKind.DECLINED,
        OutcomeKind.REFUSED,
    }
    assert bench.done() == int(not is_denied)


async def test_a_call_that_is_cancelled_gives_its_permit_back(bench: Bench) -> None:
    """A stop must not take the budget with it."""
    sending = await sending_of(bench.gateway)
    call = asyncio.ensure_future(bench.gateway.effect(CHARGED, ExpectedReply(), sending))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)

    assert is_ended(bench.gateway, sending.permit)


async def test_a_key_that_is_kept_makes_a_second_sending_harmless(bench: Bench) -> None:
    """Resolution sends again where a gateway says that it keeps keys, and nowhere else."""
    outcomes = [
        await bench.gateway.effect(CHARGED, ExpectedReply(), await sending_of(bench.gateway, operation_id="op_7"))
        for _ in range(2)
    ]

    if bench.gateway.capabilities.keys_kept_ms is not None:
        assert outcomes[0] == outcomes[1]
        assert bench.done() == 1


@pytest.mark.parametrize("name", READS)
async def test_a_read_has_an_answer(bench: Bench, name: str) -> None:
    """What can't be read is an answer too."""
    assert isinstance(await bench.gateway.read(READS[name]), Reading)


@pytest.mark.parametrize("name", ["order", "installments", "not Unicode"])
async def test_an_inquiry_gives_an_observation(bench: Bench, name: str) -> None:
    """That it could not be seen is none of nothing."""
    call = READS[name]
    assert isinstance(call, PaymentsOfOrder | PaymentsOfSubscription)

    assert isinstance(await bench.gateway.inquire(call, until_s=0.0), PaymentsSeen | NothingShown | NoObservation)


@pytest.mark.parametrize("raw_data", GARBAGE)
async def test_what_is_not_whole_shows_nothing(bench: Bench, raw_data: bytes) -> None:
    """What proves something must be whole, and a gateway may send anything."""
    gateway = bench.gateway

    assert not gateway.payments_in(raw_data)
    assert gateway.subscriptions_in(raw_data, seen_at_ms=1) == ()
    assert gateway.subscriptions_in(raw_data, seen_at_ms=1, order_id="A-1") == ()
    assert gateway.without(raw_data, frozenset({"1"})) is None
    assert gateway.without_plans(raw_data, frozenset({"1"})) == b"[]"


@pytest.mark.parametrize("body", GARBAGE)
async def test_what_is_no_notification_is_called_so(bench: Bench, body: bytes) -> None:
    """Anybody can post anything to the address for notifications."""
    assert isinstance(bench.gateway.notification(NO_HEADERS, body), ReceivedNotification | UnreadableNotification)


async def test_a_page_leads_to_the_same_permit_each_time(bench: Bench) -> None:
    """A customer who loads it again pays once."""
    first, second = [await bench.gateway.checkout(page_of()) for _ in range(2)]

    assert first == second
    is_offered = not bench.gateway.capabilities.unset_for_checkouts
    assert isinstance(first, CheckoutForm | CheckoutRedirect if is_offered else NoCheckout)


async def test_a_check_tells_what_it_found(bench: Bench) -> None:
    """In sentences for operators, where others would raise."""
    results: list[CheckResult] = await bench.gateway.check()

    assert all(result.subject and result.text for result in results)


async def test_closing_may_be_repeated(bench: Bench) -> None:
    """Stacks and tests both close; a closed gateway answers that nothing was sent."""
    sending = await sending_of(bench.gateway)
    await bench.gateway.close()
    await bench.gateway.close()

    before = bench.done()
    outcome = await bench.gateway.effect(CHARGED, ExpectedReply(), sending)
    assert outcome.kind is not OutcomeKind.NOT_SENT or bench.done() == before


async def test_what_is_signed_is_named_before_it_is_signed(bench: Bench) -> None:
    """A text that is in no list is taken for proof, so that a form of today and a call have theirs each time."""
    gateway = bench.gateway
    for subject, order_id in ((page_of(), ASKED.order_id), (EFFECTS["hold"], CHARGED.order_id)):
        texts = gateway.signed_texts(subject)

        assert texts == gateway.signed_texts(subject)
        assert {text.order_id for text in texts} <= {order_id}
        assert bool(texts) is isinstance(await gateway.checkout(page_of()), CheckoutForm | NoCheckout)
    assert gateway.signed_texts(EFFECTS["capture"]) == ()


async def test_no_approval_has_an_unreadable_amount_where_order_and_amount_are_one_text(bench: Bench) -> None:
    """Whatever can't be read is none of those that the gateway names."""
    runs_together = bool(bench.gateway.signed_texts(page_of()))

    assert bench.gateway.is_approval_amount(1_000, "LKR")
    assert bench.gateway.is_approval_amount(None, "LKR") is not runs_together
