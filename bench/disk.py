"""What one sync of the disk takes, in the folder that the databases are in."""

import os
import statistics
import time
from pathlib import Path

SYNCS = 100
WRITTEN_BYTES = 32_768
"""Before each sync: about the pages of the log that a commit of a charge writes."""


def sync_us(folder: Path) -> float:
    """Gives the median time of a sync after a write that goes on behind the one before, as a database's log does."""
    path = folder / "synced"
    taken_s = []
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # As a log that is written again: the file has its size, and only bytes change.
        os.write(descriptor, bytes(WRITTEN_BYTES * SYNCS))
        os.fsync(descriptor)
        for number in range(SYNCS):
            os.pwrite(descriptor, b"x" * WRITTEN_BYTES, number * WRITTEN_BYTES)
            began_s = time.perf_counter()
            os.fdatasync(descriptor)
            taken_s.append(time.perf_counter() - began_s)
    finally:
        os.close(descriptor)
        path.unlink()
    return statistics.median(taken_s) * 1e6
