"""The alert rules and the dashboard: they ask for metrics that exist, and each rule has a page and is tried."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.needed import lacking
from tests.test_app import LOG, settings_of

from payrelay.app import running
from payrelay.clock import Clock

ROOT: Final = Path(__file__).parent.parent
RULES: Final = ROOT / "deploy" / "prometheus" / "rules.yml"
TRIALS: Final = ROOT / "deploy" / "prometheus" / "rules.test.yml"
DASHBOARD: Final = ROOT / "deploy" / "grafana" / "dashboards" / "payrelay.json"
WATCH: Final = ROOT / "docs" / "production" / "watch.md"
RUNBOOK: Final = ROOT / "docs" / "production" / "runbook"
ALERTS: Final = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), re.MULTILINE)
CHAPTERS: Final = [
    "What it means",
    "Is money at risk?",
    "What to look at",
    "What to type",
    "When it is over",
]
NAME: Final = re.compile(r"\b(?:payrelay|process)_[a-z_]+\b(?!/|\")")
NIGHTLY: Final = {
    f"payrelay_{job}_{what}" for job in ("backup", "audit") for what in ("failed", "success_time_seconds")
}
"""What the nightly units write for node_exporter; tests/deploy/test_nightly.py runs their script."""
DRILLS: Final = {
    "store unwritable": "PayrelayStoreNotWritable",
    "disk full": "PayrelayDiskFull",
    "database paused or killed": "PayrelayStoreNotWritable",
    "database behind its mark": "PayrelayDatabaseBehind",
    "own rows gone": "PayrelayOwnRowsGone",
    "server changed": "PayrelayServerChanged",
    "recovery open": "PayrelayRecoveryOpen",
    "gateway down": "PayrelayGatewayDown",
    "gateway slow": "PayrelayGatewaySlow",
    "budget exhausted": "PayrelayBudgetExhausted",
    "operations need a person": "PayrelayNeedsPerson",
    "deliveries failing": "PayrelayDeliveriesFailing",
    "notifications unmatched": "PayrelayNotificationsUnmatched",
    "clock off": "PayrelayClockOff",
    "worker stalled": "PayrelayWorkerStalled",
    "process killed": "PayrelayDown",
    "answers of one kind fail": "PayrelayRequestsFailing",
}
"""What harms service or books, and the rule that notices it within five minutes, as its trial shows."""


def expressions(board: dict[str, Any]) -> list[str]:
    """Gives what the panels of a dashboard ask for."""
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


async def exposed(folder: Path) -> set[str]:
    """Gives the names of all series that the running program can show, by the types that it declares."""
    async with running(settings_of(folder), clock=Clock(), log=LOG) as service:
        text = (await service.api.metrics._exposition.text()).decode()
    names = set()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    return names


async def test_what_is_asked_for_exists(tmp_path: Path) -> None:
    """A rule over a metric that was renamed stays silent for ever, and nobody notices."""
    rules = [line for line in RULES.read_text().splitlines() if "runbook:" not in line and not line.startswith("#")]
    asked = set(NAME.findall("\n".join([*rules, *expressions(json.loads(DASHBOARD.read_text()))])))

    assert len(asked) > 30
    assert asked - NIGHTLY - await exposed(tmp_path) == set()


def test_alerts_have_names_of_their_own() -> None:
    """Two rules of one name would share a page and a trial."""
    assert len(ALERTS) == len(set(ALERTS)) > 0


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_page(alert: str) -> None:
    """Whoever is woken needs to know whether money is at risk, and what to type."""
    page = (RUNBOOK / f"{alert}.md").read_text()

    assert page.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == CHAPTERS
    assert f"runbook: docs/production/runbook/{alert}.md" in RULES.read_text()
    assert f"[{alert}](runbook/{alert}.md)" in WATCH.read_text()


def test_every_page_has_an_alert() -> None:
    """A page of a rule that is gone misleads."""
    assert {page.stem for page in RUNBOOK.glob("*.md")} - {"README"} == set(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_is_tried_both_ways(alert: str) -> None:
    """A rule that never fires, and one that always does, are both as good as none."""
    trials = TRIALS.read_text()

    assert f"  - name: {alert} fires\n" in trials
    assert f"  - name: {alert} stays silent\n" in trials
    rolling = trials.partition("  - name: A rolling restart of three processes stays silent")[2]
    assert f"alertname: {alert}\n        exp_alerts: []" in rolling


@pytest.mark.parametrize("alert", DRILLS.values(), ids=DRILLS)
def test_every_drill_that_harms_is_noticed_in_five_minutes(alert: str) -> None:
    """Its trial begins with the fault, and looks after five minutes."""
    trial = TRIALS.read_text().partition(f"  - name: {alert} fires\n")[2].partition("  - name:")[0]

    assert f"eval_time: 5m\n        alertname: {alert}\n        exp_alerts:\n          - exp_labels:" in trial


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("check", "rules", RULES), ("test", "rules", TRIALS)], ids=["check", "test"])
def test_promtool_is_content(arguments: tuple[str | Path, ...]) -> None:
    """Prometheus' own tool reads the rules and runs the trials, the rolling restart among them."""
    promtool = shutil.which("promtool")
    if promtool is None:
        lacking("promtool is missing; Debian has it in the package prometheus")
    ran = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_dashboard_draws_what_it_asks_for() -> None:
    """Grafana drops a panel whose id is another's, and one that lies on another hides it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
