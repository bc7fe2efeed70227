"""Requests that are held in a recovery, and what operators decide about them, with a crash at every step."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.databases import sqlite_url
from tests.flows.hosted import hosting, opened
from tests.flows.world import CHARGE, START_MS, Crash, Raising, World, asked, outcome_of

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import Refund, RetrySubscription, Void
from payrelay.core.gateways.pauses import Pause
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.idempotency import claim_of, fingerprint_of
from payrelay.core.payments.operation import Event, Kind, Operation, State
from payrelay.core.payments.proof import shown_before
from payrelay.errors import Code, Refusal, StoreDoubtful, StoreUnavailable, UndecidedError
from payrelay.flows.operations.intent import Intent
from payrelay.flows.operators.decide import decide, preview_decisions
from payrelay.flows.operators.held.decide_held import HeldFilter, decide_held, done, held_operations
from payrelay.flows.operators.review import ReviewFilter, list_for_operator
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.relay import Request
from payrelay.recovery.flows.hold import hold
from payrelay.store import open_database
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.engine.database import Statement, Unit, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.payments.counts import Counts

AUTHORIZATION = msgspec.structs.replace(CHARGE, authorize=True)
INTENT = Intent(
    kind=Kind.AUTHORIZATION,
    call=AUTHORIZATION,
    subject="order/A-1",
    order_id="A-1",
    amount_minor=100_000,
    currency="LKR",
)
REFUND = Refund(payment_id="7", description="x", amount_minor=5_000)
REFUND_INTENT = Intent(kind=Kind.REFUND, call=REFUND, subject="payment/7", payment_id="7", amount_minor=5_000)
VOID = Void(authorization_token="t", description="x")
VOID_INTENT = Intent(kind=Kind.VOID, call=VOID, subject="authorization/h")
EVENTS = query("SELECT type FROM outbox ORDER BY id")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of each of the databases."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def books(url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay over each of the databases."""
    world = World(await open_database(url, clock=Clock(), owner=True), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


async def held(world: World, intent: Intent = INTENT, request: Request | None = None) -> Answer:
    """Holds a request as a recovery does."""
    request = request or asked()
    fingerprint = fingerprint_of(request.account, intent.call)
    claim = claim_of(request.idempotency_key, fingerprint, is_unkeyed_claimed=True)
    return await hold(world.relay, request, intent, fingerprint, claim)


async def decided(world: World, decision: HeldDecision, **members: str | None) -> Operation:
    """Decides about the newest operation, as the operator Ann."""
    operation = await world.operation()
    return await decide_held(world.relay, operation, decision, operator="ann", reason="the portal", **members)


async def test_a_held_request_is_on_disk_and_nothing_is_sent(books: World) -> None:
    """The client is told what is known, by 202; the row holds its guard; the operator has a list, alert and metric."""
    answer = await held(books)
    operation = await books.operation()

    assert (answer.http_status, books.account.sent) == (202, [])
    error = msgspec.json.decode(answer.body)
    assert (error["error"]["code"], error["error"]["retry"]) == ("needs_attention", "after")
    assert "has not sent it" in error["msg"]
    assert (operation.state, operation.guard, operation.is_final) == (State.HELD, "order/A-1", False)
    assert (await books.journal.call_of(operation.id)) == AUTHORIZATION
    [group] = await list_for_operator(books.relay, ReviewFilter())
    assert (group.state, len(group.entries)) == (State.HELD, 1)
    assert group.entries[0].why.startswith("The database lost commits")
    assert (await Counts(books.database).open_operations())[State.HELD].total == 1
    assert await books.database.read(all_rows(Statement(EVENTS, ()))) == [("operation.held",)]


async def test_thousands_of_held_requests_are_one_alert_an_hour(books: World) -> None:
    """An operator who is called for each of them switches the alerts off."""
    alerts = Alerts(books.database, AlertSubject.OPERATION)
    for number in range(3):
        intent = msgspec.structs.replace(INTENT, subject=f"order/{number}", call=books.charge_of(number))
        await held(books, intent, asked(f"k-{number}"))
    due = await alerts.lease_due(books.clock.now_ms(), leased_until_ms=books.clock.now_ms() + 1, limit=9)
    books.clock.passed_ms = 3_600_001
    await held(books, REFUND_INTENT, asked("k-9"))
    later = await alerts.lease_due(books.clock.now_ms(), leased_until_ms=books.clock.now_ms() + 1, limit=9)

    assert len(due) == 1
    assert len(later) == 2  # the first again, which was not given yet, and one of the second hour
    assert [each.id async for each in held_operations(books.relay, HeldFilter())] == sorted(
        each.id for each in await books.operations()
    )


async def test_a_repeat_of_a_held_request_gets_the_same_answer(books: World) -> None:
    """With its key; and another request on the order is blocked."""
    first = await held(books)
    again = await charge(books.relay, asked(), AUTHORIZATION)

    assert (again.http_status, again.body) == (202, first.body)
    with pytest.raises(Refusal) as blocked:
        await charge(books.relay, asked("k-2"), AUTHORIZATION)
    assert blocked.value.code is Code.IN_PROGRESS
    assert (await held(books)).http_status == 202
    with pytest.raises(Refusal):
        await held(books, request=asked("k-3"))
    assert len(await books.operations()) == 1
    assert books.account.sent == []


async def test_what_may_be_held_is_told_as_held(world: World) -> None:
    """The commit's end isn't known. Who reads "not sent" goes elsewhere, and an operator may have it sent later."""
    world.steps.put("accepted", Raising(StoreDoubtful("the connection was lost")))

    assert (await held(world)).http_status == 202
    assert [each.state for each in await world.operations()] == [State.HELD]


@pytest.mark.parametrize(("step", "states"), [("accept", []), ("accepted", [State.HELD])])
async def test_a_crash_while_it_is_held_stores_all_or_nothing(world: World, step: str, states: list[State]) -> None:
    """The client repeats, and there is one operation, for which nothing was sent."""
    world.steps.put(step, Raising(Crash()))
    with pytest.raises(Crash):
        await held(world)
    await world.reopen()
    await recover(world.relay, is_sole_owner=True)
    assert [each.state for each in await world.operations()] == states
    assert (await held(world)).http_status == 202

    assert [each.state for each in await world.operations()] == [State.HELD]
    assert world.account.ledger == []


async def test_done_answers_as_the_gateway_would_have(books: World) -> None:
    """With the payment that the operator found, and without sending; the guard is free."""
    await held(books)
    operation = await decided(books, HeldDecision.DONE, payment_id="320027150501")
    repeat = await charge(books.relay, asked(), AUTHORIZATION)

    assert (operation.state, operation.payment_id, operation.guard) == (State.SUCCEEDED, "320027150501", None)
    assert (repeat.http_status, books.account.sent) == (200, [])
    evidence = (await books.journal.history(operation.id))[-1].evidence
    assert (evidence.operator, evidence.reason) == ("ann", "the portal")


@pytest.mark.parametrize(
    ("intent", "kind"),
    [(INTENT, Kind.AUTHORIZATION), (REFUND_INTENT, Kind.REFUND), (VOID_INTENT, Kind.VOID)],
    ids=["authorization", "partial refund", "void"],
)
async def test_send_sends_once_by_the_code_of_every_attempt(books: World, intent: Intent, kind: Kind) -> None:
    """The row is in ``sending`` before a byte goes out; the answer is stored for the client's repeat."""
    await held(books, intent)
    operation = await decided(books, HeldDecision.SEND)

    assert (operation.kind, operation.state) == (kind, State.SUCCEEDED)
    assert await books.states() == [State.HELD, State.SENDING, State.SUCCEEDED]
    assert (books.account.ledger, books.states_when_sent) == ([intent.call], [State.SENDING])
    [_, entry, _] = await books.journal.history(operation.id)
    assert (entry.event, entry.evidence.operator, entry.evidence.reason) == (Event.DECIDED_SEND, "ann", "the portal")
    answer = await books.journal.answer_of(operation.id)
    assert answer is not None
    assert answer.http_status == 200


async def test_refuse_sends_nothing_and_gives_the_key_back(books: World) -> None:
    """The client may make the request again, as a new one."""
    await held(books)
    operation = await decided(books, HeldDecision.REFUSE)

    assert (operation.state, operation.guard, operation.claim) == (State.NOT_SENT, None, None)
    assert books.account.sent == []
    assert (await charge(books.relay, asked(), AUTHORIZATION)).http_status == 200


@pytest.mark.parametrize("decision", HeldDecision)
async def test_only_one_of_two_operators_decides(books: World, decision: HeldDecision) -> None:
    """Each saw it held; the second is told that it is held no more, and nothing is sent for it."""
    await held(books)
    seen = await books.operation()
    await decide_held(books.relay, seen, HeldDecision.REFUSE, operator="ann", reason="x")
    with pytest.raises(UndecidedError):
        await decide_held(books.relay, seen, decision, operator="bob", reason="y")

    assert (await books.operation()).state is State.NOT_SENT
    assert books.account.sent == []


async def test_a_held_operation_is_not_called_failed(books: World) -> None:
    """``operations decide failed`` would deny an earlier try; its message names the right command."""
    await held(books)
    operation = await books.operation()
    failed = msgspec.structs.replace(done(operation, "ann", "x", None), decided=State.FAILED)

    assert set(await preview_decisions(books.relay, operation)) == {State.SUCCEEDED}
    with pytest.raises(UndecidedError, match="payrelay recover decide refuse"):
        await decide(books.relay, failed)


async def test_a_paused_account_sends_nothing(books: World) -> None:
    """An operator paused it for a reason; what is held stays held."""
    await held(books)
    await Pauses(books.database).add(Pause(account="gateway", since_ms=0, reason="x", operator="ann"))
    with pytest.raises(Refusal):
        await decided(books, HeldDecision.SEND)

    assert (await books.operation()).state is State.HELD
    assert books.account.sent == []


async def test_what_is_held_is_not_sent_beside_an_open_page(world: World) -> None:
    """The page was opened right before the request was held; its customer would pay twice."""
    page = await opened(hosting(world))
    await held(world)
    with pytest.raises(Refusal, match=f"the checkout {page.id}, which is open") as refused:
        await decided(world, HeldDecision.SEND)

    assert (refused.value.code, world.account.sent) == (Code.IN_PROGRESS, [])
    assert (await world.operation()).state is State.HELD


async def test_what_was_held_without_its_key_is_not_sent_where_the_one_with_it_succeeded(world: World) -> None:
    """The request with the key got its answer in the same recovery, right before its repeat was held."""
    await charge(world.relay, asked("k-1"), AUTHORIZATION)
    sent = len(world.account.sent)
    await held(world, request=asked(None))
    with pytest.raises(Refusal, match="an equal request with a key was carried out as op_") as refused:
        await decided(world, HeldDecision.SEND)

    assert (refused.value.code, len(world.account.sent)) == (Code.CONFLICT, sent)
    assert (await world.operation()).state is State.HELD


async def test_another_merchants_account_sends_nothing(world: World) -> None:
    """The settings name another merchant since: its gateway has nothing to do with this request."""
    await held(world)
    other = msgspec.structs.replace(await world.operation(), merchant="another")
    with pytest.raises(Refusal, match="another merchant"):
        await decide_held(world.relay, other, HeldDecision.SEND, operator="ann", reason="x")

    assert world.account.sent == []


async def test_a_budget_that_is_used_up_sends_nothing(world: World) -> None:
    """The operator is told, and the operation stays held for the next try; its own guard doesn't block it."""
    await held(world)
    world.limit_to(RateLimit(1, 10.0))
    permit = await world.account.rate_limiter.take_now()
    assert permit is not None
    waiting = asyncio.ensure_future(decided(world, HeldDecision.SEND))
    await world.account.timer.is_set.wait()
    world.clock.passed_ms = 60_000
    for bell in world.account.timer.bells:
        bell.ring()
    with pytest.raises(Refusal) as refused:
        await waiting

    assert refused.value.code is Code.GATEWAY_BUSY
    assert (await world.operation()).state is State.HELD


SENDING_STEPS = ["record", "recorded", "effect", "executed", "record", "recorded"]
CRASHES = [(step, SENDING_STEPS[: index + 1].count(step)) for index, step in enumerate(SENDING_STEPS)]


@pytest.mark.parametrize(("step", "time"), CRASHES)
async def test_a_crash_of_the_command_loses_nothing_and_sends_nothing_twice(world: World, step: str, time: int) -> None:
    """Killed before the decision is stored, it is held; after it, the service finds it and resolves it like any other.

    A repeat of the client, and a second decision, send nothing then.
    """
    await held(world)
    world.steps.passed.clear()
    world.steps.put(step, Raising(Crash()), first=time)
    with pytest.raises(Crash):
        await decided(world, HeldDecision.SEND)
    await world.reopen()
    await recover(world.relay, is_sole_owner=True)
    operation = await world.operation()

    expected = State.HELD if (step, time) == ("record", 1) else State.UNKNOWN
    assert operation.state is (State.SUCCEEDED if (step, time) == ("recorded", 2) else expected)
    sent_before = len(world.account.ledger)
    assert sent_before == (0 if (step, time) in CRASHES[:3] else 1)
    await charge(world.relay, asked(), AUTHORIZATION)
    if operation.state is not State.HELD:
        with pytest.raises(UndecidedError):
            await decided(world, HeldDecision.SEND)
    assert len(world.account.ledger) == sent_before


@pytest.mark.parametrize(("step", "state"), [("record", State.HELD), ("recorded", State.SENDING)])
@pytest.mark.parametrize("error", [StoreUnavailable, StoreDoubtful])
async def test_a_decision_that_may_not_be_stored_is_not_sent(
    world: World, step: str, state: State, error: type[StoreUnavailable]
) -> None:
    """Where the commit was lost, the operation is held as before; else the service finds it, as after a crash."""
    await held(world)
    world.steps.passed.clear()
    world.steps.put(step, Raising(error()))
    with pytest.raises(error):
        await decided(world, HeldDecision.SEND)

    assert world.account.sent == []
    assert (await world.operation()).state is state


async def test_a_held_authorization_counts_against_what_its_app_may_pay(world: World) -> None:
    """A request that an app's token can't make is held no more than it is sent."""
    intent = msgspec.structs.replace(INTENT, condition=_refusing)
    with pytest.raises(Refusal):
        await held(world, intent)

    assert await world.operations() == []


def _refusing(_operation_id: str) -> Unit[None]:
    if not (yield Statement(EVENTS, ())):
        raise Refusal(Code.CONFLICT, "the order has as many payments as it may have")


async def test_a_retry_is_compared_with_what_its_subscription_has_now(world: World) -> None:
    """What was read before it was held is old: an installment since would prove a retry that was never made."""
    intent = Intent(
        kind=Kind.RETRY,
        call=RetrySubscription(subscription_id=4),
        subject="subscription/4",
        subscription_id="4",
        evidence=Evidence(payment_ids=("1",)),
    )
    await held(world, intent)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    operation = await decided(world, HeldDecision.SEND)

    assert operation.state is State.UNKNOWN
    assert shown_before(await world.journal.history(operation.id)).payment_ids == ()


@pytest.mark.parametrize(
    ("members", "is_selected"),
    [
        ({}, True),
        ({"account": "gateway", "kind": Kind.AUTHORIZATION, "order_id": "A-1", "principal": "shop"}, True),
        ({"account": "other"}, False),
        ({"kind": Kind.VOID}, False),
        ({"order_id": "A-2"}, False),
        ({"ids": frozenset({"op_x"})}, False),
        ({"since_ms": START_MS, "until_ms": START_MS}, True),
        ({"since_ms": START_MS + 1}, False),
        ({"until_ms": START_MS - 1}, False),
    ],
)
async def test_a_filter_selects_what_fits_in_every_part(
    world: World, members: dict[str, object], *, is_selected: bool
) -> None:
    """A decision for many must reach none that its operator didn't mean."""
    await held(world)
    wanted = msgspec.structs.replace(HeldFilter(), **members)

    assert len([each async for each in held_operations(world.relay, wanted)]) == is_selected
