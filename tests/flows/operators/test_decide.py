from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.digests import digests_of
from tests.flows.world import CHARGE, World, asked, outcome_of

from payrelay.core.answers import Answer
from payrelay.core.calls import CancelSubscription, Capture, Refund, Void
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import FROZEN, Event, Operation, State, advance
from payrelay.core.payments.payment import payment_number
from payrelay.errors import UndecidedError
from payrelay.flows.operators.decidable import Decision, UnknownOperationError
from payrelay.flows.operators.decide import ATTEMPTS_MAX, Consequence, decide, preview_decisions, sentences_of
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.journal import Journal

CAPTURE = Capture(authorization_token="hold-token", amount_minor=50_000, description="shipped")
FLOWS: dict[str, Callable[[World], Awaitable[Answer]]] = {
    "charge": lambda world: charge(world.relay, asked(), CHARGE),
    "unkeyed charge": lambda world: charge(world.relay, asked(None), CHARGE),
    "authorization": lambda world: charge(world.relay, asked(), msgspec.structs.replace(CHARGE, authorize=True)),
    "capture": lambda world: capture(world.relay, asked(), CAPTURE),
    "refund": lambda world: refund(world.relay, asked(), Refund(payment_id="7", description="x", amount_minor=1)),
    "void": lambda world: refund(world.relay, asked(), Void(authorization_token="t", description="x")),
    "cancel": lambda world: cancel_subscription(world.relay, asked(), CancelSubscription(subscription_id=4)),
}
# A second capture of the same authorization, or one of an authorization that was voided, is never sent.
GUARDED_FOR_GOOD = {("capture", State.SUCCEEDED), ("void", State.SUCCEEDED)}


async def begun(world: World, flow: str = "charge", kind: OutcomeKind = OutcomeKind.UNKNOWN, **facts: str) -> Operation:
    """Runs a flow whose outcome is scripted; gives its operation."""
    world.account.script.append(outcome_of(kind, **facts))
    await FLOWS[flow](world)
    return await world.operation()


def decision_on(operation: Operation, decided: State = State.SUCCEEDED, **members: object) -> Decision:
    """Gives a decision by the operator Ann."""
    decision = Decision(
        operation_id=operation.id,
        seen=operation.state,
        decided=decided,
        operator="ann",
        reason="it is on the statement",
    )
    return msgspec.structs.replace(decision, **members)


async def refused(world: World, decision: Decision) -> str:
    """Gives the reason why a decision was not made; nothing was changed then."""
    before = await world.journal.get(decision.operation_id)
    with pytest.raises(UndecidedError) as caught:
        await decide(world.relay, decision)
    assert await world.journal.get(decision.operation_id) == before
    return str(caught.value)


@pytest.mark.parametrize("decided", [State.SUCCEEDED, State.FAILED])
@pytest.mark.parametrize("flow", FLOWS)
async def test_a_decision_is_stored_with_its_answer(world: World, flow: str, decided: State) -> None:
    """A decision stores the state, the operator and reason, the answer for repeats, and the end of the guard."""
    operation = await begun(world, flow)
    consequence = await decide(world.relay, decision_on(operation, decided))
    row = await world.operation()
    entry = (await world.journal.history(row.id))[-1]

    assert (row, row.state) == (consequence.operation, decided)
    assert (entry.evidence.operator, entry.evidence.reason) == ("ann", "it is on the statement")
    assert await world.journal.answer_of(row.id) == consequence.answer
    assert (row.guard is not None) is ((flow, decided) in GUARDED_FOR_GOOD)
    assert (consequence.answer.http_status == 200) is (decided is State.SUCCEEDED)


