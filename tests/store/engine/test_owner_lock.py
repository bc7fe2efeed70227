import os
import subprocess
import sys
from pathlib import Path

import pytest

from payrelay.errors import StoreUnusable
from payrelay.store.engine.owner_lock import OwnerLock

HOLD = """
import sys; from pathlib import Path; from payrelay.store.engine.owner_lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]), "place"); print("held", flush=True); sys.stdin.read()
"""


def test_a_second_owner_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    """Two services on one file would each take the other's work for stranded."""
    lock = OwnerLock(tmp_path / "lock", "place")

    with pytest.raises(StoreUnusable, match=rf"place: another Payrelay process \(pid {os.getpid()}\)"):
        OwnerLock(tmp_path / "lock", "place")
    lock.release()


def test_a_released_lock_is_free(tmp_path: Path) -> None:
    """A restart follows at once."""
    lock = OwnerLock(tmp_path / "lock", "place")
    lock.release()
    lock.release()

    OwnerLock(tmp_path / "lock", "place").release()


def test_a_lock_without_a_pid_still_holds(tmp_path: Path) -> None:
    """The holder may be just about to write it."""
    lock = OwnerLock(tmp_path / "lock", "place")
    (tmp_path / "lock").write_text("")

    with pytest.raises(StoreUnusable, match="pid unknown"):
        OwnerLock(tmp_path / "lock", "place")
    lock.release()


@pytest.mark.story
def test_a_killed_owner_leaves_no_lock_behind(tmp_path: Path) -> None:
    """After a crash nobody has to remove a file by hand."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(StoreUnusable, match=f"pid {owner.pid}"):
            OwnerLock(tmp_path / "lock", "place")
        owner.kill()
        owner.wait()

        OwnerLock(tmp_path / "lock", "place").release()
