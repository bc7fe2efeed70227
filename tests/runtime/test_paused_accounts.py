import asyncio
from dataclasses import replace

import pytest
from tests.flows.subscriptions.test_retry_subscription import RETRY
from tests.flows.world import CHARGE, Gate, World, asked, opened, outcome_of

from payrelay.core.gateways.pauses import Pause
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.errors import Code, Refusal, StoreUnavailable
from payrelay.flows.payments.charge import charge
from payrelay.flows.subscriptions.retry_subscription import retry_subscription
from payrelay.runtime.paused_accounts import PAUSES_KEPT_MS, RETRY_AFTER_S, PausedAccounts
from payrelay.store.engine.database import Database
from payrelay.store.gateways.pauses import Pauses

PAUSE = Pause(account="gateway", since_ms=0, reason="wrong prices of ACME", operator="ann")


@pytest.fixture
def pauses(world: World) -> Pauses:
    """Gives the store in which a command pauses and resumes."""
    return Pauses(world.database)


async def refused(world: World, key: str = "k-2") -> Refusal:
    """Asks for a charge on another order, and gives the refusal."""
    with pytest.raises(Refusal) as caught:
        await charge(world.relay, asked(world.relay, key), world.charge_of(2))
    return caught.value


async def test_a_paused_account_takes_no_new_effect(world: World, pauses: Pauses) -> None:
    """Nothing is stored, nothing is sent, and the client hears that it may come again, but not whose fault it is."""
    await pauses.add(PAUSE)
    refusal = await refused(world)

    assert (refusal.code, refusal.retry_after_s) == (Code.UNAVAILABLE, RETRY_AFTER_S)
    assert "paused by an operator" in refusal.msg
    assert PAUSE.reason not in refusal.msg
    assert (await world.operations(), world.account.ledger) == ([], [])


async def test_a_repeat_is_answered_during_a_pause(world: World, pauses: Pauses) -> None:
    """Whoever asks what became of an earlier request changes nothing by it."""
    first = await charge(world.relay, asked(world.relay), CHARGE)
    await pauses.add(PAUSE)
    world.clock.passed_ms += PAUSES_KEPT_MS

    assert (await charge(world.relay, asked(world.relay), CHARGE)).body == first.body


async def test_an_open_operation_keeps_its_answer_during_a_pause(world: World, pauses: Pauses) -> None:
    """202 as before: a pause must not read as if nothing had been sent."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    await pauses.add(PAUSE)
    world.clock.passed_ms += PAUSES_KEPT_MS

    assert (await charge(world.relay, asked(world.relay), CHARGE)).http_status == 202
    assert (await world.operation()).state is State.UNKNOWN


async def test_an_operation_that_waits_for_a_permit_is_not_sent_after_a_pause(world: World, pauses: Pauses) -> None:
    """Nothing leaves within a second of the command: not what came before it and stands in line either."""
    world.limit_to(RateLimit(1, 10.0))
    permit = await world.account.rate_limiter.take_now()
    assert permit is not None
    waiting = asyncio.create_task(charge(world.relay, asked(world.relay), CHARGE))
    await world.account.timer.is_set.wait()
    await pauses.add(PAUSE)
    world.clock.passed_ms += PAUSES_KEPT_MS
    permit.release_unused()
    with pytest.raises(Refusal, match="paused"):
        await waiting

    assert (await world.operations(), world.account.ledger) == ([], [])
    assert world.account.rate_limiter.snapshot().used == 0


async def test_what_waits_while_the_store_goes_away_is_not_sent(world: World) -> None:
    """Nobody knows then whether the account is paused."""
    world.limit_to(RateLimit(1, 10.0))
    permit = await world.account.rate_limiter.take_now()
    assert permit is not None
    elsewhere = await opened(world.path.with_name("another.db"))
    relay = replace(world.relay, paused=PausedAccounts(Pauses(elsewhere), world.clock, world.relay.log))
    waiting = asyncio.create_task(charge(relay, asked(relay), CHARGE))
    await world.account.timer.is_set.wait()
    await elsewhere.close()
    world.clock.passed_ms += PAUSES_KEPT_MS
    permit.release_unused()
    with pytest.raises(StoreUnavailable):
        await waiting

    assert (await world.operations(), world.account.ledger) == ([], [])


async def test_a_pause_counts_for_an_operation_that_inquires_before_it_is_stored(world: World, pauses: Pauses) -> None:
    """A retry reads the subscription's payments first, which may take half a minute."""

    async def pause() -> None:
        await pauses.add(PAUSE)
        world.clock.passed_ms += PAUSES_KEPT_MS

    world.steps.put("observe", pause)
    with pytest.raises(Refusal, match="paused"):
        await retry_subscription(world.relay, asked(world.relay), RETRY)

    assert (await world.operations(), world.account.ledger) == ([], [])


async def test_another_account_goes_on(world: World, pauses: Pauses) -> None:
    """A pause is about one account."""
    await pauses.add(Pause(account="second", since_ms=0, reason="x", operator="ann"))

    assert (await charge(world.relay, asked(world.relay), CHARGE)).http_status == 200


async def test_a_running_process_learns_of_it_within_a_second(world: World, pauses: Pauses) -> None:
    """The command is another process; what is read each second costs no request anything."""
    await charge(world.relay, asked(world.relay), CHARGE)
    await pauses.add(PAUSE)
    world.clock.passed_ms += PAUSES_KEPT_MS
    await refused(world)
    await pauses.remove("gateway", PAUSE.since_ms)
    world.clock.passed_ms += PAUSES_KEPT_MS

    assert (await charge(world.relay, asked(world.relay, "k-2"), world.charge_of(2))).http_status == 200
    assert world.log_events == ["account_paused", "account_resumed"]


class SlowPauses(Pauses):
    """Counts how often it is read, and gives no answer before it may."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.gate = Gate()
        self.reads = 0

    async def list(self) -> list[Pause]:
        """Reads, once it may."""
        self.reads += 1
        await self.gate()
        return await super().list()


async def test_those_who_ask_at_once_share_one_reading(world: World) -> None:
    """A storm of requests each second must not be a storm of reads; and who goes away takes it from nobody."""
    slow = SlowPauses(world.database)
    paused = PausedAccounts(slow, world.clock, world.relay.log)
    asking = [asyncio.create_task(paused.require_open("gateway")) for _ in range(50)]
    await slow.gate.reached.wait()
    asking[0].cancel()
    slow.gate.opened.set()
    outcomes = await asyncio.gather(*asking, return_exceptions=True)

    assert slow.reads == 1
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == [None] * 49


async def test_no_operation_begins_while_the_store_is_down(world: World) -> None:
    """Whether the account is paused isn't known then; the next one asks again."""
    database = await opened(world.path.with_name("another.db"))
    pauses = SlowPauses(database)
    pauses.gate.opened.set()
    paused = PausedAccounts(pauses, world.clock, world.relay.log)
    await database.close()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await paused.require_open("gateway")

    assert pauses.reads == 2


async def test_within_the_second_the_store_is_not_asked_again(world: World, pauses: Pauses) -> None:
    """A thousand requests a second must not be a thousand reads more."""
    await charge(world.relay, asked(world.relay), CHARGE)
    await pauses.add(PAUSE)
    world.clock.passed_ms += PAUSES_KEPT_MS - 1

    assert (await charge(world.relay, asked(world.relay, "k-2"), world.charge_of(2))).http_status == 200
