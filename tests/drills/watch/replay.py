"""What the rules make of scraped samples, had the fault gone on: the deployed rules decide, without minutes of waiting.

The samples keep their times until the moment at which they are held, which is the end of the fault. From there on the
recording goes on for five minutes: gauges stay as they were, counters grow as they grew during the fault, and what was
gone stays gone. Prometheus' own tool evaluates the rules over it.
"""

import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.drills.watch.prometheus import RULES, SCRAPE_S, Series, program

HELD_S: Final = 300
"""An alert that takes longer came too late."""
METRIC: Final = re.compile(r"\b(?:payrelay_[a-z_]+|up)\b")
GROWING: Final = ("_total", "_bucket", "_count", "_sum")
FIRED: Final = re.compile(r'alertname="(\w+)"[^}]*\} ([0-9.eE+]+)')
REPLAYED_WITHIN_S: Final = 120.0
ABSENT, GONE = "_", "stale"
"""How the tool's format says that nothing was scraped, and that a scrape found a series gone."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Scraped samples, and what part of them is the fault.

    Attributes:
        begun_s: when the fault began; everything is in seconds of one clock.
        held_s: the last moment that counts.
    """

    series: Sequence[Series]
    begun_s: float
    held_s: float


def asked_for() -> str:
    """Gives the selector of all that the rules ask for."""
    names = sorted(set(METRIC.findall(RULES.read_text())))
    return f'{{job="payrelay",__name__=~"{"|".join(names)}"}}'


def replayed(recording: Recording) -> dict[str, float]:
    """Gives the alerts that fire, each with its seconds since the fault began; less than 0 where it fired before."""
    ticks = _Ticks(recording)
    if not ticks.count:
        return {}
    end_s = (ticks.count - 1) * SCRAPE_S + HELD_S
    expression = f'min_over_time(timestamp(ALERTS{{alertstate="firing"}})[{end_s}s:{SCRAPE_S}s])'
    document = {
        "rule_files": [str(RULES)],
        "evaluation_interval": f"{SCRAPE_S}s",
        "tests": [
            {
                "interval": f"{SCRAPE_S}s",
                "input_series": [{"series": name, "values": " ".join(values)} for name, values in ticks.written()],
                "promql_expr_test": [{"expr": expression, "eval_time": f"{end_s}s"}],
            }
        ],
    }
    said = _run(json.dumps(document))
    fired = {name: float(at_s) for name, at_s in reversed(FIRED.findall(said))}
    if not fired and "SUCCESS" not in said:
        raise AssertionError(f"promtool said what can't be read: {said[:2000]}")
    after = {name: at_s - (recording.begun_s - ticks.first_s) for name, at_s in sorted(fired.items())}
    # A scrape's place on the grid may be half a scrape before its own time.
    return {name: max(0.0, after_s) if after_s > -SCRAPE_S / 2 else after_s for name, after_s in after.items()}


def _run(document: str) -> str:
    tool = program("promtool")
    assert tool is not None
    with tempfile.TemporaryDirectory(prefix="payrelay-replay-") as folder:
        path = Path(folder) / "recorded.json"
        path.write_text(document)
        ran = subprocess.run(
            [tool, "test", "rules", path], capture_output=True, text=True, check=False, timeout=REPLAYED_WITHIN_S
        )
    return ran.stdout + ran.stderr


class _Ticks:
    """The recording on one grid of scrapes, beginning with the first of them.

    Attributes:
        first_s: when the grid begins.
        count: how many scrapes there are until the recording is held.
    """

    def __init__(self, recording: Recording) -> None:
        # A scrape that began less than a time-out before may have ended after the fault.
        series = [_until(each, recording.held_s - SCRAPE_S) for each in recording.series]
        self._series = [each for each in series if each.values]
        self.first_s = min((at_s for each in self._series for at_s in each.values), default=0.0)
        self._scrapes = self._scrapes_of(self._series)
        self.count = max((tick for each in self._scrapes.values() for tick in each), default=-1) + 1
        # Where the fault has no scrape of its own, the last ones tell how counters grow.
        self._begun = min(max(0, self._tick(recording.begun_s) - 1), max(0, self.count - 4))

    def written(self) -> Iterator[tuple[str, list[str]]]:
        """Gives each series in the tool's format: its name with labels, and its values."""
        for each in self._series:
            values = self._values(each)
            yield _name(each.labels), [*values, *self._held(each.labels["__name__"], values)]

    def _tick(self, at_s: float) -> int:
        return round((at_s - self.first_s) / SCRAPE_S)

    def _scrapes_of(self, series: Iterable[Series]) -> dict[str, set[int]]:
        scrapes: dict[str, set[int]] = defaultdict(set)
        for each in series:
            if each.labels["__name__"] == "up":
                scrapes[each.labels["instance"]] |= {self._tick(at_s) for at_s in each.values}
        return scrapes

    def _values(self, series: Series) -> list[str]:
        by_tick = {self._tick(at_s): value for at_s, value in series.values.items()}
        scrapes, values, is_there = self._scrapes[series.labels["instance"]], [], False
        for tick in range(self.count):
            if tick in by_tick:
                values.append(repr(by_tick[tick]))
                is_there = True
            else:
                is_gone = is_there and (tick in scrapes or not scrapes.intersection(range(tick, self.count)))
                values.append(GONE if is_gone else ABSENT)
                is_there = is_there and not is_gone
        return values

    def _held(self, name: str, values: Sequence[str]) -> Iterator[str]:
        known = [(tick, float(value)) for tick, value in enumerate(values) if value not in {ABSENT, GONE}]
        last_tick, last = known[-1]
        if GONE in values[last_tick:]:
            return
        earlier = [value for tick, value in known if tick <= self._begun]
        growth = 0.0
        if name.endswith(GROWING):
            before = earlier[-1] if earlier else 0.0
            # The counter of a process that was started anew begins at 0.
            growth = (last - before if last >= before else last) / max(1, last_tick - self._begun)
        for step in range(1, HELD_S // SCRAPE_S + 1):
            yield repr(last + growth * step)


def _until(series: Series, end_s: float) -> Series:
    return Series(labels=series.labels, values={at_s: value for at_s, value in series.values.items() if at_s <= end_s})


def _name(labels: Mapping[str, str]) -> str:
    given = ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items() if name != "__name__")
    return f"{labels['__name__']}{{{given}}}"
