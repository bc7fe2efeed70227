"""Acting in the console: once, whatever a browser sends again; truly told; written down; by whoever may."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.console.browsing import Window
from tests.console.counter import Counter, confirmation_in, seen_in, sent
from tests.flows.console.desk import ROOT
from tests.flows.world import Crash, Raising, outcome_of

from payrelay.core.calls import Refund
from payrelay.core.gateways.pauses import Pause
from payrelay.core.operators.confirmations import (
    PROPOSED_MS,
    SHOWN_MS,
    STUCK_MS,
    ConfirmationState,
    next_of_confirmation,
)
from payrelay.core.operators.roles import MAY, TO_CONFIRM, Act, Role
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Kind, State

WHY = "the customer sent it back"


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console where one person is enough."""
    counter = await Counter.opened(tmp_path)
    yield counter
    await counter.close()


@pytest.fixture
async def paired(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console where refunds and decisions need a second person."""
    counter = await Counter.opened(tmp_path, frozenset({Act.REFUND, Act.DECIDE}))
    yield counter
    await counter.close()


async def asked_to_refund(counter: Counter, window: Window, amount: str = "") -> str:
    """Has a charge, and asks to refund it; gives the address of the confirmation."""
    operation = await counter.charged()
    await sent(window, f"/console/act/operation/{operation.id}", "refund", amount=amount, description="Refund of A-1")
    return f"/console/confirmations/{confirmation_in(window)}"


def refunds(counter: Counter) -> list[Refund]:
    """Gives the refunds that really happened."""
    return [call for call in counter.world.account.ledger if isinstance(call, Refund)]


async def test_a_refund_is_confirmed_done_and_told(counter: Counter) -> None:
    """The page repeats amount, currency and order; the journal and the history name the operator and the reason."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada, "250.00")
    assert "LKR 250.00" in ada.text
    assert "A-1" in ada.text
    assert "Nothing was done yet." in ada.text
    assert refunds(counter) == []
    await ada.post(address, reason=WHY)

    assert "<strong>Done.</strong>" in ada.text
    assert [(each.payment_id, each.amount_minor) for each in refunds(counter)] == [("320", 25_000)]
    operation = await counter.world.operation()
    assert (operation.kind, operation.principal, operation.state) == (Kind.REFUND, "shop", State.SUCCEEDED)
    first = (await counter.world.journal.history(operation.id))[0]
    assert (first.evidence.operator, first.evidence.reason) == ("Ada <ada@shop.example>", WHY)
    assert await counter.acts() == [("refund", WHY)]


async def test_the_line_is_stored_before_anything_is_sent(counter: Counter) -> None:
    """Whatever happens at the gateway, somebody can read who began it."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    at_sending: list[list[tuple[str, str]]] = []

    async def look() -> None:
        at_sending.append(await counter.acts())

    counter.world.steps.put("effect", look, first=2)
    await ada.post(address, reason=WHY)

    assert at_sending == [[("refund", WHY)]]


async def test_a_double_click_two_tabs_and_a_way_back_do_it_once(counter: Counter) -> None:
    """The key stands in the address: whatever is sent again, at once or later, ends at the same result."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    form = {"token": ada.token, "reason": WHY}
    tab = Window(counter.console)
    tab.cookies = dict(ada.cookies)
    answers = await asyncio.gather(*(window.send("POST", address, form) for window in (ada, tab, ada, tab)))
    await ada.send("POST", address, form)
    await ada.get(address)

    assert [dict(answer.headers)[b"location"] for answer in answers] == [address.encode()] * 4
    assert len(refunds(counter)) == 1
    assert "<strong>Done.</strong>" in ada.text
    assert await counter.acts() == [("refund", WHY)]


async def test_a_reload_of_the_first_form_asks_for_a_second_confirmation_and_does_nothing(counter: Counter) -> None:
    """Each confirmation has a key of its own; whoever doesn't confirm it does nothing."""
    ada = await counter.window("ada")
    await asked_to_refund(counter, ada)
    await asked_to_refund(counter, ada)

    assert refunds(counter) == []


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (OutcomeKind.SUCCEEDED, "<strong>Done.</strong>"),
        (OutcomeKind.REFUSED, "<strong>Refused.</strong>"),
        (OutcomeKind.UNKNOWN, "<strong>Not known yet.</strong>"),
        (OutcomeKind.NOT_SENT, "<strong>Refused.</strong>"),
    ],
)
async def test_the_result_tells_what_is_known(counter: Counter, kind: OutcomeKind, told: str) -> None:
    """An unknown outcome is told as unknown, with a way to look again; nobody reads a guess."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    counter.world.account.script.append(outcome_of(kind))
    await ada.post(address, reason=WHY)

    assert told in ada.text
    assert ("Look again" in ada.text) is (kind is OutcomeKind.UNKNOWN)


async def test_what_was_unknown_is_told_once_it_is_known(counter: Counter) -> None:
    """The page reads the operation each time."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    counter.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await ada.post(address, reason=WHY)
    await counter.world.resolve(OutcomeKind.SUCCEEDED)
    await ada.get(address)

    assert "<strong>Done.</strong>" in ada.text


