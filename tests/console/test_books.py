"""The books in the console: what its pages say, who may close what, and texts of statements that are no markup."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
import pytest
from tests.console.browsing import Window
from tests.console.counter import Counter, confirmation_in, seen_in
from tests.console.test_case_pages import HOSTILE, Shape
from tests.flows.reconciliation.test_day import DAY, FOREIGN, PAID, Office
from tests.flows.world import CHARGE, asked, outcome_of

from payrelay.core.calls import Refund
from payrelay.core.operators.confirmations import STUCK_MS, ConfirmationState, next_of_confirmation
from payrelay.core.operators.roles import MAY, Act, Role
from payrelay.core.outcomes import OutcomeKind
from payrelay.flows.operators.parts import Actor
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.refund import refund
from payrelay.reconciliation.flows.close import close_day
from payrelay.reconciliation.flows.import_statement import FileToImport, import_file
from payrelay.reconciliation.rules.files.profiles import BUILT_IN
from payrelay.reconciliation.rules.verdicts import BooksFinding
from payrelay.reconciliation.store.stores import ReconciliationStores

ADA: Final = Actor("Ada <admin@shop.example>")
WHY: Final = "explained by the bank"
PAGE: Final = f"/console/reconciliation/gateway/{DAY}"
MONTH: Final = "/console/reconciliation?month=2023-11"
DAY_THING: Final = f"/console/act/day/gateway~{DAY}"


class Bureau(Counter):
    """A console with books behind it: an order of ours that agrees, and a payment that nobody here made."""

    office: Office

    async def compare(self, *rows: str) -> list[BooksFinding]:
        """Feeds rows as complete for the day, compares it a day later, and gives what is listed."""
        await self.office.feed(*rows)
        return list((await self.office.run()).listed)

    async def close_difference(self, window: Window, found: BooksFinding, reason: str = WHY) -> str:
        """Closes a difference by the pages; gives the address of its confirmation."""
        thing = f"/console/act/difference/gateway~{found.id}"
        await window.get(thing)
        await window.post(f"{thing}/close_difference", seen=seen_in(window))
        address = f"/console/confirmations/{confirmation_in(window)}"
        await window.post(address, reason=reason)
        return address

    async def asked_to_close(self, window: Window) -> str:
        """Asks to close the day from its page; gives the address of the confirmation."""
        await window.get(PAGE)
        await window.post(f"{DAY_THING}/close_day", seen=seen_in(window))
        return f"/console/confirmations/{confirmation_in(window)}"

    async def begin(self, window: Window) -> None:
        """Begins what the window was shown to confirm, in a process that dies then."""
        confirmation = await self.confirmation(window)
        begun = next_of_confirmation(
            confirmation,
            self.desk.clock.at_ms,
            state=ConfirmationState.BEGUN,
            confirmed_by=confirmation.made_by,
            reason=WHY,
        )
        line = ADA.did(Act.CONFIRM, confirmation.subject, at_ms=begun.changed_at_ms, reason=WHY)
        assert await self.desk.parts.confirmations.change(begun, line, seen=None)
        self.desk.clock.at_ms += STUCK_MS

    async def is_closed(self) -> bool:
        """Tells whether the day is closed."""
        stored = await self.world.relay.find(ReconciliationStores).differences.day(self.office.scope.merchant, DAY)
        return stored is not None and stored.closed_at_ms is not None


async def bureau_in(folder: Path, second_person: frozenset[Act] = frozenset()) -> Bureau:
    """Opens one on an empty database, on the day after the one that is reconciled."""
    made = await Bureau.opened(folder, second_person)
    assert isinstance(made, Bureau)
    made.office = Office(made.world)
    await made.office.pay()
    made.office.wait(1)
    return made


@pytest.fixture
async def bureau(tmp_path: Path) -> AsyncIterator[Bureau]:
    """Gives a console where one person is enough."""
    made = await bureau_in(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def paired(tmp_path: Path) -> AsyncIterator[Bureau]:
    """Gives a console where a second person closes days."""
    made = await bureau_in(tmp_path, frozenset({Act.CLOSE_DAY}))
    yield made
    await made.close()


async def test_a_month_shows_each_day_with_its_state_and_its_figures(bureau: Bureau) -> None:
    """Whoever closes a month sees which days are missing, and what is still open."""
    await bureau.compare(PAID, FOREIGN)
    ada = await bureau.window("ada")
    await ada.get(MONTH)
    text = " ".join(ada.text.split())

    assert ada.title == "Books of gateway, 2023-11"
    assert "No day was closed yet" in text
    assert 'href="/console/reconciliation/gateway/2023-11-15"' in text
    assert text.count("not compared</span>") == 15, "the days before it, and today"
    assert "1 open difference<" in text
    assert "next to be closed" in text
    assert '1<br><span class="quiet">1,000.00</span>' in text
    assert "ours 0.00<br>theirs 7.00" in text
    assert "payment 320025000002" in text
    assert "order B-1" in text


async def test_the_page_of_a_day_shows_what_each_verdict_rests_on(bureau: Bureau) -> None:
    """With the evidence of both sides, and the way to the order."""
    await bureau.compare(PAID.replace("1000.00", "900.00"), FOREIGN)
    ada = await bureau.window("ada")
    await ada.get(PAGE)
    text = " ".join(ada.text.split())

    assert "payment: ann said so; 2 lines, no sum was compared" in text
    assert "<strong>Not known</strong> of each refund" in text
    assert 'Order <a href="/console/orders/gateway/A-1">A-1</a>' in text
    assert "LKR 1,000.00" in text
    assert "LKR 900.00" in text
    assert "different (amount)" in text
    assert "A payment that nobody here made." in text
    assert "a.csv, line 2, on 2023-11-15, taken" in text
    assert "Rests on</dt><dd>a line in a file" in text
    operation = await bureau.world.operation()
    assert f'<a href="/console/operations/{operation.id}">' in text


async def test_the_pages_say_by_what_it_is_agreed_on_and_name_the_word_that_nobody_knows(bureau: Bureau) -> None:
    """Agreed, ours 1,000.00 and theirs 0.00, is read as a mistake where nobody says that a state alone proves it."""
    bureau.office.wait(-1)
    bureau.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, refund_id="560034000001"))
    await refund(bureau.office.relay, asked("k-back"), Refund(payment_id="320025000001", description="broken"))
    bureau.office.wait(1)
    await bureau.compare(PAID.replace("RECEIVED", "REFUNDED"), FOREIGN.replace("RECEIVED", "Settled"))
    ada = await bureau.window("ada", Role.ADMIN)
    said = "1 of 1 by the state of the payment alone: 1000.00 is our amount, and no line of a statement has it"
    for address in (PAGE, MONTH):
        await ada.get(address)
        assert said in " ".join(ada.text.split())
    await ada.get(PAGE)
    text = " ".join(ada.text.split())
    assert "the statement has it as &#34;Settled&#34;, a word that the profile doesn&#39;t know" in text
    assert "a.csv, line 3, on 2023-11-15, other (“Settled”)" in text
    await bureau.asked_to_close(ada)
    assert said in " ".join(ada.text.split())
    await ada.get("/console/reconciliation.csv?account=gateway&month=2023-11")
    rows = list(csv.DictReader(io.StringIO(ada.text)))
    [row] = [row for row in rows if row["what"] == "refund"]
    assert (row["verdict"], row["took_no_money"], row["by_state"]) == ("agreed", "0", "1")


async def test_what_cant_be_known_is_said_on_the_page(bureau: Bureau) -> None:
    """A day about which nothing was read never looks as if all agreed."""
    await bureau.office.run()
    ada = await bureau.window("ada")
    await ada.get(PAGE)
    text = " ".join(ada.text.split())

    assert "Our books alone: no file was named as complete" in text
    assert "can&#39;t be known</span>" in text
    assert "our books alone; nothing was read that could show it" in text


@pytest.mark.parametrize("address", [PAGE, f"{PAGE}/list.csv", "/console/reconciliation/gateway/2023-11-31"])
async def test_a_day_that_was_not_compared_has_a_page(bureau: Bureau, address: str) -> None:
    """It says what to type; so has what is no day at all."""
    ada = await bureau.window("ada")

    assert (await ada.get(address)).status == 404
    assert address != PAGE or f"payrelay reconcile run --day {DAY} --account gateway" in ada.text


@pytest.mark.parametrize("query", ["month=2023-13", "month=x", "month=9999-01", "month=0001-01", "account=other"])
async def test_a_month_that_there_isnt_is_refused(bureau: Bureau, query: str) -> None:
    """A mistyped address is told, and not shown as an empty month."""
    ada = await bureau.window("ada")

    assert (await ada.get(f"/console/reconciliation?{query}")).status in {404, 422}


async def test_a_month_has_a_year_of_four_digits(bureau: Bureau) -> None:
    """Its title is the month that its address names, and its form leads to it again."""
    ada = await bureau.window("ada")
    await ada.get("/console/reconciliation?month=0987-02")
    assert ada.title == "Books of gateway, 0987-02"
    assert 'value="0987-02"' in ada.text
    assert "month=0987-01" in ada.text


async def test_a_difference_is_closed_with_a_reason_in_ones_own_name(bureau: Bureau) -> None:
    """The confirmation repeats what it says; the history has who and why, once confirmed and once stored."""
    [found] = await bureau.compare(PAID, FOREIGN)
    ada = await bureau.window("ada")
    thing = f"/console/act/difference/gateway~{found.id}"
    await ada.get(thing)
    await ada.post(f"{thing}/close_difference", seen=seen_in(ada))
    for text in ("Nothing was done yet.", "LKR", "7.00", "2023-11-15", "only theirs", "B-1", "a line in a file"):
        assert text in ada.text
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "The difference is closed." in ada.text
    assert (await bureau.acts())[-2:] == [("confirm", WHY), ("close_difference", WHY)]
    stored = await bureau.world.relay.find(ReconciliationStores).differences.get(bureau.office.scope.merchant, found.id)
    assert stored is not None
    assert (stored.is_open, stored.closed_by, stored.closed_reason) == (0, "Ada <ada@shop.example>", WHY)
    await ada.get(PAGE)
    assert "closed by Ada &lt;ada@shop.example&gt;: explained by the bank" in ada.text
    await ada.get(thing)
    assert f'action="{thing}/close_difference"' not in ada.text
    assert f'<a href="{PAGE}">The day in the books</a>' in ada.text


async def test_a_difference_that_says_another_thing_by_now_is_not_closed(bureau: Bureau) -> None:
    """Its reason would be about another amount."""
    [found] = await bureau.compare(PAID, FOREIGN)
    ada = await bureau.window("ada")
    thing = f"/console/act/difference/gateway~{found.id}"
    await ada.get(thing)
    await ada.post(f"{thing}/close_difference", seen=seen_in(ada))
    address = f"/console/confirmations/{confirmation_in(ada)}"
    await bureau.office.feed(FOREIGN.replace("7.00", "8.00"), covers=False, name="b.csv")
    await bureau.office.run()
    answer = await ada.post(address, reason=WHY)

    assert (answer.status, ada.title) == (409, "This has changed since your page was shown")
    assert WHY in ada.text
    [row] = (await bureau.office.run()).listed
    assert row.is_difference


async def test_a_day_is_closed_after_its_figures_were_repeated(bureau: Bureau) -> None:
    """Day, account, currency and figures; then it stays closed, and its page says by whom."""
    await bureau.compare(PAID, FOREIGN)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await bureau.asked_to_close(admin)
    text = " ".join(admin.text.split())
    assert "2023-11-15, in Asia/Colombo" in text
    assert "<dt>Account</dt><dd>gateway</dd>" in text
    assert "<dt>LKR, payment, agreed</dt><dd>1; ours LKR 1,000.00, theirs LKR 1,000.00</dd>" in text
    assert "<dt>LKR, payment, only theirs</dt><dd>1; ours LKR 0.00, theirs LKR 7.00</dd>" in text
    assert "<dt>Differences still open</dt><dd>1</dd>" in text
    assert not await bureau.is_closed()
    await admin.post(address, reason="month end")

    assert "The day is closed." in admin.text
    assert await bureau.is_closed()
    await admin.get(PAGE)
    assert "“month end”" in admin.text
    assert "close_day" not in admin.text
    await admin.get(MONTH)
    assert "The books are closed up to 2023-11-15." in admin.text
    await admin.get("/console/reconciliation")
    assert admin.title == "Books of gateway, 2023-11", "the month of the next day"


async def test_a_day_that_was_compared_anew_is_not_closed_by_a_page_of_before(bureau: Bureau) -> None:
    """Both steps are refused: nobody closes figures that they didn't see."""
    await bureau.compare(PAID)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await bureau.asked_to_close(admin)
    await admin.get(PAGE)
    seen = seen_in(admin)
    bureau.world.clock.passed_ms += 1000
    await bureau.compare(FOREIGN)
    assert (await admin.post(address, reason=WHY)).status == 409
    assert admin.title == "This has changed since your page was shown"
    await admin.get(PAGE)
    assert (await admin.post(f"{DAY_THING}/close_day", seen=seen)).status == 409
    assert not await bureau.is_closed()


