"""What lives as long as the process is tried on the world of the flows."""

from tests.flows.conftest import world

__all__ = ["world"]
