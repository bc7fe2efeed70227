"""The books in Chromium: a difference and its day are closed, and what comes later is a correction."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Page, expect
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import charge_body, fresh, settings_for
from tests.scenarios.test_console import looked_at, opened_browser
from tests.scenarios.test_console_acts import HOSTILE, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.integration]
OF_ACCOUNT = ("--account", "gateway")
HEADER = "payment_id,order_id,amount,currency,status,date\n"


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A running program with a console."""
    made = Program(tmp_path, settings_for(gateway) | {"PAYRELAY_CONSOLE__ENABLED": "true"})
    made.start()
    yield made
    made.kill()


def fed(program: Program, folder: Path, name: str, *rows: str, covers: str | None = None) -> None:
    """Has the command read a file of payments."""
    path = folder / name
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    said: tuple[str, ...] = () if covers is None else ("--covers", covers)
    assert program.run("reconcile", "import", str(path), "--profile", "payments", *OF_ACCOUNT, *said).returncode == 0


@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no scripts"])
async def test_a_day_is_reconciled_and_closed(program: Program, tmp_path: Path, *, has_scripts: bool) -> None:
    """From the month to the closed day, with a hostile order in the file; a page of before closes nothing."""
    today = datetime.now(ZoneInfo("Asia/Colombo")).date()
    day = today - timedelta(days=1)
    order = HOSTILE.replace('"', '""')
    foreign = f'320025000901,"{order}",7.00,LKR,RECEIVED,{day} 11:00:00'
    fed(program, tmp_path, "a.csv", foreign, covers=str(day))
    program.run("reconcile", "run", "--day", str(day), *OF_ACCOUNT)
    shop = program.client(program.run("keys", "create", "--name", "shop").stdout.strip())
    assert shop.charge(charge_body(fresh("order")), key=fresh("key")).status == 200
    program.run("reconcile", "run", "--day", str(today), *OF_ACCOUNT)
    base = f"http://127.0.0.1:{program.port}"
    async with (
        opened_browser() as browser,
        signed_in(browser, program, "Ada", "admin", has_scripts=has_scripts) as ada,
    ):

        async def look(page: Page, name: str) -> None:
            if has_scripts:  # axe is a script
                await looked_at(page, name)

        await ada.click("nav >> text=Books")
        await ada.goto(f"{base}/console/reconciliation?account=gateway&month={day:%Y-%m}")
        await expect(ada.locator("h1")).to_have_text(f"Books of gateway, {day:%Y-%m}")
        await look(ada, "books-month")
        await ada.goto(f"{base}/console/reconciliation/gateway/{today}")
        await expect(ada.locator("main")).to_contain_text("can't be known")
        await look(ada, "books-today")
        await ada.goto(f"{base}/console/reconciliation/gateway/{day}")
        await expect(ada.locator("main")).to_contain_text(HOSTILE)
        await ada.locator("summary", has_text="Evidence").first.focus()
        await ada.keyboard.press("Enter")
        await expect(ada.locator("details[open] dl").first).to_contain_text("a.csv, line 2")
        await look(ada, "books-day")
        tab = await ada.context.new_page()
        await tab.goto(ada.url)
        await ada.get_by_role("link", name="Close it, or note").click()
        await look(ada, "books-difference")
        await ada.get_by_role("button", name="Close the difference").click()
        await look(ada, "books-difference-confirmation")
        await ada.fill("#reason", "sold at the counter")
        await ada.get_by_role("button", name="Close the difference now").click()
        await expect(ada.get_by_role("status")).to_contain_text("Done. The difference is closed.")
        await tab.get_by_role("button", name="Close the day").click()
        await expect(tab.locator("h1")).to_have_text("This has changed since your page was shown")
        await look(tab, "books-stale")
        await ada.goto(f"{base}/console/reconciliation/gateway/{day}")
        await ada.get_by_role("button", name="Close the day").click()
        await expect(ada.locator("dl")).to_contain_text("LKR, payment, only theirs")
        await look(ada, "books-day-confirmation")
        await ada.fill("#reason", "month end")
        await ada.dblclick("button:has-text('Close the day now')")
        await expect(ada.get_by_role("status")).to_contain_text("Done. The day is closed.")
        fed(program, tmp_path, "late.csv", foreign.replace("0901", "0902"))
        program.run("reconcile", "run", "--day", str(today), *OF_ACCOUNT)
        await ada.goto(f"{base}/console/reconciliation/gateway/{day}")
        await expect(ada.get_by_role("status")).to_contain_text("month end")
        await look(ada, "books-closed")
        await ada.goto(f"{base}/console/reconciliation/gateway/{today}")
        await expect(ada.locator("main")).to_contain_text(f"A correction of {day}")
        await look(ada, "books-correction")
        await ada.goto(f"{base}/console/reconciliation?account=gateway&month=2020-01")
        await expect(ada.locator("main")).to_contain_text(f"closed up to {day}")
    assert "Verified: nothing was changed or removed." in program.run("audit", "verify").stdout
