"""What needs a person: the queue, one case with two people at it, decisions, notes and assignments."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.console.counter import Counter, confirmation_in, seen_in, sent
from tests.flows.hosted import hosting, new, opened
from tests.flows.vault import approved_in
from tests.flows.world import asked

from payrelay.console.routes import ROUTES
from payrelay.core.calls import Refund
from payrelay.core.operators.roles import HAVE_OWN_LINE, TO_CONFIRM, Act, Role
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Event, State
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.events.manage_endpoints import REPLAYED_IDS_MAX, NewEndpoint, Owner, create_endpoint
from payrelay.flows.operators.acts.fields import EVENT_ID_LENGTH_MAX
from payrelay.flows.payments.refund import refund

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}'
WHY = "it is on the statement"


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console where one person is enough."""
    counter = await Counter.opened(tmp_path)
    yield counter
    await counter.close()


async def test_the_queue_leads_to_a_case_and_the_case_to_a_decision(counter: Counter) -> None:
    """With why, what is known, where to look, and what each decision does."""
    operation = await counter.doubtful()
    ada = await counter.window("ada")
    await ada.get("/console/queue")
    assert f"/console/act/operation/{operation.id}" in ada.text
    assert "several payments fit" in ada.text
    page = f"/console/act/operation/{operation.id}"
    await ada.get(page)
    for words in (
        "Several payments fit",
        "Where to look at the gateway",
        "order A-1",
        "It did not happen",
        "The client gets the status",
    ):
        assert words in ada.text
    await ada.post(f"{page}/decide", seen=seen_in(ada), decision="succeeded", payment_id="00320")
    assert "Decide: It was done" in ada.text
    assert "LKR 1,000.00" in ada.text
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "<strong>Done.</strong> The decision is stored." in ada.text
    decided = await counter.world.operation()
    assert (decided.state, decided.payment_id) == (State.SUCCEEDED, "320")
    last = (await counter.world.journal.history(operation.id))[-1]
    assert (last.event, last.evidence.operator) == (Event.DECIDED_SUCCEEDED, "Ada <ada@shop.example>")
    assert last.evidence.reason == WHY
    assert await counter.acts() == [("decide", WHY)]
    await ada.get("/console/queue")
    assert operation.id not in ada.text


async def test_an_order_that_was_paid_again_is_in_the_queue_until_one_payment_is_left(counter: Counter) -> None:
    """It leads to the order, whose page names both payments. Once one of them is given back, nobody has to look."""
    await counter.charged(payment_id="320")
    await counter.charged(payment_id="321")
    ada = await counter.window("ada")
    await ada.get("/console/queue")
    assert "Orders that were paid again (1)" in ada.text
    assert 'href="/console/orders/gateway/A-1"' in ada.text
    await ada.get("/console/orders/gateway/A-1")
    assert "This order was paid 2 times" in ada.text
    assert "320 (LKR 1,000.00), 321 (LKR 1,000.00)" in ada.text

    await refund(counter.world.relay, asked("back"), Refund(payment_id="321", description="paid twice"))
    for page in ("/console/queue", "/console/orders/gateway/A-1"):
        await ada.get(page)
        assert "paid again (" not in ada.text
        assert "was paid 2 times" not in ada.text


async def test_two_operators_on_one_case_decide_once(counter: Counter) -> None:
    """The second one reads what the first one did, and nothing is stored of the own decision."""
    operation = await counter.doubtful()
    ada, bob = await counter.window("ada"), await counter.window("bob")
    page = f"/console/act/operation/{operation.id}"
    await sent(ada, page, "decide", decision="succeeded")
    await sent(bob, page, "decide", decision="failed")
    address = f"/console/confirmations/{confirmation_in(bob)}"
    token = bob.token
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)
    answer = await bob.send("POST", address, {"token": token, "reason": "no"})

    assert answer.status == 409
    assert "An operator decided that it was done." in bob.text
    assert WHY in bob.text
    assert (await counter.world.operation()).state is State.SUCCEEDED
    assert await counter.acts() == [("decide", WHY)]


