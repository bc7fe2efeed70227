"""Holds code to starting no process."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_process() -> Iterator[None]:
    """Raises AssertionError at the end where a process was started inside, and waited for.

    It asks the system once before and once after. A hook on Python's events would run in the midst of whatever else
    happens in the program, such as a thread that coverage begins to trace.
    """
    before = _faults_of_ended_children()
    yield
    if _faults_of_ended_children() != before:
        raise AssertionError("a unit starts a process: mark it as story or integration")


def _faults_of_ended_children() -> int:
    """Gives the page faults of all processes that this one has started and waited for: none begins without any."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
