"""Lets the service have the processors before a backup."""

import os
from contextlib import suppress
from typing import Final

BACKUP_NICENESS: Final = 10
"""Of ten shares of a busy processor the service gets nine. One is left, so that a backup ends all the same: a
transaction is open for as long as it takes."""


def step_back(number: int) -> None:
    """Lowers the priority of a process, or of a thread by its native id; where the system can't do that, nothing."""
    with suppress(OSError):
        if os.getpriority(os.PRIO_PROCESS, number) < BACKUP_NICENESS:
            os.setpriority(os.PRIO_PROCESS, number, BACKUP_NICENESS)
