"""File systems of SQLite's that tell of syncs, and one that forgets: its copies of the files have only what was synced.

After a loss of power a disk may have lost everything that was written since the last sync. The copies are such a disk.
SQLite hands the work on to its usual file system; after each sync of a file its copy is made anew.
"""

import _sqlite3  # its library has the functions that the standard library doesn't offer
import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_OK: Final = 0
_TOLD: Final = 0x00000100 | 0x00080000
"""The flags with which a database and its log are opened."""
_METHODS: Final = ("xClose", "xRead", "xWrite", "xTruncate", "xSync", "xFileSize", "xLock", "xUnlock")
_REST: Final = 10
"""The methods behind these, in the newest version of their table."""

_Open: Any = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
_Sync: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Methods(ctypes.Structure):
    """SQLite's table of what can be done with an open file (``sqlite3_io_methods``)."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in _METHODS),
        ("rest", ctypes.c_void_p * _REST),
    )


class _System(ctypes.Structure):
    """SQLite's table of a file system (``sqlite3_vfs``)."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        ("xOpen", ctypes.c_void_p),
        ("rest", ctypes.c_void_p * 15),
    )


_IN_USE: Final["list[SyncSystem]"] = []
"""SQLite knows them by their addresses only, and calls them until the process ends."""


class SyncSystem:
    """The file system of this process from now on, for as long as it lives; ``synced`` hears of each sync of a file."""

    def __init__(self, synced: Callable[[str], None]) -> None:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_System)
        self._synced = synced
        self._usual = library.sqlite3_vfs_find(None).contents
        self._paths: dict[int, str] = {}
        self._tables: dict[int, tuple[_Methods, Any]] = {}
        self._system = _System()
        ctypes.memmove(ctypes.byref(self._system), ctypes.byref(self._usual), ctypes.sizeof(_System))
        self._open = _Open(self._opened)
        self._system.zName = b"telling"
        self._system.xOpen = ctypes.cast(self._open, ctypes.c_void_p)
        _IN_USE.append(self)
        library.sqlite3_vfs_register(ctypes.byref(self._system), 1)

    def _opened(self, _: int, name: int | None, file: int, flags: int, given: int | None) -> int:
        """Opens a file as usual; where it is a database or its log, its syncs go through ``_own``."""
        status: int = _Open(self._usual.xOpen)(ctypes.addressof(self._usual), name, file, flags, given)
        if status == _OK and flags & _TOLD and name is not None:
            self._paths[file] = ctypes.string_at(name).decode()
            self.begin(self._paths[file])
            place = ctypes.c_void_p.from_address(file)
            assert place.value is not None  # a file that was opened has methods
            place.value = ctypes.addressof(self._own(place.value))
        return status

    def _own(self, address: int) -> _Methods:
        """Gives the table of methods in place of a usual one, which many files share."""
        if address not in self._tables:
            own = _Methods()
            ctypes.memmove(ctypes.byref(own), address, ctypes.sizeof(_Methods))
            usual = _Sync(own.xSync)

            def synced(file: int, flags: int) -> int:
                status: int = usual(file, flags)
                if status == _OK:
                    self._synced(self._paths[file])
                return status

            sync = _Sync(synced)
            own.xSync = ctypes.cast(sync, ctypes.c_void_p)
            self._tables[address] = own, sync
        return self._tables[address][0]

    def begin(self, path: str) -> None:
        """Hears of a file that was opened."""


class ForgettingSystem(SyncSystem):
    """A file system whose copies of the files, in ``folder``, have only what was synced."""

    def __init__(self, folder: Path) -> None:
        super().__init__(self._copy)
        self._folder = folder

    def begin(self, path: str) -> None:
        """Copies what the file has before this process writes: it is on disk."""
        if not (self._folder / Path(path).name).exists():
            self._copy(path)

    def _copy(self, path: str) -> None:
        """Makes the copy of a file anew, whole or not at all: the process may be killed at any moment."""
        copy = self._folder / Path(path).name
        draft = copy.with_suffix(".draft")
        shutil.copyfile(path, draft)
        draft.replace(copy)