@pytest.mark.parametrize("step", ["accept", "accepted", "effect", "executed", "record"])
async def test_a_process_that_dies_is_carried_on_and_does_it_once(counter: Counter, step: str) -> None:
    """The page says what is known then, and carrying it on sends nothing a second time."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    token = ada.token
    counter.world.steps.put(step, Raising(Crash()), first=counter.world.steps.passed.count(step) + 1)
    with pytest.raises(Crash):
        await ada.send("POST", address, {"token": token, "reason": WHY})
    await counter.world.relay.background.finish(0)
    counter.desk.clock.at_ms += STUCK_MS
    await ada.get(address)
    assert "<strong>Done.</strong>" not in ada.text
    await ada.send("POST", address, {"token": token, "reason": WHY})
    await ada.get(address)

    assert len(refunds(counter)) <= 1
    assert len({operation.id for operation in await counter.world.operations()}) <= 2


async def test_what_was_left_before_it_was_stored_is_carried_on(counter: Counter) -> None:
    """Nothing of it is there, the page says so, and a click does it."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    confirmation = await counter.confirmation(ada)
    token = ada.token
    counter.world.steps.put("find", Raising(Crash()), first=counter.world.steps.passed.count("find") + 1)
    with pytest.raises(Crash):
        await ada.send("POST", address, {"token": token, "reason": WHY})
    counter.desk.clock.at_ms += STUCK_MS
    await ada.get(address)
    assert "no operation of it is stored" in ada.text
    assert (await counter.desk.parts.confirmations.get(confirmation.id)).state is ConfirmationState.BEGUN  # type: ignore[union-attr]
    await ada.post(address, reason=WHY)

    assert len(refunds(counter)) == 1
    assert "<strong>Done.</strong>" in ada.text
    assert await counter.acts() == [("refund", WHY), ("refund", WHY)]


async def test_a_stale_page_does_nothing_and_says_what_changed(counter: Counter) -> None:
    """Also between the confirmation and the click."""
    ada, bob = await counter.window("ada"), await counter.window("bob")
    operation = await counter.charged()
    page = f"/console/act/operation/{operation.id}"
    await ada.get(page)
    token, seen = ada.token, seen_in(ada)
    await sent(bob, page, "note", note="she has her money back already")
    form = {"token": token, "seen": seen, "description": "Refund", "amount": ""}
    answer = await ada.send("POST", f"{page}/refund", form)
    assert answer.status == 409
    assert "Nothing was done." in ada.text
    assert "she has her money back already" in ada.text
    await sent(ada, page, "refund", description="Refund", amount="")
    address = f"/console/confirmations/{confirmation_in(ada)}"
    token = ada.token
    await sent(bob, page, "note", note="really")
    answer = await ada.send("POST", address, {"token": token, "reason": WHY})

    assert answer.status == 409
    assert "really" in ada.text
    assert WHY in ada.text
    assert refunds(counter) == []


