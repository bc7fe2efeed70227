"""A month is closed by one confirmation: as it was shown, whole, or up to the day that says something else by now."""

from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import pytest
from tests.console.browsing import Window
from tests.console.counter import confirmation_in, seen_in
from tests.console.test_books import ADA, DAY_THING, MONTH, WHY, Bureau, bureau_in
from tests.flows.reconciliation.test_day import DAY, FOREIGN, PAID

from payrelay.core.operators.roles import Act, Role
from payrelay.flows.operators.parts import Actor
from payrelay.reconciliation.flows.close import close_day, close_difference
from payrelay.reconciliation.rules.entries import days_between
from payrelay.reconciliation.store.stores import ReconciliationStores

FIRST: Final = date(2023, 11, 1)
LAST: Final = date(2023, 11, 30)
THING: Final = "/console/act/month/gateway~2023-11"
AFTER: Final = 16
"""Days from the one with the payments to the first behind the month."""


async def compared(bureau: Bureau, *, but: date | None = None) -> None:
    """Compares each day of the month but one, once it is over."""
    await bureau.office.feed(PAID, FOREIGN)
    bureau.office.wait(AFTER)
    for day in days_between(FIRST, LAST):
        if day != but:
            await bureau.office.run(day)


async def asked_to_close(window: Window) -> str:
    """Asks to close the month from its page; gives the address of the confirmation."""
    await window.get(MONTH)
    await window.post(f"{THING}/close_day", seen=seen_in(window))
    return f"/console/confirmations/{confirmation_in(window)}"


async def closed_to(bureau: Bureau) -> date | None:
    """Gives the newest closed day."""
    last = await bureau.world.relay.find(ReconciliationStores).differences.last_closed(bureau.office.scope.merchant)
    return None if last is None else last.day


@pytest.fixture
async def bureau(tmp_path: Path) -> AsyncIterator[Bureau]:
    """Gives a console where one person is enough."""
    made = await bureau_in(tmp_path)
    yield made
    await made.close()


async def test_a_month_is_closed_by_one_confirmation(bureau: Bureau) -> None:
    """It repeats the figures of the whole month, and each day has its own line in the history."""
    await compared(bureau)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await asked_to_close(admin)
    await admin.get(address)
    text = " ".join(admin.text.split())
    assert "Close the month?" in admin.title
    assert "2023-11-01 to 2023-11-30, in Asia/Colombo" in text
    assert "not everything can be known</dt><dd>30<" in text, "no file of refunds, payouts or the bank was read"
    assert "1; ours LKR 1,000.00, theirs LKR 1,000.00" in text
    await admin.post(address, reason=WHY)
    await admin.get(address)
    assert "The month is closed." in admin.text
    assert await closed_to(bureau) == LAST
    assert [act for act, _ in await bureau.acts()].count("close_day") == 30
    await admin.get(MONTH)
    assert "Close the month" not in admin.text


async def test_a_month_with_a_day_that_nobody_compared_is_not_closed(bureau: Bureau) -> None:
    """Nor one that isn't over: nothing of either is closed."""
    await compared(bureau, but=LAST)
    admin = await bureau.window("admin", Role.ADMIN)
    await admin.get(MONTH)
    assert "Close the month" not in admin.text
    await admin.get(THING)
    assert "not compared on 1 of its days" in admin.text
    await admin.post(f"{THING}/close_day", seen=seen_in(admin))
    assert await closed_to(bureau) is None
    december = "/console/act/month/gateway~2023-12"
    await bureau.office.run(LAST + timedelta(days=1))
    await admin.get(december)
    assert "not over" in admin.text


async def test_a_month_goes_as_far_as_it_was_shown(bureau: Bureau) -> None:
    """A file was read behind the last comparison: the day that it changes stays open, with those behind it."""
    await compared(bureau)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await asked_to_close(admin)
    await bureau.office.feed(FOREIGN.replace("0002,", "0003,"), covers=False, name="late.csv")
    await admin.post(address, reason=WHY)
    await admin.get(address)
    assert "The days up to 2023-11-14 are closed now, and no other: 2023-11-15 comes to something else" in admin.text
    assert await closed_to(bureau) == date(2023, 11, 14)
    again = await asked_to_close(admin)
    await admin.post(again, reason=WHY)
    assert await closed_to(bureau) == LAST


