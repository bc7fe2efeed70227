import pytest
from tests.api.fakes import Keyring, MovableClock
from tests.heartbeats import heartbeat_of

from payrelay.api.metrics.store_gauges import StoreHealthGauges, StoreSources
from payrelay.core.database.store_status import StoreStatus
from payrelay.errors import StoreFault

STATUS = StoreStatus(
    connections_max=16,
    connections_open=5,
    connections_used=4,
    waiting=2,
    failed={StoreFault.BUSY: 3},
    server_changes=1,
    disk_free_bytes=10_000,
)


def gauges_of(keyring: Keyring, clock: MovableClock, *, is_readable: bool = True) -> StoreHealthGauges:
    """Makes the gauges of a store whose heartbeats the test rules."""
    sources = StoreSources(heartbeat_of(clock, keyring), lambda: STATUS, lambda: {"gateway": -90.0})
    return StoreHealthGauges(sources, lambda: is_readable)


def value(gauges: StoreHealthGauges, name: str, **labels: str) -> float | None:
    """Gives one number as Prometheus would read it."""
    return gauges.registry.get_sample_value(f"payrelay_{name}", labels)


@pytest.mark.parametrize(("is_broken", "is_readable", "up"), [(False, True, 1), (True, True, 0), (False, False, 0)])
async def test_up_means_read_and_written(
    keyring: Keyring, clock: MovableClock, *, is_broken: bool, is_readable: bool, up: int
) -> None:
    """A store with a full disk can be read for days while no charge is accepted."""
    keyring.is_broken = is_broken
    gauges = gauges_of(keyring, clock, is_readable=is_readable)
    await gauges.refresh()

    assert value(gauges, "store_up") == up
    assert value(gauges, "store_writable") == (not is_broken)
    assert value(gauges, "store_fault", fault="disk_full") == is_broken
    assert value(gauges, "store_fault", fault="busy") == 0


async def test_the_pool_the_failures_and_the_clocks_are_shown(keyring: Keyring, clock: MovableClock) -> None:
    """What an operator asks first when answers are slow or fail."""
    gauges = gauges_of(keyring, clock)
    await gauges.refresh()

    names = ("connections_max", "connections_open", "connections_used", "waiting", "disk_free_bytes")
    assert [value(gauges, f"store_{name}") for name in names] == [16, 5, 4, 2, 10_000]
    assert value(gauges, "store_errors_total", fault="busy") == 3
    assert value(gauges, "store_errors_total", fault="disk_full") == 0
    assert value(gauges, "store_server_changes_total") == 1
    assert value(gauges, "gateway_clock_difference_seconds", account="gateway") == -90
    assert value(gauges, "database_clock_difference_seconds") is None
