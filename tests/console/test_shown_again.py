"""The second factor once more: which acts ask for it, that what was typed is kept, and that nothing else will do."""

import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.console.browsing import ORIGIN, Window, code_of, console_on
from tests.console.counter import Counter
from tests.console.device import Device
from tests.console.test_acts import asked_to_refund, refunds
from tests.console.test_passkeys import asked_on, with_passkey
from tests.flows.console.desk import MINUTE_MS, PASSWORD
from tests.store.console.samples import CONFIRMATION

from payrelay.core.operators.operator import FRESH_MS, SESSION_MS
from payrelay.core.operators.roles import TO_CONFIRM, Act, Role

ADA, BOB = "ada@shop.example", "bob@shop.example"
WHY = 'the "customer" <sent> it back'
ASKED = "Show that it is you"
ASKING = {
    *("refund", "erase_customer", "revoke_key", "replay_event", "send_test_event"),
    *("add_operator", "change_role", "disable_operator", "reset_password"),
}
"""The acts that ask for it: those of money, keys, endpoints and people."""


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console over some money."""
    counter = await Counter.opened(tmp_path)
    yield counter
    await counter.close()


async def left_open(counter: Counter, role: Role = Role.ADMIN) -> Window:
    """Opens a window that somebody signed in with, and left ten minutes ago."""
    window = await counter.window("ada", role)
    counter.desk.clock.at_ms += FRESH_MS
    return window


def kept_in(window: Window) -> dict[str, str]:
    """Gives what the last page's first form sends along unseen."""
    form = re.search(r"<form.*?</form>", window.text.partition("Nothing was done yet")[2], re.DOTALL)
    assert form is not None, window.text
    found = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form[0])
    return {html.unescape(name): html.unescape(value) for name, value in found}


