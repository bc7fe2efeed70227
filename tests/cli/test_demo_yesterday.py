"""The demo's day to reconcile: one difference of each kind, found by the product from real files and payments."""

from contextlib import chdir
from datetime import datetime
from pathlib import Path

import pytest
import structlog

import payrelay_simulator
from payrelay.app import running
from payrelay.clock import Clock
from payrelay.demo import yesterday as demo
from payrelay.demo.parts import CONFIG, FOLDER, DemoAddresses, settings_of, write_config
from payrelay.errors import SettingsError
from payrelay.flows.operators.parts import Actor
from payrelay.reconciliation.commands.files import file_to_import
from payrelay.reconciliation.commands.options import profile_of
from payrelay.reconciliation.flows.import_statement import Completeness, import_file, say_complete
from payrelay.reconciliation.flows.run_day import run_day
from payrelay.reconciliation.flows.scope import scope_of
from payrelay.reconciliation.rules.days import DayReport
from payrelay.reconciliation.rules.entries import Movement
from payrelay.reconciliation.rules.verdicts import Aspect, BooksVerdict
from payrelay.settings import Settings, read_settings

LOG = structlog.wrap_logger(None, processors=[], wrapper_class=structlog.make_filtering_bound_logger("critical"))
PROFILES = {"statement.csv": "portal.toml", "payouts.csv": "payouts", "bank.csv": "bank"}


async def reconciled(settings: Settings, day: demo.DayToReconcile) -> DayReport:
    """Feeds the files as the printed commands do, and compares the day."""
    async with running(settings, clock=Clock(), log=LOG) as service:
        scope, actor = scope_of(service.relay, None), Actor("ann")
        for name, profile in PROFILES.items():
            built_in = profile if "." not in profile else str(demo.BOOKS / profile)
            file = file_to_import(demo.BOOKS / name, profile_of(built_in))
            imported = await import_file(service.relay, scope, file, actor)
            first = imported.summary.first_day or day.day
            said = Completeness(first=min(first, day.day), last=day.day)
            await say_complete(service.relay, scope, [imported], said, actor)
        return await run_day(service.relay, scope, day.day)


async def test_yesterday_has_one_difference_of_each_kind(tmp_path: Path) -> None:
    """Nothing is put into the report: payments, files and both clocks bring it about."""
    past = demo.Past.begun(Clock())
    simulator = payrelay_simulator.Simulator(clock=past.of_gateway)
    addresses = DemoAddresses(host="127.0.0.1", reached_at="127.0.0.1", port=8080, shop=None, shop_port=8090)
    with chdir(tmp_path):
        FOLDER.mkdir()
        async with payrelay_simulator.serve(simulator) as simulated:
            settings = settings_of(simulated, addresses)
            write_config(simulated, addresses)
            day = await demo.yesterday(settings, simulator, past, log=LOG)
            past.end()
            report = await reconciled(settings, day)
            written = read_settings({"PAYRELAY_CONFIG": str(CONFIG)})
        mode = CONFIG.stat().st_mode

    payments = [each for each in report.listed if each.movement is Movement.PAYMENT]
    assert {(each.verdict, each.aspects) for each in payments} == {
        (BooksVerdict.ONLY_OURS, ()),
        (BooksVerdict.ONLY_THEIRS, ()),
        (BooksVerdict.OPEN, ()),
        *((BooksVerdict.DIFFERENT, (each,)) for each in (Aspect.AMOUNT, Aspect.FEE, Aspect.STATE, Aspect.DAY)),
    }
    [refund] = [each for each in report.listed if each.movement is Movement.REFUND]
    assert refund.verdict is BooksVerdict.UNKNOWABLE
    assert {each.movement for each in report.sums if each.verdict is BooksVerdict.AGREED} == {"payment", "payout"}
    assert (written.database_url, mode & 0o077) == (settings.database_url, 0)
    now = datetime.fromtimestamp(Clock().now_ms() / 1000, demo.ZONE)
    assert (now.date() - day.day).days == 1
    assert abs((simulator.world.clock.now() - now).total_seconds()) < 60
    assert day.commands[-1].endswith(f"reconcile run --day {day.day}")


@pytest.mark.parametrize("host", ["8.8.8.8", "shop.example", "::1"])
async def test_a_host_that_no_browser_may_be_led_to_is_told_in_a_line(host: str, tmp_path: Path) -> None:
    """Payrelay sends secrets and customers in clear only to a simulator in the same room."""
    addresses = DemoAddresses(host=host, reached_at=host, port=8080, shop=tmp_path / "shop.py", shop_port=8091)
    async with payrelay_simulator.serve(payrelay_simulator.Simulator()) as simulated:
        with pytest.raises(SettingsError, match=r"--host takes a number of this machine's on a private network"):
            settings_of(simulated, addresses)


def test_a_demo_with_a_shop_lets_its_pages_call(tmp_path: Path) -> None:
    """The shop's address is known to the service before either of them starts."""
    addresses = DemoAddresses(
        host="127.0.0.1", reached_at="127.0.0.1", port=8080, shop=tmp_path / "shop.py", shop_port=8091
    )

    assert addresses.shop_address == "http://127.0.0.1:8091"
    assert addresses.service == "http://127.0.0.1:8080"
