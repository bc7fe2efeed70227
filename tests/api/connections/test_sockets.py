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
        AcceptedSockets(listener).states()
        assert is_locked(path)


def test_only_accepted_connections_are_found() -> None:
    """Connections that this process opened itself are none of a caller's, and are never closed."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as caller,
        listener.accept()[0] as accepted,
    ):
        sockets = AcceptedSockets(listener)
        (state,) = sockets.states()
        assert (state.peer, state.is_new, state.waiting) == (accepted.getpeername(), True, 0)
        assert [again.is_new for again in sockets.states()] == [False]
        sockets.close(state.peer)
        assert caller.recv(1) == b""


def test_a_port_of_another_host_is_another_door() -> None:
    """Console and API may listen at one port of two hosts: what comes to one is none of the other's limits."""
    with (
        socket.create_server(("127.0.0.1", 0)) as here,
        socket.create_server(("127.0.0.2", here.getsockname()[1])) as there,
        socket.create_server(("", 0)) as anywhere,
    ):
        callers = [socket.create_connection(each.getsockname()) for each in (here, there, there)]
        callers.append(socket.create_connection(("127.0.0.3", anywhere.getsockname()[1])))
        accepted = [here.accept()[0], there.accept()[0], there.accept()[0], anywhere.accept()[0]]
        found = [len(AcceptedSockets(each).states()) for each in (here, there, anywhere)]
        for each in (*callers, *accepted):
            each.close()

    assert found == [1, 2, 1]


def test_two_connections_of_one_source_port_are_one() -> None:
    """The server tells them apart by nothing: whoever opens pairs would have two places, and be counted once."""
    with socket.create_server(("", 0)) as listener, socket.socket() as first, socket.socket() as second:
        port = listener.getsockname()[1]
        for each in (first, second):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sockets = AcceptedSockets(listener)
        first.bind(("127.0.0.9", 0))
        first.connect(("127.0.0.1", port))
        with listener.accept()[0] as stays:
            assert [state.peer for state in sockets.states()] == [stays.getpeername()]
            second.bind(first.getsockname())
            second.connect(("127.0.0.2", port))
            with listener.accept()[0]:
                for _ in range(3):
                    assert [state.peer for state in sockets.states()] == [stays.getpeername()]
                    assert sockets.close_twins() == [stays.getpeername()]
                assert second.recv(1) == b""
            stays.send(b"x")
            assert first.recv(1) == b"x"
            assert ([state.is_new for state in sockets.states()], sockets.close_twins()) == ([False], [])