@pytest.mark.parametrize(("decided", "status"), [(State.SUCCEEDED, 200), (State.FAILED, 402)])
async def test_the_same_request_gets_the_decided_answer(world: World, decided: State, status: int) -> None:
    """Byte for byte, and marked as a repeat; nothing is sent again."""
    consequence = await decide(world.relay, decision_on(await begun(world), decided))
    answer = await charge(world.relay, asked(), CHARGE)

    assert (answer.http_status, answer.body) == (status, consequence.answer.body)
    assert ("Idempotent-Replayed", "true") in answer.headers
    assert len(world.account.sent) == 1


async def test_after_a_decided_failure_another_key_is_carried_out(world: World) -> None:
    """The customer still wants to pay the order."""
    await decide(world.relay, decision_on(await begun(world), State.FAILED))

    assert (await charge(world.relay, asked("k-2"), CHARGE)).http_status == 200


@pytest.mark.parametrize("kind", [OutcomeKind.UNKNOWN, OutcomeKind.PENDING, OutcomeKind.DIFFERED])
async def test_an_open_operation_can_be_decided(world: World, kind: OutcomeKind) -> None:
    """An operator who knows more than the gateway shows need not wait until the state says so."""
    operation = await begun(world, kind=kind)

    assert (await decide(world.relay, decision_on(operation))).operation.state is State.SUCCEEDED


@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.NOT_SENT])
async def test_a_final_operation_can_not_be_decided(world: World, kind: OutcomeKind) -> None:
    """Its client has the answer already."""
    operation = await begun(world, kind=kind)

    assert f"{operation.id} can't be decided any more: " in await refused(world, decision_on(operation))
    assert await preview_decisions(world.relay, operation) == {}


async def test_an_operation_that_is_being_sent_can_not_be_decided_yet(world: World) -> None:
    """Its reply may be on the way."""
    operation = await begun(world)
    sending = msgspec.structs.replace(operation, id="op_x", state=State.SENDING, version=1, claim=None, guard="x")
    entry = (await world.journal.history(operation.id))[0]
    await world.journal.accept(sending, entry, CHARGE, conflicts_with=None, now_ms=0)

    assert "op_x can't be decided yet: the service has begun to send it" in await refused(world, decision_on(sending))


async def test_an_operation_that_is_being_resent_can_not_be_decided_yet(world: World) -> None:
    """Else a capture could be made a second after the decision that it failed: charged, and reported as failed."""
    operation = await begun(world, "capture")
    await world.journal_resending()
    words = await refused(world, decision_on(operation, State.FAILED))
    assert words == f"{operation.id} is being sent once more to find out; look at it again in 45 s"

    world.clock.passed_ms += 45_000
    assert (await decide(world.relay, decision_on(operation, State.FAILED))).operation.state is State.FAILED


async def test_an_unknown_operation_can_not_be_decided(world: World) -> None:
    """The operator may have mistyped the id."""
    with pytest.raises(UnknownOperationError, match="there is no operation op_1"):
        await decide(world.relay, decision_on(await begun(world), operation_id="op_1"))


async def test_a_decision_is_about_the_state_that_the_operator_saw(world: World) -> None:
    """An operator who saw an unknown outcome has not decided on what came to need an operator since."""
    operation = await begun(world, kind=OutcomeKind.DIFFERED)

    words = await refused(world, decision_on(operation, seen=State.UNKNOWN))
    assert words == f"{operation.id} has become needs attention meanwhile; look at it again"


def looking(world: World, operation: Operation) -> Callable[[], Awaitable[None]]:
    """Gives what another process does meanwhile: it looks at the gateway, and writes that down."""
    journal = Journal(world.database, Seal((b"k" * 32,)), digests_of(world.database), chain_key=b"c" * 32)

    async def inquire() -> None:
        row = await journal.get(operation.id)
        assert row is not None
        changed, entry = advance(
            row,
            Event.INQUIRED_ABOUT,
            at_ms=1,
            retention=world.relay.settings.retention,
            evidence=Evidence(seen="nothing"),
        )
        await journal.record(changed, entry, None)

    return inquire


