"""A backup gives way to the service on a busy machine."""

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from payrelay.backups.store.priority import BACKUP_NICENESS, step_back
from payrelay.backups.store.programs import run_program

UNTIL_NICE: Final = 'for i in $(seq 500); do [ "$(nice)" -ge "$1" ] && exit 0; done; exit 1'


def _of_thread() -> int:
    number = threading.get_native_id()
    step_back(number)
    return os.getpriority(os.PRIO_PROCESS, number)


@pytest.mark.process
async def test_the_programs_of_the_server_step_back() -> None:
    """They compress gigabytes, and charges wait for the same processors."""
    await run_program(dict(os.environ), "sh", "-c", UNTIL_NICE, "sh", str(BACKUP_NICENESS))


def test_only_the_thread_of_the_copy_steps_back() -> None:
    """The rest of the command keeps its priority."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(_of_thread).result() >= BACKUP_NICENESS

    assert os.getpriority(os.PRIO_PROCESS, 0) == own


@pytest.mark.process
def test_who_has_stepped_back_further_stays_there() -> None:
    """An operator may have started the backup with the lowest priority; and who has ended is no matter."""
    with subprocess.Popen(["nice", "-n", "19", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"it runs\n")
        process.stdin.flush()
        process.stdout.readline()
        step_back(process.pid)
        niceness = os.getpriority(os.PRIO_PROCESS, process.pid)
        process.stdin.close()
    step_back(process.pid)

    assert niceness == 19
