import resource
import subprocess
import sys

import pytest

from payrelay.api.http.capacity import (
    ADDRESSES_BESIDE,
    CONNECTIONS_BESIDE_MAX,
    CONNECTIONS_MAX,
    CONNECTIONS_MIN,
    FILES_RESERVED,
    connections_beside_max,
    connections_max,
    files_max,
    followers_max,
    held_max,
)

RAISED = """
import resource
from payrelay.api.http.capacity import connections_max, files_max, raise_files_max

resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
raise_files_max()
print(files_max(), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
"""


@pytest.mark.parametrize(("files", "connections"), [(16, CONNECTIONS_MIN), (1024, 768), (1_048_576, CONNECTIONS_MAX)])
def test_connections_leave_files_for_the_rest(files: int, connections: int) -> None:
    """The store and the gateway need files however many clients connect; and however few there are, some are served."""
    assert connections_max(files) == connections


@pytest.mark.parametrize(
    ("files", "connections"), [(1024, CONNECTIONS_MIN), (16_940, 150), (1_048_576, CONNECTIONS_BESIDE_MAX)]
)
def test_the_further_addresses_take_few_files_from_the_rest(files: int, connections: int) -> None:
    """The metrics' own address and the console's must not take what the store and the gateway need."""
    assert connections_beside_max(files) == connections


@pytest.mark.parametrize(("files", "held"), [(16, 16), (1024, 192), (1_048_576, 1_000)])
def test_those_who_wait_leave_connections_for_the_rest(files: int, held: int) -> None:
    """With the usual limit of open files a thousand who wait would be all the connections that there are."""
    assert held_max(files) == held


def test_the_limit_is_read_from_the_process() -> None:
    """A process that could open nothing would not run this."""
    assert files_max() > 3


@pytest.mark.parametrize(("files", "followers"), [(16, 32), (1024, 384), (1_048_576, CONNECTIONS_MAX // 2)])
def test_those_who_follow_leave_a_quarter_of_the_connections(files: int, followers: int) -> None:
    """Thousands of phones may follow their payments; charges, and those who wait for one, come through beside them."""
    assert followers_max(files) == followers
    assert followers_max(files) + held_max(files) <= 3 * connections_max(files) // 4


@pytest.mark.process
@pytest.mark.parametrize(("soft", "hard"), [(256, 512), (512, 512)])
def test_a_service_opens_as_many_files_as_it_may(soft: int, hard: int) -> None:
    """Most systems start a process with few, and allow it more: with the few it would serve few connections."""
    command = [sys.executable, "-c", RAISED.format(soft=soft, hard=hard)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == [str(hard), str(hard)]


@pytest.mark.process
def test_a_service_asks_for_no_more_files_than_it_needs() -> None:
    """What was allowed for more stays as it is."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    enough = min(hard, CONNECTIONS_MAX + ADDRESSES_BESIDE * CONNECTIONS_BESIDE_MAX + FILES_RESERVED)
    command = [sys.executable, "-c", RAISED.format(soft=256, hard=hard)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == [str(enough), str(hard)]