def facts_on(window: Window) -> dict[str, str]:
    """Gives what the page says of the act that it asks for."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", window.text)
    return {html.unescape(title): html.unescape(text) for title, text in found}


def told_of(act: str) -> dict[str, str]:
    """Gives what the page must say of an act, as the tests send it."""
    if act in TO_CONFIRM:
        return {"About": "Account gateway"}
    if act == "add_operator":
        return {"Person": "Eve", "E-mail address": "eve@shop.example", "New role": "admin"}
    role = {"New role": "admin"} if act == "change_role" else {}
    return {"E-mail address": BOB, "Role now": "viewer"} | role


async def own_mark(counter: Counter, window: Window, address: str, fields: dict[str, str]) -> str:
    """Gives the mark of the page that asks for an act itself; whoever has the cookie can read it."""
    thief = Window(counter.console)
    thief.cookies = dict(window.cookies)
    await thief.get("/console/account")
    await thief.post(address, **fields)
    return kept_in(thief)["again"]


async def shown(counter: Counter, made_by: str, act: Act) -> str:
    """Stores an act on the account that somebody was shown; gives the address of its page."""
    now_ms = counter.desk.clock.now_ms()
    about = {"id": f"cnf_{act.replace('_', '')}", "act_name": act, "subject": "account/gateway", "fields": "{}"}
    by = {"made_by": made_by, "made_at_ms": now_ms, "changed_at_ms": now_ms}
    confirmation = msgspec.structs.replace(CONFIRMATION, **about, **by)
    await counter.desk.parts.confirmations.add(confirmation)
    return f"/console/confirmations/{confirmation.id}"


async def test_money_keys_endpoints_and_people_ask_for_the_second_factor_again(counter: Counter) -> None:
    """Whoever finds an open browser, or has its cookie, has no second factor. Each act is tried, also those to come."""
    await counter.window("bob", Role.VIEWER)
    ada = await left_open(counter)
    operator = await counter.desk.parts.operators.by_email(ADA)
    assert operator is not None
    forms: dict[str, tuple[str, dict[str, str]]] = {
        act.value: (await shown(counter, operator.id, act), {}) for act in TO_CONFIRM
    }
    forms |= {
        "add_operator": ("/console/operators", {"email": "eve@shop.example", "name": "Eve", "role": "admin"}),
        "change_role": (f"/console/operators/{BOB}/role", {"role": "admin"}),
        "disable_operator": (f"/console/operators/{BOB}/disable", {}),
        "reset_password": (f"/console/operators/{BOB}/reset", {}),
        "end_sessions": (f"/console/operators/{BOB}/sessions/end", {}),
    }
    before = await counter.acts()
    asking = set()
    for act, (address, fields) in forms.items():
        await ada.get("/console/account")
        await ada.post(address, reason=WHY, **fields)
        if ada.title == ASKED:
            kept = kept_in(ada)
            assert kept.pop("again").startswith(f"{act} ")
            assert kept == {"token": ada.token, "reason": WHY, **fields}
            assert facts_on(ada).items() >= (told_of(act) | {"Why": WHY}).items(), act
            asking.add(act)

    assert asking == ASKING
    assert [act for act, _ in await counter.acts()] == [*(act for act, _ in before), "end_sessions"]


async def test_what_was_typed_is_done_once_the_code_was_shown(counter: Counter) -> None:
    """One form more, and nothing is typed twice. For ten minutes nothing asks again."""
    ada = await left_open(counter, Role.OPERATOR)
    address = await asked_to_refund(counter, ada, "250.00")
    await ada.post(address, reason=WHY)
    assert (ada.title, refunds(counter)) == (ASKED, [])
    assert f'<strong>Refund</strong>. <a href="{address}">' in ada.text
    told = {"Amount": "LKR 250.00", "Order": "A-1", "About": f"Operation {(await counter.world.operation()).id}"}
    assert facts_on(ada).items() >= told.items()
    await ada.post(address, **kept_in(ada) | {"code": "000000"})
    assert (ada.title, refunds(counter)) == (ASKED, [])
    assert ("That was wrong" in ada.text, facts_on(ada).items() >= told.items()) == (True, True)
    await ada.post(address, **kept_in(ada) | {"code": await code_of(counter.desk, ADA)})
    assert "<strong>Done.</strong>" in ada.text
    assert [each.amount_minor for each in refunds(counter)] == [25_000]
    assert await counter.acts() == [("refund", WHY)]
    await ada.post(await asked_to_refund(counter, ada), reason=WHY)

    assert len(refunds(counter)) == 2


async def test_a_passkey_counts_as_well_and_once(counter: Counter) -> None:
    """The device signs for this very session; what it signed opens nothing a second time."""
    ada = await counter.window("ada")
    device = await with_passkey(ada)
    counter.desk.clock.at_ms += FRESH_MS
    address = await asked_to_refund(counter, ada)
    await ada.post(address, reason=WHY)
    answer = device.shows(asked_on(ada, "show"))
    other = Device(ORIGIN, b"another device's name")
    await ada.post(address, **kept_in(ada) | {"answer": other.shows(asked_on(ada, "show"))})
    assert (ada.title, refunds(counter)) == (ASKED, [])
    old = dict(ada.cookies)
    await ada.post(address, **kept_in(ada) | {"answer": answer})
    assert "<strong>Done.</strong>" in ada.text, "what another device signed uses nothing up"
    thief = Window(counter.console)
    thief.cookies = old
    await thief.post(address, reason=WHY, answer=answer)

    assert len(refunds(counter)) == 1


async def test_what_was_shown_for_one_act_is_worth_nothing_for_another(counter: Counter) -> None:
    """The page says what is done to whom, and neither a code nor a passkey that it got does anything else.

    What is tried so leaves code and passkey as they were: its page still takes them.
    """
    for name in ("vic", "sue"):
        await counter.window(name, Role.VIEWER)
    ada = await counter.window("ada", Role.ADMIN)
    device = await with_passkey(ada)
    counter.desk.clock.at_ms += FRESH_MS
    disable = "/console/operators/vic@shop.example/disable"
    others = {
        "/console/operators/sue@shop.example/role": {"role": "admin", "reason": WHY},
        "/console/operators/sue@shop.example/disable": {"reason": WHY},
        disable: {"reason": "another"},
    }
    await ada.get("/console/account")
    await ada.post(disable, reason=WHY)
    assert facts_on(ada) == {"Person": "Ada", "E-mail address": "vic@shop.example", "Role now": "viewer", "Why": WHY}
    kept, answer = kept_in(ada), device.shows(asked_on(ada, "show"))
    before = await counter.acts()
    for address, fields in others.items():
        forged = await own_mark(counter, ada, address, fields)
        for shown in ({"code": await code_of(counter.desk, ADA)}, {"answer": answer}):
            await ada.send("POST", address, kept | fields | shown)
            assert (ada.title, ada.answer.status if ada.answer else 0) == ("This form is not from here", 403), address
        await ada.send("POST", address, kept | fields | {"again": forged, "answer": answer})
        assert ada.title == ASKED, address
    assert await counter.acts() == before
    await ada.send("POST", disable, kept | {"answer": answer})

    assert [act for act, _ in await counter.acts()] == [*(act for act, _ in before), "disable_operator"]


async def test_a_stolen_cookie_ends_when_its_owner_shows_the_second_factor(counter: Counter) -> None:
    """The session that goes on is a new one, and no thief has its cookie. It ends when the old one would have."""
    ada = await left_open(counter)
    thief = Window(counter.console, client="198.51.100.7")
    thief.cookies = dict(ada.cookies)
    await thief.get("/console/account")
    assert thief.title == "Your account"
    address = await asked_to_refund(counter, ada)
    await ada.post(address, reason=WHY)
    await ada.post(address, **kept_in(ada) | {"code": await code_of(counter.desk, ADA)})
    await thief.get("/console/account")
    assert thief.title == "Sign in"
    began_ms = counter.desk.clock.at_ms - FRESH_MS - MINUTE_MS
    operator = await counter.desk.parts.operators.by_email(ADA)
    assert operator is not None
    [session] = [each for each in await counter.desk.parts.operators.sessions_of(operator.id) if not each.ended_at_ms]

    assert session.ends_at_ms == began_ms + SESSION_MS


async def test_a_thief_guesses_five_codes(counter: Counter) -> None:
    """A cookie is no way around the limit of the sign-in."""
    thief = await left_open(counter)
    address = await asked_to_refund(counter, thief)
    await thief.post(address, reason=WHY)
    for guess in range(5):
        await thief.post(address, **kept_in(thief) | {"code": f"{guess:06}"})
    await thief.post(address, **kept_in(thief) | {"code": await code_of(counter.desk, ADA)})

    assert "Too many tries" in thief.text
    assert refunds(counter) == []


async def test_small_refunds_do_not_ask_where_a_setting_says_so(counter: Counter) -> None:
    """Above it, in another currency, and where nothing says how much it is, they do."""
    parts = counter.desk.parts = replace(counter.desk.parts, small_refunds={"LKR": 25_000})
    counter.console = console_on(counter.desk, counter.world.relay)
    ada = await left_open(counter, Role.OPERATOR)
    asked = {}
    for amount in ("250.00", "250.01", ""):
        await ada.post(await asked_to_refund(counter, ada, amount), reason=WHY)
        asked[amount] = ada.title == ASKED
    await asked_to_refund(counter, ada)
    confirmation = await counter.confirmation(ada)
    other = msgspec.structs.replace(confirmation, id="cnf_other", amount_minor=1, currency="USD")
    unknown = msgspec.structs.replace(confirmation, id="cnf_unknown", amount_minor=None)
    for each in (other, unknown):
        await parts.confirmations.add(each)
        await ada.get(f"/console/confirmations/{each.id}")
        await ada.post(f"/console/confirmations/{each.id}", reason=WHY)
        asked[each.id] = ada.title == ASKED

    assert asked == {"250.00": False, "250.01": True, "": True, "cnf_other": True, "cnf_unknown": True}


async def test_small_refunds_together_are_no_more_than_one_may_be(counter: Counter) -> None:
    """Or a thief empties a payment in many small parts. What follows the second factor at once doesn't count."""
    counter.desk.parts = replace(counter.desk.parts, small_refunds={"LKR": 2_500})
    counter.console = console_on(counter.desk, counter.world.relay)
    ada = await counter.window("ada")
    await ada.post(await asked_to_refund(counter, ada, "30.00"), reason=WHY)
    counter.desk.clock.at_ms += FRESH_MS
    for amount in ("10.00", "10.00", "5.00"):
        await ada.post(await asked_to_refund(counter, ada, amount), reason=WHY)
    assert len(refunds(counter)) == 4
    address = await asked_to_refund(counter, ada, "0.01")
    await ada.post(address, reason=WHY)
    assert (ada.title, len(refunds(counter))) == (ASKED, 4)
    await ada.post(address, **kept_in(ada) | {"code": await code_of(counter.desk, ADA)})
    assert len(refunds(counter)) == 5
    counter.desk.clock.at_ms += FRESH_MS
    await ada.post(await asked_to_refund(counter, ada, "25.00"), reason=WHY)

    assert len(refunds(counter)) == 6