@pytest.mark.parametrize("seen", ["9" * 5000 + ".1", "1." + "9" * 5000, "\u00b2.1", "\u0661.1", "1.\u00b2", ".", ""])
async def test_a_form_that_names_no_state_of_a_thing_does_nothing(counter: Counter, seen: str) -> None:
    """Nobody's page has it; whoever sends it all the same is told how the thing is now."""
    ada = await counter.window("ada")
    page = f"/console/act/operation/{(await counter.charged()).id}"
    await ada.get(page)
    answer = await ada.post(f"{page}/refund", seen=seen, description="Refund", amount="")

    assert answer.status == 409
    assert "Nothing was done." in ada.text
    assert refunds(counter) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        *(
            ({"amount": typed}, "The amount must be written like 1250, 1250.50 or 1,250.50")
            for typed in ("x", "-1", "1.005", "12,50", "1_0", "\uff11\uff12", "1e1", "1.000,00")
        ),
        ({"amount": "0"}, "The amount must be greater than 0"),
        ({"amount": "1000.01"}, "This refund is of more than is left of the payment: LKR 1,000.00 was paid"),
        ({"description": " "}, "What the gateway"),
    ],
)
async def test_a_wrong_field_is_named(counter: Counter, fields: dict[str, str], words: str) -> None:
    """Nothing is stored for it, and the page has the form again."""
    ada = await counter.window("ada")
    operation = await counter.charged()
    given = {"amount": "", "description": "Refund"} | fields
    await sent(ada, f"/console/act/operation/{operation.id}", "refund", **given)

    assert words in ada.text
    assert 'action="/console/act/operation/' in ada.text


async def test_a_reason_is_needed(counter: Counter) -> None:
    """The history must say why."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    await ada.post(address, reason="  ")

    assert "The reason must have" in ada.text
    assert refunds(counter) == []


async def test_nobody_confirms_what_was_shown_to_somebody_else(counter: Counter) -> None:
    """A link that was sent on is no order to do it."""
    ada, bob = await counter.window("ada"), await counter.window("bob")
    address = await asked_to_refund(counter, ada)
    await bob.get(address)
    assert "Refund now" not in bob.text
    await bob.get("/console/account")
    answer = await bob.send("POST", address, {"token": bob.token, "reason": WHY})

    assert answer.status == 403
    assert refunds(counter) == []


async def test_what_was_shown_long_ago_is_over(counter: Counter) -> None:
    """Who comes back after two days begins again."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    counter.desk.clock.at_ms += SHOWN_MS
    bea = await counter.window("bea")
    await bea.get("/console/account")
    ada = bea
    answer = await ada.send("POST", address, {"token": ada.token, "reason": WHY})

    assert answer.status == 409
    assert refunds(counter) == []


async def test_a_second_person_confirms_and_nobody_their_own(paired: Counter) -> None:
    """The proposal waits in the queue; both names and reasons are written down."""
    ada, bob = await paired.window("ada"), await paired.window("bob")
    address = await asked_to_refund(paired, ada)
    assert "Propose it" in ada.text
    await ada.post(address, reason=WHY)
    assert "A second person has to confirm it." in ada.text
    answer = await ada.send("POST", address, {"token": ada.token, "reason": "again"})
    assert answer.status == 403
    assert refunds(paired) == []
    await bob.get("/console/queue")
    assert "Waiting for a second person (1)" in bob.text
    await bob.get(address)
    await bob.post(address, reason="I looked")

    assert "<strong>Done.</strong>" in bob.text
    assert len(refunds(paired)) == 1
    assert await paired.acts() == [("propose", WHY), ("refund", "I looked")]
    first = (await paired.world.journal.history((await paired.world.operation()).id))[0]
    assert first.evidence.operator == "Ada <ada@shop.example>, confirmed by Ada <bob@shop.example>"
    assert first.evidence.reason == WHY


