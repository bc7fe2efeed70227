"""Counts the instructions that readers take for texts of growing length; a program for Callgrind to run.

``measured`` runs it. Counted is what the processor is told to do, in Python's own C code too: no time, so a busy
machine counts the same. A count of Python's calls would miss a regular expression that looks at one character a
thousand times.
"""

import ctypes
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.needed import lacking
from tests.readers.reader import Reader, Shape
from tests.sources import ROOT

STEPS: Final = (8, 4, 2, 1)
"""The parts of the longest text that are read, each twice as long as the one before."""
DOUBLED_MAX: Final = 2.5
"""How much more a text of twice the length may take: twice, and more where a table happens to grow. A reader whose work
grows with the square comes near to 4."""
GROWN_MAX: Final = 10.0
"""How much more the longest text may take than an eighth of it, over which such steps even out: eight times, and a
little for what is sorted."""
_TRIGGER: Final = re.compile(r"^desc: Trigger: Client Request: (\d+)$", re.MULTILINE)
_SUMMARY: Final = re.compile(r"^summary: (\d+)$", re.MULTILINE)
_SOURCE: Final = Path(__file__).with_name("instructions.c")


class Callgrind:
    """What counts, from within the program that it runs."""

    def __init__(self, library: Path, counts: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._counts = counts
        self._number = 0
        gc.disable()
        gc.collect()
        gc.freeze()  # what the product consists of isn't looked through after each reading
        self._library.begin()

    def count(self, reader: Reader, text: bytes) -> int:
        """Gives the instructions of one reading."""
        gc.collect()
        self._number += 1
        self._library.from_nothing()
        reader.take(text)
        self._library.counted_as(b"%d" % self._number)
        part = Path(f"{self._counts}.{self._number}")
        found = part.read_text()
        part.unlink()
        trigger, summary = _TRIGGER.search(found), _SUMMARY.search(found)
        if trigger is None or summary is None or int(trigger[1]) != self._number:
            raise ValueError(f"{part} isn't the count of reading {self._number}")
        return int(summary[1])


def growth(callgrind: Callgrind, reader: Reader, shape: Shape) -> list[int]:
    """Counts ever longer texts of a shape, up to the longest, or to the first that takes too much."""
    counts: list[int] = []
    reader.take(shape.of(max(reader.longest // (2 * STEPS[0]), 1)))  # what is done once, and kept
    for step in STEPS:
        counts.append(callgrind.count(reader, shape.of(reader.longest // step)))
        if is_too_much(counts):
            break
    return counts


def is_too_much(counts: list[int]) -> bool:
    """True where the last text took much more than twice as much as the one before, or than the first by its length."""
    is_step = len(counts) > 1 and counts[-1] > DOUBLED_MAX * counts[-2]
    return is_step or (len(counts) == len(STEPS) and counts[-1] > GROWN_MAX * counts[0])


def excess(counted: dict[str, list[int]]) -> list[str]:
    """Names what grows too fast, with its counts."""
    return [
        f"{name}: {' '.join(f'{count:,}' for count in counts)}"
        for name, counts in counted.items()
        if is_too_much(counts)
    ]


def measured(*modules: str) -> dict[str, list[int]]:
    """Runs this program under Callgrind on the ``READERS`` of modules.

    Gives the counts by the names of reader and shape. Skips a test where valgrind or a compiler is missing.
    """
    valgrind, compiler = shutil.which("valgrind"), shutil.which("cc")
    if valgrind is None or compiler is None:
        lacking("valgrind or a C compiler is missing; on Debian: apt-get install valgrind gcc libc6-dev")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = folder / "instructions.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
        counts = folder / "counts"
        counting = [valgrind, "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={counts}"]
        program = [sys.executable, "-m", "tests.readers.measure", str(library), str(counts), *modules]
        ran = subprocess.run(
            [*counting, *program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            check=True,
        )
    found: dict[str, list[int]] = json.loads(ran.stdout)
    return found


def main(arguments: Iterable[str]) -> None:
    """Counts, and prints the counts as JSON."""
    library, counts, *modules = arguments
    readers: list[Reader] = [reader for module in modules for reader in import_module(module).READERS]
    for reader in readers:  # what is imported or compiled at the first use
        for shape in reader.shapes:
            reader.take(shape.of(1))
    callgrind = Callgrind(Path(library), Path(counts))
    counted = {
        f"{reader.name}, {shape.name}": growth(callgrind, reader, shape)
        for reader in readers
        for shape in reader.shapes
    }
    print(json.dumps(counted))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