async def test_a_look_at_the_gateway_meanwhile_does_not_undo_it(world: World) -> None:
    """The inquiry proves nothing; the decision is made on the row as it is then."""
    operation = await begun(world)
    world.steps.put("record", looking(world, operation), first=world.steps.passed.count("record") + 1)
    await decide(world.relay, decision_on(operation))

    history = await world.journal.history(operation.id)
    assert [entry.event for entry in history][-2:] == [Event.INQUIRED_ABOUT, Event.DECIDED_SUCCEEDED]


async def test_a_row_that_is_never_left_alone_is_given_up(world: World) -> None:
    """Everything has an end."""
    operation = await begun(world)
    first = world.steps.passed.count("record") + 1
    world.steps.put("record", looking(world, operation), times=ATTEMPTS_MAX, first=first)
    with pytest.raises(UndecidedError, match="is being changed all the time"):
        await decide(world.relay, decision_on(operation))


async def test_the_payment_that_a_person_names_is_in_the_answer_and_belongs_to_it(world: World) -> None:
    """As if the gateway had named it."""
    operation = await begun(world)
    consequence = await decide(world.relay, decision_on(operation, payment_id="320025"))

    assert b'"payment_id":320025' in consequence.answer.body
    assert (await world.operation()).payment_id == "320025"
    assert (await world.journal.history(operation.id))[-1].evidence.payment_ids == ("320025",)


async def test_a_payment_belongs_to_one_operation(world: World) -> None:
    """Else one payment would stand for two, and the second customer's money would be missing."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id="7"))
    await charge(world.relay, asked("k-0"), world.charge_of(9))
    first = await world.operation()

    words = await refused(world, decision_on(await begun(world), payment_id="7"))
    assert words == f"payment 7 belongs to {first.id} already, a charge that is succeeded"


async def test_a_hold_and_its_capture_are_about_one_payment(world: World) -> None:
    """The gateway gives both the same number."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token", payment_id="7"))
    await charge(world.relay, asked("k-0"), msgspec.structs.replace(CHARGE, authorize=True))
    consequence = await decide(world.relay, decision_on(await begun(world, "capture"), payment_id="7"))

    assert consequence.operation.payment_id == "7"
    assert b'"items":"Tea"' in consequence.answer.body