async def test_a_day_is_closed_once_however_often_it_is_sent(bureau: Bureau) -> None:
    """A second tab, a double click and the way back end at the same result, with one pair of lines."""
    await bureau.compare(PAID)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await bureau.asked_to_close(admin)
    form = {"token": admin.token, "reason": WHY}
    await admin.send("POST", address, form)
    await admin.send("POST", address, form)
    await admin.get(address)

    assert "The day is closed." in admin.text
    assert (await bureau.acts())[-2:] == [("confirm", WHY), ("close_day", WHY)]


@pytest.mark.parametrize("was_stored", [True, False])
async def test_what_a_dead_process_left_is_carried_on(bureau: Bureau, *, was_stored: bool) -> None:
    """Whether it died before the day was closed or behind it, the day is closed once."""
    await bureau.compare(PAID)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await bureau.asked_to_close(admin)
    await bureau.begin(admin)
    if was_stored:
        await close_day(bureau.office.relay, bureau.office.scope, DAY, ADA, WHY)
    await admin.get(address)
    assert "Carry it on" in admin.text
    await admin.post(address, reason=WHY)

    assert "The day is closed." in admin.text
    assert [act for act, _ in await bureau.acts()].count("close_day") == 1


async def test_a_second_person_closes_what_one_proposed(paired: Bureau) -> None:
    """Both names are in the history and on the page of the day."""
    await paired.compare(PAID)
    ada, bob = await paired.window("ada", Role.ADMIN), await paired.window("bob", Role.ADMIN)
    address = await paired.asked_to_close(ada)
    await ada.post(address, reason="month end")
    assert not await paired.is_closed()
    await bob.get("/console/queue")
    assert "Close the day" in bob.text
    await bob.get(address)
    await bob.post(address, reason=WHY)

    assert await paired.is_closed()
    await bob.get(PAGE)
    assert "Ada &lt;ada@shop.example&gt;, confirmed by Ada &lt;bob@shop.example&gt;" in bob.text


