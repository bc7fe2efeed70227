"""The sockets of accepted connections, found among the open files of this process.

The HTTP server accepts connections by itself, and neither limits nor shows them. Linux shows every open file of a
process in ``/proc/self/fd``; of a socket it tells both ends, what waits to be read by the other end, and how much that
end has taken so far.

The server's own thread may close a socket at any moment, and another file may then get its number. So a socket is only
ever changed through a copy of its descriptor, and only after the copy has shown the same other end.

No file but a socket may be copied. To close a copy drops every lock that this process has on the file, and SQLite holds
such locks: the service would go on with an old view of its database.
"""

import errno
import fcntl
import os
import socket
import stat
import struct
import termios
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from payrelay.api.connections.connection import Peer

_ANY_HOST: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104, nothing listens here
_FILES: Final = "/proc/self/fd"
_TAKEN_AT: Final = 120
"""Where ``tcpi_bytes_acked`` stands in Linux's ``struct tcp_info``, an unsigned number of 8 bytes."""
_TCP_INFO_BYTES: Final = 128
_NO_BYTES: Final = bytes(struct.calcsize("i"))
"""In place of which the kernel gives a number."""
_DROP_UNSENT: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: the kernel keeps nothing of what was not read yet."""


class SocketState(NamedTuple):
    """One accepted connection as the kernel shows it.

    Attributes:
        peer: the other end.
        is_new: not seen before.
        waiting: bytes that the other end has not taken yet.
        taken: bytes that it has taken in all; 0 where none wait.
    """

    peer: Peer
    is_new: bool
    waiting: int
    taken: int


class _Known(NamedTuple):
    """What is known of an open file; ``peer`` is None where it is no accepted connection."""

    inode: int
    peer: Peer | None


class AcceptedSockets:
    """The connections that a socket which listens has accepted: those to its host and port, or to its port of any host.

    Another socket of this process may listen at the same port of another host. One that listens at several hosts may be
    reached at two of them from one address and port. The server tells requests on those two apart by nothing: the one
    that was there first stays, and the other is a twin.
    """

    def __init__(self, listener: socket.socket) -> None:
        host, self._port = listener.getsockname()[:2]
        self._host = None if host in _ANY_HOST else host
        self._known: dict[int, _Known] = {}
        self._numbers: dict[Peer, int] = {}
        self._twins: list[tuple[int, Peer]] = []

    def states(self) -> list[SocketState]:
        """Gives the state of each accepted connection that is open now, but of twins.

        Raises OSError where no file can be opened.
        """
        known: dict[int, _Known] = {}
        found: dict[int, SocketState] = {}
        for name in os.listdir(_FILES):  # noqa: PTH208 - a path for each of some thousand files takes longer than all else
            number = int(name)
            before = self._known.get(number)
            try:
                status = os.fstat(number)
                is_new = before is None or before.inode != status.st_ino
                if before is None or is_new:
                    is_socket = stat.S_ISSOCK(status.st_mode)
                    before = _Known(status.st_ino, self._peer(number) if is_socket else None)
                known[number] = before
                if before.peer is not None:
                    found[number] = _state(number, before.peer, is_new=is_new)
            except OSError:  # closed meanwhile
                continue
        self._known = known
        first, self._numbers = self._numbers, {}
        for number, state in found.items():
            stays = self._numbers.setdefault(state.peer, number)
            if stays != number and _age(number, state, first) >= _age(stays, found[stays], first):
                self._numbers[state.peer] = number
        self._twins = [(number, state.peer) for number, state in found.items() if self._numbers[state.peer] != number]
        return [state for number, state in found.items() if self._numbers[state.peer] == number]

    def close(self, peer: Peer) -> None:
        """Ends a connection, and has the kernel drop what was not read; nothing where it has gone already."""
        number = self._numbers.get(peer)
        if number is not None:
            self._drop(number)

    def close_twins(self) -> list[Peer]:
        """Ends the twins of the last look, and gives their peers."""
        for number, _ in self._twins:
            self._drop(number)
        return [peer for _, peer in self._twins]

    def _drop(self, number: int) -> None:
        with suppress(OSError), _copy_of(number) as copy:
            if os.fstat(copy.fileno()).st_ino == self._known[number].inode:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_UNSENT)
                copy.shutdown(socket.SHUT_RDWR)

    def _peer(self, number: int) -> Peer | None:
        """Gives the other end of an accepted connection; None for every other open file. Raises OSError."""
        try:
            with _copy_of(number) as copy:
                if copy.family not in {socket.AF_INET, socket.AF_INET6}:
                    return None
                host, port = copy.getsockname()[:2]
                return _other_end(copy) if port == self._port and self._host in {None, host} else None
        except OSError as error:
            if error.errno in {errno.ENOTSOCK, errno.ENOTCONN}:  # no socket, or one that listens
                return None
            raise


def _age(number: int, state: SocketState, first: Mapping[Peer, int]) -> tuple[bool, bool]:
    """Gives what decides which of one peer's stays: the one that stayed at the last look, or else was there."""
    return not state.is_new, number == first.get(state.peer)


def _state(number: int, peer: Peer, *, is_new: bool) -> SocketState:
    """Reads the state of a connection; raises OSError where it is gone."""
    queued: int = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, _NO_BYTES))[0]
    taken = 0
    if queued > 0:
        with _copy_of(number) as copy:
            info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        # Where a kernel tells less of a connection, whoever reads on slowly is closed after a minute.
        (taken,) = struct.unpack_from("=Q", info.ljust(_TCP_INFO_BYTES, b"\0"), _TAKEN_AT)
    return SocketState(peer, is_new, queued, taken)


def _other_end(copy: socket.socket) -> Peer:
    """Gives the other end as the server names it; raises OSError where there is none."""
    host, port = copy.getpeername()[:2]
    return str(host).partition("%")[0], int(port)


def _copy_of(number: int) -> socket.socket:
    """Copies the descriptor of a socket; raises OSError where it is closed, or another file has its number now."""
    copy = os.dup(number)
    if not stat.S_ISSOCK(os.fstat(copy).st_mode):
        # It stays open for good: to close it would drop the locks on that file. That happens once in years, if ever.
        raise OSError(errno.ENOTSOCK, "no socket")
    return socket.socket(fileno=copy)