async def test_a_proposal_is_withdrawn_or_lapses(paired: Counter) -> None:
    """Afterwards nobody confirms it."""
    ada, bob = await paired.window("ada"), await paired.window("bob")
    address = await asked_to_refund(paired, ada)
    await ada.post(address, reason=WHY)
    await ada.post(f"{address}/withdraw", reason="my mistake")
    assert "It was withdrawn; nothing was done." in ada.text
    await bob.get("/console/account")
    await bob.send("POST", address, {"token": bob.token, "reason": WHY})
    second = await asked_to_refund(paired, ada)
    await ada.post(second, reason=WHY)
    paired.desk.clock.at_ms += PROPOSED_MS
    eve = await paired.window("eve")
    await eve.get("/console/account")
    answer = await eve.send("POST", second, {"token": eve.token, "reason": WHY})

    assert answer.status == 409
    assert refunds(paired) == []


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("act", TO_CONFIRM)
async def test_each_role_by_each_act(counter: Counter, role: Role, act: Act) -> None:
    """The form, the page of somebody's confirmation and its button are all refused to a role that lacks the act."""
    operation = await counter.doubtful()
    admin, other = await counter.window("admin", Role.ADMIN), await counter.window("other", role)
    page = f"/console/act/operation/{operation.id}"
    await admin.get(page)
    seen = seen_in(admin)
    await other.get("/console/account")
    form = {"token": other.token, "seen": seen, "decision": "failed", "reason": WHY}
    answer = await other.send("POST", f"{page}/{act}", form)
    assert (answer.status == 403) is (act not in MAY[role])
    await sent(admin, page, "decide", decision="failed")
    address = f"/console/confirmations/{confirmation_in(admin)}"
    assert ((await other.send("GET", address)).status == 403) is (Act.DECIDE not in MAY[role])
    answer = await other.send("POST", address, form)
    assert answer.status == 403  # it was shown to somebody else
    assert (await counter.world.journal.get(operation.id)) == operation


async def test_a_session_that_ended_does_nothing(counter: Counter) -> None:
    """The click leads to the sign-in; what was shown can still be confirmed afterwards."""
    ada = await counter.window("ada")
    address = await asked_to_refund(counter, ada)
    counter.desk.clock.at_ms += 31 * 60_000
    answer = await ada.send("POST", address, {"token": ada.token, "reason": WHY})

    assert answer.status == 303
    assert dict(answer.headers)[b"location"] == b"/console/sign-in"
    assert refunds(counter) == []


@pytest.mark.parametrize(
    "noun",
    ["operation", "payment", "checkout", "subscription", "customer", "account", "day", "month", "difference", "x"],
)
@pytest.mark.parametrize("id_", ["nothing", "gateway~99", "a~b", "%2e%2e", "gateway~x", "gateway~2026-11-22"])
async def test_what_isnt_there_has_a_page(counter: Counter, noun: str, id_: str) -> None:
    """Somebody who mistypes an id reads that there is nothing."""
    ada = await counter.window("ada")

    assert (await ada.send("GET", f"/console/act/{noun}/{id_}")).status == 404


async def test_a_resume_that_was_left_does_not_end_a_pause_that_began_later(counter: Counter) -> None:
    """Somebody stopped the account anew, for another reason, before the first resume was carried on."""
    ada, pauses = await counter.window("ada"), counter.world.relay.pauses
    first = Pause(account="gateway", since_ms=1, reason="wrong prices", operator="bob")
    await pauses.add(first)
    await sent(ada, "/console/act/account/gateway", "resume_account")
    confirmation = await counter.confirmation(ada)
    address, token = f"/console/confirmations/{confirmation.id}", ada.token
    begun = next_of_confirmation(confirmation, 2, state=ConfirmationState.BEGUN, confirmed_by=confirmation.made_by)
    line = ROOT.did(Act.RESUME_ACCOUNT, "account/gateway", at_ms=2, reason=WHY)
    await counter.desk.parts.confirmations.change(begun, line, seen=None)
    await pauses.remove("gateway", first.since_ms)
    anew = Pause(account="gateway", since_ms=3, reason="stolen cards", operator="bob")
    await pauses.add(anew)
    counter.desk.clock.at_ms += STUCK_MS
    await ada.send("POST", address, {"token": token, "reason": WHY})
    await ada.get(address)

    assert await pauses.list() == [anew]
    assert "was paused anew meanwhile" in ada.text
