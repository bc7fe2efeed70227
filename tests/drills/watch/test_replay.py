"""The replay of scraped samples: the deployed rules decide what would have been told, had the fault gone on."""

import pytest
from tests.drills.row import Row
from tests.drills.watch.prometheus import SCRAPE_S, Series, program
from tests.drills.watch.replay import Recording, replayed
from tests.needed import lacking

BEGIN_S = 1_000_000.0
SCRAPES, BEFORE = 12, 6
"""Scrapes of a recording, and those of them before the fault."""
REQUESTS = "payrelay_http_requests_total"


def scraped(name: str, values: list[float], **labels: str) -> Series:
    """Makes a series whose last value was scraped last."""
    first = SCRAPES - len(values)
    return Series(
        labels={"__name__": name, "job": "payrelay", "instance": "a"} | labels,
        values={BEGIN_S + (first + place) * SCRAPE_S: value for place, value in enumerate(values)},
    )


def told(*series: Series) -> dict[str, float]:
    """Gives what is told of a fault that began with the seventh scrape."""
    if program("promtool") is None:
        lacking("promtool is missing; Debian has it in the package prometheus")
    begun_s, held_s = BEGIN_S + (BEFORE - 1) * SCRAPE_S + 1, BEGIN_S + SCRAPES * SCRAPE_S
    return replayed(Recording(series=series, begun_s=begun_s, held_s=held_s))


def alive(**labels: str) -> list[Series]:
    """Gives what every process shows, and a worker that does its rounds."""
    rounds = [float(each) for each in range(SCRAPES)]
    return [
        scraped("up", [1.0] * SCRAPES, **labels),
        scraped("payrelay_build_info", [1.0] * SCRAPES, **labels),
        scraped("payrelay_worker_rounds_total", rounds, **labels),
    ]


@pytest.mark.process
def test_nothing_is_told_of_a_service_that_is_well() -> None:
    """Counters that stood still in the time that is added would ring for a worker that hangs."""
    assert told(*alive()) == {}


@pytest.mark.process
def test_a_process_that_is_gone_stays_gone() -> None:
    """The rule waits for two minutes; the drill does not, and is told of all the same."""
    gone = {BEGIN_S + tick * SCRAPE_S: float(tick < BEFORE) for tick in range(SCRAPES)}
    shown = [Series(labels=each.labels, values=dict(list(each.values.items())[:BEFORE])) for each in alive()[1:]]
    alerts = told(Series(labels=alive()[0].labels, values=gone), *shown, *alive(instance="b"))

    assert set(alerts) == {"PayrelayDown"}
    assert 120 <= alerts["PayrelayDown"] <= 120 + 2 * SCRAPE_S


@pytest.mark.process
def test_a_counter_goes_on_growing() -> None:
    """A fault of ten seconds has hardly any failed requests; one that goes on has as many in every ten seconds."""
    answered = scraped(REQUESTS, [float(each) for each in range(SCRAPES)], status="200")
    failed = scraped(REQUESTS, [1.0, 2.0, 3.0, 4.0, 5.0], status="503")

    assert set(told(*alive(), answered, failed)) == {"PayrelayRequestsFailing"}
    assert told(*alive(), answered) == {}


@pytest.mark.process
def test_the_counters_of_a_process_that_was_started_anew_go_on_growing() -> None:
    """They begin at 0, below what the process before had come to: its worker would seem to stand still."""
    up, build, _ = alive()
    rounds = [float(500 + each) for each in range(BEFORE)] + [float(each) for each in range(SCRAPES - BEFORE)]

    assert told(up, build, scraped("payrelay_worker_rounds_total", rounds)) == {}


@pytest.mark.process
def test_what_rang_before_the_fault_is_told_apart() -> None:
    """An alert that rings in peace would pass for one that noticed something."""
    alerts = told(*alive(), scraped("payrelay_database_behind", [1.0] * SCRAPES))

    assert alerts["PayrelayDatabaseBehind"] < 0


@pytest.mark.process
def test_what_rang_within_the_first_scrape_of_the_fault_did_not_ring_before() -> None:
    """Scrapes have a grid of their own, which may place one before a fault that it has seen."""
    begun_s = BEGIN_S + (BEFORE - 1) * SCRAPE_S + 1
    ticks = [BEGIN_S + tick * SCRAPE_S for tick in range(SCRAPES)]
    values = {at_s + 1.5 if at_s + 1 == begun_s else at_s: float(at_s + 1 >= begun_s) for at_s in ticks}
    behind = scraped("payrelay_database_behind", [0.0] * SCRAPES)

    assert told(*alive(), Series(labels=behind.labels, values=values))["PayrelayDatabaseBehind"] == 0


@pytest.mark.parametrize(
    ("harms", "told_by", "is_wrong"),
    [
        (True, {"PayrelayDown": 120.0}, False),
        (True, {"PayrelayDown": 301.0}, True),
        (True, {"PayrelayDown": -1.0}, True),
        (True, {}, True),
        (True, None, False),
        (False, {}, False),
        (False, {"PayrelayDown": 0.0}, True),
    ],
)
def test_a_drill_is_wrong_without_the_right_alert(
    *, harms: bool, told_by: dict[str, float] | None, is_wrong: bool
) -> None:
    """Harm that nobody notices, and an alert of nothing, are both as bad as a false answer."""
    assert bool(Row(name="drill", harms=harms, told_by=told_by).wrong_alerts()) is is_wrong
