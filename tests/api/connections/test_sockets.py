import fcntl
import os
import socket
from pathlib import Path

from payrelay.api.connections.sockets import AcceptedSockets


def is_locked(path: Path) -> bool:
    """True where this process has a lock on a file, as the kernel shows it."""
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(fields[4] == str(os.getpid()) and fields[5].endswith(f":{path.stat().st_ino}") for fields in lines)


def test_the_locks_of_a_database_stay(tmp_path: Path) -> None:
    """Whoever closes a copy of a file's descriptor drops the locks on it: SQLite would lose its own."""
    path = tmp_path / "payrelay.db"
    with path.open("w") as file, socket.create_server(("127.0.0.1", 0)) as listener:
        fcntl.lockf(file, fcntl.LOCK_EX)
        AcceptedSockets(listener.getsockname()[1]).states()
        assert is_locked(path)


def test_only_accepted_connections_are_found() -> None:
    """Connections that this process opened itself are none of a caller's, and are never closed."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as caller,
        listener.accept()[0] as accepted,
    ):
        sockets = AcceptedSockets(listener.getsockname()[1])
        (state,) = sockets.states()
        assert (state.peer, state.is_new, state.waiting) == (accepted.getpeername(), True, 0)
        assert [again.is_new for again in sockets.states()] == [False]
        sockets.close(state.peer)
        assert caller.recv(1) == b""
