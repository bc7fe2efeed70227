"""The service that clients are played against."""

from collections.abc import Iterator

import pytest
from clients.conformance.service import Service, running_service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service and the simulator, for all stories of a client."""
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running
