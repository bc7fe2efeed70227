"""Reads from outside what a process does: each thread's processor time, the programs it runs in, its system calls."""

import contextlib
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import programs

PROGRAM_RATE: Final = 997
"""Samples in a second of processor time; a prime, so that nothing regular beats with it."""
ATTACH_S: Final = 1.0
"""What a tracer gets to attach itself before the load begins."""

LOOP: Final = "event loop"
COMMITS: Final = "SQLite's commits"
RUNTIME: Final = "the server's runtime"
CALLS: Final = "the server's calls to Python"
OTHERS: Final = "other threads"
THREADS: Final = (LOOP, COMMITS, RUNTIME, CALLS, OTHERS)
"""What threads are for, in the table's order."""

_COMMIT_THREAD: Final = "payrelay-writer"
_POLLS: Final = "poll"
"""Is in the name of what waits for sockets in the kernel, whatever its version."""
_NAMED: Final = ("payrelay-", "libuv-")

KINDS_OF_PROGRAM: Final = (
    ("kernel", ("[kernel", "[vdso")),
    ("SQLite", ("libsqlite3", "_sqlite3")),
    ("C library", ("libc.so", "libc-", "libm.so", "libpthread", "ld-linux")),
    ("Granian", ("granian",)),
    ("uvloop", ("uvloop",)),
    ("msgspec", ("msgspec",)),
    ("asyncpg", ("asyncpg",)),
    ("httptools", ("httptools",)),
    ("cryptography", ("libcrypto", "libssl", "_hashlib", "_sha2", "cryptography")),
    ("Python", ("libpython", "/python")),
)
"""Programs and libraries, by what their file's path has in it; the first that fits counts."""
OTHER_PROGRAM: Final = "others"

_SYMBOL_FILE: Final = re.compile(r"\(([^()]*(?:\([^()]*\))?[^()]*)\)\s*$")
_TRACED: Final = re.compile(r"^\s+(\w+)\s+(\d+)\s+\d+\s+[\d.]+\s")
_LOST: Final = re.compile(r"LOST (\d+) events")


class ThreadTime(NamedTuple):
    """The processor time of one thread so far, and what it is for."""

    what_for: str
    cpu_ns: int


def threads(pid: int, known: dict[int, str] | None = None) -> dict[int, ThreadTime]:
    """Gives the processor time of each thread of a process, from the scheduler's own count in nanoseconds.

    ``known`` has what threads are for, by an earlier look: while load is on, a thread's wait shows nothing.
    """
    found = {}
    folder = Path(f"/proc/{pid}/task")
    usual = (folder / str(pid) / "comm").read_text()
    for each in folder.iterdir():
        with contextlib.suppress(OSError):  # it ended between two looks
            number = int(each.name)
            cpu_ns = int((each / "schedstat").read_text().split()[0])
            what_for = (known or {}).get(number) or (LOOP if number == pid else _what_for(each, usual))
            found[number] = ThreadTime(what_for, cpu_ns)
    return found


def _what_for(thread: Path, usual: str) -> str:
    """Tells it by its name, and of the server's nameless ones by what they wait for: sockets, or something to call."""
    name = (thread / "comm").read_text()
    if name.startswith(_COMMIT_THREAD):
        return COMMITS
    if name.startswith(_NAMED) or name != usual:
        return OTHERS
    return RUNTIME if _POLLS in (thread / "wchan").read_text() else CALLS


def spent_ns(before: dict[int, ThreadTime], after: dict[int, ThreadTime]) -> Counter[str]:
    """Gives the time between two looks, by what threads are for."""
    spent: Counter[str] = Counter()
    for number, thread in after.items():
        was = before.get(number)
        spent[thread.what_for] += thread.cpu_ns - (was.cpu_ns if was is not None else 0)
    return spent


def missing(program: str, package: str) -> str:
    """Says what isn't measured because a program is missing; empty where it is there."""
    return "" if shutil.which(program) else f"{program} is missing (on Debian: apt-get install {package})"


@contextlib.contextmanager
def programs_sampled(pid: int, file: Path, core: int) -> Iterator[None]:
    """Notes with ``perf record`` in which program the process is, while the block lasts."""
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(PROGRAM_RATE), "-p", str(pid), "-o", str(file)]
    with _beside(record, core, file.with_suffix(".out")):
        yield


def program_shares(file: Path) -> Counter[str]:
    """Gives how often each kind of program was sampled."""
    told = subprocess.run(
        ["perf", "script", "-i", str(file), "-F", "ip,sym,dso"], check=True, capture_output=True, text=True
    )
    return Counter(kind_of_program(line) for line in told.stdout.splitlines() if line.strip())


def kind_of_program(line: str) -> str:
    """Names the kind of program in a line of ``perf script``, which ends with the program's file in brackets."""
    found = _SYMBOL_FILE.search(line)
    path = found.group(1) if found else ""
    for kind, parts in KINDS_OF_PROGRAM:
        if any(part in path for part in parts):
            return kind
    return OTHER_PROGRAM


@contextlib.contextmanager
def calls_traced(pid: int, file: Path, core: int) -> Iterator[None]:
    """Counts with ``perf trace`` what the process asks of the kernel, while the block lasts."""
    with _beside(["perf", "trace", "-s", "-p", str(pid), "-o", str(file)], core, file.with_suffix(".out")):
        yield


def calls_in(text: str) -> Counter[str]:
    """Gives the number of each system call in what ``perf trace -s`` wrote.

    Raises ProgramError where it says that it lost some: each number would be too low.
    """
    lost = sum(int(number) for number in _LOST.findall(text))
    if lost:
        raise programs.ProgramError(f"perf trace lost {lost} events")
    counted: Counter[str] = Counter()
    for line in text.splitlines():
        found = _TRACED.match(line)
        if found:
            counted[found.group(1)] += int(found.group(2))
    return counted


@contextlib.contextmanager
def _beside(command: list[str], core: int, output: Path) -> Iterator[None]:
    """Runs a program that watches, and ends it with the block as Ctrl-C would, so that it writes what it saw."""
    with output.open("wb") as out:
        process = subprocess.Popen(programs.pinned(core, command), stdout=out, stderr=subprocess.STDOUT)
        try:
            time.sleep(ATTACH_S)
            if process.poll() is not None:
                raise programs.ProgramError(f"{command[0]} {command[1]}: {output.read_text(errors='replace')[-500:]}")
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(programs.STOP_S_MAX)