async def test_what_comes_after_the_closing_is_a_correction_in_a_later_day(bureau: Bureau) -> None:
    """The closed day's page stays; the later one names the day that each correction is of."""
    await bureau.compare()
    await close_day(bureau.office.relay, bureau.office.scope, DAY, Actor("ann"), "month end")
    bureau.office.wait(1)
    await bureau.office.feed(PAID, FOREIGN, covers=False, name="late.csv")
    await bureau.office.run(DAY + timedelta(days=1))
    ada = await bureau.window("ada")
    await ada.get(PAGE)
    assert "only ours" in ada.text, "as it was closed, although a later day has it by now"
    assert "320025000002" not in ada.text
    await ada.get(f"/console/reconciliation/gateway/{DAY + timedelta(days=1)}")
    text = " ".join(ada.text.split())
    assert "<strong>A correction</strong> of 2023-11-15, which was closed before this was known." in text
    assert "320025000002" in text
    await ada.get(MONTH)
    assert "corrections of days that were closed before" in ada.text


async def test_the_tables_to_be_saved_have_what_the_pages_show(bureau: Bureau) -> None:
    """One line a figure, one line a finding; a day that was not compared has a line without figures."""
    [found] = await bureau.compare(PAID, FOREIGN)
    ada = await bureau.window("ada")
    await ada.get("/console/reconciliation.csv?month=2023-11")
    figures = list(csv.DictReader(io.StringIO(ada.text)))
    of_day = [each for each in figures if each["day"] == str(DAY)]
    assert [(each["verdict"], each["count"], each["theirs"]) for each in of_day] == [
        ("agreed", "1", "1000.00"),
        ("only theirs", "1", "7.00"),
    ]
    assert {each["state"] for each in figures} == {"open", "not compared"}
    await ada.get(f"{PAGE}/list.csv")
    [row] = csv.DictReader(io.StringIO(ada.text))
    assert (row["id"], row["order_id"], row["theirs"], row["state"]) == (found.id, "B-1", "7.00", "open")
    assert (row["their_line"], row["rests_on"], row["is_correction"]) == ("a.csv, line 3", "a line in a file", "no")