async def test_a_month_that_was_compared_anew_is_not_closed_by_a_page_of_before(bureau: Bureau) -> None:
    """Nobody closes figures that they didn't see."""
    await compared(bureau)
    admin = await bureau.window("admin", Role.ADMIN)
    address = await asked_to_close(admin)
    bureau.world.clock.passed_ms += 1_000
    await bureau.office.run(LAST)
    assert (await admin.post(address, reason=WHY)).status == 409
    assert await closed_to(bureau) is None


@pytest.mark.parametrize("thing", [THING, DAY_THING])
@pytest.mark.parametrize(
    ("change", "why"), [("compared", "was compared anew"), ("difference", "were closed or found meanwhile")]
)
async def test_what_has_begun_is_closed_as_it_was_shown(bureau: Bureau, thing: str, change: str, why: str) -> None:
    """A colleague is quicker by a moment, and the figures of the confirmation are no more: nothing is closed."""
    await compared(bureau)
    admin = await bureau.window("admin", Role.ADMIN)
    await admin.get(thing)
    await admin.post(f"{thing}/close_day", seen=seen_in(admin))
    address = f"/console/confirmations/{confirmation_in(admin)}"
    await bureau.begin(admin)
    bureau.world.clock.passed_ms += 1_000
    relay, scope = bureau.office.relay, bureau.office.scope
    if change == "compared":
        await bureau.office.run(DAY)
    else:
        [found] = await relay.find(ReconciliationStores).differences.of_day(scope.merchant, DAY)
        await close_difference(relay, scope, found.id, Actor("bob"), "sold at the counter")
    await admin.get(address)
    await admin.post(address, reason=WHY)
    assert why in admin.text
    assert await closed_to(bureau) is None


async def test_a_month_that_a_dead_process_left_is_carried_on(bureau: Bureau) -> None:
    """Days that it closed are passed over. One that somebody else closed meanwhile is not as it was shown."""
    await compared(bureau)
    relay, scope = bureau.office.relay, bureau.office.scope
    admin = await bureau.window("admin", Role.ADMIN)
    address = await asked_to_close(admin)
    await bureau.begin(admin)
    await close_day(relay, scope, FIRST, ADA, WHY)
    second = FIRST + timedelta(days=1)
    await close_day(relay, scope, second, Actor("bob"), WHY)
    await admin.get(address)
    await admin.post(address, reason=WHY)
    assert f"{second} was closed meanwhile" in admin.text
    assert await closed_to(bureau) == second
    address = await asked_to_close(admin)
    await bureau.begin(admin)
    await close_day(relay, scope, second + timedelta(days=1), ADA, WHY)
    await admin.get(address)
    await admin.post(address, reason=WHY)
    assert "The month is closed." in admin.text
    assert await closed_to(bureau) == LAST


async def test_a_month_behind_open_days_waits_for_them(bureau: Bureau) -> None:
    """Days are closed in their order, also as months."""
    await bureau.office.run(date(2023, 9, 1))
    await close_day(bureau.office.relay, bureau.office.scope, date(2023, 9, 1), Actor("ann"), "the first")
    await compared(bureau)
    admin = await bureau.window("admin", Role.ADMIN)
    await admin.get(THING)
    assert "behind days that are open: the books are closed up to 2023-09-01" in admin.text


async def test_a_month_needs_the_second_person_that_days_need(tmp_path: Path) -> None:
    """Otherwise whoever may not close a day alone would close thirty."""
    paired = await bureau_in(tmp_path, frozenset({Act.CLOSE_DAY}))
    await compared(paired)
    ada, bob = await paired.window("ada", Role.ADMIN), await paired.window("bob", Role.ADMIN)
    address = await asked_to_close(ada)
    await ada.post(address, reason="month end")
    assert await closed_to(paired) is None
    await bob.get("/console/queue")
    assert "Close the month" in bob.text
    await bob.get(address)
    await bob.post(address, reason=WHY)
    assert await closed_to(paired) == LAST
    await paired.close()