async def test_better_evidence_prevents_a_decision(counter: Counter) -> None:
    """What became known between the page and the form is told; the decision is not stored."""
    operation = await counter.charged(OutcomeKind.UNKNOWN, None)
    ada = await counter.window("ada")
    page = f"/console/act/operation/{operation.id}"
    await ada.get(page)
    seen, token = seen_in(ada), ada.token
    await counter.world.resolve(OutcomeKind.SUCCEEDED)
    changed = await counter.world.operation()
    answer = await ada.send("POST", f"{page}/decide", {"token": token, "seen": seen, "decision": "failed"})

    assert answer.status == 409
    assert "What changed" in ada.text
    assert "The gateway answered that it was done." in ada.text
    assert (await counter.world.operation()).version == changed.version


@pytest.mark.parametrize("decision", ["done", "send", "refuse"])
async def test_a_held_operation_is_decided(counter: Counter, decision: str) -> None:
    """Done before, sent now, or not sent."""
    held = await counter.held()
    ada = await counter.window("ada")
    await ada.get("/console/queue")
    assert f"/console/act/operation/{held.id}" in ada.text
    await sent(ada, f"/console/act/operation/{held.id}", "decide", decision=decision)
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "<strong>Done.</strong> The decision is stored." in ada.text
    state = (await counter.world.operation()).state
    assert state is {"done": State.SUCCEEDED, "send": State.SUCCEEDED, "refuse": State.NOT_SENT}[decision]
    assert len(counter.world.account.ledger) == (decision == "send")


async def test_notes_and_assignments_are_lines_of_the_history(counter: Counter) -> None:
    """Who sees to it stands in the queue; an address of nobody is refused."""
    operation = await counter.doubtful()
    sue = await counter.window("sue", Role.SUPPORT)
    page = f"/console/act/operation/{operation.id}"
    await sent(sue, page, "note", note="the customer called\ntwice")
    assert "the customer called twice" in sue.text
    await sent(sue, page, "assign", email="nobody@shop.example", reason="x")
    assert "No operator who can sign in has this address." in sue.text
    await sent(sue, page, "assign", email="sue@shop.example", reason="I look")
    await sue.get("/console/queue")
    assert "sue@shop.example" in sue.text
    assert await counter.acts() == [("add_note", "the customer called twice"), ("assign_case", "I look")]
    await sent(sue, page, "assign", email="", reason="I leave")
    await sue.get("/console/queue")

    assert "sue@shop.example" not in sue.text.partition("<main")[2]


async def test_a_viewer_reads_and_does_nothing(counter: Counter) -> None:
    """The page has what is known and what decisions would do, and no form."""
    operation = await counter.doubtful()
    eve = await counter.window("eve", Role.VIEWER)
    await eve.get(f"/console/act/operation/{operation.id}")

    assert "Your role may not decide." in eve.text
    assert "/console/act/" not in "".join(part.split('"')[0] for part in eve.text.split('action="')[1:])


async def test_hostile_text_is_text(counter: Counter) -> None:
    """Every field of the forms, on every page that shows it."""
    operation = await counter.doubtful()
    ada, bob = await counter.window("ada"), await counter.window("bob")
    page = f"/console/act/operation/{operation.id}"
    pages: list[str] = []
    await ada.get(page)
    seen, token = seen_in(ada), ada.token
    await sent(ada, page, "note", note=HOSTILE)
    pages.append(ada.text)
    await bob.send("POST", f"{page}/note", {"token": bob.token, "seen": HOSTILE, "note": HOSTILE})
    await ada.send("POST", f"{page}/note", {"token": token, "seen": seen, "note": HOSTILE})
    pages += [ada.text, bob.text]
    for act, fields in (
        ("assign", {"email": HOSTILE, "reason": HOSTILE}),
        ("decide", {"decision": HOSTILE, "payment_id": HOSTILE}),
        ("decide", {"decision": "succeeded", "payment_id": HOSTILE}),
    ):
        await sent(ada, page, act, **fields)
        pages.append(ada.text)
    await sent(ada, page, "decide", decision="failed")
    address = f"/console/confirmations/{confirmation_in(ada)}"
    await ada.post(address, reason=HOSTILE)
    pages.append(ada.text)
    done = await counter.charged()
    await sent(ada, f"/console/act/operation/{done.id}", "refund", amount=HOSTILE, description=HOSTILE)
    pages.append(ada.text)
    await sent(ada, f"/console/act/operation/{done.id}", "refund", amount="", description=HOSTILE)
    pages.append(ada.text)
    quoted = HOSTILE.replace("/", "%2F").replace(" ", "%20").replace("?", "%3F")
    await ada.get(f"/console/act/operation/{quoted}")
    pages.append(ada.text)
    await ada.get("/console/queue")
    pages.append(ada.text)

    assert [number for number, text in enumerate(pages) if "<script>" in text or "<img" in text or ">49" in text] == []
    assert "&lt;script&gt;" in pages[0]


