"""The watch over a drill: which alert told of it, and after how long; or that none did."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tests.drills.watch.prometheus import SCRAPE_S, Prometheus, running_prometheus
from tests.drills.watch.replay import Recording, asked_for, replayed

SEEN_AFTER_S: Final = SCRAPE_S * 3 + 1
"""So long a fault lasts at least: two scrapes fall into it whole, and end."""


class Watch:
    """What a site's Prometheus is asked; of a machine without Prometheus nothing is known."""

    def __init__(self, prometheus: Prometheus | None) -> None:
        self._prometheus = prometheus
        self._begun_s: float | None = None
        self._held_s: float | None = None
        self._served_s: float | None = None

    def targets(self, ports: Sequence[int]) -> None:
        """Watches the processes at these ports, and no others."""
        if self._prometheus is not None:
            self._served_s = self._served_s or time.time()
            self._prometheus.watch(ports)

    def begin(self) -> None:
        """Notes that the fault begins now."""
        self._begun_s = time.time()

    def hold(self) -> None:
        """Returns once the fault was seen; had nobody mended it, what was scraped until now would have gone on."""
        if self._begun_s is not None and self._prometheus is not None:
            time.sleep(max(0.0, self._begun_s + SEEN_AFTER_S - time.time()))  # scrapes have a pace of their own
        self._held_s = time.time()

    def noticed(self) -> dict[str, float] | None:
        """Gives the alerts, each with its seconds since the fault began; None where nobody watched.

        In a drill without a fault, those count too that fired since a service was there, as Prometheus itself saw it.
        """
        if self._prometheus is None:
            return None
        if self._begun_s is None:
            time.sleep(SEEN_AFTER_S)  # what happened last is scraped too
        now_s = time.time()
        recording = Recording(
            series=self._prometheus.series(asked_for()),
            begun_s=self._begun_s or now_s,
            held_s=self._held_s or now_s,
        )
        alerts = replayed(recording)
        return alerts if self._begun_s is not None else self._live() | dict.fromkeys(alerts, 0.0)

    def _live(self) -> dict[str, float]:
        assert self._prometheus is not None
        fired = self._prometheus.series('ALERTS{alertstate="firing"}')
        seen_s = (self._served_s or 0.0) + SEEN_AFTER_S  # a large database is filled before there is a service
        return {each.labels["alertname"]: 0.0 for each in fired if max(each.values) > seen_s}


@contextmanager
def watching() -> Iterator[Watch]:
    """Runs a Prometheus beside a drill while the context is open."""
    with running_prometheus() as prometheus:
        yield Watch(prometheus)
