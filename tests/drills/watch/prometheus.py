"""A Prometheus beside a drill, on this machine alone: it asks every process for metrics, and has the deployed rules."""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.scenarios.program import free_port
from tests.scenarios.waiting import until

RULES: Final = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules.yml"
SCRAPE_S: Final = 4
"""Also a scrape's time-out: longer than the service takes for its metrics while the database is silent."""
ASKED_WITHIN_S: Final = 10.0
ENDED_WITHIN_S: Final = 10.0
READY_WITHIN_S: Final = 60.0
CONFIGURATION: Final = """
global: {{scrape_interval: {scrape_s}s, scrape_timeout: {scrape_s}s, evaluation_interval: {scrape_s}s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: payrelay
    file_sd_configs: [{{files: [{targets}], refresh_interval: 1s}}]
"""


@dataclass(frozen=True, kw_only=True)
class Series:
    """What was scraped of one series: its labels, and its values by the time in seconds."""

    labels: Mapping[str, str]
    values: Mapping[float, float]


class Prometheus:
    """A running Prometheus."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port

    def watch(self, ports: Sequence[int]) -> None:
        """Asks the processes at these ports from now on, and no others."""
        targets = [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
        new = self._folder / "targets.new"
        new.write_text(json.dumps(targets))
        new.replace(self._folder / "targets.json")

    def series(self, query: str) -> list[Series]:
        """Gives what was scraped of the last two hours."""
        found = self._ask(f"{query}[2h]")["data"]["result"]
        return [
            Series(
                labels=each["metric"],
                values={float(at_s): float(value) for at_s, value in each["values"]},
            )
            for each in found
        ]

    def is_ready(self) -> bool:
        """Tells whether it answers."""
        with suppress(OSError):
            self._ask("vector(1)")
            return True
        return False

    def _ask(self, query: str) -> dict[str, Any]:
        address = f"http://127.0.0.1:{self._port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=ASKED_WITHIN_S) as reply:
            answer: dict[str, Any] = json.loads(reply.read())
        return answer


def program(name: str) -> str | None:
    """Finds a program of Debian's package prometheus; None where it is missing."""
    return shutil.which(name) or shutil.which(name, path="/usr/bin")


@contextmanager
def running_prometheus() -> Iterator[Prometheus | None]:
    """Runs one while the context is open, in a folder of its own; None where the machine has none."""
    command = program("prometheus")
    if command is None or program("promtool") is None:
        yield None
        return
    folder, port = Path(tempfile.mkdtemp(prefix="payrelay-watch-")), free_port()
    rules = folder / "rules.yml"
    # A group's own pace would miss what the scrapes of a drill show; the rules stay as they are.
    rules.write_text(RULES.read_text().replace("    interval: 15s\n", ""))
    places = {"rules": rules, "targets": folder / "targets.json", "scrape_s": SCRAPE_S}
    (folder / "prometheus.yml").write_text(CONFIGURATION.format(**places))
    prometheus = Prometheus(folder, port)
    prometheus.watch([])
    arguments = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    arguments += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([command, *arguments], stdout=log, stderr=log, env=dict(os.environ, GOMAXPROCS="1"))
    try:
        until(prometheus.is_ready, "Prometheus answers", deadline_s=READY_WITHIN_S)
        yield prometheus
    finally:
        process.terminate()
        try:
            process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