async def things(counter: Counter) -> dict[Act, tuple[str, dict[str, str]]]:
    """Gives a thing for every act, as its noun and its id, with the fields of the act's form."""
    relay = counter.world.relay
    doubted, paid = await counter.doubtful(), await counter.charged_for("B-2")
    customer = await approved_in(counter.world)
    owner = Owner(account="gateway", merchant=relay.account("gateway").merchant, principal="shop")
    endpoint = await create_endpoint(relay.dispatch, owner, NewEndpoint(url="https://hooks.shop.example/"))
    key = await issue_key(
        relay.access.credentials,
        relay.clock,
        KeyRequest(
            principal="shop",
            environment="sandbox",
            scopes=frozenset(),
            accounts=None,
            amount_max_minor=None,
            rate=None,
            life_s=None,
        ),
    )
    page = await opened(hosting(counter.world), new(order_id="B-3"))
    return {
        Act.CLOSE_CHECKOUT: (f"checkout/{page.id}", {}),
        Act.DECIDE: (f"operation/{doubted.id}", {"decision": "failed"}),
        Act.REFUND: (f"operation/{paid.id}", {"amount": "1", "description": "x"}),
        Act.PAUSE_ACCOUNT: ("account/gateway", {}),
        Act.RESUME_ACCOUNT: ("account/gateway", {}),
        Act.SEND_TEST_EVENT: (f"endpoint/{endpoint.id}", {}),
        Act.REPLAY_EVENT: (f"endpoint/{endpoint.id}", {"event_ids": "evt_1"}),
        Act.ERASE_CUSTOMER: (f"customer/{customer.id}", {}),
        Act.REVOKE_KEY: (f"key/{key.credential.id}", {}),
    }


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (" ", f"Name 1 to {REPLAYED_IDS_MAX} events"),
        ("evt " * (REPLAYED_IDS_MAX + 1), f"Name 1 to {REPLAYED_IDS_MAX} events"),
        (f"evt_1 {'e' * (EVENT_ID_LENGTH_MAX + 1)}", f"No event&#39;s id is longer than {EVENT_ID_LENGTH_MAX}"),
    ],
    ids=["none", "too many", "too long"],
)
async def test_events_are_named_by_their_ids(counter: Counter, ids: str, words: str) -> None:
    """Each stands in the line of the history that tells of the replay."""
    ada = await counter.window("ada", Role.ADMIN)
    thing, _ = (await things(counter))[Act.REPLAY_EVENT]
    await sent(ada, f"/console/act/{thing}", Act.REPLAY_EVENT, event_ids=ids)

    assert words in ada.text
    assert await counter.acts() == []


async def test_every_form_that_acts_leaves_a_line(counter: Counter) -> None:
    """Each POST route of the console either writes who did what and why, or changes nothing but what is shown."""
    ada = await counter.window("ada", Role.ADMIN)
    written: list[str] = []
    for act, (thing, fields) in (await things(counter)).items():
        await sent(ada, f"/console/act/{thing}", act, **fields)
        before = await counter.acts()
        await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=f"why {act}")
        assert (await counter.acts())[len(before) :] == [(act, f"why {act}")]
        assert "Done." in ada.text or act is Act.REPLAY_EVENT, (act, ada.text)
        written.append(act)

    assert set(TO_CONFIRM) - set(written) == {
        # test_effects.py does these
        *(Act.CAPTURE, Act.VOID, Act.CANCEL_SUBSCRIPTION, Act.RETRY_SUBSCRIPTION, Act.REPLAY_NOTIFICATION),
        *HAVE_OWN_LINE,  # test_books.py closes days and differences
    }


def test_no_route_that_acts_is_missed() -> None:
    """What the tests here and of the operators' pages don't walk would be new."""
    posted = {route.path.rpartition("/")[2] for route in ROUTES if route.method == "POST"}

    assert posted - set(TO_CONFIRM) == {
        *("sign-in", "{token}", "code", "sign-out", "end", "operators", "role", "disable", "reset"),
        *("passkey", "passkeys", "remove"),  # tests/flows/console/test_passkeys.py reads their lines
        *("note", "assign", "{confirmation}", "withdraw", "gateway", "zone"),
    }