async def test_a_page_of_a_day_has_a_bound(bureau: Bureau) -> None:
    """A day with many differences is shown page by page, and the table has all of them."""
    rows = [FOREIGN.replace("320025000002", f"3200250{number:05}") for number in range(100, 230)]
    await bureau.compare(*rows)
    ada = await bureau.window("ada")
    await ada.get(PAGE)
    assert ada.text.count("Its name is dif_") == 100
    more = ada.text.partition('" rel="next"')[0].rpartition('href="')[2]
    await ada.get(more)
    assert ada.text.count("Its name is dif_") == 31
    await ada.get(f"{PAGE}/list.csv")
    assert ada.text.count("\r\n") == 132


@pytest.mark.parametrize("role", Role)
async def test_each_role_sees_and_closes_what_its_row_says(bureau: Bureau, role: Role) -> None:
    """Pages, tables, notes and both acts; by the addresses alone, and of what is really there."""
    [found] = await bureau.compare(PAID, FOREIGN)
    window = await bureau.window("other", role)
    thing = f"/console/act/difference/gateway~{found.id}"
    sees = Act.LOOK_AT_BOOKS in MAY[role]
    for address in (MONTH, PAGE, f"{PAGE}/list.csv", "/console/reconciliation.csv?month=2023-11", thing, DAY_THING):
        assert ((await window.get(address)).status == 200) is sees, address
        assert sees or "320025000002" not in window.text
    await window.get("/console/account")
    assert ("/console/reconciliation" in window.text) is sees
    answer = await window.post(f"{thing}/note", seen="x.0", note=HOSTILE[:200])
    assert (answer.status == 403) is not sees
    for address, act in (
        (f"{thing}/close_difference", Act.CLOSE_DIFFERENCE),
        (f"{DAY_THING}/close_day", Act.CLOSE_DAY),
    ):
        await window.get("/console/account")
        answer = await window.post(address, seen="x.0", reason=WHY)
        assert (answer.status == 403) is (act not in MAY[role])
    if sees:
        await window.get(PAGE)
        assert ("Close the day…" in window.text) is (Act.CLOSE_DAY in MAY[role])
        assert "Close it, or note" in window.text
    assert not await bureau.is_closed()


