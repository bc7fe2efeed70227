import pytest

from payrelay.api.http.capacity import CONNECTIONS_MAX, CONNECTIONS_MIN, connections_max, files_max, held_max


@pytest.mark.parametrize(("files", "connections"), [(16, CONNECTIONS_MIN), (1024, 768), (1_048_576, CONNECTIONS_MAX)])
def test_connections_leave_files_for_the_rest(files: int, connections: int) -> None:
    """The store and the gateway need files however many clients connect; and however few there are, some are served."""
    assert connections_max(files) == connections


@pytest.mark.parametrize(("files", "held"), [(16, 16), (1024, 192), (1_048_576, 1_000)])
def test_those_who_wait_leave_connections_for_the_rest(files: int, held: int) -> None:
    """With the usual limit of open files a thousand who wait would be all the connections that there are."""
    assert held_max(files) == held


def test_the_limit_is_read_from_the_process() -> None:
    """A process that could open nothing would not run this."""
    assert files_max() > 3
