"""What the figures were measured on, and with what."""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import msgspec

import programs

PACKAGES = ("payrelay", "granian", "aiohttp", "asyncpg", "msgspec", "uvloop", "fastapi", "uvicorn", "httpx", "pydantic")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The facts beside the figures."""

    processor: str
    cores: int
    memory_gb: float
    kernel: str
    file_system: str
    load_average: float
    commit: str
    programs: list[str]
    packages: list[str]


def describe(folder: Path, database_version: str) -> Machine:
    """Looks at the machine, and at the disk that the folder is on."""
    memory_kb = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return Machine(
        processor=processor(),
        cores=os.cpu_count() or 0,
        memory_gb=round(int(memory_kb.group(1)) / 1e6, 1) if memory_kb else 0,
        kernel=platform.release(),
        file_system=_first_line(["findmnt", "-n", "-o", "FSTYPE", "-T", str(folder)]),
        load_average=os.getloadavg()[0],
        commit=commit(),
        programs=[
            f"Python {platform.python_version()}",
            _first_line([programs.program_path("nginx"), "-v"]),
            re.sub(r" Copyright.*", "", _first_line(["wrk", "-v"])),
            *([database_version] if database_version else []),
        ],
        packages=[f"{name} {_version(name)}" for name in PACKAGES],
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def processor() -> str:
    """Gives what the processor calls itself."""
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def commit() -> str:
    """Gives the commit that is measured and its version, and says where the sources differ from the commit."""
    here = str(Path(__file__).parent)
    found = _first_line(["git", "-C", here, "rev-parse", "--short=12", "HEAD"])
    is_clean = not _first_line(["git", "-C", here, "status", "--porcelain", "--", "../src"])
    measured = f"{found} of version {_version('payrelay')}"
    return measured if is_clean else f"{measured}, changed"


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return (done.stdout or done.stderr).strip().split("\n")[0]