BANK: Final = "date,amount,currency,reference,text,payout_id"


def bank_file(text: str) -> FileToImport:
    """Makes a file of the bank's in which somebody else chose every text."""
    quoted = text.replace('"', '""')
    lines = [f"{BANK}\n", f'2023-11-15,5.00,LKR,"{quoted}","{quoted}","{quoted}"\n']
    return FileToImport(name=f"{text}.csv", digest=text, profile=BUILT_IN["bank"], opened=lambda: iter(lines))


async def ordered(bureau: Bureau, order_id: str, payment_id: str) -> None:
    """Makes a charge of an order, on the day that is reconciled."""
    bureau.office.wait(-1)
    bureau.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=payment_id))
    await charge(bureau.office.relay, asked(payment_id), msgspec.structs.replace(CHARGE, order_id=order_id))
    bureau.office.wait(1)


HOSTILE_IN_FILES: Final = HOSTILE.replace("\u202e", "")
"""A line with a character that isn't printable is refused, so that no page has one."""


@pytest.mark.parametrize("text", ["B-1", HOSTILE_IN_FILES], ids=["plain", "hostile"])
async def test_texts_of_statements_and_orders_are_no_markup(bureau: Bureau, text: str) -> None:
    """Whoever chooses an order id, or any field of a file, chooses text; every page and both tables hold."""
    await ordered(bureau, text, "320025000050")
    quoted = text.replace('"', '""')
    await import_file(bureau.office.relay, bureau.office.scope, bank_file(text), Actor(text))
    found = await bureau.compare(
        f'320025000050,"{quoted}",900.00,LKR,"{quoted}",2023-11-15 03:43:30',
        f'320025000051,"{quoted}",7.00,LKR,RECEIVED,2023-11-15 03:43:30',
    )
    ours = next(each for each in found if each.identity == "320025000050")
    ada = await bureau.window("ada", Role.ADMIN)
    addresses = [MONTH, PAGE, *(f"/console/act/difference/gateway~{each.id}" for each in found)]
    pages = [(await ada.get(address)).body.decode() for address in addresses]
    addresses = [await bureau.close_difference(ada, each, text) for each in found]
    addresses += [PAGE, "/console/acts", await bureau.asked_to_close(ada)]
    pages += [(await ada.get(address)).body.decode() for address in addresses]
    saved = (await ada.get(f"{PAGE}/list.csv")).body.decode()

    assert all("<script>" not in page and "<img" not in page and ">49" not in page for page in pages)
    assert not [field for row in csv.reader(io.StringIO(saved)) for field in row if field[:1] in {*"=+-@"} and field]
    assert f"/console/orders/gateway/{quote(text, safe='')}" in pages[1]
    assert {tag for tag, _ in Shape(pages[1]).elements} & {"script", "img", "style"} == set()
    assert ours.theirs is not None
    assert len(found) == len({"payment of ours", "payment of theirs", "line of the bank", "order A-1, not in the file"})


async def test_a_month_of_now_is_shown_where_none_was_closed(bureau: Bureau) -> None:
    """The first look needs no address."""
    ada = await bureau.window("ada")
    await ada.get("/console/reconciliation")

    assert ada.title == "Books of gateway, 2023-11"
    assert date(2023, 11, 16) == bureau.office.scope.zone.day(bureau.desk.clock.at_ms)
