"""Gauges on ``/metrics`` about lost commits: is the database behind, and is the mark of this process kept."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.database.marks import Marks


class RecoveryGauges(Collector):
    """The gauges, as this process knows them now; nothing is read for them."""

    def __init__(self, lost_commits: LostCommits, marks: Marks) -> None:
        self._lost_commits = lost_commits
        self._marks = marks
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges."""
        yield GaugeMetricFamily(
            "payrelay_database_behind",
            "1 while the database lacks commits that a process was told of, and no recovery has begun.",
            value=self._lost_commits.behind is not None,
        )
        known = self._lost_commits.known
        yield GaugeMetricFamily(
            "payrelay_recovery_open",
            "1 while a recovery from lost commits is under way.",
            value=known is not None and known.current.is_recovering,
        )
        yield GaugeMetricFamily(
            "payrelay_mark_failing",
            "1 while the high-water mark of this process can't be kept.",
            value=self._marks.failure is not None,
        )

    def text(self) -> bytes:
        """Gives the gauges in Prometheus' text format."""
        return generate_latest(self._registry)