async def test_small_refunds_of_two_sessions_are_no_more_than_one_may_be(counter: Counter) -> None:
    """A thief with two cookies that were left open, one newer than the other, has one limit and not two."""
    counter.desk.parts = replace(counter.desk.parts, small_refunds={"LKR": 2_500})
    counter.console = console_on(counter.desk, counter.world.relay)
    older = await counter.window("ada")
    newer = Window(counter.console)
    await newer.get("/console/sign-in")
    await newer.post("/console/sign-in", email=ADA, password=PASSWORD)
    await newer.post("/console/code", code=await code_of(counter.desk, ADA))
    counter.desk.clock.at_ms += FRESH_MS - MINUTE_MS
    for window, wait in ((older, MINUTE_MS), (newer, 0), (older, 0), (newer, 0), (older, 0)):
        await window.post(await asked_to_refund(counter, window, "10.00"), reason=WHY)
        counter.desk.clock.at_ms += wait

    assert sum(each.amount_minor or 0 for each in refunds(counter)) == 2_000
    assert (older.title, newer.title) == (ASKED, ASKED)


async def test_who_has_no_second_factor_signs_in_again(counter: Counter) -> None:
    """There is nothing else to show; a code sent all the same sets nothing up and opens nothing."""
    counter.desk.parts = replace(counter.desk.parts, needs_second_factor=False)
    counter.console = console_on(counter.desk, counter.world.relay)
    token = (await counter.desk.invited(ADA, Role.ADMIN)).reveal()
    ada = Window(counter.console)
    await ada.get(f"/console/invitations/{token}")
    await ada.post(f"/console/invitations/{token}", password=PASSWORD, again=PASSWORD)
    counter.desk.clock.at_ms += FRESH_MS
    address = await asked_to_refund(counter, ada)
    await ada.post(address, reason=WHY)
    assert "within ten minutes of a sign-in" in ada.text
    await ada.post(address, reason=WHY, again="refund 1", code="000000")
    assert refunds(counter) == []
    await ada.post("/console/sign-out", next=address)
    await ada.post("/console/sign-in", email=ADA, password=PASSWORD, next=address)
    await ada.post(address, reason=WHY)

    assert "<strong>Done.</strong>" in ada.text
