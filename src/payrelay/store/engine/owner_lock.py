"""The lock of the process that owns an embedded database.

It is a lock of the operating system's, on a file of its own. The kernel releases it when the process ends, however it
ends, so no operator ever has to remove it.
"""

import fcntl
import os
from pathlib import Path
from typing import Final

from payrelay.errors import StoreUnusable

_FILE_MODE: Final = 0o600
_PID_BYTES_MAX: Final = 20
"""The digits of a 64-bit number."""


class OwnerLock:
    """Held from construction to ``release``; raises StoreUnusable, with the holder's pid, when another process has it.

    Args:
        path: the lock's file; made where it is missing, and left there.
        name: the locked database, as the message names it.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, _PID_BYTES_MAX).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreUnusable(
                f"{name}: another Payrelay process (pid {holder}) is running on this database"
            ) from None
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)

    @classmethod
    def of_database(cls, path: Path) -> "OwnerLock":
        """Locks the SQLite database at ``path`` by a file beside it. Raises StoreUnusable as construction does."""
        return cls(path.with_name(f"{path.name}.lock"), str(path))

    def release(self) -> None:
        """Releases the lock. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