@pytest.mark.parametrize(("order_id", "is_shared"), [("A-1", True), ("A-9", False)])
async def test_a_hold_whose_token_nobody_knows_shares_the_payment_of_its_capture(
    world: World,
    order_id: str,
    is_shared: bool,  # noqa: FBT001
) -> None:
    """The row with the token was lost, and the client captured with it: the person must still be able to say so."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id="7", order_id=order_id))
    await capture(world.relay, asked("k-0"), CAPTURE)
    hold = decision_on(await begun(world, "authorization"), payment_id="7")

    if is_shared:
        assert (await decide(world.relay, hold)).operation.payment_id == "7"
    else:
        assert "payment 7 belongs to" in await refused(world, hold)


@pytest.mark.parametrize("kind", [OutcomeKind.DECLINED, OutcomeKind.SUCCEEDED])
async def test_what_took_no_payment_owns_none(world: World, kind: OutcomeKind) -> None:
    """A charge that was declined, or a refund of the payment, is no second owner of it."""
    if kind is OutcomeKind.DECLINED:
        world.account.script.append(outcome_of(kind, payment_id="7"))
        await charge(world.relay, asked("k-0"), world.charge_of(9))
    else:
        await refund(world.relay, asked("k-0"), Refund(payment_id="7", description="x", amount_minor=1))

    assert (await decide(world.relay, decision_on(await begun(world), payment_id="7"))).operation.payment_id == "7"


@pytest.mark.parametrize(("flow", "decided"), [("charge", State.FAILED), ("refund", State.SUCCEEDED)])
async def test_a_payment_is_named_where_there_can_be_one(world: World, flow: str, decided: State) -> None:
    """A failed operation made no payment, and a refund names its payment already."""
    operation = await begun(world, flow)

    assert "a payment's number belongs only to" in await refused(world, decision_on(operation, decided, payment_id="8"))


async def sentences(world: World, flow: str, decided: State, **facts: str) -> str:
    """Gives in words what a decision on a flow would do."""
    operation = await begun(world, flow, OutcomeKind.UNKNOWN, **facts)
    consequence: Consequence = (await preview_decisions(world.relay, operation))[decided]
    assert await world.journal.get(operation.id) == operation  # nothing is stored
    return " ".join(sentences_of(consequence))


@pytest.mark.parametrize(
    ("flow", "decided", "words"),
    [
        ("charge", State.SUCCEEDED, "The same Idempotency-Key gets this answer for 30 days."),
        ("unkeyed charge", State.SUCCEEDED, "An equal request gets this answer for 24 h."),
        ("unkeyed charge", State.FAILED, "A repeat of the request no longer gets a stored answer"),
        ("charge", State.SUCCEEDED, "The order is free for another operation."),
        ("charge", State.SUCCEEDED, "The answer names no payment; with --payment-id it does"),
        ("charge", State.FAILED, "it raises an alert if the gateway shows the effect."),
        ("authorization", State.SUCCEEDED, "The answer has no authorization token"),
        ("capture", State.SUCCEEDED, "The authorization counts as captured for good"),
        ("capture", State.FAILED, "The authorization is free for another operation."),
        ("cancel", State.FAILED, "The subscription is free for another operation."),
    ],
)
async def test_a_preview_says_what_a_decision_does(world: World, flow: str, decided: State, words: str) -> None:
    """An operator who decides about other people's money must see what follows from it."""
    assert words in await sentences(world, flow, decided)


async def test_a_known_payment_is_a_warning_before_a_failure(world: World) -> None:
    """A decision that nothing was charged refunds nothing."""
    assert "if payment 7 was made, see to it first" in await sentences(world, "charge", State.FAILED, payment_id="7")


@pytest.mark.parametrize(
    ("events", "is_inquired"),
    [
        ([(Event.UNCLEAR, "nothing")], True),
        ([(Event.UNCLEAR, "several_fit")], False),
        ([(Event.DISPROVED, "nothing"), (Event.REAPPEARED, "one_fits")], False),
    ],
)
async def test_no_inquiry_follows_what_an_operator_has_seen(
    world: World, events: list[tuple[Event, str]], *, is_inquired: bool
) -> None:
    """Else one pair of payments would alert operators every day for a month."""
    operation = await begun(world)
    for event, seen in events:
        evidence = Evidence(seen=seen)
        changed, entry = advance(operation, event, at_ms=1, retention=world.relay.settings.retention, evidence=evidence)
        operation = await world.journal.record(changed, entry, None)
    made = await decide(world.relay, decision_on(operation, State.FAILED))

    assert (made.operation.inquire_at_ms is not None) is is_inquired
    assert ("still inquires" in " ".join(sentences_of(made))) is is_inquired


async def test_each_preview_is_what_the_decision_then_does(world: World) -> None:
    """A preview that is another computation would be wrong some day."""
    operation = await begun(world)
    seen = await preview_decisions(world.relay, operation)
    made = await decide(world.relay, decision_on(operation, State.FAILED))

    assert seen.keys() == {State.SUCCEEDED, State.FAILED} <= FROZEN
    assert seen[State.FAILED].answer == made.answer
    assert msgspec.structs.replace(seen[State.FAILED].operation, chain=made.operation.chain) == made.operation


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("320025", "320025"),
        ("000320025", "320025"),
        ("0", "0"),
        ("", None),
        ("12a", None),
        ("١٢", None),
        ("1" * 20, None),
    ],
)
def test_a_payments_number_is_digits(text: str, number: str | None) -> None:
    """It is written into JSON as a number."""
    assert payment_number(text) == number
